"""What every outbox promises: order, leases, and what becomes of a turn."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

from agent_service.domain.model import Role
from agent_service.ports import ClaimedTurn, OutboxState, TurnOpened
from tests.builders.agent_turns import NOON, closing, failed_closing, new_turn
from tests.contract.agent_service.agent_stores import Stores

LEASE = timedelta(seconds=30)


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


async def ended(
    stores: Stores, turn_id: str, user_id: str = "ann", conversation_id: str = "", after: float = 0
) -> None:
    """Let a turn begin and end, by default in a conversation of its own."""
    conversation = conversation_id or f"c-{turn_id}"
    turn = new_turn(turn_id, user_id=user_id, conversation_id=conversation, now=at(after))
    opened = await stores.turns.open(turn)
    assert isinstance(opened, TurnOpened)
    await stores.turns.close(opened.lease, closing(now=at(after)))


async def claim(stores: Stores, after: float = 0, limit: int = 9) -> Sequence[ClaimedTurn]:
    return await stores.outbox.claim(limit=limit, lease=LEASE, now=at(after))


async def claimed(stores: Stores, after: float = 0) -> ClaimedTurn:
    (one,) = await claim(stores, after)
    return one


def names(turns: Sequence[ClaimedTurn]) -> list[str]:
    return [one.turn.turn_id for one in turns]


# ------------------------------------------------------------ what is delivered


async def test_a_turn_is_claimed_with_all_that_was_said_in_it(stores: Stores) -> None:
    turn = new_turn(text="I moved to Oslo 🙂", timezone="+08:00")
    opened = await stores.turns.open(turn)
    assert isinstance(opened, TurnOpened)
    await stores.turns.close(opened.lease, closing(answer="Nice", now=at(5)))
    found = await claimed(stores, 5)
    assert (found.turn.user_id, found.turn.conversation_id) == ("ann", "c1")
    assert (found.turn.turn_id, found.turn.request_id) == ("t1", "t1")
    assert [
        (said.role, said.content, said.create_time, said.timezone) for said in found.turn.messages
    ] == [
        (Role.USER, "I moved to Oslo 🙂", NOON, "+08:00"),
        (Role.ASSISTANT, "Nice", at(5), "+08:00"),
    ]


async def test_a_turn_that_failed_is_learnt_from_as_well(stores: Stores) -> None:
    opened = await stores.turns.open(new_turn(text="I am vegan"))
    assert isinstance(opened, TurnOpened)
    await stores.turns.close(opened.lease, failed_closing())
    found = await claimed(stores)
    assert [(said.role, said.content) for said in found.turn.messages] == [
        (Role.USER, "I am vegan")
    ]


# ------------------------------------------------------------ order


async def test_a_user_has_one_turn_at_a_time_in_the_order_of_their_ends(stores: Stores) -> None:
    """A52: whatever conversation they are of."""
    for number in range(3):
        await ended(stores, f"t{number}", conversation_id=f"c{number % 2}")
    delivered = []
    for _ in range(3):
        one = await claimed(stores)
        assert await claim(stores) == []
        assert await stores.outbox.delivered(one, now=NOON)
        delivered.append(one.turn.turn_id)
    assert delivered == ["t0", "t1", "t2"]
    assert await claim(stores) == []


async def test_a_turn_that_is_tried_again_is_not_overtaken(stores: Stores) -> None:
    await ended(stores, "first")
    await ended(stores, "second")
    one = await claimed(stores)
    assert await stores.outbox.give_back(one, error="NO", retry_at=at(5), refund=False)
    assert await claim(stores, 4.9) == []
    await ended(stores, "third", after=4.9)  # does not wake it before its time
    assert await claim(stores, 4.9) == []
    again = await claimed(stores, 5)
    assert (again.turn.turn_id, again.attempt) == ("first", 2)


async def test_users_do_not_wait_for_each_other_and_the_longest_due_is_first(
    stores: Stores,
) -> None:
    await ended(stores, "b1", "bob", after=1)
    await ended(stores, "a1", "ann", after=2)
    await ended(stores, "a2", "ann", after=3)
    await ended(stores, "c1", "cid", after=4)
    assert names(await claim(stores, 5, limit=2)) == ["b1", "a1"]
    assert names(await claim(stores, 5)) == ["c1"]


async def test_nothing_is_claimed_before_it_is_there(stores: Stores) -> None:
    assert await claim(stores) == []
    await stores.turns.open(new_turn())
    assert await claim(stores) == []


# ------------------------------------------------------------ leases


async def test_a_lapsed_lease_is_taken_over_and_its_holder_can_change_nothing(
    stores: Stores,
) -> None:
    """A49, A50: the claim counts, so a turn that kills its relays is not tried for ever."""
    await ended(stores, "t1")
    dead = await claimed(stores)
    assert await claim(stores, 29.9) == []
    heir = await claimed(stores, 30)
    assert (heir.turn, heir.attempt) == (dead.turn, 2)
    assert not await stores.outbox.delivered(dead, now=at(30))
    assert not await stores.outbox.give_back(dead, error="", retry_at=at(30), refund=True)
    assert not await stores.outbox.park(dead, error="", now=at(30))
    assert await claim(stores, 31) == []
    assert await stores.outbox.delivered(heir, now=at(31))
    # late, but true: it is noted
    assert await stores.outbox.delivered(dead, now=at(31))


async def test_a_turn_noted_twice_is_noted_once(stores: Stores) -> None:
    await ended(stores, "t1")
    await ended(stores, "t2")
    one = await claimed(stores)
    assert await stores.outbox.delivered(one, now=NOON)
    assert await stores.outbox.delivered(one, now=NOON)
    assert names(await claim(stores)) == ["t2"]


async def test_of_many_relays_one_gets_a_turn(stores: Stores) -> None:
    for user in ("ann", "bob", "cid"):
        await ended(stores, f"{user}-1", user)
        await ended(stores, f"{user}-2", user)
    found = await asyncio.gather(*(claim(stores, limit=2) for _ in range(4)))
    taken = sorted(name for turns in found for name in names(turns))
    # a queue that another claim looked at may have been passed over
    taken += names(await claim(stores))
    assert sorted(taken) == ["ann-1", "bob-1", "cid-1"]


async def test_a_time_from_a_clock_that_was_ahead_is_not_waited_for(stores: Stores) -> None:
    await ended(stores, "t1", after=86_400)
    one = await claimed(stores, 0)
    assert await stores.outbox.give_back(one, error="", retry_at=at(60), refund=True)
    assert await claim(stores, 0) == []


# ------------------------------------------------------------ what becomes of a turn


async def test_a_refund_is_no_attempt(stores: Stores) -> None:
    await ended(stores, "t1")
    for _ in range(3):
        one = await claimed(stores)
        assert one.attempt == 1
        assert await stores.outbox.give_back(one, error="AWAY", retry_at=NOON, refund=True)


async def test_a_parked_turn_is_seen_and_the_next_one_goes_on(stores: Stores) -> None:
    """A51, A52: with the reason, and without a word of what was said."""
    await ended(stores, "bad", after=1)
    await ended(stores, "good", after=2)
    one = await claimed(stores, 2)
    assert await stores.outbox.park(one, error="REFUSED " + "x" * 600, now=at(3))
    assert names(await claim(stores, 3)) == ["good"]
    (parked,) = await stores.outbox.parked(limit=9)
    assert (parked.user_id, parked.conversation_id, parked.turn_id) == ("ann", "c-bad", "bad")
    assert (parked.attempt, parked.create_time) == (1, at(1))
    assert parked.error == ("REFUSED " + "x" * 600)[:500]


async def test_a_parked_turn_that_is_retried_is_whole_and_goes_first(stores: Stores) -> None:
    await ended(stores, "t1")
    one = await claimed(stores)
    await stores.outbox.park(one, error="REFUSED", now=NOON)
    assert await stores.outbox.parked(limit=9)
    await ended(stores, "t2")
    assert await stores.outbox.retry("t1", now=at(1))
    assert await stores.outbox.parked(limit=9) == []
    again = await claimed(stores, 1)
    assert again.turn == one.turn
    assert again.attempt == 1
    assert await stores.outbox.delivered(again, now=at(1))
    assert names(await claim(stores, 1)) == ["t2"]


async def test_a_retried_turn_alone_wakes_its_user(stores: Stores) -> None:
    await ended(stores, "t1")
    await stores.outbox.park(await claimed(stores), error="REFUSED", now=NOON)
    assert await claim(stores) == []
    assert await stores.outbox.retry("t1", now=NOON)
    assert names(await claim(stores)) == ["t1"]


async def test_only_parked_turns_can_be_retried(stores: Stores) -> None:
    await ended(stores, "t1")
    assert not await stores.outbox.retry("t1", now=NOON)
    assert not await stores.outbox.retry("nobody", now=NOON)


async def test_parked_turns_are_listed_from_the_oldest(stores: Stores) -> None:
    for number in range(3):
        await ended(stores, f"t{number}", after=number)
        await stores.outbox.park(await claimed(stores, number), error="", now=at(number))
    assert [one.turn_id for one in await stores.outbox.parked(limit=2)] == ["t0", "t1"]


# ------------------------------------------------------------ counting and forgetting


async def test_what_waits_and_what_is_parked_is_counted(stores: Stores) -> None:
    assert await stores.outbox.state() == OutboxState(pending=0, parked=0, oldest=None)
    for number in range(4):
        await ended(stores, f"t{number}", after=number)
    await stores.outbox.delivered(await claimed(stores, 9), now=at(9))
    await stores.outbox.park(await claimed(stores, 9), error="", now=at(9))
    await claimed(stores, 9)
    assert await stores.outbox.state() == OutboxState(pending=2, parked=1, oldest=at(2))


async def test_delivered_turns_are_forgotten_and_no_others(stores: Stores) -> None:
    for number in range(4):
        await ended(stores, f"t{number}", after=number)
        if number < 3:
            one = await claimed(stores, number)
            if number == 0:
                await stores.outbox.park(one, error="", now=at(number))
            else:
                await stores.outbox.delivered(one, now=at(number))
    assert await stores.outbox.forget(before=at(2), limit=9) == 1
    assert await stores.outbox.forget(before=at(9), limit=9) == 1
    assert await stores.outbox.forget(before=at(9), limit=9) == 0
    assert await stores.outbox.state() == OutboxState(pending=1, parked=1, oldest=at(3))


async def test_of_many_old_turns_some_are_forgotten_at_a_time(stores: Stores) -> None:
    for number in range(3):
        await ended(stores, f"t{number}")
        await stores.outbox.delivered(await claimed(stores), now=NOON)
    assert await stores.outbox.forget(before=at(1), limit=2) == 2
    assert await stores.outbox.forget(before=at(1), limit=2) == 1
