"""Tests cron rules, intervals and exact times: valid ones, refused ones, and when they fire."""

import sys
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontdesk.errors import Invalid
from frontdesk.schedules.descriptions import describe_facts, describe_trigger
from frontdesk.schedules.model import SECOND, Trigger, TriggerKind, from_us, to_us
from frontdesk.schedules.triggers import (
    add_jitter,
    closest_fires_s,
    count_cron_fires,
    cron_trigger,
    first_fire,
    format_interval,
    interval_trigger,
    next_fire_after,
    once_trigger,
    parse_interval,
    parse_iso_time,
    preview_fires,
)
from tests.requirements import shows
from tests.unit.schedules.minutes import RULES, ZONES, Rule, changes, fires

# Cron rules: valid ones, refused ones, and the effect of clock changes


def us_at(text: str) -> int:
    return to_us(datetime.fromisoformat(text))


def following(rule: str, zone: str, after: str, count: int = 3) -> list[str]:
    """The next fires, as a clock in the zone shows them."""
    trigger = cron_trigger(rule, zone)
    found = preview_fires(trigger, us_at(after), count)
    return [from_us(each).astimezone(zone_of(trigger)).strftime("%m-%d %H:%M%z") for each in found]


def zone_of(trigger: Trigger) -> ZoneInfo:
    return ZoneInfo(trigger.zone)


@shows("SCHEDULE-TRIGGERS")
@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("0 9 * * *", ["01-01 09:00", "01-02 09:00", "01-03 09:00"]),
        ("*/15 * * * *", ["01-01 00:15", "01-01 00:30", "01-01 00:45"]),
        ("0 9 * * MON-FRI", ["01-01 09:00", "01-02 09:00", "01-05 09:00"]),
        ("0 9 * * mon,Sun", ["01-04 09:00", "01-05 09:00", "01-11 09:00"]),
        ("30 8 1 jan,JUL *", ["01-01 08:30", "07-01 08:30", "01-01 08:30"]),
        ("@hourly", ["01-01 01:00", "01-01 02:00", "01-01 03:00"]),
        ("@daily", ["01-02 00:00", "01-03 00:00", "01-04 00:00"]),
        ("@midnight", ["01-02 00:00", "01-03 00:00", "01-04 00:00"]),
        ("@Weekly", ["01-04 00:00", "01-11 00:00", "01-18 00:00"]),
        ("@monthly", ["02-01 00:00", "03-01 00:00", "04-01 00:00"]),
        ("@yearly", ["01-01 00:00", "01-01 00:00", "01-01 00:00"]),
        ("@annually", ["01-01 00:00", "01-01 00:00", "01-01 00:00"]),
        ("0 18 L * *", ["01-31 18:00", "02-28 18:00", "03-31 18:00"]),
        ("0 18 LW * *", ["01-30 18:00", "02-27 18:00", "03-31 18:00"]),
        ("0 9 * * MON#1", ["01-05 09:00", "02-02 09:00", "03-02 09:00"]),
        ("0 17 * * 5L", ["01-30 17:00", "02-27 17:00", "03-27 17:00"]),
        ("0 9 13 * FRI", ["01-02 09:00", "01-09 09:00", "01-13 09:00"]),
        ("0 9 */2 * MON", ["01-05 09:00", "01-19 09:00", "02-09 09:00"]),
        ("0 0 29 2 *", ["02-29 00:00", "02-29 00:00", "02-29 00:00"]),
        ("  5   4 * *   * ", ["01-01 04:05", "01-02 04:05", "01-03 04:05"]),
    ],
)
def test_a_rule_fires_when_it_says(rule: str, expected: list[str]) -> None:
    assert [each.removesuffix("+0000") for each in following(rule, "UTC", "2026-01-01T00:00:00Z")] == expected


@shows("SCHEDULE-TRIGGERS")
@pytest.mark.parametrize(
    "rule",
    [
        "",
        "banana",
        "@reboot",
        "60 * * * *",
        "* 24 * * *",
        "0 9 0 * *",
        "0 9 * 13 *",
        "0 9 * * 8",
        "0 9 * * FOO",
        "*/0 * * * *",
        "5-1 * * * *",
        "-5 * * * *",
        "0 9 30 2 *",
        "0 9 31 4,6 *",
        "0 9 * * MON#6",
        "0 9 * * L",
        "1.5 * * * *",
        ", * * * *",
    ],
)
def test_what_is_no_rule_is_refused_in_the_words_of_the_contract(rule: str) -> None:
    with pytest.raises(Invalid) as refused:
        cron_trigger(rule)
    assert str(refused.value) == f"Invalid cron expression: {rule}"


@pytest.mark.parametrize(
    ("rule", "hint"),
    [
        ("0 0 9 * * *", "it has 6 fields; give five: minute, hour, day of the month, month, day of the week"),
        ("0 9 * *", "it has 4 fields; give five: minute, hour, day of the month, month, day of the week"),
        ("*/90 * * * *", "a step is larger than its field"),
    ],
)
def test_a_rule_that_is_nearly_one_is_refused_with_a_hint(rule: str, hint: str) -> None:
    with pytest.raises(Invalid) as refused:
        cron_trigger(rule)
    assert str(refused.value) == f"Invalid cron expression: {rule}"
    assert refused.value.full_message == f"Invalid cron expression: {rule} ({hint})"


def test_an_endless_rule_is_refused_quickly() -> None:
    with pytest.raises(Invalid, match=r"^Invalid cron expression: 1,1,1"):
        cron_trigger(f"{'1,' * 10_000}1 * * * *")


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "localtime", "../../etc/passwd", "GMT+25"])
def test_a_zone_that_is_none_is_refused(zone: str) -> None:
    with pytest.raises(Invalid, match=r"^Unknown time zone: .*Use an IANA name like Europe/Berlin"):
        cron_trigger("0 9 * * *", zone)


def test_a_zone_is_known_in_any_case() -> None:
    assert cron_trigger("0 9 * * *", " europe/berlin ") == Trigger(TriggerKind.CRON, "0 9 * * *", "Europe/Berlin")


@shows("SCHEDULE-DST")
@pytest.mark.parametrize(
    ("rule", "zone", "after", "expected"),
    [
        # Clocks go forward: a fixed time in the gap fires right after it, and once.
        ("30 2 * * *", "Europe/Berlin", "2025-03-29T12:00Z", ["03-30 03:00+0200", "03-31 02:30+0200"]),
        ("0,15,30 2 * * *", "Europe/Berlin", "2025-03-29T12:00Z", ["03-30 03:00+0200", "03-31 02:00+0200"]),
        ("0 2,3 * * *", "Europe/Berlin", "2025-03-29T12:00Z", ["03-30 03:00+0200", "03-31 02:00+0200"]),
        ("30 2 * * SUN", "America/New_York", "2025-03-08T12:00Z", ["03-09 03:00-0400", "03-16 02:30-0400"]),
        ("15 2 * * *", "Australia/Lord_Howe", "2025-10-04T12:00Z", ["10-05 02:30+1100", "10-06 02:15+1100"]),
        ("30 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00Z", ["11-04 01:00-0200", "11-05 00:30-0200"]),
        # … and a rule that follows the wall clock has no time to fire.
        ("*/30 2 * * *", "Europe/Berlin", "2025-03-29T12:00Z", ["03-31 02:00+0200", "03-31 02:30+0200"]),
        ("0 * * * *", "Europe/Berlin", "2025-03-30T00:30Z", ["03-30 03:00+0200", "03-30 04:00+0200"]),
        ("0 */2 * * *", "Europe/Berlin", "2025-03-29T22:30Z", ["03-30 00:00+0100", "03-30 04:00+0200"]),
        # Clocks go back: a fixed time fires the first time.
        ("30 2 * * *", "Europe/Berlin", "2025-10-25T12:00Z", ["10-26 02:30+0200", "10-27 02:30+0100"]),
        ("30 2 * * *", "Europe/Berlin", "2025-10-26T01:10Z", ["10-27 02:30+0100", "10-28 02:30+0100"]),
        ("45 1 * * *", "Australia/Lord_Howe", "2025-04-05T12:00Z", ["04-06 01:45+1100", "04-07 01:45+1030"]),
        ("30 23 * * *", "America/Sao_Paulo", "2018-02-17T12:00Z", ["02-17 23:30-0200", "02-18 23:30-0300"]),
        # … and a rule that follows the wall clock fires both times.
        ("0 * * * *", "Europe/Berlin", "2025-10-25T23:30Z", ["10-26 02:00+0200", "10-26 02:00+0100"]),
        ("*/30 2 * * *", "Europe/Berlin", "2025-10-26T00:10Z", ["10-26 02:30+0200", "10-26 02:00+0100"]),
        ("45 * * * *", "Australia/Lord_Howe", "2025-04-05T14:00Z", ["04-06 01:45+1100", "04-06 01:45+1030"]),
        ("*/10 2 * * *", "Australia/Lord_Howe", "2025-04-05T14:00Z", ["04-06 02:00+1030", "04-06 02:10+1030"]),
    ],
)
def test_the_changes_of_the_clock_follow_the_rule_that_the_docs_state(
    rule: str, zone: str, after: str, expected: list[str]
) -> None:
    assert following(rule, zone, after, 2) == expected


def test_a_start_and_an_end_bound_a_rule_and_belong_to_it() -> None:
    start, end = us_at("2025-06-02T09:00Z"), us_at("2025-06-04T09:00Z")
    trigger = Trigger(TriggerKind.CRON, "0 9 * * *", start_us=start, end_us=end)
    assert preview_fires(trigger, us_at("2025-01-01T00:00Z"), 9) == [start, us_at("2025-06-03T09:00Z"), end]


@pytest.mark.parametrize(
    ("rule", "seconds"),
    [
        ("* * * * *", 60),
        ("*/5 * * * *", 300),
        ("0,1 9 * * *", 60),
        ("0 9 * * *", 23 * 3600),
        ("0 9 * * MON", 7 * 86400 - 3600),
        ("0 9 1 * MON", 86400),
        ("0 0 29 2 *", (4 * 365 + 1) * 86400),
    ],
)
def test_the_shortest_time_between_two_fires_is_found(rule: str, seconds: int) -> None:
    assert closest_fires_s(cron_trigger(rule, "Europe/Berlin")) == seconds


# Cron rules against a clock read minute by minute, over every kind of clock change


HALF = timedelta(hours=23)
# After so many years a calendar repeats.
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
    """With a star in either field both must match, and a fifth Monday is never one of the days 1, 9, 17 and 25."""
    assert next_fire_after(Trigger(TriggerKind.CRON, "* * */8 * MON#5", "Europe/Berlin"), 0) is None


# Intervals, one-time triggers and jitter: when they fire, and refused ones


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


# Exact times: accepted forms, refused forms, and the text of a rule


WRONG = "Invalid time format. Use ISO 8601 like 2025-12-25T10:00:00Z or include offset, e.g. 2025-12-25T10:00:00-05:00"
NINE = to_us(datetime(2025, 6, 11, 7, tzinfo=UTC))


@shows("SCHEDULE-TRIGGERS")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2025-08-31T09:50:22Z", "2025-08-31T09:50:22"),
        ("2025-08-31T09:50:22+00:00", "2025-08-31T09:50:22"),
        ("2025-08-31 09:50:22 UTC", "2025-08-31T09:50:22"),
        ("2025-12-25T10:00:00-05:00", "2025-12-25T15:00:00"),
        ("2025-12-25T10:00:00+05:30", "2025-12-25T04:30:00"),
        ("2025-12-25T10:00:00+0530", "2025-12-25T04:30:00"),
        ("2025-12-25t10:00z", "2025-12-25T10:00:00"),
        (" 2025-12-25T10:00:00.5Z ", "2025-12-25T10:00:00.500000"),
        ("2025-12-25T10:00:00.123456789Z", "2025-12-25T10:00:00.123456"),
    ],
)
def test_a_time_with_an_offset_is_that_moment(text: str, expected: str) -> None:
    assert parse_iso_time(text).isoformat() == f"{expected}+00:00"


@shows("SCHEDULE-TRIGGERS")
@pytest.mark.parametrize(
    "text",
    [
        "28",
        "",
        "10:00",
        "2025-12-25",
        "2025-12-25T10:00:00",
        "2025-12-25 10:00",
        "2025-13-25T10:00:00Z",
        "2025-02-30T10:00:00Z",
        "2025-12-25T25:00:00Z",
        "2025-12-25T10:61:00Z",
        "2025-12-25T10:00:00+25:00",
        "2025-12-25T10:00:00 CET",
        "25-12-2025T10:00:00Z",
        "9999-12-31T23:59:59-05:00",
        "0001-01-01T00:00:00Z",
        "1766656800",
        "٢٠٢٥-12-25T10:00:00Z",
    ],
)
def test_any_other_time_is_refused_in_the_words_of_the_contract(text: str) -> None:
    with pytest.raises(Invalid) as refused:
        parse_iso_time(text)
    assert str(refused.value) == WRONG


def test_a_time_without_an_offset_is_read_in_the_zone_that_is_named() -> None:
    assert parse_iso_time("2025-12-25T10:00:00", "America/New_York") == datetime(2025, 12, 25, 15, tzinfo=UTC)
    assert parse_iso_time("2025-12-25T10:00:00Z", "America/New_York") == datetime(2025, 12, 25, 10, tzinfo=UTC)


def test_a_time_that_clocks_skip_or_show_twice_is_refused() -> None:
    with pytest.raises(Invalid, match=r"does not exist in Europe/Berlin.*2025-03-30T03:00:00"):
        parse_iso_time("2025-03-30T02:30:00", "Europe/Berlin")
    with pytest.raises(Invalid, match=r"comes twice in Europe/Berlin.*\+02:00 or .*\+01:00"):
        parse_iso_time("2025-10-26T02:30:00", "Europe/Berlin")
    assert parse_iso_time("2025-10-26T02:30:00+01:00", "Europe/Berlin") == datetime(2025, 10, 26, 1, 30, tzinfo=UTC)


@shows("SCHEDULE-TRIGGERS")
def test_a_rule_is_said_back_with_its_zone_and_its_next_time_there_and_in_utc() -> None:
    trigger = Trigger(TriggerKind.CRON, "0 9 * * MON-FRI", "Europe/Berlin")
    assert describe_facts(trigger, NINE) == {
        "rule": "cron 0 9 * * MON-FRI",
        "zone": "Europe/Berlin",
        "next_local": "2025-06-11T09:00:00+02:00",
        "next_utc": "2025-06-11T07:00:00+00:00",
    }
    assert describe_trigger(trigger, NINE) == (
        "cron 0 9 * * MON-FRI (every weekday at 09:00), Europe/Berlin; "
        "next at 2025-06-11T09:00:00+02:00 (2025-06-11T07:00:00+00:00)"
    )


def test_a_rule_that_is_over_says_so() -> None:
    trigger = Trigger(TriggerKind.INTERVAL, "5m", start_us=NINE)
    assert describe_facts(trigger, None) == {"rule": "every 5m", "zone": "UTC", "next_local": None, "next_utc": None}
    assert describe_trigger(trigger, None) == "every 5m, UTC; it does not fire again"
    assert describe_trigger(trigger, NINE) == "every 5m, UTC; next at 2025-06-11T07:00:00+00:00"


def test_a_single_time_is_said_once() -> None:
    trigger = Trigger(TriggerKind.ONCE, "2025-06-11T07:00:00+00:00", "Asia/Kolkata")
    assert describe_trigger(trigger, NINE) == (
        "once, Asia/Kolkata, at 2025-06-11T12:30:00+05:30 (2025-06-11T07:00:00+00:00), a Wednesday"
    )
