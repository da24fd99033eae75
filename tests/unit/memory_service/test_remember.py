"""The use cases over fakes; answers are a memory's id, version and what the test asks for."""

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Generic, TypeVar

import pytest

from memory_service.domain.errors import (
    AnswerTooLarge,
    DomainError,
    EqualMemoryExists,
    InvalidField,
    InvalidRequest,
    MemoryNotAllowed,
    MemoryNotFound,
    MemoryNotInUse,
    RequestIdReused,
    StaleVersion,
)
from memory_service.domain.model import (
    IndexState,
    Memory,
    MemoryStatus,
    MemoryType,
    Operation,
    Role,
    UserSettings,
    UserState,
)
from memory_service.domain.write import MemoryPatch, NewMemory, Outcome, Refused, Stored
from memory_service.ports import MemoryFilter, RequestKey
from memory_service.remember.batch import CHUNK, BatchAnswer, RememberMany
from memory_service.remember.browse import Browse
from memory_service.remember.by_hand import Remember
from memory_service.remember.embedding import Embedding
from tests.fakes.clock import FakeClock, FakeIds
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.memory_store import FakeMemoryStore

T = TypeVar("T")


class Kept(Generic[T]):
    """An encoder that keeps what it was given."""

    def __init__(self) -> None:
        self.values: list[T] = []

    def __call__(self, value: T) -> bytes:
        self.values.append(value)
        return b""


class Room:
    """The use cases on one fake store."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        ids = FakeIds()
        self.store = FakeMemoryStore(clock=self.clock, new_id=ids)
        self.embedder = FakeEmbedder()
        embedding = Embedding(self.embedder, timeout=0.05)
        self.one = Remember(self.store, self.store, embedding, clock=self.clock, new_id=ids)
        self.many = RememberMany(self.store, embedding, clock=self.clock, new_id=ids)
        self.browse = Browse(self.store, clock=self.clock)

    async def create(
        self, content: str = "Likes tea.", request: str = "r1", **values: Any
    ) -> Stored:
        kept = Kept[Stored]()
        new = NewMemory(
            **{"user_id": "u1", "memory_type": MemoryType.FACT, "content": content} | values
        )
        await self.one.create(new, key(request), kept)
        return kept.values[0]

    async def update(self, memory: Memory, request: str = "r2", **values: Any) -> Memory:
        kept = Kept[Memory]()
        patch = MemoryPatch(memory_id=memory.memory_id, version=memory.version, values=values)
        await self.one.update("u1", patch, key(request), kept)
        return kept.values[0]

    async def delete(self, memory_id: str, request: str = "rd") -> Memory:
        kept = Kept[Memory]()
        await self.one.delete("u1", memory_id, key(request), kept)
        return kept.values[0]

    async def restore(self, memory_id: str, request: str = "rr") -> Memory:
        kept = Kept[Memory]()
        await self.one.restore("u1", memory_id, key(request), kept)
        return kept.values[0]

    async def vector(self, memory: Memory) -> Any:
        (row,) = await self.store.load(
            "u1", [memory.memory_id], fingerprint=self.embedder.fingerprint
        )
        return row.vector


def key(request_id: str, digest: bytes = b"d") -> RequestKey:
    return RequestKey(request_id, "Rpc", digest)


@pytest.fixture
def room() -> Room:
    return Room()


# ---------------------------------------------------------------- create


async def test_what_the_assistant_said_is_stored_without_an_embedding(room: Room) -> None:
    said = (await room.create(is_verbatim=True, role=Role.ASSISTANT)).memory
    assert (said.role, said.index_state) == (Role.ASSISTANT, IndexState.REMOVED)
    assert await room.vector(said) is None
    assert room.embedder.documents == []


async def test_nobody_spoke_what_is_no_verbatim_turn_any_more(room: Room) -> None:
    said = (await room.create(is_verbatim=True, role=Role.ASSISTANT)).memory
    changed = await room.update(said, is_verbatim=False)
    assert (changed.role, changed.index_state) == (None, IndexState.PENDING)


async def test_a_new_memory_is_stored_with_its_embedding_and_the_defaults(room: Room) -> None:
    stored = await room.create("Likes tea in the early morning.")
    assert stored.created
    memory = await room.browse.get("u1", stored.memory.memory_id)
    assert memory == stored.memory
    assert (memory.confidence, memory.importance, memory.is_explicit) == (0.95, 0.90, True)
    assert memory.title == "Likes tea in the early m"
    assert memory.revision == 1
    assert (await room.vector(memory) == room.embedder.vector(memory.content)).all()


async def test_nothing_to_embed_asks_no_embedder(room: Room) -> None:
    assert await Embedding(room.embedder, timeout=1).vectors([]) == []
    assert room.embedder.documents == []


async def test_equal_content_refreshes_what_is_there(room: Room) -> None:
    now = room.clock.now
    first = await room.create(
        "Likes tea.",
        confidence=0.5,
        importance=0.9,
        is_explicit=False,
        expire_time=now + timedelta(days=1),
        metadata={"k": "v"},
    )
    room.clock.advance(60)
    again = await room.create(
        " likes  TEA. ",
        "r2",
        confidence=0.8,
        importance=0.1,
        expire_time=now + timedelta(days=9),
    )
    assert not again.created
    memory = again.memory
    assert memory.memory_id == first.memory.memory_id
    assert memory.content == "Likes tea."
    assert (memory.confidence, memory.importance, memory.is_explicit) == (0.8, 0.9, True)
    assert memory.expire_time == now + timedelta(days=9)
    assert memory.update_time == room.clock.now
    assert memory.metadata == {"k": "v"}
    assert (memory.version, memory.revision) == (2, 2)


async def test_a_refresh_without_expiry_lasts_for_ever(room: Room) -> None:
    await room.create(expire_time=room.clock.now)
    assert (await room.create(request="r2")).memory.expire_time is None


async def test_other_type_assistant_or_run_is_another_memory(room: Room) -> None:
    made = [
        await room.create(),
        await room.create(request="r2", memory_type=MemoryType.PREFERENCE),
        await room.create(request="r3", assistant_id="a"),
        await room.create(request="r4", run_id="r"),
    ]
    assert all(stored.created for stored in made)


async def test_the_same_request_is_answered_again_and_another_body_is_refused(room: Room) -> None:
    new = NewMemory(user_id="u1", memory_type=MemoryType.FACT, content="Likes tea.")
    first = await room.one.create(new, key("r"), lambda s: s.memory.memory_id.encode())
    assert await room.one.create(new, key("r"), lambda s: s.memory.memory_id.encode()) == first
    with pytest.raises(RequestIdReused):
        await room.one.create(new, key("r", b"other"), lambda _: b"")
    assert len(await room.browse.page("u1", MemoryFilter(), before="", size=9)) == 1


@pytest.mark.parametrize("broken", ["down", "hang", "zero", "nan"])
async def test_a_memory_is_stored_without_an_embedding_that_is_not_to_be_had(
    room: Room, broken: str
) -> None:
    room.embedder.down = "timeout" if broken == "down" else ""
    room.embedder.hang = broken == "hang"
    room.embedder.table = {"Likes tea.": [float("nan") if broken == "nan" else 0.0] * 64}
    stored = await room.create()
    assert stored.created
    assert await room.vector(stored.memory) is None


@pytest.mark.parametrize(
    ("settings", "values", "allowed"),
    [
        (UserSettings(memory_enabled=False), {}, False),
        (UserSettings(implicit_memory_enabled=False), {"is_explicit": False}, False),
        (UserSettings(implicit_memory_enabled=False), {"is_explicit": True}, True),
        (UserSettings(), {"sensitivity_level": 1}, False),
        (UserSettings(sensitive_memory_enabled=True), {"sensitivity_level": 2}, True),
        (UserSettings(disabled_types=frozenset({MemoryType.FACT})), {}, False),
    ],
)
async def test_settings_say_what_may_be_stored(
    room: Room, settings: UserSettings, values: Mapping[str, Any], *, allowed: bool
) -> None:
    room.store.seed("u1", settings=settings)
    if allowed:
        assert (await room.create(**values)).created
    else:
        with pytest.raises(MemoryNotAllowed):
            await room.create(**values)
        assert await room.browse.page("u1", MemoryFilter(), before="", size=9) == []


# ---------------------------------------------------------------- update


async def test_an_update_keeps_every_field_that_it_does_not_name(room: Room) -> None:
    before = (
        await room.create(importance=0.9, confidence=0.8, metadata={"k": "v"}, event_ids=("e",))
    ).memory
    room.clock.advance(5)
    after = await room.update(before, content="Likes coffee.")
    changed = {
        name
        for name in Memory.__dataclass_fields__
        if getattr(before, name) != getattr(after, name)
    }
    assert changed == {
        "content",
        "normalized_content",
        "content_hash",
        "update_time",
        "version",
        "revision",
    }
    assert (await room.vector(after) == room.embedder.vector("Likes coffee.")).all()


async def test_an_update_of_other_fields_keeps_the_embedding(room: Room) -> None:
    before = (await room.create()).memory
    after = await room.update(before, importance=0.0, title="")
    assert after.importance == 0.0
    assert after.title == "Likes tea."
    assert room.embedder.documents == ["Likes tea."]
    assert await room.vector(after) is not None


async def test_an_update_of_an_old_version_is_refused(room: Room) -> None:
    before = (await room.create()).memory
    await room.update(before, importance=0.1)
    with pytest.raises(StaleVersion, match="version 2, not 1"):
        await room.update(before, request="r3", importance=0.2)


async def test_an_update_may_not_say_what_another_active_memory_says(room: Room) -> None:
    await room.create("Likes tea.")
    other = (await room.create("Likes coffee.", "r2")).memory
    with pytest.raises(EqualMemoryExists):
        await room.update(other, request="r3", content="likes TEA.")
    after = await room.update(other, "r4", content="likes TEA.", status=MemoryStatus.ARCHIVED)
    assert after.status is MemoryStatus.ARCHIVED


@pytest.mark.parametrize("status", [MemoryStatus.DELETED, MemoryStatus.SUPERSEDED])
async def test_a_memory_out_of_use_is_not_changed_but_restored(
    room: Room, status: MemoryStatus
) -> None:
    before = (await room.create()).memory
    gone = await room.update(before, status=status)
    with pytest.raises(MemoryNotInUse):
        await room.update(gone, request="r3", importance=0.2)
    assert await room.browse.get("u1", before.memory_id) == gone
    restored = await room.restore(before.memory_id)
    assert (await room.update(restored, request="r4", importance=0.2)).importance == 0.2


async def test_an_update_of_words_that_change_meanwhile_stores_no_wrong_embedding(
    room: Room,
) -> None:
    before = (await room.create()).memory
    stale = MemoryPatch(memory_id=before.memory_id, version=2, values={"speaker": "Ann"})
    kept = Kept[Memory]()
    embed = room.embedder.embed_documents

    async def changed_meanwhile(texts: Any) -> Any:
        room.embedder.embed_documents = embed  # type: ignore[method-assign]
        await room.update(before, "between", content="Likes coffee.")
        return await embed(texts)

    room.embedder.embed_documents = changed_meanwhile  # type: ignore[method-assign]
    await room.one.update("u1", stale, key("r3"), kept)
    assert kept.values[0].content == "Likes coffee."
    assert await room.vector(kept.values[0]) is None


async def test_an_unknown_memory_is_not_found_by_any_mutation(room: Room) -> None:
    memory = (await room.create(user_id="u2")).memory
    for call in (
        room.update(memory, content="x"),
        room.delete(memory.memory_id),
        room.restore(memory.memory_id),
        room.browse.get("u1", memory.memory_id),
    ):
        with pytest.raises(MemoryNotFound):
            await call


# ---------------------------------------------------------------- delete and restore


async def test_a_deleted_memory_stays_as_it_is_and_can_be_restored(room: Room) -> None:
    memory = (await room.create()).memory
    deleted = await room.delete(memory.memory_id)
    assert deleted.status is MemoryStatus.DELETED
    assert await room.delete(memory.memory_id, "rd2") == deleted
    restored = await room.restore(memory.memory_id)
    assert (restored.status, restored.version) == (MemoryStatus.ACTIVE, 3)
    assert await room.restore(memory.memory_id, "rr2") == restored


async def test_what_is_restored_after_its_end_has_none_any_more(room: Room) -> None:
    over = (await room.create(expire_time=room.clock() + timedelta(hours=1))).memory
    room.clock.advance(3600)
    restored = await room.restore(over.memory_id)
    assert (restored.status, restored.expire_time) == (MemoryStatus.ACTIVE, None)
    again = await room.update(restored, expire_time=room.clock() + timedelta(hours=1))
    await room.delete(over.memory_id)
    room.clock.advance(3600)
    restored = await room.restore(over.memory_id, "rr2")
    assert (restored.status, restored.expire_time) == (MemoryStatus.ACTIVE, None)
    assert restored.version == again.version + 2


async def test_what_is_restored_before_its_end_keeps_it(room: Room) -> None:
    end = room.clock() + timedelta(hours=1)
    memory = (await room.create(expire_time=end)).memory
    await room.delete(memory.memory_id)
    room.clock.advance(3599)
    assert (await room.restore(memory.memory_id)).expire_time == end


async def test_a_memory_cannot_be_restored_beside_an_equal_one(room: Room) -> None:
    memory = (await room.create()).memory
    await room.delete(memory.memory_id)
    assert (await room.create(request="r2")).created
    with pytest.raises(EqualMemoryExists):
        await room.restore(memory.memory_id)


async def test_history_says_what_was_done_and_why(room: Room) -> None:
    memory = (await room.create()).memory
    await room.create(request="r2")
    memory = await room.browse.get("u1", memory.memory_id)
    archived = await room.update(memory, "r3", status=MemoryStatus.ARCHIVED)
    await room.update(archived, "r4", status=MemoryStatus.ACTIVE)
    await room.delete(memory.memory_id)
    await room.restore(memory.memory_id)
    history = [change for _, change in room.store.tables.history.values()]
    assert [(change.operation, change.reason) for change in history] == [
        (Operation.CREATE, "by_hand"),
        (Operation.UPDATE, "same_hash"),
        (Operation.ARCHIVE, "by_hand"),
        (Operation.RESTORE, "by_hand"),
        (Operation.DELETE, "by_hand"),
        (Operation.RESTORE, "by_hand"),
    ]
    assert {change.actor for change in history} == {"user"}


# ---------------------------------------------------------------- batches


def _places(outcomes: Mapping[int, Outcome]) -> bytes:
    said = {
        place: [outcome.memory.memory_id, outcome.created]
        if isinstance(outcome, Stored)
        else type(outcome.error).__name__
        for place, outcome in outcomes.items()
    }
    return json.dumps(said).encode()


ANSWER = BatchAnswer(encode=_places, size=lambda _: 1, largest=1, most=10**9)


def items(count: int) -> list[NewMemory | DomainError]:
    return [
        NewMemory(user_id="u1", memory_type=MemoryType.FACT, content=f"Fact {number}.")
        for number in range(count)
    ]


def joined(answers: Any) -> dict[str, Any]:
    return {place: said for answer in answers for place, said in json.loads(answer).items()}


async def test_each_of_many_has_its_own_outcome(room: Room) -> None:
    invalid = InvalidRequest([InvalidField("memories[1].content", "is required")])
    some = [*items(1), invalid, *items(1)]
    some.append(
        NewMemory(user_id="u1", memory_type=MemoryType.FACT, content="x", sensitivity_level=1)
    )
    said = joined(await room.many.create("u1", some, key("r"), ANSWER))
    assert said["0"][1]
    assert said["1"] == "InvalidRequest"
    assert said["2"] == [said["0"][0], False]
    assert said["3"] == "MemoryNotAllowed"


async def test_many_are_stored_in_chunks_and_a_repeated_request_goes_on_where_it_ended(
    room: Room,
) -> None:
    some = items(2 * CHUNK + 1)
    first = await room.many.create("u1", some[:CHUNK], key("r"), ANSWER)
    whole = await room.many.create("u1", some, key("r"), ANSWER)
    assert len(whole) == 3
    assert list(whole[:1]) == list(first)
    assert await room.many.create("u1", some, key("r"), ANSWER) == whole
    said = joined(whole)
    assert list(said) == [str(place) for place in range(len(some))]
    assert len({memory_id for memory_id, _ in said.values()}) == len(some)
    with pytest.raises(RequestIdReused):
        await room.many.create("u1", some, key("r", b"other"), ANSWER)


async def test_many_that_would_make_the_answer_too_large_are_refused(room: Room) -> None:
    small = BatchAnswer(
        encode=lambda outcomes: b"".join(
            b"x" if isinstance(outcome, Refused) else b"y" for outcome in outcomes.values()
        ),
        size=lambda _: 1,
        largest=2,
        most=CHUNK + 2,
    )
    answers = await room.many.create("u1", items(CHUNK + 3), key("r"), small)
    assert b"".join(answers) == b"y" * (CHUNK + 1) + b"xx"
    assert issubclass(AnswerTooLarge, DomainError)


# ---------------------------------------------------------------- settings and reading


async def test_settings_change_only_where_named(room: Room) -> None:
    kept = Kept[UserState]()

    room.store.seed("u1", settings=UserSettings(retention=timedelta(days=9)))
    await room.one.set_settings("u1", {"memory_enabled": False}, key("r"), kept)
    assert kept.values[0].settings == UserSettings(
        memory_enabled=False, retention=timedelta(days=9)
    )
    assert await room.browse.settings("u1") == kept.values[0].settings
    assert await room.browse.settings("nobody") == UserSettings()


async def test_many_are_given_in_the_order_asked_without_unknown_ones(room: Room) -> None:
    a = (await room.create("a")).memory
    b = (await room.create("b", "r2")).memory
    asked = [b.memory_id, "unknown", a.memory_id, b.memory_id]
    assert list(await room.browse.get_many("u1", asked)) == [b, a, b]
    assert await room.browse.get_many("u2", asked) == []


async def test_a_page_has_one_more_unless_it_is_the_last(room: Room) -> None:
    for number in range(3):
        await room.create(f"f{number}", f"r{number}")
    assert len(await room.browse.page("u1", MemoryFilter(), before="", size=2)) == 3
    assert len(await room.browse.page("u1", MemoryFilter(), before="", size=3)) == 3


async def test_stats_count_what_is_stored(room: Room) -> None:
    await room.create()
    stats = await room.browse.stats("u1")
    assert stats.revision == 1
    assert stats.active_by_type[MemoryType.FACT] == 1
