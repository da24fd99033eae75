"""What every TurnStore and ConversationStore promises."""

import asyncio
from datetime import datetime, timedelta

import pytest

from agent_service.domain.errors import (
    ClientMessageIdReused,
    ConversationNotFound,
    LeaseLost,
    TurnNotFound,
    TurnRunning,
)
from agent_service.domain.model import (
    ContextAssembled,
    ConversationStatus,
    Delta,
    Done,
    Failed,
    MemoryType,
    MemoryUsed,
    Recall,
    RecalledMemory,
    Role,
    Started,
    ThinkingSummary,
    TurnEvent,
    Usage,
)
from agent_service.ports import (
    AssistantSaid,
    ContextStats,
    NewTurn,
    TimelineKind,
    TurnClosing,
    TurnKnown,
    TurnOpened,
    UserSaid,
)
from tests.builders.agent_turns import (
    NOON,
    closing,
    events,
    failed_closing,
    new_turn,
    report,
)
from tests.contract.agent_service.agent_stores import Stores

LATER = NOON + timedelta(minutes=1)


async def opened(stores: Stores, turn: NewTurn | None = None) -> TurnOpened:
    outcome = await stores.turns.open(turn or new_turn())
    assert isinstance(outcome, TurnOpened)
    return outcome


async def whole_turn(stores: Stores, turn: NewTurn, end: TurnClosing | None = None) -> None:
    lease = (await opened(stores, turn)).lease
    await stores.turns.close(lease, end or closing(now=turn.now))


async def kinds(
    stores: Stores, user_id: str = "ann", conversation_id: str = "c1"
) -> list[TimelineKind | None]:
    timeline = await stores.conversations.timeline(
        user_id, conversation_id, after=0, before=None, limit=100
    )
    assert [event.seq for event in timeline] == list(range(1, len(timeline) + 1))
    return [event.event for event in timeline]


async def stored(
    stores: Stores, turn_id: str = "t1", *, after_seq: int = 0, now: datetime = NOON
) -> list[TurnEvent]:
    return list(await stores.turns.events("ann", "c1", turn_id, after_seq=after_seq, now=now))


def text_of(kind: TimelineKind | None) -> str:
    assert isinstance(kind, UserSaid)
    return kind.text


# ---------------------------------------------------------------- opening


async def test_an_opened_turn_has_stored_its_message_and_started(stores: Stores) -> None:
    outcome = await opened(stores)

    assert outcome.started == TurnEvent(1, Started("c1", "t1", "r-t1", conversation_created=True))
    assert await stored(stores) == [outcome.started]
    assert await kinds(stores) == [UserSaid("Hello")]
    meta = await stores.conversations.meta("ann", "c1")
    assert (meta.message_count, meta.last_message_time) == (1, NOON)


async def test_only_the_first_turn_creates_the_conversation(stores: Stores) -> None:
    await whole_turn(stores, new_turn("t1"))

    second = await opened(stores, new_turn("t2"))

    assert second.started.event == Started("c1", "t2", "r-t2", conversation_created=False)


async def test_a_second_turn_is_refused_while_one_runs(stores: Stores) -> None:
    await opened(stores)

    with pytest.raises(TurnRunning):
        await stores.turns.open(new_turn("t2"))
    assert await kinds(stores) == [UserSaid("Hello")]


async def test_turns_of_two_conversations_run_at_once(stores: Stores) -> None:
    await opened(stores, new_turn("t1", conversation_id="c1"))
    await opened(stores, new_turn("t2", conversation_id="c2"))


async def test_two_first_turns_of_a_new_conversation_make_one_conversation(stores: Stores) -> None:
    outcomes = await asyncio.gather(
        *(stores.turns.open(new_turn(f"t{number}")) for number in range(6)),
        return_exceptions=True,
    )

    assert sum(isinstance(outcome, TurnOpened) for outcome in outcomes) == 1
    assert sum(isinstance(outcome, TurnRunning) for outcome in outcomes) == 5
    everything = await stores.conversations.page("ann", status=None, before=None, limit=10)
    assert [conversation.message_count for conversation in everything] == [1]


async def test_a_repeated_client_message_id_gives_the_turn_it_stands_for(stores: Stores) -> None:
    await opened(stores, new_turn("t1", client_message_id="m"))

    again = await stores.turns.open(
        new_turn("t2", client_message_id="m", conversation_id="made-again")
    )

    assert again == TurnKnown("c1", "t1")
    assert await kinds(stores) == [UserSaid("Hello")]
    with pytest.raises(ConversationNotFound):
        await stores.conversations.meta("ann", "made-again")


async def test_a_repeat_after_the_end_gives_the_turn_too(stores: Stores) -> None:
    await whole_turn(stores, new_turn("t1", client_message_id="m"))

    assert await stores.turns.open(new_turn("t2", client_message_id="m")) == TurnKnown("c1", "t1")


async def test_repeats_at_the_same_moment_open_one_turn(stores: Stores) -> None:
    outcomes = await asyncio.gather(
        *(
            stores.turns.open(
                new_turn(f"t{number}", client_message_id="m", conversation_id=f"c{number}")
            )
            for number in range(6)
        )
    )

    won = [outcome for outcome in outcomes if isinstance(outcome, TurnOpened)]
    assert len(won) == 1
    known = TurnKnown(won[0].lease.conversation_id, won[0].lease.turn_id)
    assert [outcome for outcome in outcomes if outcome not in won] == [known] * 5
    everything = await stores.conversations.page("ann", status=None, before=None, limit=10)
    assert len(everything) == 1


async def test_a_client_message_id_stands_for_one_body(stores: Stores) -> None:
    await opened(stores, new_turn("t1", client_message_id="m", digest=b"one"))

    with pytest.raises(ClientMessageIdReused):
        await stores.turns.open(new_turn("t2", client_message_id="m", digest=b"two"))


async def test_a_client_message_id_is_a_users_own(stores: Stores) -> None:
    await opened(stores, new_turn("t1", client_message_id="m", digest=b"one"))

    await opened(stores, new_turn("t2", user_id="bob", client_message_id="m", digest=b"two"))


async def test_opening_again_after_a_lost_answer_gives_the_same_lease(stores: Stores) -> None:
    first = await opened(stores)

    assert await stores.turns.open(new_turn()) == first


async def test_names_that_look_alike_are_different_users(stores: Stores) -> None:
    names = ["ann", "Ann", "ann ", "ａnn", "👩", "👨", "a'b", 'a"b', "a\\b", "a%", "a_"]
    for number, name in enumerate(names):
        await whole_turn(stores, new_turn(f"t{number}", user_id=name, text=f"I am {number}"))

    for number, name in enumerate(names):
        assert await kinds(stores, name) == [
            UserSaid(f"I am {number}"),
            AssistantSaid("Hi", incomplete=False),
        ]


async def test_the_same_conversation_id_of_another_user_shares_nothing(stores: Stores) -> None:
    await whole_turn(stores, new_turn("t1", user_id="ann"), closing(report=report()))
    await opened(stores, new_turn("t2", user_id="bob", text="Mine"))

    assert await kinds(stores, "bob") == [UserSaid("Mine")]
    assert (await stores.conversations.meta("bob", "c1")).message_count == 1
    assert (await stores.conversations.context_stats("bob", "c1")).turns == 0
    recent = await stores.conversations.recent_messages("bob", "c1", before_turn="t2", limit=9)
    assert recent == []


# ---------------------------------------------------------------- events


async def test_events_come_back_in_order_and_after_a_place(stores: Stores) -> None:
    lease = (await opened(stores)).lease
    said = events(ThinkingSummary("how"), Delta("Hi "), Delta("Ann"), Usage(10, 3))
    await stores.turns.append(lease, said[:2])
    await stores.turns.append(lease, [])
    await stores.turns.append(lease, said[2:])

    assert (await stored(stores))[1:] == said
    assert await stored(stores, after_seq=3) == said[2:]
    assert await stored(stores, after_seq=99) == []


async def test_events_sent_twice_are_stored_once(stores: Stores) -> None:
    lease = (await opened(stores)).lease
    said = events(Delta("a"), Delta("b"))
    await stores.turns.append(lease, said)
    await stores.turns.append(lease, said)

    assert (await stored(stores))[1:] == said


async def test_memories_are_kept_without_their_text(stores: Stores) -> None:
    lease = (await opened(stores)).lease
    memory = RecalledMemory(
        memory_id="m1",
        memory_type=MemoryType.CONSTRAINT,
        title="secret",
        content="secret",
        score=0.5,
        legs=("pinned",),
    )
    await stores.turns.append(lease, events(MemoryUsed(Recall(items=(memory,), revision=7))))

    used = (await stored(stores))[1].event
    assert isinstance(used, MemoryUsed)
    kept = used.recall.items[0]
    assert (kept.memory_id, kept.title, kept.content, kept.score) == ("m1", "", "", 0.5)


@pytest.mark.parametrize(
    "key", [("bob", "c1", "t1"), ("ann", "c2", "t1"), ("ann", "c1", "t2"), ("Ann", "c1", "t1")]
)
async def test_a_turn_is_found_only_under_its_whole_name(
    stores: Stores, key: tuple[str, str, str]
) -> None:
    await opened(stores)

    with pytest.raises(TurnNotFound):
        await stores.turns.events(*key, after_seq=0, now=NOON)
    with pytest.raises(TurnNotFound):
        await stores.turns.cancel(*key, NOON)


# ---------------------------------------------------------------- cancel and lease


async def test_cancelling_sets_a_flag_that_the_next_heartbeat_sees(stores: Stores) -> None:
    lease = (await opened(stores)).lease
    assert not await stores.turns.heartbeat(lease, NOON)

    assert await stores.turns.cancel("ann", "c1", "t1", NOON)
    assert await stores.turns.cancel("ann", "c1", "t1", NOON)
    assert await stores.turns.heartbeat(lease, NOON)


async def test_a_turn_that_ended_cannot_be_cancelled(stores: Stores) -> None:
    await whole_turn(stores, new_turn())

    assert not await stores.turns.cancel("ann", "c1", "t1", NOON)


async def test_a_heartbeat_prolongs_the_lease(stores: Stores) -> None:
    lease = (await opened(stores)).lease
    await stores.turns.heartbeat(lease, NOON + timedelta(seconds=9))

    with pytest.raises(TurnRunning):
        await stores.turns.open(new_turn("t2", now=NOON + timedelta(seconds=18)))


async def test_whoever_opens_the_next_turn_closes_one_whose_lease_ran_out(stores: Stores) -> None:
    lease = (await opened(stores)).lease
    said = events(ContextAssembled(report()), Delta("Once "), Delta("upon"))
    await stores.turns.append(lease, said)

    await opened(stores, new_turn("t2", text="Well?", now=LATER))

    lost = await stored(stores)
    assert lost[1:-1] == said
    assert lost[-1].seq == 5
    assert isinstance(lost[-1].event, Failed)
    assert lost[-1].event.reason == "TURN_LOST"
    assert await kinds(stores) == [
        UserSaid("Hello"),
        ContextAssembled(report()),
        AssistantSaid("Once upon", incomplete=True),
        lost[-1].event,
        UserSaid("Well?"),
    ]
    assert (await stores.conversations.context_stats("ann", "c1")).turns == 1
    learnt = [(asked.turn_id, asked.answer) for asked in await stores.learnings()]
    assert learnt == [("t1", "Once upon")]


async def test_whoever_reads_a_turn_closes_it_when_its_lease_ran_out(stores: Stores) -> None:
    await opened(stores)

    assert not (await stored(stores, now=NOON + timedelta(seconds=9)))[-1].last
    assert (await stored(stores, now=NOON + timedelta(seconds=10)))[-1].last
    assert len(await stored(stores, now=LATER)) == 2
    await opened(stores, new_turn("t2"))


async def test_cancelling_a_turn_whose_lease_ran_out_closes_it(stores: Stores) -> None:
    await opened(stores)

    assert not await stores.turns.cancel("ann", "c1", "t1", LATER)
    assert (await stored(stores))[-1].last


async def test_turns_that_nobody_meets_again_can_be_closed(stores: Stores) -> None:
    for number in range(3):
        start = NOON + timedelta(seconds=number)
        await opened(stores, new_turn(f"t{number}", conversation_id=f"c{number}", now=start))
    await opened(stores, new_turn("t9", conversation_id="c9", now=LATER))

    assert await stores.turns.close_expired(LATER, limit=2) == 2
    assert [asked.turn_id for asked in await stores.learnings()] == ["t0", "t1"]
    assert await stores.turns.close_expired(LATER, limit=9) == 1
    assert await stores.turns.close_expired(LATER, limit=9) == 0


async def test_an_empty_answer_of_a_lost_turn_is_no_message(stores: Stores) -> None:
    await opened(stores)
    await stores.turns.close_expired(LATER, limit=1)

    assert [type(kind) for kind in await kinds(stores)] == [UserSaid, Failed]
    assert [asked.answer for asked in await stores.learnings()] == [""]


async def test_a_process_that_lost_its_turn_cannot_write_to_it(stores: Stores) -> None:
    lease = (await opened(stores)).lease
    await stores.turns.close_expired(LATER, limit=1)
    before = await stored(stores)

    with pytest.raises(LeaseLost):
        await stores.turns.append(lease, events(Delta("late")))
    with pytest.raises(LeaseLost):
        await stores.turns.heartbeat(lease, LATER)
    with pytest.raises(LeaseLost):
        await stores.turns.close(lease, closing())
    assert await stored(stores) == before
    assert len(await stores.learnings()) == 1


async def test_a_turn_that_was_taken_over_keeps_out_the_old_process_also_when_closed(
    stores: Stores,
) -> None:
    lease = (await opened(stores)).lease
    await opened(stores, new_turn("t2", now=LATER))

    with pytest.raises(LeaseLost):
        await stores.turns.close(lease, closing(now=LATER))
    assert not await stores.turns.cancel("ann", "c1", "t1", LATER)
    assert await stores.turns.cancel("ann", "c1", "t2", LATER)


# ---------------------------------------------------------------- closing


async def test_closing_stores_all_that_a_turn_leaves_behind(stores: Stores) -> None:
    lease = (await opened(stores, new_turn(timezone="+08:00"))).lease
    await stores.turns.append(lease, events(MemoryUsed(Recall()), Delta("Hi")))
    end = closing(ContextAssembled(report()), Usage(9, 1), Done("stop"), after=3, report=report())
    await stores.turns.close(lease, end)

    assert (await stored(stores))[3:] == end.events
    assert await kinds(stores) == [
        UserSaid("Hello"),
        MemoryUsed(Recall()),
        ContextAssembled(report()),
        AssistantSaid("Hi", incomplete=False),
    ]
    assert (await stores.conversations.meta("ann", "c1")).message_count == 2
    (asked,) = await stores.learnings()
    assert (asked.user_id, asked.conversation_id, asked.turn_id) == ("ann", "c1", "t1")
    assert (asked.message, asked.answer, asked.timezone) == ("Hello", "Hi", "+08:00")
    await opened(stores, new_turn("t2"))


async def test_closing_twice_is_closing_once(stores: Stores) -> None:
    lease = (await opened(stores)).lease
    await stores.turns.close(lease, closing(report=report()))
    await stores.turns.close(lease, closing(report=report()))

    assert len(await kinds(stores)) == 2
    assert len(await stores.learnings()) == 1
    assert (await stores.conversations.context_stats("ann", "c1")).turns == 1


@pytest.mark.parametrize("nothing", ["", " \n", "\0"])
async def test_an_empty_answer_is_no_message(stores: Stores, nothing: str) -> None:
    await whole_turn(stores, new_turn(), failed_closing(nothing))

    assert [type(kind) for kind in await kinds(stores)] == [UserSaid, Failed]
    assert (await stores.conversations.meta("ann", "c1")).message_count == 1


async def test_a_partial_answer_is_kept_as_incomplete_before_the_failure(stores: Stores) -> None:
    await whole_turn(stores, new_turn(), failed_closing("Once"))

    timeline = await kinds(stores)
    assert timeline[1] == AssistantSaid("Once", incomplete=True)
    assert isinstance(timeline[2], Failed)


async def test_text_is_kept_whole_but_for_nul_and_half_characters(stores: Stores) -> None:
    odd = "🙂👩‍🚀 \u2028 data: x\r\n 'q' \"Q\" \\ %s {x} 中文 e\u0301 "
    lease = (await opened(stores, new_turn(text=odd))).lease
    await stores.turns.append(lease, events(Delta(odd), Delta("a\0b\ud83d")))
    await stores.turns.close(lease, closing(after=3, answer=f"{odd}a\0b\ud83d"))

    assert (await stored(stores))[1:3] == events(Delta(odd), Delta("ab\ufffd"))
    assert await kinds(stores) == [
        UserSaid(odd),
        AssistantSaid(f"{odd}ab\ufffd", incomplete=False),
    ]


async def test_an_answer_longer_than_64_kib_is_kept_whole(stores: Stores) -> None:
    long = "长" * 70_000
    await whole_turn(stores, new_turn(text="q" * 32_768), closing(answer=long))

    assert (await kinds(stores))[1] == AssistantSaid(long, incomplete=False)
    assert [len(asked.answer) for asked in await stores.learnings()] == [70_000]


async def test_what_shall_be_learnt_is_asked_in_the_order_of_the_turns(stores: Stores) -> None:
    for number in range(4):
        await whole_turn(stores, new_turn(f"t{number}"))

    assert [asked.turn_id for asked in await stores.learnings()] == ["t0", "t1", "t2", "t3"]


async def test_old_turns_are_forgotten_and_what_was_said_stays(stores: Stores) -> None:
    for number in range(3):
        now = NOON + timedelta(minutes=number)
        await whole_turn(
            stores, new_turn(f"t{number}", client_message_id="m" * (number + 1), now=now)
        )
    await opened(stores, new_turn("t9", conversation_id="c9"))
    far = NOON + timedelta(days=1)

    assert await stores.turns.forget(before=NOON, limit=9) == 0
    assert await stores.turns.forget(before=far, limit=2) == 2
    with pytest.raises(TurnNotFound):
        await stored(stores, "t0")
    assert len(await stored(stores, "t2")) == 2
    assert len(await kinds(stores)) == 6
    assert len(await stores.learnings()) == 3
    await opened(stores, new_turn("t5", client_message_id="m"))
    assert await stores.turns.forget(before=far, limit=9) == 1


# ---------------------------------------------------------------- reading


async def test_what_a_user_does_not_have_is_not_found(stores: Stores) -> None:
    await opened(stores)
    read = stores.conversations
    for user_id, conversation_id in [("bob", "c1"), ("ann", "c2"), ("ann", "C1"), ("ann ", "c1")]:
        key = (user_id, conversation_id)
        with pytest.raises(ConversationNotFound):
            await read.meta(*key)
        with pytest.raises(ConversationNotFound):
            await read.timeline(*key, after=0, before=None, limit=1)
        with pytest.raises(ConversationNotFound):
            await read.recent_messages(*key, before_turn="t1", limit=1)
        with pytest.raises(ConversationNotFound):
            await read.context_stats(*key)
        with pytest.raises(ConversationNotFound):
            await read.set_title_if_empty(*key, "x")


async def test_conversations_come_newest_first_and_by_id_within_a_moment(stores: Stores) -> None:
    for number, (name, minute) in enumerate([("b", 0), ("a", 0), ("é", 0), ("z", -1), ("c", 2)]):
        now = NOON + timedelta(minutes=minute)
        await opened(stores, new_turn(f"t{number}", conversation_id=name, now=now))

    everything = await stores.conversations.page("ann", status=None, before=None, limit=10)
    assert [conversation.conversation_id for conversation in everything] == list("cébaz")
    first = await stores.conversations.page("ann", status=None, before=None, limit=2)
    assert list(first) == list(everything[:2])
    rest = await stores.conversations.page("ann", status=None, before=(NOON, "é"), limit=10)
    assert list(rest) == list(everything[2:])


async def test_conversations_are_filtered_by_status(stores: Stores) -> None:
    await opened(stores)
    page = stores.conversations.page

    active = await page("ann", status=ConversationStatus.ACTIVE, before=None, limit=10)
    assert len(active) == 1
    assert not await page("ann", status=ConversationStatus.ARCHIVED, before=None, limit=10)
    assert not await page("bob", status=None, before=None, limit=10)


async def test_a_message_stamped_by_a_slow_clock_does_not_take_a_conversation_back(
    stores: Stores,
) -> None:
    await whole_turn(stores, new_turn("t1", now=LATER))
    await opened(stores, new_turn("t2", now=NOON))

    assert (await stores.conversations.meta("ann", "c1")).last_message_time == LATER


async def test_messages_of_one_moment_page_in_order(stores: Stores) -> None:
    for number in range(7):
        end = closing(answer="")
        await whole_turn(stores, new_turn(f"t{number}", text=f"{number}"), end)
    read = stores.conversations

    forward: list[str] = []
    after = 0
    while page := await read.timeline("ann", "c1", after=after, before=None, limit=3):
        forward += [text_of(event.event) for event in page]
        after = page[-1].seq
    backward: list[str] = []
    before = None
    while page := await read.timeline("ann", "c1", after=None, before=before, limit=3):
        backward = [text_of(event.event) for event in page] + backward
        before = page[0].seq

    assert forward == backward == list("0123456")


async def test_recent_messages_are_those_before_the_turn(stores: Stores) -> None:
    await whole_turn(stores, new_turn("t1", text="one"), closing(answer="1", incomplete=True))
    await whole_turn(stores, new_turn("t2", text="two"), failed_closing(""))
    await opened(stores, new_turn("t3", text="three"))

    async def recent(before_turn: str, limit: int = 10) -> list[tuple[Role, str, bool]]:
        found = await stores.conversations.recent_messages(
            "ann", "c1", before_turn=before_turn, limit=limit
        )
        return [(message.role, message.text, message.incomplete) for message in found]

    one = [(Role.USER, "one", False), (Role.ASSISTANT, "1", True)]
    two = (Role.USER, "two", False)
    assert await recent("t3") == [*one, two]
    assert await recent("t3", limit=2) == [one[1], two]
    assert await recent("t2") == one
    assert await recent("t1") == []
    assert await recent("unknown") == [*one, two, (Role.USER, "three", False)]


async def test_context_stats_are_the_last_report_and_sums(stores: Stores) -> None:
    await whole_turn(stores, new_turn("t1"), failed_closing(""))
    assert await stores.conversations.context_stats("ann", "c1") == ContextStats(
        None, 0, 0, 0, 0, 0
    )

    await whole_turn(stores, new_turn("t2"), closing(report=report(total_tokens=10)))
    last = report(total_tokens=20, actual_prompt_tokens=None, dropped=3, truncated=0)
    await whole_turn(stores, new_turn("t3"), closing(report=last))

    stats = await stores.conversations.context_stats("ann", "c1")
    assert stats == ContextStats(last, 2, 30, 104, 4, 2)


async def test_a_title_is_given_once(stores: Stores) -> None:
    await opened(stores)
    await stores.conversations.set_title_if_empty("ann", "c1", "旅行 🙂")
    await stores.conversations.set_title_if_empty("ann", "c1", "Another")

    assert (await stores.conversations.meta("ann", "c1")).title == "旅行 🙂"
