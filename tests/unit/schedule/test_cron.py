"""Cron rules: what is read, what is refused, and what the changes of the clock do to them."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from frontdesk.errors import Invalid
from frontdesk.schedules.model import Trigger, TriggerKind, from_us, to_us
from frontdesk.schedules.triggers import closest_fires_s, cron_trigger, preview_fires
from tests.requirements import shows


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
        # Clocks go forward: an appointment in the gap is kept right after it, and once.
        ("30 2 * * *", "Europe/Berlin", "2025-03-29T12:00Z", ["03-30 03:00+0200", "03-31 02:30+0200"]),
        ("0,15,30 2 * * *", "Europe/Berlin", "2025-03-29T12:00Z", ["03-30 03:00+0200", "03-31 02:00+0200"]),
        ("0 2,3 * * *", "Europe/Berlin", "2025-03-29T12:00Z", ["03-30 03:00+0200", "03-31 02:00+0200"]),
        ("30 2 * * SUN", "America/New_York", "2025-03-08T12:00Z", ["03-09 03:00-0400", "03-16 02:30-0400"]),
        ("15 2 * * *", "Australia/Lord_Howe", "2025-10-04T12:00Z", ["10-05 02:30+1100", "10-06 02:15+1100"]),
        ("30 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00Z", ["11-04 01:00-0200", "11-05 00:30-0200"]),
        # … and what goes by the clock on the wall has nothing to fire at.
        ("*/30 2 * * *", "Europe/Berlin", "2025-03-29T12:00Z", ["03-31 02:00+0200", "03-31 02:30+0200"]),
        ("0 * * * *", "Europe/Berlin", "2025-03-30T00:30Z", ["03-30 03:00+0200", "03-30 04:00+0200"]),
        ("0 */2 * * *", "Europe/Berlin", "2025-03-29T22:30Z", ["03-30 00:00+0100", "03-30 04:00+0200"]),
        # Clocks go back: an appointment is kept the first time.
        ("30 2 * * *", "Europe/Berlin", "2025-10-25T12:00Z", ["10-26 02:30+0200", "10-27 02:30+0100"]),
        ("30 2 * * *", "Europe/Berlin", "2025-10-26T01:10Z", ["10-27 02:30+0100", "10-28 02:30+0100"]),
        ("45 1 * * *", "Australia/Lord_Howe", "2025-04-05T12:00Z", ["04-06 01:45+1100", "04-07 01:45+1030"]),
        ("30 23 * * *", "America/Sao_Paulo", "2018-02-17T12:00Z", ["02-17 23:30-0200", "02-18 23:30-0300"]),
        # … and what goes by the clock on the wall fires both times.
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
