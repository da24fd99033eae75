"""Real services, one of each per test session, started when the first test asks."""

import os
import shutil
from collections.abc import Iterator

import pytest

from tests.services.mariadb import MariaDB, mariadb
from tests.services.milvus import Milvus, milvus_server


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[MariaDB]:
    if shutil.which("mariadbd") is None:
        _missing("mariadbd is not installed")
    with mariadb() as server:
        yield server


@pytest.fixture(scope="session")
def milvus() -> Iterator[Milvus]:
    with milvus_server() as server:
        yield server


def _missing(what: str) -> None:
    if os.environ.get("CI"):
        pytest.fail(f"{what}, and CI must not skip it")
    pytest.skip(what)
