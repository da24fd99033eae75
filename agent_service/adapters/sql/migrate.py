"""The migrations of this service, for `migrate` and for the embedded default."""

from pathlib import Path

from database.migrate import Migrations

MIGRATIONS = Migrations(Path(__file__).parent / "migrations", version_table="agent_schema_version")
