"""What is particular to Milvus: folders, collections of other shapes, and a peer that is silent."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest
from pymilvus import MilvusClient, MilvusException

from memory_service.adapters.breaker import Breaker
from memory_service.adapters.milvus.address import MilvusAddress, Timeouts
from memory_service.adapters.milvus.index import MilvusIndex
from memory_service.adapters.milvus.layout import SELF_TEST_IDS, indexes, schema
from memory_service.adapters.milvus.opening import IndexFacts, prepare
from memory_service.adapters.milvus.refusals import IndexBroken, IndexBusy
from memory_service.domain.errors import IndexUnavailable, StoreUnavailable
from memory_service.ports import IndexFilter, IndexHit, StoredRow, Vector
from memory_service.upkeep.relay import IndexRelay
from tests.builders.memories import NOW, memory
from tests.fakes.clock import FakeClock, FakeIds
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.memory_store import FakeMemoryStore
from tests.services.mariadb import free_port
from tests.services.milvus import Milvus
from tests.services.milvus_lite import milvus_lite_process

DIMS = 8
PATIENT = Timeouts(search=10.0, write=30.0)
HASTY = Timeouts(connect=1.0, open=20.0, search=0.5, write=5.0)
U1 = IndexFilter(user_id="u1", now=NOW)


def unit(place: int) -> Vector:
    vector = np.zeros(DIMS, np.float32)
    vector[place] = 1.0
    return vector


def row(memory_id: str, place: int = 0) -> StoredRow:
    return StoredRow(memory(memory_id), unit(place))


def new_store() -> FakeMemoryStore:
    return FakeMemoryStore(clock=FakeClock(), new_id=FakeIds())


def new_index(
    uri: str | Path,
    *,
    dims: int = DIMS,
    fingerprint: str = "test_1",
    store: FakeMemoryStore | None = None,
    timeouts: Timeouts = PATIENT,
) -> MilvusIndex:
    return MilvusIndex(
        MilvusAddress(str(uri), namespace=f"odd{os.getpid()}_"),
        fingerprint=fingerprint,
        dims=dims,
        collections=store or new_store(),
        timeouts=timeouts,
        breaker=Breaker(cool_down=0.1, longest=0.5),
    )


@asynccontextmanager
async def opened(uri: str | Path, **values: object) -> AsyncIterator[MilvusIndex]:
    index = new_index(uri, **values)  # type: ignore[arg-type]
    await index.start()
    try:
        yield index
    finally:
        await index.close()


async def cause(index: MilvusIndex) -> str:
    with pytest.raises(IndexUnavailable) as refused:
        await index.search(unit(0), U1, limit=5)
    return refused.value.cause


async def recovered(index: MilvusIndex) -> list[IndexHit]:
    for _ in range(600):
        try:
            return list(await index.search(unit(0), U1, limit=5))
        except IndexUnavailable:
            await asyncio.sleep(0.05)
    pytest.fail("it did not recover")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "index"


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """A Milvus process to stop and continue: address and process id."""
    with milvus_lite_process(tmp_path_factory.mktemp("milvus") / "index") as running:
        yield running


def raw(index: MilvusIndex) -> MilvusClient:
    client = index._connection._client
    assert client is not None
    return client


# ---------------------------------------------------------------- the embedded Milvus


async def test_rows_outlive_a_restart(folder: Path) -> None:
    async with opened(folder) as index:
        await index.upsert([row("m1")])
        assert index.facts is not None
        assert index.facts.server_version.startswith("milvus_lite")
    async with opened(folder) as index:
        assert await index.ids("u1") == {"m1"}


async def test_a_second_process_on_the_folder_is_refused_in_one_line(folder: Path) -> None:
    async with opened(folder):
        code = (
            "import asyncio, sys\n"
            "from memory_service.adapters.milvus.opening import EmbeddedMilvus\n"
            "from memory_service.adapters.milvus.refusals import IndexBusy\n"
            "try:\n"
            "    EmbeddedMilvus(sys.argv[1])\n"
            "except IndexBusy as busy:\n"
            "    sys.exit(str(busy))\n"
        )
        second = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-c", code, str(folder)],
            capture_output=True,
            text=True,
            check=False,
        )
    assert second.returncode == 1
    assert second.stderr == f"the milvus-lite index {folder} is in use by another process\n"


async def test_a_second_index_on_the_folder_says_busy_and_opens_once_it_is_free(
    folder: Path,
) -> None:
    second = new_index(folder)
    async with opened(folder) as index:
        await index.upsert([row("m1")])
        with pytest.raises(IndexBusy):
            await second.start()
        assert await cause(second) in {"busy", "timeout"}
        assert await cause(second) == "busy"
    assert [hit.memory_id for hit in await recovered(second)] == ["m1"]
    await second.close()


@pytest.fixture
def no_folder(folder: Path) -> Path:
    folder.write_text("not a folder")
    return folder


async def test_a_folder_that_cannot_be_read_says_what_to_do(no_folder: Path) -> None:
    index = new_index(no_folder)
    with pytest.raises(IndexBroken, match="run reindex"):
        await index.start()
    assert await cause(index) == "breaker_open"
    await index.close()


async def test_without_a_start_the_first_call_opens(folder: Path) -> None:
    index = new_index(folder)
    assert list(await index.search(unit(0), U1, limit=5)) == []
    await index.close()
    await index.close()


async def test_a_closed_index_is_unavailable(folder: Path) -> None:
    async with opened(folder) as index:
        pass
    assert await cause(index) == "unavailable"
    with pytest.raises(IndexUnavailable):
        await index.upsert([row("m1")])


# ---------------------------------------------------------------- collections


@pytest.mark.parametrize("name", ["", "Ab", "a-b", "a" * 65, "a b"])
def test_a_fingerprint_that_is_no_name_is_refused(folder: Path, name: str) -> None:
    with pytest.raises(ValueError, match="fingerprint"):
        MilvusIndex(MilvusAddress(str(folder)), fingerprint=name, dims=8, collections=new_store())


@pytest.mark.parametrize("namespace", ["1a", "a-b", "ä", " "])
def test_a_namespace_that_is_no_name_is_refused(folder: Path, namespace: str) -> None:
    with pytest.raises(ValueError, match="namespace"):
        MilvusIndex(
            MilvusAddress(str(folder), namespace=namespace),
            fingerprint="f",
            dims=8,
            collections=new_store(),
        )


async def test_a_collection_of_other_vectors_is_left_alone(folder: Path) -> None:
    async with opened(folder) as index:
        await index.upsert([row("m1")])
    async with opened(folder, dims=16) as index:
        with pytest.raises(IndexUnavailable, match="dim_mismatch"):
            await index.search(np.eye(16, dtype=np.float32)[0], U1, limit=5)
    async with opened(folder) as index:
        assert await index.ids("u1") == {"m1"}


async def test_a_vector_of_another_length_is_refused(folder: Path) -> None:
    async with opened(folder) as index:
        with pytest.raises(ValueError, match="dimensions"):
            await index.upsert([StoredRow(memory("m1"), np.ones(DIMS + 1, np.float32))])


async def test_cosines_that_run_the_wrong_way_are_not_used(folder: Path) -> None:
    async with opened(folder) as index:
        client = raw(index)
        rows = client.query(
            index.collection, filter='user_id == ""', output_fields=["*"], timeout=10
        )
        for one in rows:
            one["memory_id"] = SELF_TEST_IDS[1 - SELF_TEST_IDS.index(one["memory_id"])]
        client.upsert(index.collection, [dict(one) for one in rows], timeout=10)
    async with opened(folder) as index:
        assert await cause(index) == "unfit"


async def test_a_collection_not_yet_filled_is_reindexing_and_may_be_written(folder: Path) -> None:
    store = new_store()
    store.seed("u1", memory("m1"))
    async with opened(folder, store=store) as index:
        assert await cause(index) == "reindexing"
        await index.upsert([row("m1")])
        await store.mark_ready(index.collection)
        assert [hit.memory_id for hit in await index.search(unit(0), U1, limit=5)] == ["m1"]


async def test_the_collection_of_a_new_store_is_ready_whenever_milvus_comes(folder: Path) -> None:
    store = new_store()
    port = free_port()
    async with opened(f"http://127.0.0.1:{port}", store=store, timeouts=HASTY) as index:
        assert await cause(index) in {"timeout", "unavailable", "breaker_open"}
        store.seed("u1", (memory("m1"), unit(0)), fingerprint="fake_8")
        with milvus_lite_process(folder, port):
            assert await recovered(index) == []
            relay = IndexRelay(
                outbox=store, index=index, embedder=FakeEmbedder(dims=DIMS), clock=FakeClock()
            )
            await relay.step()
            assert [hit.memory_id for hit in await recovered(index)] == ["m1"]


async def test_a_collection_that_was_lost_is_made_anew_and_is_not_ready(folder: Path) -> None:
    store = new_store()
    async with opened(folder, store=store) as index:
        store.seed("u1", (memory("m1"), unit(0)), fingerprint="fake_8")
        relay = IndexRelay(
            outbox=store, index=index, embedder=FakeEmbedder(dims=DIMS), clock=FakeClock()
        )
        await relay.step()
        raw(index).drop_collection(index.collection, timeout=10)
        assert await cause(index) == "unavailable"
        causes = set()
        for _ in range(100):
            causes.add(await cause(index))
            if "reindexing" in causes:
                break
            await asyncio.sleep(0.05)
        assert causes == {"breaker_open", "reindexing"}
        assert await index.ids("u1") == frozenset()


async def test_a_collection_that_was_released_is_loaded_again(folder: Path) -> None:
    async with opened(folder) as index:
        await index.upsert([row("m1")])
        raw(index).release_collection(index.collection, timeout=10)
        assert [hit.memory_id for hit in await index.search(unit(0), U1, limit=5)] == ["m1"]


async def test_a_row_whose_cosine_is_no_number_is_not_found(folder: Path) -> None:
    async with opened(folder) as index:
        await index.upsert([row("m1"), row("m2")])
        (stored,) = raw(index).query(
            index.collection, filter='memory_id == "m2"', output_fields=["*"], timeout=10
        )
        odd = {**stored, "vector": np.full(DIMS, np.nan, np.float32)}
        raw(index).upsert(index.collection, [odd], timeout=10)
        hits = await index.search(unit(0), U1, limit=5)
        assert [hit.memory_id for hit in hits] == ["m1"]


async def test_replicas_that_open_a_new_collection_at_once_share_it(
    peer: tuple[str, int],
) -> None:
    replicas = [new_index(peer[0], fingerprint="shared") for _ in range(4)]
    try:
        await asyncio.gather(
            *(one.upsert([row(f"m{n}")]) for n, one in enumerate(replicas)),
        )
        for one in replicas:
            assert await one.ids("u1") == {"m0", "m1", "m2", "m3"}
    finally:
        for one in replicas:
            await one.close()


@pytest.mark.parametrize("on_server", [False, True], ids=["lite", "server"])
async def test_a_collection_whose_maker_died_halfway_is_completed(
    request: pytest.FixtureRequest, peer: tuple[str, int], *, on_server: bool
) -> None:
    uri = request.getfixturevalue("milvus").uri if on_server else peer[0]
    index = new_index(uri, fingerprint="halfway")
    client = MilvusClient(uri, timeout=10, dedicated=True)
    client.create_collection(index.collection, schema=schema(DIMS), timeout=10)
    await index.start()
    try:
        await index.upsert([row("m1")])
        assert await index.ids("u1") == {"m1"}
    finally:
        await index.close()
        client.close()


async def test_a_collection_loaded_before_its_last_index_came_is_opened(milvus: Milvus) -> None:
    index = new_index(milvus.uri, fingerprint="early")
    client = MilvusClient(milvus.uri, timeout=10, dedicated=True)
    client.create_collection(index.collection, schema=schema(DIMS), timeout=10)
    by_vector, by_user = indexes(lite=False, version=(2, 3))
    for one in (by_vector, by_user):
        params = MilvusClient.prepare_index_params()
        params.append(one)
        client.create_index(index.collection, params, timeout=10)
        if one is by_vector:
            client.load_collection(index.collection, timeout=10)
    with pytest.raises(MilvusException, match="can't change the index"):
        client.load_collection(index.collection, timeout=10)
    await index.start()
    try:
        await index.upsert([row("m1")])
        assert await index.ids("u1") == {"m1"}
    finally:
        await index.close()
        client.close()


@pytest.mark.parametrize(
    ("said", "version"),
    [("v2.3.5-lite", (2, 3)), ("2.6.1", (2, 6)), ("milvus_lite-3.2.2", (3, 2)), ("dev", (2, 3))],
)
def test_a_server_says_its_version_in_many_ways(said: str, version: tuple[int, int]) -> None:
    facts = IndexFacts(collection="c", lite=False, server_version=said)
    assert facts.version == version


async def test_a_server_without_cosines_is_not_used(peer: tuple[str, int]) -> None:
    async with opened(peer[0]) as index:
        await recovered(index)
        old = IndexFacts(collection=index.collection, lite=False, server_version="v2.2.16")
        with pytest.raises(IndexUnavailable, match="unfit"):
            prepare(raw(index), old, DIMS, 10.0)


async def test_sql_that_does_not_answer_is_not_taken_for_a_ready_mark(folder: Path) -> None:
    store = new_store()
    async with opened(folder, store=store) as index:
        store.down = True
        with pytest.raises(StoreUnavailable):
            await index.search(unit(0), U1, limit=5)


class Breaking(FakeMemoryStore):
    """Fails once in a way that nobody foresaw."""

    broken = False

    async def ready(self, collection: str) -> bool:
        if not self.broken:
            self.broken = True
            message = "nobody foresaw this"
            raise RuntimeError(message)
        return await super().ready(collection)


async def test_an_opening_that_died_holds_up_nobody_and_is_begun_again(folder: Path) -> None:
    store = Breaking(clock=FakeClock(), new_id=FakeIds())
    async with opened(folder, store=store) as index:
        assert store.broken
        assert await cause(index) == "unavailable"
        assert await recovered(index) == []


async def test_a_row_that_milvus_cannot_take_is_refused_and_the_index_goes_on(
    milvus: Milvus,
) -> None:
    async with opened(milvus.uri, dims=DIMS) as index:
        for _ in range(5):
            with pytest.raises(IndexUnavailable, match="refused"):
                await index.upsert([row("喜" * 43)])
        await index.upsert([row("m1")])
        assert await index.ids("u1") == {"m1"}
        assert index.facts is not None
        assert index.facts.version == (2, 3)


async def test_a_user_among_many_is_found_whole_once_a_server_has_built_its_indexes(
    milvus: Milvus,
) -> None:
    random = np.random.default_rng(5)
    vectors = random.standard_normal((6000, 32)).astype(np.float32)
    rows = [
        StoredRow(memory(f"many{n}", user_id=f'many \\ " {n % 60}'), vector)
        for n, vector in enumerate(vectors)
    ]
    async with opened(milvus.uri, fingerprint="many", dims=32) as index:
        await index.upsert(rows)
        await asyncio.to_thread(raw(index).flush, index.collection, timeout=60)
        await asyncio.sleep(3)
        wanted = IndexFilter(user_id='many \\ " 7', now=NOW)
        mine = vectors[7::60] / np.linalg.norm(vectors[7::60], axis=1, keepdims=True)
        exact = sorted((mine @ mine[0]).tolist(), reverse=True)
        hits = await index.search(mine[0], wanted, limit=200)
        assert len(hits) == 100
        assert [hit.cosine for hit in hits] == pytest.approx(exact, abs=1e-5)


# ---------------------------------------------------------------- a silent Milvus


class Silence:
    """A listener that takes connections and never answers."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.uri = f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def silence() -> Iterator[Silence]:
    listener = Silence()
    yield listener
    listener.close()


async def test_a_silent_milvus_blocks_neither_start_nor_calls_nor_close(silence: Silence) -> None:
    index = new_index(silence.uri, timeouts=HASTY)
    began = time.monotonic()
    await index.start()
    assert time.monotonic() - began < 0.5
    causes = set()
    for _ in range(20):
        called = time.monotonic()
        causes.add(await cause(index))
        assert time.monotonic() - called < 2.0
        await asyncio.sleep(0.1)
    assert causes == {"timeout", "breaker_open"}
    await index.close()


async def test_an_absent_milvus_is_found_when_it_comes(folder: Path) -> None:
    port = free_port()
    async with opened(f"http://127.0.0.1:{port}", timeouts=HASTY) as index:
        for _ in range(5):
            assert await cause(index) in {"timeout", "breaker_open"}
        with milvus_lite_process(folder, port):
            assert await recovered(index) == []


async def hang(index: MilvusIndex, pid: int) -> list[str]:
    """Stop the process, call until the breaker is open and some more, and let it go on."""
    os.kill(pid, signal.SIGSTOP)
    try:
        causes = []
        for _ in range(8):
            called = time.monotonic()
            causes.append(await cause(index))
            assert time.monotonic() - called < 2.0
        return causes
    finally:
        os.kill(pid, signal.SIGCONT)


async def test_a_hung_milvus_is_bounded_then_not_asked_then_found_again(
    peer: tuple[str, int],
) -> None:
    uri, pid = peer
    async with opened(uri, timeouts=HASTY) as index:
        await index.upsert([row("m1")])
        causes = await hang(index, pid)
        assert causes == ["timeout"] * 3 + ["breaker_open"] * 5
        assert [hit.memory_id for hit in await recovered(index)] == ["m1"]


async def test_a_hung_server_is_bounded_then_not_asked_then_found_again(milvus: Milvus) -> None:
    async with opened(milvus.uri, timeouts=HASTY) as index:
        await recovered(index)
        causes = await hang(index, milvus.pid)
        assert causes[0] == "timeout"
        assert causes[-1] == "breaker_open"
        await recovered(index)


async def test_a_caller_who_leaves_early_still_teaches_the_breaker(peer: tuple[str, int]) -> None:
    uri, pid = peer
    async with opened(uri, timeouts=HASTY) as index:
        await index.upsert([row("m1")])
        os.kill(pid, signal.SIGSTOP)
        try:
            for _ in range(3):
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.01):
                        await index.search(unit(0), U1, limit=5)
            await asyncio.sleep(1.0)
            assert await cause(index) == "breaker_open"
        finally:
            os.kill(pid, signal.SIGCONT)
        await recovered(index)


async def test_a_killed_milvus_is_found_again_with_its_rows(folder: Path) -> None:
    port = free_port()
    store = new_store()
    with milvus_lite_process(folder, port) as (uri, _):
        index = new_index(uri, store=store, timeouts=HASTY)
        await index.start()
        await index.upsert([row("m1")])
    for _ in range(4):
        await cause(index)
    with milvus_lite_process(folder, port):
        assert [hit.memory_id for hit in await recovered(index)] == ["m1"]
    await index.close()


async def test_a_hung_milvus_holds_up_no_other_thread_of_the_process(peer: tuple[str, int]) -> None:
    uri, pid = peer
    async with opened(uri, timeouts=HASTY) as index:
        await index.upsert([row("m1")])
        os.kill(pid, signal.SIGSTOP)
        try:
            calls = [asyncio.create_task(cause(index)) for _ in range(30)]
            began = time.monotonic()
            threads = await asyncio.to_thread(threading.enumerate)
            assert time.monotonic() - began < 0.4
            searching = [one for one in threads if one.name.startswith("milvus-search")]
            assert len(searching) <= 4
            # Those under way when the breaker opens are cut off: unavailable.
            assert "reindexing" not in await asyncio.gather(*calls)
        finally:
            os.kill(pid, signal.SIGCONT)
