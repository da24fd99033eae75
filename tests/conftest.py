"""Real services, one of each per test session, started when the first test asks.

Property tests try 30 inputs each; `--hypothesis-profile=thorough` makes that 1,000.
"""

import os
import shutil
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.services.mariadb import MariaDB, mariadb
from tests.services.milvus import Milvus, milvus_server

_NO_TIME_LIMITS = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", _NO_TIME_LIMITS, max_examples=30)
settings.register_profile("thorough", _NO_TIME_LIMITS, max_examples=1000)
settings.load_profile("quick")

_MILVUS = "milvus"
_RUNNING = pytest.StashKey[Milvus]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of a file in one worker of xdist, and all that start a Milvus server too.

    A Milvus server takes fixed ports and much memory, so there is never more than one. Its tests
    wait much, so they come first: the other workers do the rest meanwhile.
    """
    needing = {item.path for item in items if _needs_milvus(item)}
    for item in items:
        group = _MILVUS if item.path in needing else str(item.path)
        item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=lambda item: _group(item) != _MILVUS)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, None, None]:
    """End the Milvus server after its last test: an idle one still takes 6 % of a core."""
    yield
    if nextitem is None or _group(nextitem) != _MILVUS:
        server = item.session.stash.get(_RUNNING, None)
        if server is not None:
            server.kill()


def _group(item: pytest.Item) -> str:
    marker = item.get_closest_marker("xdist_group")
    return marker.args[0] if marker else ""


def _needs_milvus(item: pytest.Item) -> bool:
    fixtures = getattr(item, "fixturenames", ())
    return "milvus_cache" in fixtures or item.get_closest_marker("milvus_server") is not None


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[MariaDB]:
    if shutil.which("mariadbd") is None:
        _missing("mariadbd is not installed")
    with mariadb() as server:
        yield server


@pytest.fixture(scope="session")
def milvus_cache(pytestconfig: pytest.Config) -> Path:
    """Where the server's programs stay unpacked between sessions."""
    return pytestconfig.cache.mkdir("milvus")


@pytest.fixture(scope="session")
def milvus(milvus_cache: Path, request: pytest.FixtureRequest) -> Iterator[Milvus]:
    with milvus_server(milvus_cache) as server:
        server.start()
        server.wait_until_up()
        request.session.stash[_RUNNING] = server
        yield server


def _missing(what: str) -> None:
    if os.environ.get("CI"):
        pytest.fail(f"{what}, and CI must not skip it")
    pytest.skip(what)
