"""Where the memory service's schema stands, and how it gets to the newest version."""

from pathlib import Path

from database.migrate import Migrations

MIGRATIONS = Migrations(Path(__file__).parent / "migrations", version_table="memory_schema_version")
