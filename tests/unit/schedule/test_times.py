"""Exact times: the forms that are taken, those that are refused, and how a rule is said back."""

from datetime import UTC, datetime

import pytest

from frontdesk.errors import Invalid
from frontdesk.schedules.descriptions import describe_facts, describe_trigger
from frontdesk.schedules.model import Trigger, TriggerKind, to_us
from frontdesk.schedules.triggers import parse_iso_time
from tests.requirements import shows

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
