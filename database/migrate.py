"""Schema migrations, run from code: a service carries its own in its package.

A folder of migrations holds versions/<n>_<what>.py as Alembic reads them; no alembic.ini, no
env.py. MySQL cannot take DDL back, so each step must be one that can be run again
(if_not_exists, if_exists) after it died halfway.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from alembic import op
from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Column, Connection, Engine, MetaData, String, Table, inspect, text

from database.engine import READS, open_engine
from database.types import TABLE_OPTIONS

_LOCK_WAIT = 60


class Migrations:
    """The migrations in a folder; version_table keeps where a database is.

    Services that share one database each name their own version_table.
    """

    def __init__(self, folder: Path, *, version_table: str) -> None:
        self._config = Config()
        self._config.set_main_option("script_location", str(folder).replace("%", "%%"))
        # Paths may hold whatever a system allows; Alembic would split at spaces and colons.
        self._config.set_main_option("path_separator", "newline")
        self._script = ScriptDirectory.from_config(self._config)
        self._version_table = version_table

    @property
    def head(self) -> str | None:
        """The newest version; None if there are none."""
        return self._script.get_current_head()

    def current(self, engine: Engine) -> str | None:
        """Give the version of a database; None before the first migration."""
        with engine.connect() as connection:
            context = MigrationContext.configure(
                connection.execution_options(**{READS: True}),
                opts={"version_table": self._version_table},
            )
            return context.get_current_revision()

    def is_current(self, engine: Engine) -> bool:
        """Tell whether nothing is left to do."""
        return self.current(engine) == self.head

    def upgrade(self, url: str, to: str = "head") -> None:
        """Bring a database to a version. Of several processes one does it, the others wait."""

        def steps(current: str, _context: object) -> list[Any]:
            return self._script._upgrade_revs(to, current)  # noqa: SLF001 — as alembic.command

        self._run(url, steps)

    def downgrade(self, url: str, to: str) -> None:
        """Take a database back to a version; "base" is before the first."""

        def steps(current: str, _context: object) -> list[Any]:
            return self._script._downgrade_revs(to, current)  # noqa: SLF001 — as alembic.command

        self._run(url, steps)

    def _run(self, url: str, steps: Callable[..., list[Any]]) -> None:
        # An engine of its own: a change of a large table outlasts any bound on a statement.
        engine = open_engine(url, pool_size=1, lock_timeout=_LOCK_WAIT, statement_timeout=0)
        try:
            with engine.connect() as connection, _alone(connection, self._version_table):
                self._step(connection, steps)
        finally:
            engine.dispose()

    def _step(self, connection: Connection, steps: Callable[..., list[Any]]) -> None:
        _version_table(self._version_table).create(connection, checkfirst=True)
        with EnvironmentContext(self._config, self._script, fn=steps) as environment:
            environment.configure(
                connection=connection, version_table=self._version_table, render_as_batch=True
            )
            environment.run_migrations()
        connection.commit()


@contextmanager
def _alone(connection: Connection, name: str) -> Iterator[None]:
    """Keep others from migrating meanwhile. On SQLite the write transaction does that."""
    if connection.dialect.name != "mysql":
        yield
        return
    lock = {"name": f"{connection.engine.url.database}.{name}"[:64], "wait": _LOCK_WAIT}
    if connection.scalar(text("SELECT GET_LOCK(:name, :wait)"), lock) != 1:
        message = "another process is migrating this database"
        raise RuntimeError(message)
    try:
        yield
    finally:
        connection.execute(text("SELECT RELEASE_LOCK(:name)"), lock)


def _version_table(name: str) -> Table:
    """Give what Alembic would make without a character set."""
    version = Column("version_num", String(32), primary_key=True)
    return Table(name, MetaData(), version, **TABLE_OPTIONS)


def add_index(name: str, table: str, columns: list[str]) -> None:
    """Create an index in a migration unless it is there; MySQL has no IF NOT EXISTS for it."""
    if not inspect(op.get_bind()).has_index(table, name):
        op.create_index(name, table, columns)
