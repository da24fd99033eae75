"""Migrations, run from code on both kinds of database."""

import threading
from pathlib import Path

import pytest
from sqlalchemy import Engine, inspect, text

from database.access import in_snapshot, in_transaction
from database.engine import open_engine
from database.migrate import Migrations

FIRST = '''
"""First."""
import sqlalchemy as sa
from alembic import op
from database.migrate import add_index
from database.types import TABLE_OPTIONS, Key
revision = "0001"
down_revision = None
def upgrade():
    op.create_table("t", sa.Column("id", Key(9), primary_key=True), if_not_exists=True,
                    **TABLE_OPTIONS)
    add_index("ix_t_id", "t", ["id"])
def downgrade():
    op.drop_table("t", if_exists=True)
'''
SECOND = '''
"""Second."""
import sqlalchemy as sa
from alembic import op
revision = "0002"
down_revision = "0001"
def upgrade():
    with op.batch_alter_table("t") as table:
        table.add_column(sa.Column("n", sa.Integer(), nullable=False, server_default="7"))
def downgrade():
    with op.batch_alter_table("t") as table:
        table.drop_column("n")
'''


@pytest.fixture(params=["sqlite", pytest.param("mariadb", marks=pytest.mark.mariadb)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'x.db'}"
    return str(request.getfixturevalue("mariadb_server").url())


@pytest.fixture
def migrations(tmp_path: Path) -> Migrations:
    return Migrations(steps(tmp_path / "a folder 100%: x", FIRST, SECOND), version_table="v1")


def steps(folder: Path, *sources: str) -> Path:
    (folder / "versions").mkdir(parents=True)
    for number, source in enumerate(sources):
        (folder / "versions" / f"{number}.py").write_text(source)
    return folder


def columns(engine: Engine) -> list[str]:
    return [column["name"] for column in inspect(engine).get_columns("t")]


def test_data_survives_the_way_up_and_down(url: str, migrations: Migrations) -> None:
    engine = open_engine(url)
    assert (migrations.current(engine), migrations.is_current(engine)) == (None, False)
    migrations.upgrade(url, "0001")
    assert (migrations.current(engine), migrations.is_current(engine)) == ("0001", False)
    in_transaction(engine, lambda c: c.execute(text("INSERT INTO t (id) VALUES ('x')")))
    migrations.upgrade(url)
    assert (migrations.current(engine), migrations.is_current(engine)) == ("0002", True)
    assert in_snapshot(engine, lambda c: c.execute(text("SELECT n FROM t")).all()) == [(7,)]
    migrations.downgrade(url, "0001")
    assert columns(engine) == ["id"]
    assert in_snapshot(engine, lambda c: len(c.execute(text("SELECT id FROM t")).all())) == 1
    migrations.downgrade(url, "base")
    assert (migrations.current(engine), inspect(engine).get_table_names()) == (None, ["v1"])
    engine.dispose()


def test_a_database_that_is_current_is_left_alone(url: str, migrations: Migrations) -> None:
    migrations.upgrade(url)
    migrations.upgrade(url)
    engine = open_engine(url)
    assert migrations.is_current(engine)
    engine.dispose()


def test_a_step_that_died_halfway_is_run_again(url: str, migrations: Migrations) -> None:
    engine = open_engine(url)
    in_transaction(engine, lambda c: c.execute(text("CREATE TABLE t (id VARCHAR(9))")))
    migrations.upgrade(url)
    assert migrations.is_current(engine)
    engine.dispose()


def test_services_share_a_database_without_seeing_each_other(
    url: str, migrations: Migrations, tmp_path: Path
) -> None:
    other_step = FIRST.replace('"t"', '"other"').replace("ix_t_id", "ix_other_id")
    other = Migrations(steps(tmp_path / "other", other_step), version_table="v2")
    migrations.upgrade(url)
    other.upgrade(url)
    other.downgrade(url, "base")
    engine = open_engine(url)
    assert (migrations.current(engine), other.current(engine)) == ("0002", None)
    engine.dispose()


def test_replicas_that_start_together_migrate_once(url: str, tmp_path: Path) -> None:
    folder = steps(tmp_path / "m", FIRST, SECOND)
    failures: list[BaseException] = []

    def start() -> None:
        try:
            Migrations(folder, version_table="v1").upgrade(url)
        except BaseException as error:  # noqa: BLE001 — shown by the test
            failures.append(error)

    replicas = [threading.Thread(target=start) for _ in range(4)]
    for replica in replicas:
        replica.start()
    for replica in replicas:
        replica.join()
    engine = open_engine(url)
    assert (failures, columns(engine)) == ([], ["id", "n"])
    engine.dispose()
