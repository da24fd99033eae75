from hypothesis import given
from hypothesis import strategies as st

from memory_service.consolidate.outages import Outages, pause


@given(st.integers(1, 10_000))
def test_pauses_double_from_one_second_to_a_minute_with_jitter(failures: int) -> None:
    whole = min(2.0 ** min(failures - 1, 100), 60.0)
    assert whole / 2 <= pause(failures) <= whole


class Monotonic:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def seen(outages: Outages) -> tuple[bool, bool]:
    return outages.known, outages.rest


def test_an_outage_rests_and_then_may_be_tried() -> None:
    time = Monotonic()
    outages = Outages(time)
    assert seen(outages) == (False, False)
    outages.failed(time.now)
    assert seen(outages) == (True, True)
    time.now += 1.0
    assert seen(outages) == (True, False)
    begun = time.now
    time.now += 0.01
    outages.failed(begun)
    time.now += 0.99
    assert seen(outages) == (True, True), "the second pause is 1 to 2 s"
    time.now += 1.01
    outages.worked(begun)
    assert seen(outages) == (True, False), "that work began before"
    outages.worked(time.now)
    assert seen(outages) == (False, False)


def test_work_that_began_before_says_nothing_new_of_an_outage() -> None:
    time = Monotonic()
    outages = Outages(time)
    begun = time.now
    time.now += 5
    for _ in range(8):
        outages.failed(begun)
    outages.worked(begun)
    assert seen(outages) == (True, True)
    time.now += 1.0
    assert seen(outages) == (True, False), "eight jobs that fail together are one failure"
