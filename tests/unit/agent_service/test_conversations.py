"""Paging through conversations and timelines."""

import itertools
from datetime import timedelta

import pytest

from agent_service.conversations import MAX_ANSWER_BYTES, Conversations, TimelinePart
from agent_service.domain.errors import ConversationNotFound
from agent_service.ports import StoredTimelineEvent, TurnOpened, UserSaid
from tests.builders.agent_turns import NOON, closing, new_turn, report
from tests.fakes.agent_store import FakeAgentStore


def new_store() -> FakeAgentStore:
    numbers = itertools.count(1)
    return FakeAgentStore(lambda: f"id-{next(numbers)}")


async def say(store: FakeAgentStore, *texts: str, conversation_id: str = "c1") -> None:
    for text in texts:
        turn = new_turn(f"{conversation_id}-{text}", conversation_id=conversation_id, text=text)
        opened = await store.open(turn)
        assert isinstance(opened, TurnOpened)
        await store.close(opened.lease, closing(answer="", report=report()))


def texts(part: TimelinePart) -> str:
    return "".join(e.event.text for e in part.events if isinstance(e.event, UserSaid))


def small(_event: StoredTimelineEvent) -> int:
    return 1


async def test_conversations_page_by_time_and_id_without_loss() -> None:
    store = new_store()
    for name in "abcde":
        await say(store, "x", conversation_id=name)
    conversations = Conversations(store, small)

    seen: list[str] = []
    place = None
    while True:
        page = await conversations.page("ann", status=None, before=place, limit=2)
        seen += [found.conversation_id for found in page.conversations]
        place = page.next_place
        if place is None:
            break

    assert seen == list("edcba")


async def test_a_full_last_page_has_no_next() -> None:
    store = new_store()
    await say(store, "x")

    page = await Conversations(store, small).page("ann", status=None, before=None, limit=1)
    assert page.next_place is None
    none = await Conversations(store, small).page("bob", status=None, before=None, limit=1)
    assert (list(none.conversations), none.next_place) == ([], None)


async def test_a_timeline_pages_forwards_to_its_end() -> None:
    store = new_store()
    await say(store, *"abcdefg")
    conversations = Conversations(store, small)

    first = await conversations.timeline("ann", "c1", after=0, limit=3)
    assert (texts(first), first.earlier, first.later) == ("abc", None, 3)
    second = await conversations.timeline("ann", "c1", after=first.later, limit=3)
    assert (texts(second), second.earlier, second.later) == ("def", 4, 6)
    third = await conversations.timeline("ann", "c1", after=second.later, limit=3)
    assert (texts(third), third.earlier, third.later) == ("g", 7, None)


async def test_a_timeline_pages_backwards_to_its_start() -> None:
    store = new_store()
    await say(store, *"abcdefg")
    conversations = Conversations(store, small)

    last = await conversations.timeline("ann", "c1", limit=3)
    assert (texts(last), last.earlier, last.later) == ("efg", 5, None)
    middle = await conversations.timeline("ann", "c1", before=last.earlier, limit=3)
    assert (texts(middle), middle.earlier, middle.later) == ("bcd", 2, 4)
    first = await conversations.timeline("ann", "c1", before=middle.earlier, limit=3)
    assert (texts(first), first.earlier, first.later) == ("a", None, 1)


async def test_a_place_stays_right_when_more_is_said() -> None:
    store = new_store()
    await say(store, *"abc")
    conversations = Conversations(store, small)
    last = await conversations.timeline("ann", "c1", limit=2)
    await say(store, *"de")

    assert texts(await conversations.timeline("ann", "c1", before=last.earlier, limit=2)) == "a"
    after = await conversations.timeline("ann", "c1", after=last.events[-1].seq, limit=9)
    assert texts(after) == "de"


async def test_a_page_ends_early_rather_than_grow_too_large() -> None:
    store = new_store()
    await say(store, *"abcde")
    conversations = Conversations(store, lambda _event: MAX_ANSWER_BYTES // 2)

    first = await conversations.timeline("ann", "c1", after=0, limit=5)
    assert (texts(first), first.later) == ("ab", 2)
    last = await conversations.timeline("ann", "c1", limit=5)
    assert (texts(last), last.earlier) == ("de", 4)


async def test_one_event_is_given_however_large_it_is() -> None:
    store = new_store()
    await say(store, *"abc")
    conversations = Conversations(store, lambda _event: MAX_ANSWER_BYTES + 1)

    assert texts(await conversations.timeline("ann", "c1", after=1, limit=5)) == "b"
    assert texts(await conversations.timeline("ann", "c1", limit=5)) == "c"


async def test_behind_the_end_there_is_nothing_yet() -> None:
    store = new_store()
    await say(store, "a")

    part = await Conversations(store, small).timeline("ann", "c1", after=1, limit=5)
    assert part == TimelinePart([], None, None)


async def test_what_a_conversation_is_and_how_much_context_it_used() -> None:
    store = new_store()
    await say(store, *"ab")
    conversations = Conversations(store, small)

    assert (await conversations.meta("ann", "c1")).message_count == 2
    assert (await conversations.context_stats("ann", "c1")).turns == 2
    with pytest.raises(ConversationNotFound):
        await conversations.meta("bob", "c1")
    with pytest.raises(ConversationNotFound):
        await conversations.context_stats("ann", "c2")


async def test_a_turn_that_was_lost_shows_in_the_timeline() -> None:
    store = new_store()
    await store.open(new_turn("t1"))
    await store.close_expired(NOON + timedelta(hours=1), limit=1)

    part = await Conversations(store, small).timeline("ann", "c1", after=0, limit=9)
    assert [type(event.event).__name__ for event in part.events] == ["UserSaid", "Failed"]
