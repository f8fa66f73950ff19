"""What callers ask for becomes a rule, or is refused in the words that clients know."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from frontdesk.errors import Conflict, Invalid
from frontdesk.schedules.create import CurrentRun, ScheduleLimits, build_schedule, change_schedule, check_may_schedule
from frontdesk.schedules.model import (
    SECOND,
    AnswerForwarding,
    Misfire,
    Overlap,
    Schedule,
    ScheduleDefinition,
    SchedulePolicy,
    ScheduleState,
    Trigger,
    TriggerKind,
    to_us,
)
from frontdesk.schedules.requests import NewSchedule, ScheduleChange, parse_schedule_id
from tests.requirements import shows

NOW = to_us(datetime(2026, 3, 4, 12, tzinfo=UTC))
LIMITS = ScheduleLimits(longest_prompt=100)
HOOK = "https://example.com/hook"
BAD_TIME = (
    "Invalid time format. Use ISO 8601 like 2025-12-25T10:00:00Z or include offset, e.g. 2025-12-25T10:00:00-05:00"
)


def made(**said: Any) -> ScheduleDefinition:
    asked: dict[str, Any] = {"prompt": "Ping", **said}
    return build_schedule(NewSchedule(**asked), "agent-1", "ann", LIMITS, NOW)


def standing(new: ScheduleDefinition, fired: int = 0) -> Schedule:
    return Schedule(7, new, ScheduleState.ACTIVE, NOW + SECOND, NOW + SECOND, fired, None, NOW, NOW)


def changed(new: ScheduleDefinition, fired: int = 0, **said: Any) -> ScheduleDefinition:
    return change_schedule(standing(new, fired), ScheduleChange(**said), LIMITS, NOW)


@shows("SCHEDULE-ERRORS")
@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"prompt": None, "every": "5m"}, "Missing required arguments: agent-id and prompt"),
        ({"prompt": "  ", "every": "5m"}, "Missing required arguments: agent-id and prompt"),
        ({}, "Must specify one of --time, --cron, or --every"),
        ({"time": "", "cron": " "}, "Must specify one of --time, --cron, or --every"),
        ({"time": "2027-01-01T00:00:00Z", "every": "5m"}, "Cannot specify multiple scheduling options"),
        ({"time": "2026-03-04T11:59:59Z"}, "Scheduled time must be in the future"),
        ({"time": "28"}, BAD_TIME),
        ({"time": "2027-01-01T00:00:00"}, BAD_TIME),
        ({"time": "whenever"}, BAD_TIME),
        ({"every": "5m", "start_at": "2026-03-04T12:00:00Z"}, "Start time must be in the future"),
        ({"every": "5m", "start_at": "soonish"}, BAD_TIME),
        ({"cron": "not a cron"}, "Invalid cron expression: not a cron"),
        ({"cron": "61 * * * *"}, "Invalid cron expression: 61 * * * *"),
        *[({way: "0 9 * *"}, "Invalid cron expression: 0 9 * *") for way in ("cron", "when")],
        ({"when": "in 1000000 days"}, '"in 1000000 days" is too far ahead; write a time within a hundred years'),
        (
            {"cron": "0 9 * * *", "zone": "est"},
            (
                "EST is the same hours behind UTC in summer too, which is seldom meant. "
                "Use America/New_York, or Etc/GMT+5 for just that"
            ),
        ),
        ({"cron": "0 9 * * *", "zone": "New York"}, "Unknown time zone: New York. Use America/New_York"),
        ({"cron": "0 0 31 2 *"}, "Invalid cron expression: 0 0 31 2 *"),
        *[
            ({"every": value}, f"Invalid interval format: {value}. Use formats like '30s', '5m', '1h'")
            for value in ("0s", "-5m", "0", "abc", "5x", "1.5h", "10 parsecs")
        ],
        ({"every": "5m", "max_repetitions": 0}, "max-repetitions must be a positive integer"),
        ({"every": "5m", "max_repetitions": "-1"}, "max-repetitions must be a positive integer"),
        ({"every": "5m", "max_repetitions": "many"}, "max-repetitions must be a valid integer"),
        ({"every": "5m", "max_repetitions": True}, "max-repetitions must be a valid integer"),
        ({"every": "5m", "max_repetitions": 1.5}, "max-repetitions must be a valid integer"),
        ({"every": "5m", "max_repetitions": 2**40}, "max-repetitions must be a valid integer"),
        ({"every": "5m", "overlap": "pile up"}, "overlap is queue, skip or allow"),
        ({"every": "5m", "misfire": "never"}, "misfire is once, all or skip"),
        ({"every": "5m", "attempts": 0}, "attempts must be a whole number from 1 to 100"),
        (
            {"every": "5m", "end_at": "2026-03-04T12:01:00Z"},
            "It would never run: its end comes before its first run; move the end, or leave it out",
        ),
        ({"every": "5m", "jitter": "5m"}, "jitter must be shorter than the time between two runs"),
        ({"every": "5m", "jitter": -1}, "jitter must be from 0 seconds to a day, e.g. 30s"),
        (
            {"time": "2027-01-01T00:00:00Z", "start_at": "2026-05-01T00:00:00Z"},
            "start_at and end_at go with a rule that repeats: cron or every",
        ),
    ],
)
def test_a_mistake_is_told_in_the_words_of_the_contract(said: dict[str, Any], told: str) -> None:
    with pytest.raises(Invalid) as refused:
        made(**said)
    assert str(refused.value) == told


def test_a_time_with_an_offset_is_that_moment_and_one_without_needs_a_zone() -> None:
    assert made(time="2026-12-25T10:00:00+05:30").trigger.value == "2026-12-25T04:30:00+00:00"
    assert made(time="2026-12-25 10:00:00 UTC").trigger.value == "2026-12-25T10:00:00+00:00"
    there = made(time="2026-12-25 10:00", zone="europe/berlin").trigger
    assert (there.value, there.zone) == ("2026-12-25T09:00:00+00:00", "Europe/Berlin")


@pytest.mark.parametrize("way", ["cron", "when"])
def test_words_for_a_rule_of_the_calendar_are_understood_where_one_may_stand(way: str) -> None:
    new = made(**{way: "every weekday at 9 Berlin time"})
    assert new.trigger == Trigger(TriggerKind.CRON, "0 9 * * MON-FRI", "Europe/Berlin")
    assert new.words == "every weekday at 9 Berlin time"


@pytest.mark.parametrize("way", ["time", "when"])
def test_words_for_a_moment_are_understood_where_one_may_stand(way: str) -> None:
    assert made(**{way: "in two minutes"}).trigger.value == "2026-03-04T12:02:00+00:00"


@pytest.mark.parametrize(
    ("way", "words", "instead"),
    [
        ("time", "every weekday at 9 Berlin time", "Give it as cron, not as time"),
        ("every", "every weekday at 9 Berlin time", "Give it as cron, not as every"),
        ("cron", "in two minutes", "Give it as time, not as cron"),
        ("every", "in two minutes", "Give it as time, not as every"),
    ],
)
def test_words_for_another_kind_of_rule_are_refused_with_the_field_for_them(way: str, words: str, instead: str) -> None:
    with pytest.raises(Invalid, match=instead):
        made(**{way: words})


def test_whatever_is_a_rule_is_read_where_any_may_stand() -> None:
    assert made(when="0 9 * * *").trigger.kind is TriggerKind.CRON
    assert made(when="90m").trigger.value == "90m"
    assert made(when="2026-12-25T10:00:00Z").trigger.kind is TriggerKind.ONCE
    with pytest.raises(Invalid, match="every weekday at 9"):
        made(when="blah blah")


def test_an_interval_without_its_every_is_an_interval() -> None:
    assert made(every=45).trigger.value == "45s"
    assert made(every="2 hours").trigger.value == "2h"
    with pytest.raises(Invalid, match='"every weekday at 9" repeats by the calendar'):
        made(every="weekday at 9")


@pytest.mark.parametrize(("text", "value"), [("1h30m", "90m"), ("1H30M", "90m"), ("1d12h", "36h"), ("30m1h", None)])
def test_an_interval_may_have_several_parts_the_larger_first(text: str, value: str | None) -> None:
    if value is None:
        with pytest.raises(Invalid, match="Invalid interval format"):
            made(every=text)
    else:
        assert [made(**{way: text}).trigger.value for way in ("every", "when")] == [value, value]


def test_a_change_names_something_and_no_empty_prompt() -> None:
    with pytest.raises(Invalid, match="Say what is to be different"):
        changed(made(every="1h"))
    with pytest.raises(Invalid, match="The new prompt is empty; leave it out"):
        changed(made(every="1h"), prompt=" ")


def test_a_start_and_an_end_hold_for_a_rule() -> None:
    trigger = made(every="30m", start_at="2026-03-05T15:00:00Z", end_at="in two days", jitter="1m").trigger
    assert trigger.start_us == to_us(datetime(2026, 3, 5, 15, tzinfo=UTC))
    assert trigger.end_us == to_us(datetime(2026, 3, 6, 12, tzinfo=UTC))
    assert trigger.jitter_s == 60


def test_policy_and_forwarding_are_as_asked() -> None:
    new = made(
        every="5m", overlap="SKIP", misfire="all", max_late="10m", attempts="3", webhook=HOOK, max_repetitions="4"
    )
    assert new.policy == SchedulePolicy(Overlap.SKIP, Misfire.ALL, 600, 3)
    assert new.forward == AnswerForwarding(HOOK)
    assert new.max_repetitions == 4


@shows("SCHEDULE-LIMITS")
def test_two_runs_do_not_come_closer_than_allowed() -> None:
    with pytest.raises(Invalid, match="every 9 s"):
        made(every="9s")
    assert made(every="10s")
    assert made(every="2s", max_repetitions=1), "what runs once is a delay"
    with pytest.raises(Invalid, match="every 60 s"):
        ScheduleLimits(shortest_s=61).check_pace(Trigger(TriggerKind.CRON, "0,1 9 * * *"), None)


@shows("SCHEDULE-LIMITS")
def test_a_prompt_is_not_longer_than_allowed_and_can_be_stored() -> None:
    assert made(every="5m", prompt="x" * 100)
    with pytest.raises(Invalid, match="101 characters"):
        made(every="5m", prompt="x" * 101)
    for text in ("a\0b", "half \ud800 a character"):
        with pytest.raises(Invalid, match="cannot be stored"):
            made(every="5m", prompt=text)


def test_a_change_leaves_alone_what_it_does_not_name() -> None:
    new = made(cron="0 9 * * *", zone="Asia/Tokyo", jitter=30, end_at="2027-01-01T00:00:00Z", max_repetitions=5)
    assert changed(new, prompt="Pong") == replace(new, prompt="Pong")
    again = changed(new, cron="30 9 * * *").trigger
    assert again == replace(new.trigger, value="30 9 * * *")
    assert changed(new, every="1h").trigger.end_us == new.trigger.end_us
    assert changed(new, time="2026-06-01T00:00:00Z").trigger == Trigger(TriggerKind.ONCE, "2026-06-01T00:00:00+00:00")


def test_a_new_zone_moves_a_rule_and_its_words_no_longer_hold() -> None:
    new = made(when="every weekday at 9 Berlin time")
    moved = changed(new, zone="Asia/Tokyo")
    assert moved.trigger == replace(new.trigger, zone="Asia/Tokyo")
    assert moved.words is None
    assert changed(new, jitter=5).words == new.words


def test_what_can_be_taken_away_is_and_nothing_else() -> None:
    new = made(every="1h", start_at="in 3 hours", end_at="in 9 hours", jitter=60, max_late="5m", max_repetitions=5)
    bare = changed(new, clear=frozenset({"start_at", "end_at", "jitter", "max_late", "max_repetitions"}))
    assert bare.trigger == Trigger(TriggerKind.INTERVAL, "1h", start_us=NOW + 3600 * SECOND)
    assert (bare.policy.max_late_s, bare.max_repetitions) == (None, None)
    with pytest.raises(Invalid, match="prompt cannot be cleared; these can: conv"):
        changed(new, clear=frozenset({"prompt"}))


def test_a_maximum_below_what_has_run_is_refused() -> None:
    with pytest.raises(Invalid, match="3 times already"):
        changed(made(every="1h"), 3, max_repetitions=3)
    assert changed(made(every="1h"), 3, max_repetitions=4).max_repetitions == 4


def test_a_change_is_held_to_the_same_limits() -> None:
    with pytest.raises(Invalid, match="at least 10 s apart"):
        changed(made(every="1h"), every="1s")
    with pytest.raises(Invalid, match="characters"):
        changed(made(every="1h"), prompt="x" * 101)
    with pytest.raises(Invalid, match="at least 10 s apart"):
        changed(made(every="2s", max_repetitions=1), clear=frozenset({"max_repetitions"}))


@shows("SCHEDULE-LIMITS")
def test_a_run_of_a_repeating_schedule_plants_no_other_that_repeats() -> None:
    again = [CurrentRun("run-42-1", 42, recurring=True)]
    with pytest.raises(Conflict, match="scheduled run of schedule 42, which repeats by itself"):
        check_may_schedule(again, 0, recurring=True)
    check_may_schedule(again, 2, recurring=False)
    check_may_schedule([CurrentRun("run-42-1", 42, recurring=False)], 0, recurring=True)
    check_may_schedule([], 99, recurring=True)
    with pytest.raises(Conflict, match="as many as one run may"):
        check_may_schedule(again, 3, recurring=False)


def test_a_schedules_number_may_come_as_text() -> None:
    assert [parse_schedule_id(value) for value in (42, "42", " 42 ", 42.0)] == [42] * 4
    assert [parse_schedule_id(value) for value in (-1, 0, 2**70, "-7")] == [0] * 4
    values: list[object] = [None, "x", "4 2", True, [1], 1.5, "٤", "9" * 30]
    for value in values:
        with pytest.raises(Invalid, match="Schedule ID must be a number"):
            parse_schedule_id(value)
