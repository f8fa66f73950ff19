"""Intervals, one-time triggers and jitter: when they fire, and what is refused."""

import sys
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontdesk.errors import Invalid
from frontdesk.schedules.model import SECOND, Trigger, TriggerKind, to_us
from frontdesk.schedules.triggers import (
    add_jitter,
    closest_fires_s,
    first_fire,
    format_interval,
    interval_trigger,
    next_fire_after,
    once_trigger,
    parse_interval,
    preview_fires,
)
from tests.requirements import shows

NOW = to_us(datetime(2025, 6, 11, 8, 15, 30, 123456, tzinfo=UTC))
HOUR = 3600 * SECOND


@shows("SCHEDULE-TRIGGERS")
@pytest.mark.parametrize(
    ("text", "length", "value"),
    [
        ("30s", 30, "30s"),
        ("5m", 300, "5m"),
        ("1h", 3600, "1h"),
        ("2d", 172800, "2d"),
        ("1w", 604800, "7d"),
        ("45", 45, "45s"),
        ("3600", 3600, "1h"),
        ("90m", 5400, "90m"),
        (" 10S ", 10, "10s"),
    ],
)
def test_an_interval_is_read_and_told_in_its_largest_unit(text: str, length: int, value: str) -> None:
    assert (parse_interval(text), format_interval(parse_interval(text))) == (length, value)


@shows("SCHEDULE-TRIGGERS")
@pytest.mark.parametrize(
    "text", ["0s", "0", "-5m", "-1", "", "m", "5x", "1.5h", "5 m", "30m1h", "1h30", "1h1h", "٣s", "9" * 30, "36601d"]
)
def test_an_interval_that_is_none_is_refused_in_the_words_of_the_contract(text: str) -> None:
    with pytest.raises(Invalid) as refused:
        interval_trigger(text, None, NOW)
    assert str(refused.value) == f"Invalid interval format: {text}. Use formats like '30s', '5m', '1h'"


def test_an_interval_first_fires_one_interval_from_now_or_at_its_start() -> None:
    assert preview_fires(interval_trigger("1h", None, NOW), NOW, 2) == [NOW + HOUR, NOW + 2 * HOUR]
    assert preview_fires(interval_trigger("1h", NOW + 5, NOW), NOW, 2) == [NOW + 5, NOW + 5 + HOUR]
    assert first_fire(interval_trigger("1h", NOW + 5, NOW), NOW) == NOW + 5


@pytest.mark.parametrize("start", [NOW, NOW - 1, 0])
def test_a_start_that_is_past_is_refused(start: int) -> None:
    with pytest.raises(Invalid, match=r"^Start time must be in the future$"):
        interval_trigger("1h", start, NOW)


@given(
    start=st.integers(0, 2**52), length=st.integers(1, 10**7), after=st.integers(0, 2**52), end=st.integers(0, 2**53)
)
@settings(deadline=None)
def test_an_interval_never_drifts_from_its_start(start: int, length: int, after: int, end: int) -> None:
    trigger = Trigger(TriggerKind.INTERVAL, f"{length}s", start_us=start, end_us=end)
    found = next_fire_after(trigger, after)
    if found is None:
        assert max(start, after + 1) > end - length * SECOND
    else:
        assert (found - start) % (length * SECOND) == 0
        assert after < found <= end
        assert found == start or found - length * SECOND <= after


def test_a_one_time_trigger_fires_once_and_keeps_its_time() -> None:
    trigger = once_trigger("2025-12-25T10:00:00+05:30", None, NOW)
    due = to_us(datetime(2025, 12, 25, 4, 30, tzinfo=UTC))
    assert trigger == Trigger(TriggerKind.ONCE, "2025-12-25T04:30:00+00:00")
    assert preview_fires(trigger, NOW, 5) == [due]
    assert next_fire_after(trigger, due) is None
    assert first_fire(trigger, due + HOUR) == due
    assert closest_fires_s(trigger) == sys.maxsize


@pytest.mark.parametrize("text", ["2025-06-11T08:15:30.123456Z", "2025-06-11T08:15:30Z", "1999-01-01T00:00:00Z"])
def test_a_time_that_is_past_is_refused(text: str) -> None:
    with pytest.raises(Invalid, match=r"^Scheduled time must be in the future$"):
        once_trigger(text, None, NOW)


@given(schedule=st.integers(1, 10**9), intended=st.integers(0, 2**52), jitter=st.integers(0, 86400))
def test_jitter_is_never_early_never_too_much_and_always_the_same(schedule: int, intended: int, jitter: int) -> None:
    trigger = Trigger(TriggerKind.INTERVAL, "1d", start_us=0, jitter_s=jitter)
    fire = add_jitter(trigger, schedule, intended)
    assert intended <= fire <= intended + jitter * SECOND
    assert fire == add_jitter(trigger, schedule, intended)


def test_jitter_spreads_schedules_that_are_due_together() -> None:
    trigger = Trigger(TriggerKind.CRON, "0 9 * * *", jitter_s=600)
    fires = [add_jitter(trigger, schedule, NOW) - NOW for schedule in range(1000)]
    for tenth in range(10):
        assert 50 < sum(tenth * 60 * SECOND <= fire < (tenth + 1) * 60 * SECOND for fire in fires) < 150


@pytest.mark.parametrize("kind", [TriggerKind.CRON, TriggerKind.INTERVAL])
def test_time_ends_before_the_calendar_does(kind: TriggerKind) -> None:
    far = to_us(datetime(9990, 1, 1, tzinfo=UTC))
    trigger = Trigger(kind, {TriggerKind.CRON: "0 9 * * *", TriggerKind.INTERVAL: "1h"}[kind], "Asia/Tokyo", start_us=0)
    assert next_fire_after(trigger, far) is None
