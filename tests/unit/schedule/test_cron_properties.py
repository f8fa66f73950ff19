"""Cron rules against a clock that is watched minute by minute, over every kind of change of the clock."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontdesk.schedules.model import SECOND, Trigger, TriggerKind, from_us, to_us
from frontdesk.schedules.triggers import count_cron_fires, next_fire_after, preview_fires
from tests.requirements import shows
from tests.unit.schedule.minutes import RULES, ZONES, Rule, changes, fires

HALF = timedelta(hours=23)
# After so many years a calendar begins anew.
DAYS = [date(2000, 1, 1) + timedelta(days=number) for number in range(28 * 366)]
MINUTE_US = 60 * SECOND


@pytest.mark.parametrize("zone", ZONES)
@shows("SCHEDULE-DST")
def test_a_rule_fires_exactly_when_the_clock_that_is_watched_says_so(zone: str) -> None:
    @settings(max_examples=50, deadline=None)
    @given(rule=RULES, change=st.sampled_from(changes(zone)))
    def check(rule: Rule, change: datetime) -> None:
        start, end = to_us(change - HALF), to_us(change + HALF)
        expected = [to_us(fire) for fire in fires(rule, zone, change) if start < to_us(fire) <= end]
        trigger = Trigger(TriggerKind.CRON, rule.text, zone, end_us=end)
        assert preview_fires(trigger, start, len(expected) + 1) == expected

    check()


@pytest.mark.parametrize("zone", ZONES)
def test_the_next_fire_is_the_same_from_wherever_one_asks(zone: str) -> None:
    asked = st.lists(st.integers(0, 4 * 3600 * SECOND), min_size=5, max_size=5)

    @settings(max_examples=25, deadline=None)
    @given(rule=RULES, change=st.sampled_from(changes(zone)), since=asked)
    def check(rule: Rule, change: datetime, since: list[int]) -> None:
        end = to_us(change + HALF)
        expected = [to_us(fire) for fire in fires(rule, zone, change)]
        trigger = Trigger(TriggerKind.CRON, rule.text, zone, end_us=end)
        for after in (to_us(change) - 2 * 3600 * SECOND + each for each in since):
            assert next_fire_after(trigger, after) == next((fire for fire in expected if after < fire <= end), None)

    check()


@pytest.mark.parametrize("zone", ZONES)
def test_fires_are_counted_as_they_are_listed(zone: str) -> None:
    span = st.tuples(*[st.integers(-22 * 3600, 22 * 3600)] * 2)

    @settings(max_examples=25, deadline=None)
    @given(rule=RULES, change=st.sampled_from(changes(zone)), span=span)
    def check(rule: Rule, change: datetime, span: tuple[int, int]) -> None:
        after, until = (change + timedelta(seconds=seconds) for seconds in sorted(span))
        expected = [fire for fire in fires(rule, zone, change) if after < fire <= until]
        assert count_cron_fires(rule.text, ZoneInfo(zone), after, until) == len(expected)

    check()


@given(rule=RULES, zone=st.sampled_from(ZONES), after=st.integers(0, to_us(datetime(2090, 1, 1, tzinfo=UTC))))
@settings(max_examples=100, deadline=None)
def test_a_fire_far_away_is_a_time_that_the_rule_names(rule: Rule, zone: str, after: int) -> None:
    found = next_fire_after(Trigger(TriggerKind.CRON, rule.text, zone), after)
    if found is None:
        assert rule.month.numbers == {2} or not any(rule.on(day) for day in DAYS if day.month in rule.month.numbers)
        return
    wall, before = (from_us(us).astimezone(ZoneInfo(zone)).replace(tzinfo=None) for us in (found, found - MINUTE_US))
    assert rule.shows(wall) or before < wall - timedelta(minutes=1)


def test_days_that_never_come_together_never_fire() -> None:
    """With a star in either of them both must fit, and a fifth Monday is never one of the days 1, 9, 17 and 25."""
    assert next_fire_after(Trigger(TriggerKind.CRON, "* * */8 * MON#5", "Europe/Berlin"), 0) is None
