"""When a server that fails is left alone, and when it is tried again."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from frontdesk.tools.calls import (
    CLOSED_BREAKER,
    FAILURES_TO_OPEN,
    FIRST_BREAKER_PAUSE,
    LONGEST_BREAKER_PAUSE,
    CircuitBreaker,
)


def failing(times: int, now: float = 0.0) -> CircuitBreaker:
    breaker = CLOSED_BREAKER
    for _ in range(times):
        breaker = breaker.admitted().failed(now, was_try=False)
    return breaker


def test_it_opens_after_failures_in_a_row_and_not_before() -> None:
    assert failing(FAILURES_TO_OPEN - 1) == CircuitBreaker(FAILURES_TO_OPEN - 1)
    opened = failing(FAILURES_TO_OPEN)
    assert (opened.retry_at, opened.wait(0), opened.wait(4)) == (
        FIRST_BREAKER_PAUSE,
        FIRST_BREAKER_PAUSE,
        FIRST_BREAKER_PAUSE - 4,
    )


def test_one_answer_between_failures_begins_the_count_anew() -> None:
    breaker = failing(FAILURES_TO_OPEN - 1).succeeded()
    assert breaker is CLOSED_BREAKER
    assert breaker.failed(0, was_try=False) == CircuitBreaker(1)


def test_after_the_pause_one_call_tries_and_the_others_wait() -> None:
    opened = failing(FAILURES_TO_OPEN)
    assert (opened.retry_at, opened.wait(FIRST_BREAKER_PAUSE)) == (FIRST_BREAKER_PAUSE, 0)
    trying = opened.admitted()
    assert (trying.trying, trying.wait(FIRST_BREAKER_PAUSE) > 0) == (True, True)
    assert trying.succeeded() is CLOSED_BREAKER
    again = trying.failed(FIRST_BREAKER_PAUSE, was_try=True)
    assert (again.trying, again.wait(FIRST_BREAKER_PAUSE)) == (False, 2 * FIRST_BREAKER_PAUSE)


def test_a_try_that_its_caller_gave_up_leaves_the_next_one_to_others() -> None:
    trying = failing(FAILURES_TO_OPEN).admitted()
    assert trying.abandoned(was_try=False).wait(FIRST_BREAKER_PAUSE) > 0
    assert trying.abandoned(was_try=True).wait(FIRST_BREAKER_PAUSE) == 0


def test_calls_from_before_it_opened_do_not_lengthen_the_pause() -> None:
    opened = failing(FAILURES_TO_OPEN)
    late = opened.failed(5, was_try=False)
    assert late == replace(opened, failures=FAILURES_TO_OPEN + 1)


@given(st.integers(1, 30))
def test_the_pause_doubles_up_to_a_limit(tries: int) -> None:
    breaker, now = failing(FAILURES_TO_OPEN), 0.0
    for _ in range(tries):
        now += breaker.wait(now)
        assert breaker.wait(now) == 0
        breaker = breaker.admitted().failed(now, was_try=True)
    assert breaker.wait(now) == min(LONGEST_BREAKER_PAUSE, FIRST_BREAKER_PAUSE * 2**tries)
