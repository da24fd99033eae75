"""What MemoryHistory promises, and what a decision reads inside a transaction."""

from dataclasses import replace

from memory_service.domain.change import SYSTEM, Change, PastChange
from memory_service.domain.ingest import Action, Candidate, Decision, Reason, Relation
from memory_service.domain.model import MemoryStatus, MemoryType, Operation, UserSettings
from memory_service.domain.write import with_status
from memory_service.ports import Transaction
from tests.builders.memories import NOW, memory
from tests.contract.memory_service.memory_stores import Stores, created


def told(changes: object) -> list[tuple[str, int, int]]:
    assert isinstance(changes, list)
    return [(change.memory_id, change.version, change.revision) for change in changes]


async def page(stores: Stores, memory_id: str = "", *, before: int = 0) -> list[PastChange]:
    return list(await stores.history.page("u1", memory_id, before=before, limit=100))


async def test_history_tells_everything_about_a_change_newest_first(stores: Stores) -> None:
    (first,) = await stores.keep(memory("m1", "Likes tea.", metadata={"k": ["v"]}))
    decision = Decision(
        fact=memory("", "Likes green tea."),
        action=Action.UPDATE,
        reason=Reason.UPDATE,
        memory_id="m1",
        superseded_ids=("m7",),
        candidates=(Candidate(memory_id="m1", score=0.75, relation=Relation.UPDATE),),
        model="small",
        prompt_version="3",
    )
    after = replace(first, title="Tea", version=2)

    def decided(tx: Transaction) -> None:
        tx.put(
            Change(
                operation=Operation.UPDATE,
                actor=SYSTEM,
                reason="update",
                before=first,
                after=after,
                decision=decision,
            )
        )

    await stores.write(decided)
    newest, oldest = await page(stores)
    assert newest.entry_id > oldest.entry_id
    assert newest == PastChange(
        entry_id=newest.entry_id,
        memory_id="m1",
        version=2,
        revision=2,
        operation=Operation.UPDATE,
        actor="system",
        reason="update",
        before=first,
        after=replace(after, revision=2),
        decision=decision,
        create_time=NOW,
    )
    assert (oldest.operation, oldest.before, oldest.after) == (Operation.CREATE, None, first)
    assert oldest.decision is None


async def test_history_comes_in_pages_of_one_memory_or_of_all(stores: Stores) -> None:
    one, _ = await stores.keep(memory("m1"), memory("m2"))
    await stores.keep(memory("x1", user_id="u1"))
    two = await stores.change(one, replace(one, title="b", version=2))
    await stores.change(two, replace(two, title="c", version=3))
    everything = await page(stores)
    assert told(everything) == [
        ("m1", 3, 4),
        ("m1", 2, 3),
        ("x1", 1, 2),
        ("m2", 1, 1),
        ("m1", 1, 1),
    ]
    assert await stores.history.page("u1", "", before=0, limit=2) == everything[:2]
    assert await page(stores, before=everything[1].entry_id) == everything[2:]
    assert told(await page(stores, "m1")) == [("m1", 3, 4), ("m1", 2, 3), ("m1", 1, 1)]
    older = await page(stores, "m1", before=everything[0].entry_id)
    assert told(older) == [("m1", 2, 3), ("m1", 1, 1)]
    assert await page(stores, "nobody") == []


async def test_history_is_never_anothers(stores: Stores) -> None:
    await stores.keep(memory("m1", user_id="u2"))
    assert await page(stores) == []
    assert await page(stores, "m1") == []
    assert await stores.history.version("u1", "m1", 1) is None
    assert (await stores.history.news("u1", after=0, limit=10)).changes == []


async def test_a_version_is_given_as_it_was(stores: Stores) -> None:
    (first,) = await stores.keep(memory("m1", "Likes tea."))
    second = await stores.change(first, with_status(first, MemoryStatus.DELETED, NOW))
    assert await stores.history.version("u1", "m1", 1) == first
    assert await stores.history.version("u1", "m1", 2) == second
    assert await stores.history.version("u1", "m1", 3) is None


async def test_news_are_whole_revisions_in_order(stores: Stores) -> None:
    await stores.keep(memory("m1"), memory("m2"))
    await stores.keep(memory("m3"), memory("m4"), memory("m5"))
    await stores.keep(memory("m6"))
    await stores.allow(UserSettings(sensitive_memory_enabled=True))
    everything = await stores.history.news("u1", after=0, limit=6)
    assert told(everything.changes) == [
        ("m1", 1, 1),
        ("m2", 1, 1),
        ("m3", 1, 2),
        ("m4", 1, 2),
        ("m5", 1, 2),
        ("m6", 1, 3),
    ]
    assert everything.complete
    assert everything.state.revision == 4
    assert everything.state.settings.sensitive_memory_enabled
    cut = await stores.history.news("u1", after=0, limit=4)
    assert (told(cut.changes), cut.complete) == ([("m1", 1, 1), ("m2", 1, 1)], False)
    large = await stores.history.news("u1", after=1, limit=1)
    assert [one.memory_id for one in large.changes] == ["m3", "m4", "m5"]
    assert not large.complete
    last = await stores.history.news("u1", after=2, limit=1)
    assert (told(last.changes), last.complete) == ([("m6", 1, 3)], True)
    none = await stores.history.news("u1", after=3, limit=1)
    assert (none.changes, none.complete) == ([], True)


async def test_the_newest_revision_is_complete_however_large_it_is(stores: Stores) -> None:
    await stores.keep(memory("m1"), memory("m2"), memory("m3"))
    news = await stores.history.news("u1", after=0, limit=1)
    assert (len(news.changes), news.complete) == (3, True)


async def test_a_transaction_sees_what_changed_since_a_revision(stores: Stores) -> None:
    one, _ = await stores.keep(memory("m1"), memory("m2"))
    await stores.keep(memory("x1", user_id="u2"))
    await stores.change(one, with_status(one, MemoryStatus.DELETED, NOW))
    seen: list[list[str]] = []

    def look(tx: Transaction) -> None:
        tx.put(created(memory("m3")))
        seen[:] = [[row.memory_id for row in tx.changes(after)] for after in (0, 1, 2)]

    await stores.write(look)
    assert seen == [["m2", "m1", "m3"], ["m1", "m3"], ["m3"]]


async def test_the_equal_active_memory_is_found_outside_a_transaction_too(stores: Stores) -> None:
    (kept, gone) = await stores.keep(memory("m1", "Likes tea."), memory("m2", "Likes milk."))
    await stores.change(gone, with_status(gone, MemoryStatus.DELETED, NOW))
    find = stores.reader.find_active
    assert await find(memory("", " likes  TEA.")) == kept
    assert await find(memory("", "Likes milk.")) is None
    assert await find(memory("", "Likes tea.", memory_type=MemoryType.PREFERENCE)) is None
    assert await find(memory("", "Likes tea.", assistant_id="a1")) is None
    assert await find(memory("", "Likes tea.", user_id="u2")) is None
