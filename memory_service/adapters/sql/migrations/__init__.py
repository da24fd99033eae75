"""The memory service's schema, step by step."""

from pathlib import Path

from database.migrate import Migrations
from memory_service.adapters.sql.schema import VERSION_TABLE

MIGRATIONS = Migrations(Path(__file__).parent, version_table=VERSION_TABLE)
