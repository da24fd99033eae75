"""What the commands of the command line do that need more than the settings."""

import argparse
import gc
import json
import logging
import sys
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import asdict
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from database.reason import reason_of
from memory_service import transfer_commands, upkeep_commands
from memory_service.adapters.embedder_local import EmbedderMissing
from memory_service.adapters.milvus.refusals import IndexBroken, IndexBusy
from memory_service.app import migrate, open_app, server_settings
from memory_service.domain.errors import (
    DomainError,
    EmbedderUnavailable,
    IndexUnavailable,
    InvalidRequest,
)
from memory_service.handlers.failures import failure_of
from memory_service.settings import OFF, Settings
from memory_service.upkeep.reindex import Progress, reindex
from rpc import loop
from rpc.knobs import BAD_SETTINGS
from rpc.lines import DONE, FAILED, complain, tell
from rpc.listen import check_safe, parse
from rpc.server import RunningServer, serve_until_signal, stop_signals
from rpc.telemetry import Metrics, configure_logging, start_metrics
from rpc.workers import run_workers

PROGRAM = "memory-service"


_REFUSALS = (EmbedderMissing, InvalidRequest, ValueError)
"""Settings and options that cannot be followed; BadListen and UnsafeListen are ValueErrors."""
_FAILURES = (
    IndexBusy,
    IndexBroken,
    DomainError,
    SQLAlchemyError,
    OSError,
    RuntimeError,
)


def run(options: argparse.Namespace, settings: Settings) -> int:
    """Run a command and give its exit code; what went wrong is one line on stderr."""
    try:
        return _COMMANDS[options.command](settings, options)
    except _REFUSALS as error:
        complain(PROGRAM, str(error))
        return BAD_SETTINGS
    except _FAILURES as error:
        complain(PROGRAM, _reason(error))
        return FAILED


def _serve(settings: Settings, options: argparse.Namespace) -> int:
    workers = options.workers or settings.workers
    if workers > 1 and (settings.on_sqlite or settings.on_lite):
        what = "SQLite" if settings.on_sqlite else "an embedded Milvus"
        complain(
            PROGRAM,
            f"{what} serves one process: use 1 worker, or MySQL or MariaDB and a Milvus server",
        )
        return BAD_SETTINGS
    check_safe(parse(settings.listen), settings.service_token.get_secret_value())
    _configure_logging(settings)
    if settings.on_sqlite:
        migrate(settings)
    if workers > 1:
        return run_workers(workers, settings.listen, serve_beside_others, grace=settings.grace)
    return loop.run(_serve_here(settings))


def serve_beside_others(address: str, number: int) -> None:
    """Serve in a worker process on the address that the parent holds."""
    settings = Settings()
    _configure_logging(settings)
    sys.exit(loop.run(_serve_here(settings, address=address, number=number, shared=True)))


async def _serve_here(
    settings: Settings, *, address: str = "", number: int = 0, shared: bool = False
) -> int:
    async with AsyncExitStack() as closing:
        closing.callback(_start_metrics(settings, worker=number).close)
        app = await closing.enter_async_context(open_app(settings))
        gc.freeze()  # what was imported stays: looking through it again would cost each request
        if settings.worker:
            await closing.enter_async_context(app.worker.running())
        await serve_until_signal(
            server_settings(settings, listen=address, shared=shared),
            app.service,
            ready=app.ready,
            on_start=_announce,
            on_drain=app.drain,
        )
    return DONE


def _start_metrics(settings: Settings, *, worker: int = 0) -> Metrics:
    token = settings.service_token.get_secret_value()
    return start_metrics(settings.metrics_listen, service_token=token, worker=worker)


def _announce(server: RunningServer) -> None:
    """Say where it listens: with port 0 nobody knows otherwise."""
    tell(f"listening on {server.address}")


def _worker(settings: Settings, _options: argparse.Namespace) -> int:
    _configure_logging(settings)
    if settings.on_sqlite:
        migrate(settings)
    return loop.run(_work(settings))


async def _work(settings: Settings) -> int:
    with stop_signals() as signals:
        async with AsyncExitStack() as closing:
            closing.callback(_start_metrics(settings).close)
            app = await closing.enter_async_context(open_app(settings))
            await closing.enter_async_context(app.worker.running())
            await signals.first.wait()
    return DONE


def _migrate(settings: Settings, options: argparse.Namespace) -> int:
    version = migrate(settings)
    tell(json.dumps({"schema": version}) if options.json else f"the schema is at {version}")
    return DONE


def _reindex(settings: Settings, options: argparse.Namespace) -> int:
    if settings.milvus_address == OFF:
        complain(PROGRAM, "MEMORY_MILVUS_URI is off: there is no index to fill")
        return BAD_SETTINGS
    _configure_logging(settings)
    if settings.on_sqlite:
        migrate(settings)
    return loop.run(_fill(settings, as_json=options.json))


async def _fill(settings: Settings, *, as_json: bool) -> int:
    async with open_app(settings) as app:
        if not await app.is_migrated():
            complain(PROGRAM, "the schema is not current: run `memory-service migrate` first")
            return FAILED
        async for progress in reindex(app.backfill(settings)):
            tell(json.dumps(asdict(progress)) if as_json else _line(progress))
    return DONE


def _line(progress: Progress) -> str:
    said = f"{progress.done} of {progress.total} memories"
    if progress.unusable:
        said += f", {progress.unusable} without a usable vector"
    return said + (": ready" if progress.ready else "")


Command = Callable[[Settings, argparse.Namespace], int]


def _prepared(work: Callable[[Settings, argparse.Namespace], Coroutine[Any, Any, int]]) -> Command:
    """Make a command of what works on data that is there."""

    def command(settings: Settings, options: argparse.Namespace) -> int:
        _configure_logging(settings)
        if settings.on_sqlite:
            migrate(settings)
        return loop.run(work(settings, options))

    return command


_COMMANDS: dict[str, Command] = {
    "serve": _serve,
    "worker": _worker,
    "migrate": _migrate,
    "reindex": _reindex,
    "sweep": _prepared(upkeep_commands.sweep),
    "purge": _prepared(upkeep_commands.purge_old),
    "reconcile": _prepared(upkeep_commands.reconcile_index),
    "drop-collection": _prepared(upkeep_commands.drop_collections),
    "export": _prepared(transfer_commands.export),
    "import": _prepared(transfer_commands.import_lines),
}


def _configure_logging(settings: Settings) -> None:
    configure_logging("memory_service", settings.log_level, settings.log_json)
    for library in ("alembic", "faiss", "milvus_lite"):
        logging.getLogger(library).setLevel(logging.WARNING)
    # Of the servers here only milvus-lite's uses it: a traceback for each RPC that it lacks.
    logging.getLogger("grpc._server").setLevel(logging.CRITICAL)


def _reason(error: Exception) -> str:
    if isinstance(error, (IndexUnavailable, EmbedderUnavailable)):
        what = "index" if isinstance(error, IndexUnavailable) else "embedder"
        return f"the {what} does not answer: {error.cause}"
    failure = failure_of(error)
    return reason_of(error) if str(error) or failure is None else failure.message
