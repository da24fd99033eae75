import pytest

from memory_service.adapters.breaker import Breaker


class Watch:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def breaker(watch: Watch) -> Breaker:
    return Breaker(threshold=3, cool_down=1.0, longest=4.0, monotonic=watch)


def test_it_opens_after_failures_in_a_row_only(breaker: Breaker) -> None:
    breaker.failure()
    breaker.failure()
    breaker.success()
    breaker.failure()
    breaker.failure()
    assert breaker.closed
    assert breaker.admit()
    assert breaker.wait() == 0.0
    breaker.failure()
    assert (breaker.closed, breaker.admit(), breaker.wait()) == (False, False, 1.0)


def test_after_the_cool_down_one_trial_is_let_through(breaker: Breaker, watch: Watch) -> None:
    breaker.trip()
    watch.now = 1.0
    assert breaker.wait() == 0.0
    assert [breaker.admit(), breaker.admit()] == [True, False]
    breaker.success()
    assert breaker.closed


def test_failed_trials_double_the_cool_down_up_to_the_longest(
    breaker: Breaker, watch: Watch
) -> None:
    breaker.trip()
    waits = []
    for _ in range(4):
        watch.now += breaker.wait()
        assert breaker.admit()
        breaker.failure()
        waits.append(breaker.wait())
    assert waits == [2.0, 4.0, 4.0, 4.0]
    watch.now += 4.0
    breaker.admit()
    breaker.success()
    breaker.trip()
    assert breaker.wait() == 1.0


def test_late_failures_of_earlier_calls_do_not_prolong_it(breaker: Breaker, watch: Watch) -> None:
    breaker.trip()
    watch.now = 0.5
    breaker.failure()
    assert breaker.wait() == 0.5


def test_a_trial_that_tells_nothing_does_not_block_the_next(breaker: Breaker, watch: Watch) -> None:
    breaker.trip()
    watch.now = 1.0
    assert breaker.admit()
    watch.now = 2.0
    assert breaker.admit()
