"""What the commands of the command line do."""

import argparse
import json
import sys
from contextlib import AsyncExitStack

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from agent_service.app import AgentApp, migrate, open_app, server_settings
from agent_service.domain.errors import StoreUnavailable
from agent_service.settings import AgentSettings
from rpc import loop
from rpc.knobs import BAD_SETTINGS, show
from rpc.lines import DONE, FAILED, complain, tell
from rpc.listen import check_safe, parse
from rpc.server import RunningServer, serve_until_signal
from rpc.telemetry import Metrics, configure_logging, start_metrics
from rpc.workers import run_workers

PROGRAM = "agent-service"

GOODBYE = 0.8
"""Share of the grace after which running turns are ended with an error event."""


def run(options: argparse.Namespace, settings: AgentSettings) -> int:
    """Run a command and give its exit code; what went wrong is one line on stderr."""
    try:
        match options.command:
            case "serve":
                return _serve(settings, options.workers or settings.workers)
            case "migrate":
                return _migrate(settings, as_json=options.json)
            case _:
                show(settings, as_json=options.json)
                return DONE
    except ValueError as error:
        complain(PROGRAM, str(error))
        return BAD_SETTINGS
    except (StoreUnavailable, SQLAlchemyError, OSError, RuntimeError) as error:
        complain(PROGRAM, _reason(error))
        return FAILED


def _serve(settings: AgentSettings, workers: int) -> int:
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
        await serve_until_signal(
            server_settings(settings, listen=address, shared=shared),
            app.service,
            ready=app.ready,
            on_start=_announce,
            on_drain=lambda: app.turns.end_all(GOODBYE * settings.shutdown_grace),
        )
    return DONE


def _start_metrics(settings: AgentSettings, *, worker: int = 0) -> Metrics:
    token = settings.service_token.get_secret_value()
    return start_metrics(settings.metrics_listen, service_token=token, worker=worker)


def _announce(server: RunningServer) -> None:
    """Say where it listens: with port 0 nobody knows otherwise."""
    tell(f"listening on {server.address}")


def _migrate(settings: AgentSettings, *, as_json: bool) -> int:
    version = migrate(settings)
    tell(json.dumps({"schema": version}) if as_json else f"the schema is at {version}")
    return DONE


def _configure_logging(settings: AgentSettings) -> None:
    configure_logging("agent_service", settings.log_level, settings.log_json)


def _reason(error: Exception) -> str:
    """Give one line; a driver's text instead of SQLAlchemy's, which repeats the statement."""
    if isinstance(error, DBAPIError) and error.orig is not None:
        return f"the database does not do it: {error.orig}"
    return str(error) or type(error).__name__
