"""Tests how requests become schedules or are refused, which ones callers see, and rows of PromptYoSelf files."""

import random
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from frontdesk.errors import Conflict, Denied, Invalid, MissingAgentId, MissingScope, NotFound
from frontdesk.identity import rights
from frontdesk.identity.model import AgentIdSource, Caller
from frontdesk.identity.rights import SCHEDULES_ADMIN, TOOLS_CALL
from frontdesk.schedules.access import (
    can_act_for,
    can_see,
    is_schedules_admin,
    owner_filter,
    require_acting_for,
    require_read,
    require_write,
)
from frontdesk.schedules.agents import scope_of
from frontdesk.schedules.api_models import RunResponse
from frontdesk.schedules.create import CurrentRun, ScheduleLimits, build_schedule, change_schedule, check_may_schedule
from frontdesk.schedules.model import (
    SECOND,
    AnswerForwarding,
    Misfire,
    Overlap,
    RunRecord,
    RunStatus,
    Schedule,
    ScheduleDefinition,
    SchedulePolicy,
    ScheduleState,
    Trigger,
    TriggerKind,
    WebhookStatus,
    to_us,
)
from frontdesk.schedules.promptyoself import PlannedImport, PromptYoSelfRow, plan_import, read_promptyoself
from frontdesk.schedules.requests import NewSchedule, ScheduleChange, parse_schedule_id
from tests.requirements import shows
from tests.support.scheduling import ADA, ANN, BOB, OPERATOR, OWNERS, reminder, schedule, visitors, write

# A request becomes a rule, or is refused in the words that clients know


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


# Whose schedules a caller may see, and for which agents it may make them: every kind of caller, every owner


EVERYONE = list(visitors())


@shows("SCHEDULE-OWN")
def test_every_kind_of_caller_sees_its_own_and_nothing_else() -> None:
    assert len(EVERYONE) > 300
    for visitor, caller in EVERYONE:
        for owner in OWNERS:
            assert can_see(caller, *owner) == visitor.may_see(owner), (visitor, owner)


@shows("SCHEDULE-OWN")
def test_nobody_but_an_admin_is_ever_given_everybodys() -> None:
    for visitor, caller in EVERYONE:
        try:
            whose = owner_filter(caller)
        except MissingAgentId:
            assert caller.agent_id is None
            assert caller.user_id is None
            continue
        if whose.agent_id is None and whose.user_id is None:
            assert all(visitor.may_see(owner) for owner in OWNERS)


def test_a_caller_that_names_an_agent_speaks_for_no_other() -> None:
    for visitor, caller in EVERYONE:
        admin = all(visitor.may_see(owner) for owner in OWNERS)
        if admin or not rights.names_agent(caller):
            continue
        other = BOB if caller.agent_id == ADA else ADA
        assert can_act_for(caller, str(caller.agent_id))
        with pytest.raises(Denied, match=other):
            require_acting_for(caller, other)


def test_a_proven_person_without_an_agent_speaks_for_none_beyond_this_machine() -> None:
    for visitor, caller in EVERYONE:
        shown = visitor.shows
        if shown is None or shown.agent_id is not None or visitor.names or is_schedules_admin(caller):
            continue
        free = visitor.trusted and not visitor.forwarded
        assert can_act_for(caller, BOB) is free


def test_a_caller_at_this_machine_is_the_operator_until_it_names_somebody() -> None:
    assert is_schedules_admin(OPERATOR)
    assert is_schedules_admin(Caller("1", ADA, source=AgentIdSource.ENVIRONMENT, local=True))
    assert not is_schedules_admin(Caller("1", ADA, source=AgentIdSource.HEADER, local=True))
    assert not is_schedules_admin(Caller("1", user_id=ANN, local=True))
    assert not is_schedules_admin(Caller("1"))


def test_a_scope_is_asked_for_by_name_and_admin_covers_the_others() -> None:
    limited = Caller("1", ADA, verified=True, scopes=frozenset({TOOLS_CALL}))
    with pytest.raises(MissingScope, match="schedules:read"):
        require_read(limited)
    with pytest.raises(MissingScope, match="schedules:write"):
        require_write(limited)
    admin = Caller("1", ADA, verified=True, scopes=frozenset({SCHEDULES_ADMIN}))
    require_read(admin)
    require_write(admin)


def test_no_two_callers_of_different_people_keys_or_agents_share_a_scope() -> None:
    scopes: dict[str, tuple[object, ...]] = {}
    for _, caller in EVERYONE:
        scope = scope_of(caller)
        if scope is None:
            continue
        who = (caller.user_id,) if caller.user_id else (caller.credential_id or caller.agent_id,)
        if scope == "local":
            assert caller.local
            who = ("local",)
        assert scopes.setdefault(scope, who) == who


def test_in_a_turn_that_others_bound_the_scope_is_that_of_the_agents_own_key() -> None:
    assert scope_of(Caller("1", ADA, verified=True, credential_id="key:of-ada key:of-ann")) == "key:of-ada"


def test_a_token_that_many_hold_is_nobodys_scope() -> None:
    for local in (False, True):
        assert scope_of(Caller("1", verified=True, local=local, credential_id="token:https://issuer")) is None


# Runs as every interface shows them


def test_a_run_says_that_its_answer_was_not_taken_and_why() -> None:
    past = RunRecord("run-1-1", 1, "ada", None, 1_000, 1, RunStatus.DELIVERED, 1, 2_000, 3_000, answer="Done")
    assert RunResponse.of(past).model_dump()["webhook"] is None
    given_up = RunRecord(
        *("run-1-1", 1, "ada", None, 1_000, 1, RunStatus.DELIVERED, 1, 2_000, 3_000),
        forwarded=WebhookStatus("dead", 12, "example.com answered 500"),
    )
    told = {"state": "dead", "attempt": 12, "error": "example.com answered 500"}
    assert RunResponse.of(given_up).model_dump()["webhook"] == told


# The import of each row of a PromptYoSelf file


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "promptyoself.db"


def only(file: Path, **values: Any) -> PlannedImport:
    planned = plan_import(read_promptyoself(write(file, [reminder(**values)])), ScheduleLimits(), NOW)
    assert planned.left_out == []
    return planned.taken[0]


def reason(file: Path, **values: Any) -> str:
    planned = plan_import(read_promptyoself(write(file, [reminder(**values)])), ScheduleLimits(), NOW)
    assert planned.taken == []
    ((name, why),) = planned.left_out
    assert name == "unified_reminders 1"
    return why


def test_a_cron_rule_goes_on_in_utc(file: Path) -> None:
    taken = only(file)
    assert taken.new.trigger == Trigger(TriggerKind.CRON, "0 9 * * *")
    assert (taken.new.agent_id, taken.new.prompt) == ("agent-1", "Daily report")
    assert taken.intended_us == to_us(datetime(2026, 3, 5, 9, tzinfo=UTC))


@shows("KEPT-14")
def test_space_around_an_agent_id_is_not_part_of_it(file: Path) -> None:
    assert only(file, agent_id=" agent-1\n").new.agent_id == "agent-1"


def test_an_interval_goes_on_from_its_next_run(file: Path) -> None:
    taken = only(file, schedule_type="interval", schedule_value="30m", next_run="2026-03-04 11:50:00.250000")
    assert taken.intended_us == to_us(datetime(2026, 3, 4, 12, 20, 0, 250_000, tzinfo=UTC))
    assert taken.new.trigger.value == "30m"


def test_a_naive_time_is_utc_and_an_offset_that_its_user_wrote_counts(file: Path) -> None:
    naive = only(file, schedule_type="once", schedule_value="2026-03-05T10:00:00", next_run="2026-03-05 10:00:00")
    assert naive.intended_us == to_us(datetime(2026, 3, 5, 10, tzinfo=UTC))
    offset = only(
        file.with_name("b"),
        schedule_type="once",
        schedule_value="2026-03-05T10:00:00+05:30",
        next_run="2026-03-05 10:00:00",
    )
    assert offset.intended_us == to_us(datetime(2026, 3, 5, 4, 30, tzinfo=UTC))


def test_a_prompt_that_was_due_while_nobody_ran_it_is_still_due_within_a_day(file: Path) -> None:
    late = only(file, schedule_type="once", schedule_value="", next_run="2026-03-04 02:00:00")
    assert late.intended_us == to_us(datetime(2026, 3, 4, 2, tzinfo=UTC))
    told = reason(file.with_name("b"), schedule_type="once", schedule_value="", next_run="2026-03-02 02:00:00")
    assert told.startswith("it was due at 2026-03-02T02:00:00+00:00, and never ran")


def test_what_has_run_counts_against_the_maximum(file: Path) -> None:
    taken = only(file, max_repetitions=10, repetition_count=3)
    assert (taken.new.max_repetitions, taken.fired) == (10, 3)
    assert only(file.with_name("c"), repetition_count=3).fired == 3
    assert reason(file.with_name("b"), max_repetitions=3, repetition_count=3) == "it has run 3 times of 3"


@shows("SCHEDULE-IMPORT")
@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"active": 0}, "it is not active any more"),
        ({"status": "cancelled"}, "its status is 'cancelled'"),
        ({"status": "Completed"}, "its status is 'completed'"),
        ({"agent_id": None}, "'None' is not an agent id"),
        ({"agent_id": "null"}, "'null' is not an agent id"),
        ({"agent_id": "no such/agent"}, "'no such/agent' is not an agent id"),
        ({"message": "  "}, "it has no text"),
        ({"message": "x" * 20_001}, "The prompt has 20001 characters; at most 20000 are allowed"),
        ({"schedule_value": "99 * * * *"}, "Invalid cron expression: 99 * * * *"),
        (
            {"schedule_type": "interval", "schedule_value": "-5m"},
            "Invalid interval format: -5m. Use formats like '30s', '5m', '1h'",
        ),
        ({"schedule_type": "sometimes"}, "its kind is 'sometimes', and there are once, cron and interval"),
        ({"schedule_type": "once", "schedule_value": "28", "next_run": None}, "'28' is no time"),
        ({"schedule_type": "interval", "schedule_value": "1h", "next_run": "later"}, "'later' is no time"),
        ({"max_repetitions": 0}, "its max_repetitions is 0"),
        ({"max_repetitions": 2**31}, "its max_repetitions is 2147483648"),
        ({"repetition_count": 2**31}, "it has run 2147483648 times of 2147483647"),
        ({"max_repetitions": "many"}, "its max_repetitions is 'many', which is no number"),
    ],
)
def test_what_is_left_out_is_told_with_its_reason(file: Path, values: dict[str, Any], why: str) -> None:
    assert reason(file, **values) == why


def test_a_pace_that_is_not_allowed_is_left_out(file: Path) -> None:
    assert "must be at least 10 s apart" in reason(file, schedule_type="interval", schedule_value="1s")


def test_what_both_tables_have_is_taken_once(file: Path) -> None:
    write(file, [reminder(), reminder()], [schedule(), schedule(prompt_text="Only here")])
    planned = plan_import(read_promptyoself(file), ScheduleLimits(), NOW)
    assert [taken.new.prompt for taken in planned.taken] == ["Daily report", "Daily report", "Only here"]
    assert planned.left_out == [("schedules 1", "it is in unified_reminders too")]


def test_a_file_with_the_older_table_alone_is_read(file: Path) -> None:
    planned = plan_import(read_promptyoself(write(file, None, [schedule()])), ScheduleLimits(), NOW)
    assert [taken.new.prompt for taken in planned.taken] == ["Daily report"]


def test_a_row_is_known_again_however_often_it_has_run() -> None:
    row = PromptYoSelfRow(
        "unified_reminders", 1, "agent-1", "Hi", "cron", "@daily", next_run="2026-01-01", repetition_count=1
    )
    later = PromptYoSelfRow(
        "unified_reminders", 1, "agent-1", "Hi", "cron", "@daily", next_run="2026-02-01", repetition_count=9
    )
    other = PromptYoSelfRow(
        "unified_reminders", 2, "agent-1", "Hi", "cron", "@daily", next_run="2026-01-01", repetition_count=1
    )
    assert row.mark == later.mark != other.mark


@shows("SCHEDULE-IMPORT")
def test_a_foreign_file_is_told_as_one(file: Path, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="There is no file"):
        read_promptyoself(tmp_path / "nowhere.db")
    with pytest.raises(NotFound):
        read_promptyoself(tmp_path)
    file.write_text("this is a letter, and no database at all\n" * 99)
    with pytest.raises(Invalid, match="no SQLite file"):
        read_promptyoself(file)
    with pytest.raises(Invalid, match="it is not PromptYoSelf's"):
        read_promptyoself(write(tmp_path / "empty.db"))


def test_a_table_of_the_same_name_with_other_columns_is_somebody_elses(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE schedules (id INTEGER, train TEXT, platform TEXT)")
    with pytest.raises(Invalid, match="without agent_id, message, schedule_type"):
        read_promptyoself(path)


@shows("SCHEDULE-IMPORT")
@pytest.mark.parametrize("seed", range(8))
def test_a_damaged_file_is_read_whole_or_not_at_all(file: Path, seed: int) -> None:
    write(file, [reminder(message=f"Prompt {number}" * 20) for number in range(200)])
    whole = len(read_promptyoself(file))
    damaged = bytearray(file.read_bytes())
    chance = random.Random(seed)
    start = chance.randrange(100, len(damaged) - 4096)
    damaged[start : start + 4096] = chance.randbytes(4096)
    file.write_bytes(bytes(damaged))
    try:
        found = len(read_promptyoself(file))
    except Invalid:
        return
    assert found == whole


def test_reading_changes_nothing(file: Path) -> None:
    write(file, [reminder()])
    before = file.read_bytes()
    read_promptyoself(file)
    assert file.read_bytes() == before
    assert [found.name for found in file.parent.iterdir()] == [file.name]
