"""What every vector index promises, on each one that there is."""

import asyncio
import os
from collections.abc import AsyncIterator
from datetime import timedelta
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from memory_service.adapters.milvus.address import MilvusAddress, Timeouts
from memory_service.adapters.milvus.index import MilvusIndex
from memory_service.domain.model import MemoryType
from memory_service.ports import IndexFilter, StoredRow, Vector, VectorIndex
from tests.builders.memories import NOW, memory
from tests.fakes.clock import FakeClock, FakeIds
from tests.fakes.index import FakeVectorIndex
from tests.fakes.memory_store import FakeMemoryStore

DIMS = 8
PATIENT = Timeouts(search=10.0, write=30.0)

ODD_IDS = [
    'a"b',
    "a\\b",
    "a'b",
    'x" or user_id != "y',
    "' or 1==1 --",
    '"]) or true or user_id in ["',
    '\\"',
    "\\\\",
    "\\",
    '"',
    "\\u0041",
    "\\x41",
    "a\\nb",
    "🙂👩‍🚀",
    "喜" * 42,
    "e\u0301",
    "\u00e9",
    "a\u2028b",
    "a\u00a0b",
    "%_",
    "{u}",
    "$meta",
    "ann",
    "Ann",
    "ann ",
    " ann",
    "true",
    "in",
    "u" * 128,
]

users = (f"u{number}" for number in count())


@pytest.fixture
def user() -> str:
    """A user of this test alone: on a server all tests share one collection."""
    return next(users)


@pytest.fixture(params=["fake", "lite", pytest.param("server", marks=pytest.mark.milvus_server)])
async def index(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[VectorIndex]:
    if request.param == "fake":
        yield FakeVectorIndex()
        return
    uri = str(tmp_path / "index.db")
    if request.param == "server":
        uri = request.getfixturevalue("milvus").uri
    milvus = MilvusIndex(
        MilvusAddress(uri, namespace=f"contract{os.getpid()}_"),
        fingerprint="test_1_8",
        dims=DIMS,
        collections=FakeMemoryStore(clock=FakeClock(), new_id=FakeIds()),
        timeouts=PATIENT,
    )
    await milvus.start()
    yield milvus
    await milvus.close()


def direction(*parts: float) -> Vector:
    vector = np.zeros(DIMS, np.float32)
    vector[: len(parts)] = parts
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def of(user_id: str, **values: object) -> IndexFilter:
    return IndexFilter(user_id=user_id, now=NOW, **values)  # type: ignore[arg-type]


def row(memory_id: str, *parts: float, **values: object) -> StoredRow:
    vector = direction(*(parts or (1.0,)))
    return StoredRow(memory(memory_id, **values), vector)  # type: ignore[arg-type]


async def found(
    index: VectorIndex, wanted: IndexFilter, expected: set[str], limit: int = 50
) -> set[str]:
    """Search until the answer is as expected: a server may be a moment behind its writes."""
    ids: set[str] = set()
    for _ in range(100):
        hits = await index.search(direction(1.0), wanted, limit=limit)
        ids = {hit.memory_id for hit in hits}
        if ids == expected:
            break
        await asyncio.sleep(0.1)
    return ids


async def test_an_empty_index_finds_nothing(index: VectorIndex, user: str) -> None:
    assert list(await index.search(direction(1.0), of(user), limit=5)) == []
    assert await index.ids(user) == frozenset()


async def test_the_nearest_row_comes_first_and_cosines_are_right(
    index: VectorIndex, user: str
) -> None:
    same, near, across, opposite = (f"{user}-{n}" for n in range(4))
    await index.upsert(
        [
            row(across, 0.0, 1.0, user_id=user),
            row(opposite, -1.0, user_id=user),
            row(same, 1.0, user_id=user),
            row(near, 3.0, 4.0, user_id=user),
        ]
    )
    await found(index, of(user), {same, near, across, opposite})

    hits = await index.search(direction(1.0), of(user), limit=10)

    assert [hit.memory_id for hit in hits] == [same, near, across, opposite]
    assert [hit.cosine for hit in hits] == pytest.approx([1.0, 0.6, 0.0, -1.0], abs=1e-5)
    assert all(-1.0 <= hit.cosine <= 1.0 for hit in hits)


async def test_no_cosine_leaves_its_range(index: VectorIndex, user: str) -> None:
    random = np.random.default_rng(7)
    vectors = [direction(*random.standard_normal(DIMS)) for _ in range(40)]
    rows = [
        StoredRow(memory(f"{user}-{n}", user_id=user), vector) for n, vector in enumerate(vectors)
    ]
    await index.upsert(rows)
    await found(index, of(user), {row.memory.memory_id for row in rows})
    for vector in vectors:
        hits = await index.search(vector, of(user), limit=40)
        assert all(-1.0 <= hit.cosine <= 1.0 for hit in hits)


async def test_no_more_than_the_limit_is_found(index: VectorIndex, user: str) -> None:
    await index.upsert([row(f"{user}-{n}", 1.0, n / 10, user_id=user) for n in range(5)])
    nearest = {f"{user}-0", f"{user}-1"}
    assert await found(index, of(user), nearest, limit=2) == nearest


async def test_only_the_users_own_rows_are_found(index: VectorIndex, user: str) -> None:
    await index.upsert([row(f"{user}-mine", user_id=user), row(f"{user}-other", user_id="other")])
    assert await found(index, of(user), {f"{user}-mine"}) == {f"{user}-mine"}
    assert await found(index, of(f"{user}-nobody"), set()) == set()


async def test_an_empty_user_is_an_error_and_never_everybody(index: VectorIndex) -> None:
    with pytest.raises(ValueError, match="user_id"):
        await index.search(direction(1.0), of(""), limit=5)
    with pytest.raises(ValueError, match="user_id"):
        await index.ids("")


async def test_odd_ids_are_ordinary_ids(index: VectorIndex) -> None:
    await index.upsert([row(odd, user_id=odd) for odd in ODD_IDS])
    for odd in ODD_IDS:
        assert await found(index, of(odd), {odd}) == {odd}
        assert await index.ids(odd) == {odd}

    injection, *others = ODD_IDS[3:]
    await index.remove([injection])
    assert await index.ids(injection) == frozenset()
    for odd in others:
        assert await index.ids(odd) == {odd}
    await index.remove(ODD_IDS)


@pytest.mark.parametrize("bad", ["a\nb", "a\tb", "a\0b", "a\x7fb", "a\x85b", "\ud83d"])
async def test_control_characters_never_reach_an_expression(index: VectorIndex, bad: str) -> None:
    with pytest.raises(ValueError, match="control"):
        await index.search(direction(1.0), of(bad), limit=5)
    with pytest.raises(ValueError, match="control"):
        await index.remove([bad])


async def test_an_assistant_sees_its_own_rows_and_those_of_none(
    index: VectorIndex, user: str
) -> None:
    await index.upsert(
        [
            row(f"{user}-none", user_id=user),
            row(f"{user}-a", user_id=user, assistant_id="a"),
            row(f"{user}-b", user_id=user, assistant_id="b"),
            row(f"{user}-a-r", user_id=user, assistant_id="a", run_id="r"),
            row(f"{user}-a-s", user_id=user, assistant_id="a", run_id="s"),
        ]
    )
    everything = {f"{user}-{end}" for end in ("none", "a", "b", "a-r", "a-s")}
    of_a = everything - {f"{user}-b"}
    assert await found(index, of(user), everything) == everything
    assert await found(index, of(user, assistant_id="a"), of_a) == of_a
    in_run = of_a - {f"{user}-a-s"}
    assert await found(index, of(user, assistant_id="a", run_id="r"), in_run) == in_run


async def test_expired_rows_are_not_found(index: VectorIndex, user: str) -> None:
    moment = timedelta(microseconds=1)
    await index.upsert(
        [
            row(f"{user}-never", user_id=user),
            row(f"{user}-now", user_id=user, expire_time=NOW),
            row(f"{user}-soon", user_id=user, expire_time=NOW + moment),
            row(f"{user}-past", user_id=user, expire_time=NOW - moment),
        ]
    )
    alive = {f"{user}-never", f"{user}-soon"}
    assert await found(index, of(user), alive) == alive


async def test_gates_restrict(index: VectorIndex, user: str) -> None:
    await index.upsert(
        [
            row(f"{user}-said", user_id=user, is_explicit=True),
            row(f"{user}-level1", user_id=user, sensitivity_level=1),
            row(f"{user}-level2", user_id=user, sensitivity_level=2),
        ]
    )
    said, level1, level2 = (f"{user}-{end}" for end in ("said", "level1", "level2"))
    assert await found(index, of(user), {said, level1, level2}) == {said, level1, level2}
    assert await found(index, of(user, explicit_only=True), {said}) == {said}
    assert await found(index, of(user, max_sensitivity=0), {said}) == {said}
    assert await found(index, of(user, max_sensitivity=1), {said, level1}) == {said, level1}


async def test_several_types_are_a_union_and_unknown_counts_as_a_fact(
    index: VectorIndex, user: str
) -> None:
    ids = {kind: f"{user}-{kind}" for kind in MemoryType}
    await index.upsert(
        [row(memory_id, user_id=user, memory_type=kind) for kind, memory_id in ids.items()]
    )
    constraint, fact = MemoryType.CONSTRAINT, MemoryType.FACT
    both = {ids[constraint], ids[fact], ids[MemoryType.UNKNOWN]}
    wanted = of(user, memory_types=frozenset({constraint, fact}))
    assert await found(index, wanted, both) == both
    wanted = of(user, memory_types=frozenset({MemoryType.PREFERENCE}))
    only = {ids[MemoryType.PREFERENCE]}
    assert await found(index, wanted, only) == only
    named = frozenset(MemoryType) - {MemoryType.UNKNOWN}
    assert await found(index, of(user, memory_types=named), set(ids.values())) == set(ids.values())


async def test_a_row_written_again_replaces_itself(index: VectorIndex, user: str) -> None:
    await index.upsert([row(f"{user}-m", 0.0, 1.0, user_id=user, assistant_id="a")])
    await index.upsert([row(f"{user}-m", 1.0, user_id=user, assistant_id="b")])
    assert await found(index, of(user, assistant_id="a"), set()) == set()
    assert await found(index, of(user, assistant_id="b"), {f"{user}-m"}) == {f"{user}-m"}
    assert await index.ids(user) == {f"{user}-m"}
    (hit,) = await index.search(direction(1.0), of(user), limit=5)
    assert hit.cosine == pytest.approx(1.0, abs=1e-5)


async def test_removed_rows_are_gone_and_take_no_place(index: VectorIndex, user: str) -> None:
    dead = [f"{user}-dead{n}" for n in range(30)]
    live = f"{user}-live"
    await index.upsert([row(memory_id, user_id=user) for memory_id in dead])
    await index.upsert([row(live, 1.0, 1.0, user_id=user)])
    await index.remove([*dead, f"{user}-unknown"])
    assert await found(index, of(user), {live}, limit=5) == {live}
    assert await index.ids(user) == {live}


async def test_removing_one_users_rows_leaves_another_users(index: VectorIndex, user: str) -> None:
    mine = [f"{user}-{n}" for n in range(3)]
    theirs = {f"{user}-other-{n}" for n in range(3)}
    await index.upsert([row(memory_id, user_id=user) for memory_id in mine])
    await index.upsert([row(memory_id, user_id=f"{user}-other") for memory_id in theirs])
    await index.remove(mine)
    assert await index.ids(user) == frozenset()
    assert await found(index, of(f"{user}-other"), theirs) == theirs


async def test_nothing_to_write_or_remove_is_fine(index: VectorIndex) -> None:
    await index.upsert([])
    await index.remove([])


async def test_many_ids_go_in_one_call(index: VectorIndex, user: str) -> None:
    rows = [row(f"{user}-{n}", 1.0, n / 100, user_id=user) for n in range(1200)]
    await index.upsert(rows)
    assert len(await index.ids(user)) == 1200
    await index.remove([row.memory.memory_id for row in rows[:-1]])
    assert await index.ids(user) == {f"{user}-1199"}


@pytest.mark.parametrize(
    "vector",
    [
        None,
        np.zeros(DIMS, np.float32),
        np.full(DIMS, np.nan, np.float32),
        np.array([np.inf, *[0.0] * (DIMS - 1)], np.float32),
    ],
    ids=["none", "zero", "nan", "inf"],
)
async def test_a_vector_without_direction_is_refused_and_its_batch_not_written(
    index: VectorIndex, user: str, vector: Vector | None
) -> None:
    bad = StoredRow(memory(f"{user}-bad", user_id=user), vector)
    with pytest.raises(ValueError, match="vector"):
        await index.upsert([row(f"{user}-good", user_id=user), bad])
    assert await index.ids(user) == frozenset()


async def test_a_query_without_direction_is_near_to_nothing(index: VectorIndex, user: str) -> None:
    await index.upsert([row(f"{user}-m", user_id=user)])
    assert list(await index.search(np.zeros(DIMS, np.float32), of(user), limit=5)) == []
    assert list(await index.search(np.full(DIMS, np.nan, np.float32), of(user), limit=5)) == []
