"""The memory service's schema: made from nothing, equal to what statements are built on."""

from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import inspect

from memory_service.adapters.sql.migrate import MIGRATIONS
from memory_service.adapters.sql.schema import metadata
from memory_service.ports import MemoryFilter
from tests.builders.memories import memory
from tests.contract.memory_service.memory_stores import open_sql


@pytest.fixture(params=["sqlite", pytest.param("mariadb", marks=pytest.mark.mariadb)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'x.db'}"
    return str(request.getfixturevalue("mariadb_server").url())


async def test_migrations_make_the_tables_that_statements_are_built_on(url: str) -> None:
    MIGRATIONS.upgrade(url)
    store, stores = open_sql(url)
    (row,) = await stores.keep(memory("m1", "喜欢茶 🙂"))
    with store.database.engine.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"version_table": "memory_schema_version", "compare_type": False}
        )
        assert compare_metadata(context, metadata) == []
    MIGRATIONS.upgrade(url)
    assert await stores.reader.page("u1", MemoryFilter(), before="", limit=9) == [row]
    store.close()


async def test_the_way_down_leaves_nothing_and_up_again_works(url: str) -> None:
    MIGRATIONS.upgrade(url)
    store, stores = open_sql(url)
    await stores.keep(memory("m1"))
    MIGRATIONS.downgrade(url, "base")
    assert inspect(store.database.engine).get_table_names() == ["memory_schema_version"]
    MIGRATIONS.upgrade(url)
    assert (await stores.reader.stats("u1")).revision == 0
    store.close()
