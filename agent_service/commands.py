"""What the commands of the command line do."""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict
from datetime import datetime

from sqlalchemy.exc import SQLAlchemyError

from agent_service.app import (
    AgentApp,
    migrate,
    open_app,
    open_outbox,
    open_relaying,
    server_settings,
)
from agent_service.domain.errors import StoreUnavailable
from agent_service.ports import OutboxState, ParkedTurn
from agent_service.settings import AgentSettings
from database.reason import reason_of
from rpc import loop
from rpc.ids import utc_now
from rpc.knobs import BAD_SETTINGS, show
from rpc.lines import DONE, FAILED, complain, tell
from rpc.listen import check_safe, parse
from rpc.server import RunningServer, serve_until_signal, stop_signals
from rpc.telemetry import Metrics, configure_logging, start_metrics
from rpc.workers import run_workers

PROGRAM = "agent-service"

GOODBYE = 0.8
"""Share of the grace after which running turns are ended with an error event."""

MOST_PARKED = 1000
"""Parked turns that one command shows or retries; the count is of all."""


def run(options: argparse.Namespace, settings: AgentSettings) -> int:
    """Run a command and give its exit code; what went wrong is one line on stderr."""
    try:
        return _COMMANDS[options.command](settings, options)
    except ValueError as error:
        complain(PROGRAM, str(error))
        return BAD_SETTINGS
    except (StoreUnavailable, SQLAlchemyError, OSError, RuntimeError) as error:
        complain(PROGRAM, reason_of(error))
        return FAILED


def _serve(settings: AgentSettings, options: argparse.Namespace) -> int:
    workers = options.workers or settings.workers
    if workers > 1 and settings.on_sqlite:
        complain(PROGRAM, "SQLite serves one process: use 1 worker, or MySQL or MariaDB")
        return BAD_SETTINGS
    check_safe(parse(settings.listen), settings.service_token.get_secret_value())
    _configure_logging(settings)
    if settings.on_sqlite:
        migrate(settings)
    if workers > 1:
        return run_workers(
            workers, settings.listen, serve_beside_others, grace=settings.shutdown_grace
        )
    return loop.run(_serve_here(settings))


def serve_beside_others(address: str, number: int) -> None:
    """Serve in a worker process on the address that the parent holds."""
    settings = AgentSettings()
    _configure_logging(settings)
    sys.exit(loop.run(_serve_here(settings, address=address, number=number, shared=True)))


async def _serve_here(
    settings: AgentSettings, *, address: str = "", number: int = 0, shared: bool = False
) -> int:
    async with AsyncExitStack() as closing:
        closing.callback(_start_metrics(settings, worker=number).close)
        app: AgentApp = await closing.enter_async_context(open_app(settings))
        if settings.relay:
            await closing.enter_async_context(app.relaying.running())
        await serve_until_signal(
            server_settings(settings, listen=address, shared=shared),
            app.service,
            ready=app.ready,
            on_start=_announce,
            on_drain=lambda: app.turns.end_all(GOODBYE * settings.shutdown_grace),
        )
    return DONE


def _relay(settings: AgentSettings, _options: argparse.Namespace) -> int:
    _configure_logging(settings)
    if settings.on_sqlite:
        migrate(settings)
    return loop.run(_relay_here(settings))


async def _relay_here(settings: AgentSettings) -> int:
    with stop_signals() as signals:
        async with AsyncExitStack() as closing:
            closing.callback(_start_metrics(settings).close)
            relaying = await closing.enter_async_context(open_relaying(settings))
            await closing.enter_async_context(relaying.running())
            await signals.first.wait()
    return DONE


def _outbox(settings: AgentSettings, options: argparse.Namespace) -> int:
    if settings.on_sqlite:
        migrate(settings)
    return loop.run(_look_after(settings, options))


async def _look_after(settings: AgentSettings, options: argparse.Namespace) -> int:
    async with open_outbox(settings) as outbox:
        if options.action == "list":
            state, turns = await outbox.state(), await outbox.parked(limit=MOST_PARKED)
            for line in _outbox_lines(state, turns, as_json=options.json):
                tell(line)
            return DONE
        left = list(options.turn_ids)
        if options.all:
            left = [turn.turn_id for turn in await outbox.parked(limit=MOST_PARKED)]
        retried = [turn_id for turn_id in left if await outbox.retry(turn_id, now=utc_now())]
    tell(f"{len(retried)} will be tried again")
    for turn_id in sorted(set(left) - set(retried)):
        complain(PROGRAM, f"{turn_id} is not parked")
    return DONE if options.all or set(left) == set(retried) else FAILED


def _outbox_lines(
    state: OutboxState, turns: Sequence[ParkedTurn], *, as_json: bool
) -> Iterator[str]:
    if as_json:
        shown = asdict(state) | {"parked_turns": [asdict(turn) for turn in turns]}
        yield json.dumps(shown, default=datetime.isoformat, ensure_ascii=False)
        return
    since = f", the oldest since {state.oldest.isoformat()}" if state.oldest else ""
    yield f"{state.pending} pending{since}; {state.parked} parked"
    for turn in turns:
        yield (
            f"{turn.turn_id} user={turn.user_id} conversation={turn.conversation_id} "
            f"since={turn.create_time.isoformat()} tries={turn.attempt} error={turn.error}"
        )


def _start_metrics(settings: AgentSettings, *, worker: int = 0) -> Metrics:
    token = settings.service_token.get_secret_value()
    return start_metrics(settings.metrics_listen, service_token=token, worker=worker)


def _announce(server: RunningServer) -> None:
    """Say where it listens: with port 0 nobody knows otherwise."""
    tell(f"listening on {server.address}")


def _migrate(settings: AgentSettings, options: argparse.Namespace) -> int:
    version = migrate(settings)
    tell(json.dumps({"schema": version}) if options.json else f"the schema is at {version}")
    return DONE


def _config(settings: AgentSettings, options: argparse.Namespace) -> int:
    show(settings, as_json=options.json)
    return DONE


_COMMANDS: dict[str, Callable[[AgentSettings, argparse.Namespace], int]] = {
    "serve": _serve,
    "relay": _relay,
    "outbox": _outbox,
    "migrate": _migrate,
    "config": _config,
}


def _configure_logging(settings: AgentSettings) -> None:
    configure_logging("agent_service", settings.log_level, settings.log_json)
