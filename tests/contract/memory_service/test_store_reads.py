"""What MemoryReader promises."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest

from memory_service.domain.model import (
    IndexState,
    MemoryStatus,
    MemoryType,
    Role,
    Scope,
    UserSettings,
)
from memory_service.ports import MemoryFilter, PinnedQuery
from tests.builders.memories import NOW, memory
from tests.contract.memory_service.memory_stores import Stores

CONSTRAINT, PREFERENCE = MemoryType.CONSTRAINT, MemoryType.PREFERENCE
TODO, FACT = MemoryType.TODO_HINT, MemoryType.FACT
VECTOR = np.eye(1, 512, dtype=np.float32)[0]


def asked(user_id: str = "u1", **wanted: Any) -> PinnedQuery:
    scope = Scope(
        user_id=user_id,
        assistant_id=wanted.pop("assistant_id", ""),
        run_id=wanted.pop("run_id", ""),
    )
    return replace(PinnedQuery(scope=scope, now=NOW), **wanted)


async def pinned(stores: Stores, user_id: str = "u1", **wanted: Any) -> list[str]:
    view = await stores.reader.view(asked(user_id, **wanted))
    return [row.memory_id for row in view.pinned]


async def best(stores: Stores, limit: int = 50, **wanted: Any) -> list[str]:
    rows = await stores.reader.best(asked(**wanted), limit=limit)
    return [row.memory_id for row in rows]


async def test_a_memory_comes_back_as_it_was_stored(stores: Stores) -> None:
    words = "🙂👩‍🚀 “quoted” \\ % _ '; -- 喜欢茶\r\n\t end "
    full = replace(
        memory("m1", words, title="🙂 标题", speaker="👩‍🚀", assistant_id="a🙂", run_id="r'\""),
        superseded_by="m0",
        expire_time=NOW + timedelta(days=1, microseconds=7),
        metadata={"k": ["v", 1, 0.1, None, True], "🙂": {"b": 1, "a": 2}},
        event_ids=("e1", "e,2"),
        turn_id="t1",
        conversation_id="c 1",
        last_access_time=NOW,
        occur_time=datetime(1969, 7, 20, 20, 17, 40, 123456, tzinfo=UTC),
        confidence=0.1 + 0.2,
        importance=0.0,
        sensitivity_level=2,
        is_explicit=True,
        is_verbatim=True,
        role=Role.USER,
        version=3,
    )
    (stored,) = await stores.keep(full)
    assert stored == replace(full, revision=1, index_state=IndexState.PENDING)
    (row,) = await stores.reader.load("u1", ["m1"])
    assert row.memory == stored
    assert list(row.memory.metadata["🙂"]) == ["b", "a"]  # type: ignore[call-overload]


async def test_times_of_any_zone_come_back_as_the_same_moment_in_utc(stores: Stores) -> None:
    shanghai = timezone(timedelta(hours=8))
    await stores.keep(replace(memory("m1"), expire_time=NOW.astimezone(shanghai)))
    (row,) = await stores.reader.load("u1", ["m1"])
    assert row.memory.expire_time == NOW


async def test_long_text_is_stored_whole(stores: Stores) -> None:
    long = "长" * 23_333 + "!"
    await stores.keep(memory("m1", long, title=long, metadata={"long": long}))
    (row,) = await stores.reader.load("u1", ["m1"])
    assert (row.memory.content, row.memory.title, row.memory.metadata["long"]) == (long,) * 3


async def test_nobody_stored_anything_for_an_unknown_user(stores: Stores) -> None:
    await stores.keep(memory("m1"))
    view = await stores.reader.view(asked("u2"))
    assert (view.state.user_id, view.state.revision) == ("u2", 0)
    assert view.state.settings == UserSettings()
    assert (list(view.pinned), dict(view.untold)) == ([], {})
    assert await stores.reader.rows("u2", fingerprint="use", limit=9) == ([], 0)
    assert list(await stores.reader.load("u2", ["m1"])) == []


@pytest.mark.parametrize("other", ["Ann", "ann ", "änn", "ann\u200b", "ann%", "a_n"])
async def test_ids_that_look_alike_are_different_users(stores: Stores, other: str) -> None:
    await stores.keep(memory("m1", "same", user_id="ann", memory_type=CONSTRAINT))
    await stores.keep(memory("m2", "same", user_id=other, memory_type=CONSTRAINT))
    assert await pinned(stores, "ann") == ["m1"]
    assert await pinned(stores, other) == ["m2"]


@pytest.mark.parametrize(
    "user_id",
    ["%", "_", "team_1", "", "'", '"', "\\", "x' or '1'='1", "a\nb", "🙂", "{x}", "%s", ":a"],
)
async def test_an_odd_id_finds_its_own_rows_only(stores: Stores, user_id: str) -> None:
    for number, neighbour in enumerate(["teamX1", "team_10", "x", "ab"]):
        await stores.keep(memory(f"n{number}", user_id=neighbour))
    await stores.keep(memory("m1", user_id=user_id))
    page = await stores.reader.page(user_id, MemoryFilter(), before="", limit=9)
    assert [row.memory_id for row in page] == ["m1"]
    assert [row.memory.memory_id for row in await stores.reader.load(user_id, ["m1", "n1"])] == [
        "m1"
    ]


async def test_constraints_come_first_then_sure_preferences_strongest_first(
    stores: Stores,
) -> None:
    await stores.keep(
        memory("p1", memory_type=PREFERENCE, confidence=0.8, importance=0.4),
        memory("p2", memory_type=PREFERENCE, confidence=0.79, importance=0.9),
        memory("p3", memory_type=PREFERENCE, confidence=0.9, importance=0.9),
        memory("c1", memory_type=CONSTRAINT, importance=0.1),
        memory("c2", memory_type=CONSTRAINT, importance=0.7, age=timedelta(microseconds=1)),
        memory("c3", memory_type=CONSTRAINT, importance=0.7),
        memory("c4", memory_type=CONSTRAINT, importance=0.7),
        memory("f1", memory_type=FACT, importance=1.0, confidence=1.0),
    )
    assert await pinned(stores) == ["c4", "c3", "c2", "c1", "p3", "p1"]
    assert await pinned(stores, preference_limit=1) == ["c4", "c3", "c2", "c1", "p3"]
    assert await pinned(stores, preference_limit=0) == ["c4", "c3", "c2", "c1"]
    assert await pinned(stores, memory_types=frozenset({PREFERENCE})) == ["p3", "p1"]
    assert await pinned(stores, memory_types=frozenset({CONSTRAINT})) == ["c4", "c3", "c2", "c1"]
    assert await pinned(stores, memory_types=frozenset({FACT})) == []


GATED = [
    ("status", {"status": MemoryStatus.ARCHIVED}, UserSettings(), {}),
    ("expired", {"expire_time": NOW}, UserSettings(), {}),
    ("implicit", {"is_explicit": False}, UserSettings(implicit_memory_enabled=False), {}),
    ("sensitive", {"sensitivity_level": 1}, UserSettings(), {}),
    ("off", {}, UserSettings(memory_enabled=False), {}),
    ("type off", {}, UserSettings(disabled_types=frozenset({CONSTRAINT})), {}),
    ("other assistant", {"assistant_id": "a2"}, UserSettings(), {"assistant_id": "a1"}),
    ("other run", {"run_id": "r2"}, UserSettings(), {"run_id": "r1"}),
    ("assistant", {"is_verbatim": True, "role": Role.ASSISTANT}, UserSettings(), {}),
    ("too old", {"age": timedelta(days=2)}, UserSettings(retention=timedelta(days=2)), {}),
]
OPEN = [
    ("not yet expired", {"expire_time": NOW + timedelta(microseconds=1)}, UserSettings(), {}),
    ("explicit", {"is_explicit": True}, UserSettings(implicit_memory_enabled=False), {}),
    ("allowed", {"sensitivity_level": 2}, UserSettings(sensitive_memory_enabled=True), {}),
    ("other type off", {}, UserSettings(disabled_types=frozenset({FACT, TODO})), {}),
    ("of no assistant", {}, UserSettings(), {"assistant_id": "a1", "run_id": "r1"}),
    ("any assistant", {"assistant_id": "a2", "run_id": "r2"}, UserSettings(), {}),
    ("user", {"is_verbatim": True, "role": Role.USER}, UserSettings(), {}),
    ("kept", {"age": timedelta(days=2)}, UserSettings(retention=timedelta(days=3)), {}),
    ("kept for ever", {}, UserSettings(retention=timedelta(days=3_652_500)), {}),
]


@pytest.mark.parametrize(
    ("row", "settings", "wanted", "expected"),
    [pytest.param(*case[1:], [], id=case[0]) for case in GATED]
    + [pytest.param(*case[1:], ["m1"], id=case[0]) for case in OPEN],
)
async def test_what_the_gates_refuse_is_neither_pinned_nor_best(
    stores: Stores,
    row: dict[str, Any],
    settings: UserSettings,
    wanted: dict[str, Any],
    expected: list[str],
) -> None:
    await stores.keep(memory("m1", memory_type=CONSTRAINT, **row))
    await stores.allow(settings)
    assert await pinned(stores, **wanted) == expected
    assert await best(stores, **wanted) == expected


async def test_the_best_rows_are_explicit_ones_then_important_ones(stores: Stores) -> None:
    await stores.keep(
        memory("f1", importance=0.9),
        memory("f2", importance=0.2, is_explicit=True),
        memory("t1", importance=0.3, memory_type=TODO, is_explicit=True),
        memory("f3", importance=0.9, age=timedelta(days=1)),
        memory("f0", importance=0.9),
        memory("p1", importance=0.1, memory_type=PREFERENCE, confidence=0.1),
    )
    assert await best(stores) == ["t1", "f2", "f1", "f0", "f3", "p1"]
    assert await best(stores, limit=2) == ["t1", "f2"]
    assert await best(stores, memory_types=frozenset({TODO, PREFERENCE})) == ["t1", "p1"]
    rows, total = await stores.reader.rows("u1", fingerprint="use", limit=3)
    assert ([row.memory.memory_id for row in rows], total) == (["t1", "f2", "f1"], 6)


async def test_a_type_that_nobody_knows_counts_as_a_fact(stores: Stores) -> None:
    await stores.keep(memory("m1", memory_type=MemoryType.UNKNOWN), memory("m2"))
    (row,) = await stores.reader.load("u1", ["m1"])
    assert row.memory.memory_type is MemoryType.UNKNOWN
    assert await best(stores, memory_types=frozenset({FACT})) == ["m2", "m1"]
    assert await best(stores, memory_types=frozenset({TODO})) == []
    listed = MemoryFilter(memory_types=frozenset({FACT}))
    assert len(await stores.reader.page("u1", listed, before="", limit=9)) == 2
    assert dict((await stores.reader.stats("u1")).active_by_type) == {"fact": 2}
    await stores.allow(UserSettings(disabled_types=frozenset({FACT})))
    assert await best(stores) == []


async def test_rows_come_with_the_embedding_of_the_fingerprint_only(stores: Stores) -> None:
    await stores.keep(memory("m1"), vector=VECTOR)
    await stores.keep(memory("m2"))
    rows, total = await stores.reader.rows("u1", fingerprint="use", limit=9)
    found = {row.memory.memory_id: row.vector for row in rows}
    assert total == 2
    assert found["m1"] is not None
    np.testing.assert_allclose(found["m1"], VECTOR, atol=1e-3)
    assert found["m1"].dtype == np.float32
    assert found["m2"] is None
    others, _ = await stores.reader.rows("u1", fingerprint="e5", limit=9)
    assert [row.vector for row in others] == [None, None]
    assert [row.vector for row in await stores.reader.load("u1", ["m1"])] == [None]


async def test_rows_are_the_active_ones_even_if_the_gates_refuse_them(stores: Stores) -> None:
    await stores.keep(
        memory("m1", status=MemoryStatus.DELETED), memory("m2", expire_time=NOW), memory("m3")
    )
    await stores.allow(UserSettings(memory_enabled=False))
    rows, total = await stores.reader.rows("u1", fingerprint="", limit=9)
    assert (sorted(row.memory.memory_id for row in rows), total) == (["m2", "m3"], 2)


async def test_changes_are_what_came_after_a_revision_in_its_order(stores: Stores) -> None:
    (first,) = await stores.keep(memory("m1"))
    await stores.keep(memory("m3"), memory("m2"))
    await stores.change(first, replace(first, status=MemoryStatus.DELETED, version=2))
    changes = await stores.reader.changes("u1", after=0, fingerprint="")
    assert [(row.memory.memory_id, row.memory.revision) for row in changes] == [
        ("m2", 2),
        ("m3", 2),
        ("m1", 3),
    ]
    later = await stores.reader.changes("u1", after=2, fingerprint="")
    assert [(row.memory.memory_id, row.memory.status) for row in later] == [
        ("m1", MemoryStatus.DELETED)
    ]
    assert list(await stores.reader.changes("u1", after=3, fingerprint="")) == []


async def test_many_ids_are_loaded_at_once(stores: Stores) -> None:
    await stores.keep(*(memory(f"m{number:04}") for number in range(1203)))
    ids = [f"m{number:04}" for number in range(1203)]
    rows = await stores.reader.load("u1", [*ids, "unknown", "m0000"], fingerprint="use")
    assert sorted(row.memory.memory_id for row in rows) == ids
    assert list(await stores.reader.load("u1", [])) == []


async def test_pages_of_equal_times_skip_nothing_and_repeat_nothing(stores: Stores) -> None:
    await stores.keep(*(memory(f"m{number}") for number in range(7)))
    seen: list[str] = []
    while page := await stores.reader.page(
        "u1", MemoryFilter(), before=seen[-1] if seen else "", limit=3
    ):
        assert len(page) <= 3
        seen += [row.memory_id for row in page]
    assert seen == [f"m{number}" for number in reversed(range(7))]


async def test_a_list_is_filtered_by_type_status_and_a_part_of_the_text(stores: Stores) -> None:
    await stores.keep(
        memory("m1", "Likes 100% cocoa", title="Sweets_and more"),
        memory("m2", "喜欢喝茶", memory_type=PREFERENCE),
        memory("m3", "Likes 100 teas", status=MemoryStatus.ARCHIVED),
        memory("m4", "🙂"),
    )

    async def listed(**wanted: Any) -> list[str]:
        page = await stores.reader.page("u1", MemoryFilter(**wanted), before="", limit=9)
        return [row.memory_id for row in page]

    assert await listed() == ["m4", "m3", "m2", "m1"]
    assert await listed(text="likes") == ["m3", "m1"]
    assert await listed(text="100%") == ["m1"]
    assert await listed(text="s_a") == ["m1"]
    assert await listed(text="欢喝") == ["m2"]
    assert await listed(text="🙃") == []
    assert await listed(text="🙂") == ["m4"]
    assert await listed(statuses=frozenset({MemoryStatus.ARCHIVED})) == ["m3"]
    assert await listed(memory_types=frozenset({PREFERENCE})) == ["m2"]
    assert await listed(memory_types=frozenset({PREFERENCE}), text="likes") == []


async def test_stats_count_what_is_stored(stores: Stores) -> None:
    await stores.keep(
        memory("m1"),
        memory("m2", memory_type=CONSTRAINT),
        memory("m3", memory_type=CONSTRAINT, status=MemoryStatus.DELETED),
    )
    await stores.keep(memory("m4", user_id="u2"))
    (note, *_) = await stores.outbox.claim(limit=1, lease=9, now=stores.clock.now)
    await stores.outbox.told({note: IndexState.SYNCED}, now=stores.clock.now)
    stats = await stores.reader.stats("u1")
    assert stats.revision == 1
    assert dict(stats.active_by_type) == {"fact": 1, "constraint": 1}
    assert dict(stats.memories_by_status) == {"active": 2, "deleted": 1}
    assert dict(stats.memories_by_index_state) == {"pending": 2, "synced": 1}


async def test_a_snapshot_gives_all_of_one_user_in_any_status_in_order_and_in_full(
    stores: Stores,
) -> None:
    rows = [memory(f"m{number:03}", status=list(MemoryStatus)[number % 4]) for number in range(410)]
    stored = await stores.keep(*rows[::-1])
    await stores.keep(memory("n1", user_id="u2"))
    assert await stores.snapshot.copy("u1", list) == sorted(stored, key=lambda row: row.memory_id)
    assert await stores.snapshot.copy("u3", list) == []
