"""Token buckets and the limiter that holds callers to them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.errors import RateLimited
from frontdesk.identity.model import Caller
from frontdesk.identity.rates import MAX_BUCKETS, RateLimiter
from frontdesk.identity.store import TokenBucket
from frontdesk.settings import Rate
from tests.requirements import shows

ANN = Caller("r", agent_id="agent-1", user_id="ann")


@given(
    limit=st.integers(1, 50),
    seconds=st.floats(0.5, 100),
    steps=st.lists(st.tuples(st.floats(0, 10), st.integers(1, 5)), max_size=60),
)
def test_no_window_ever_grants_more_than_burst_plus_refill(
    limit: int, seconds: float, steps: list[tuple[float, int]]
) -> None:
    rate, now, granted = Rate(limit=limit, seconds=seconds), 1000.0, 0
    bucket = TokenBucket(limit, now)
    for pause, count in steps:
        now += pause
        bucket, got, wait = bucket.take_up_to(rate, count, now)
        granted += got
        assert (got > 0) == (wait == 0)
        assert 0 <= bucket.tokens <= limit
    assert granted <= limit + (now - 1000.0) * limit / seconds + 1e-6


def test_waiting_as_long_as_told_is_long_enough() -> None:
    rate = Rate(limit=3, seconds=60)
    bucket, _, wait = TokenBucket(0.25, 1000.0).take_up_to(rate, 1, 1000.0)
    assert bucket.take_up_to(rate, 1, 1000.0 + wait)[1] == 1


@shows("KEPT-11")
def test_a_clock_that_steps_back_grants_nothing_and_is_gone_by_from_then_on() -> None:
    rate = Rate(limit=60, seconds=60)
    bucket, granted, wait = TokenBucket(0, 1000.0).take_up_to(rate, 1, 500.0)
    assert (granted, wait) == (0, 1.0)
    assert bucket.take_up_to(rate, 1, 500.0 + wait)[1] == 1
    bucket, granted, _ = TokenBucket(0, 1000.0).take_up_to(rate, 1, 990.0)
    assert (granted, bucket.at) == (0, 1000.0), "another replica's clock is ahead"


@pytest.mark.anyio
async def test_each_agent_and_each_user_has_a_rate_of_its_own() -> None:
    limiter = RateLimiter(Rate(limit=1, seconds=60), Rate(limit=2, seconds=60), None)
    await limiter.admit(ANN, 0)
    with pytest.raises(RateLimited, match="agent agent-1") as caught:
        await limiter.admit(ANN, 0)
    assert caught.value.retry_after == 60
    await limiter.admit(Caller("r", agent_id="agent-2", user_id="ann"), 0)
    with pytest.raises(RateLimited, match="user ann"):
        await limiter.admit(Caller("r", agent_id="agent-3", user_id="ann"), 0)
    await limiter.admit(Caller("r"), 0)


@pytest.mark.anyio
async def test_the_limiter_forgets_the_oldest_rather_than_grow() -> None:
    limiter = RateLimiter(Rate(limit=1, seconds=60), None, None)
    for number in range(MAX_BUCKETS + 5):
        await limiter.admit(Caller("r", agent_id=f"a{number}"), 0)
    assert len(limiter._buckets) == MAX_BUCKETS
