"""Tests how work for agents changes its status, and which changes an agent may make."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.errors import Conflict, Denied, Invalid
from frontdesk.memory.model import AiMode, AiStatus, AiTask, AiTaskType, Guardrails, Priority
from frontdesk.memory.work_queue_rules import (
    DEFAULT_LEASE,
    MAX_LEASE,
    approve_ai_task,
    change_status,
    check_transition,
    choose_lease,
    edit_ai_task,
    find_obstacle,
    has_live_lease,
    is_cleared,
    merge_guardrails,
    new_ai_task,
    parse_work_choices,
    renew_lease,
    start_work,
)

NOW = datetime(2026, 11, 20, 9, tzinfo=UTC)
HOUR = timedelta(hours=1)
GIVEN = {"objective": "Plan it", "task_type": AiTaskType.WRITING, "task_id": "t", "agent_id": "agent-1"}
IDENTITY = {"id": "a", "agent_name": "Ada", "dependencies": ()}
STEPS = {
    "pending assigned",
    "pending cancelled",
    "assigned in_progress",
    "assigned cancelled",
    "in_progress paused",
    "in_progress completed",
    "in_progress failed",
    "in_progress cancelled",
    "paused in_progress",
    "paused cancelled",
    "paused failed",
    "failed assigned",
    "cancelled assigned",
}


def made(*, by_agent: bool = False, **fields: Any) -> AiTask:
    return new_ai_task({**GIVEN, **fields}, IDENTITY, NOW, by_agent=by_agent)


def stands(status: AiStatus, **fields: Any) -> AiTask:
    return replace(made(), status=status, **fields)


@pytest.mark.parametrize("before", list(AiStatus))
@pytest.mark.parametrize("to", list(AiStatus))
def test_each_step_is_one_of_the_contracts_or_is_refused_with_those_that_are(before: AiStatus, to: AiStatus) -> None:
    if f"{before} {to}" in STEPS:
        check_transition(before, to)
        return
    with pytest.raises(Conflict, match=f"is {before} cannot become {to}") as refused:
        check_transition(before, to)
    possible = [step.partition(" ")[2] for step in STEPS if step.startswith(f"{before} ")]
    assert all(name in str(refused.value).partition(";")[2] for name in possible)
    assert possible or "final" in str(refused.value)


def test_new_work_is_assigned_at_once_or_pending_and_nothing_else() -> None:
    assert (made().status, made().assigned_at) == (AiStatus.ASSIGNED, NOW)
    pending = made(status=AiStatus.PENDING)
    assert (pending.status, pending.assigned_at) == (AiStatus.PENDING, None)
    assert change_status(pending, AiStatus.ASSIGNED, NOW + HOUR).assigned_at == NOW + HOUR
    with pytest.raises(Invalid, match="pending or assigned, not completed"):
        made(status=AiStatus.COMPLETED)


@pytest.mark.parametrize("name", ["objective", "task_type", "agent_id"])
def test_what_work_needs_is_named_where_it_is_missing(name: str) -> None:
    with pytest.raises(Invalid, match=f"{name} is missing"):
        new_ai_task({**GIVEN, name: None}, IDENTITY, NOW, by_agent=False)


def test_the_end_of_work_is_dated_and_its_minutes_counted_unless_they_were_given() -> None:
    begun = start_work(made(), "agent-1", HOUR, NOW)
    assert (begun.started_at, begun.leased_by, begun.leased_until, begun.claims) == (NOW, "agent-1", NOW + HOUR, 1)
    done = change_status(begun, AiStatus.COMPLETED, NOW + 3 * HOUR)
    assert (done.completed_at, done.actual_duration_min, done.leased_by) == (NOW + 3 * HOUR, 180, None)
    quick = change_status(begun, AiStatus.FAILED, NOW + timedelta(seconds=1))
    assert (quick.completed_at, quick.actual_duration_min) == (None, 1), "a minute at least"
    told = change_status(replace(begun, actual_duration_min=7), AiStatus.COMPLETED, NOW + HOUR)
    assert told.actual_duration_min == 7


def test_work_that_is_assigned_again_begins_afresh_and_counts_on() -> None:
    failed = stands(AiStatus.FAILED, started_at=NOW, actual_duration_min=5, error_message="no", claims=2)
    again = change_status(failed, AiStatus.ASSIGNED, NOW + HOUR)
    assert (again.started_at, again.actual_duration_min, again.error_message) == (None, None, "")
    assert (again.assigned_at, start_work(again, "agent-2", HOUR, NOW).claims) == (NOW + HOUR, 3)


@given(st.timedeltas(timedelta(0), timedelta(days=9)), st.timedeltas(timedelta(0), timedelta(days=9)))
def test_a_renewed_lease_is_never_shorter_than_it_was_nor_longer_than_a_day_from_now(
    first: timedelta, second: timedelta
) -> None:
    begun = start_work(made(), "agent-1", first, NOW)
    renewed = renew_lease(begun, second, NOW)
    assert begun.leased_until is not None
    assert renewed.leased_until is not None
    assert begun.leased_until <= renewed.leased_until <= NOW + timedelta(days=1)
    assert has_live_lease(renewed, renewed.leased_until - timedelta(microseconds=1))
    assert not has_live_lease(renewed, renewed.leased_until)


def test_a_lease_is_as_long_as_was_asked_or_as_the_work_is_estimated_to_take() -> None:
    assert choose_lease(None, None) == choose_lease(None, 1) == DEFAULT_LEASE
    assert choose_lease(None, 120) == 2 * HOUR
    assert choose_lease(None, 10**30) == MAX_LEASE
    assert choose_lease(timedelta(seconds=1), 120) == timedelta(seconds=1)


def test_only_execution_waits_for_the_persons_word() -> None:
    execute = made(mode=AiMode.EXECUTE)
    assert "approve" in find_obstacle(execute, [])
    assert find_obstacle(made(mode=AiMode.PLAN_ONLY), []) == find_obstacle(made(mode=AiMode.DRY_RUN), []) == ""
    assert find_obstacle(made(mode=AiMode.EXECUTE, guardrails={"requiresHumanApproval": False}), []) == ""
    assert find_obstacle(approve_ai_task(execute, NOW), []) == ""
    forged = made(mode=AiMode.EXECUTE, metadata={"approved": True, "tags": ["x"]})
    assert (forged.metadata, bool(find_obstacle(forged, []))) == ({"tags": ["x"]}, True)


def test_what_is_above_a_cap_or_waits_for_other_work_cannot_be_begun() -> None:
    capped = made(guardrails={"costCapUSD": 2.0, "timeCapMin": 30})
    assert find_obstacle(replace(capped, estimated_cost_usd=2.0, estimated_duration_min=30), []) == ""
    assert "cost of 2.5 USD" in find_obstacle(replace(capped, estimated_cost_usd=2.5), [])
    assert "31 minutes" in find_obstacle(replace(capped, estimated_duration_min=31), [])
    assert "one, two" in find_obstacle(capped, ["one", "two"])
    with pytest.raises(Invalid, match="costCapUSD"):
        made(guardrails={"costCapUSD": 1}, estimated_cost_usd=2)


def test_guardrails_are_changed_one_by_one_and_a_name_that_is_none_is_refused() -> None:
    rails = Guardrails(costCapUSD=2, dataScopes=("mail",))
    assert merge_guardrails({"timeCapMin": 5}, rails) == replace(rails, timeCapMin=5)
    cleared = merge_guardrails({"costCapUSD": None, "dataScopes": None, "requiresHumanApproval": None}, rails)
    assert cleared == Guardrails()
    with pytest.raises(Invalid, match="no 'costCap'; it has costCapUSD"):
        merge_guardrails({"costCap": 2}, rails)


def test_an_agent_cannot_loosen_what_holds_it_back() -> None:
    task = made(mode=AiMode.PLAN_ONLY, guardrails={"costCapUSD": 2.0})
    for loosening in ({"guardrails": {"costCapUSD": 100}}, {"mode": AiMode.EXECUTE}):
        with pytest.raises(Denied, match="An agent cannot change"):
            edit_ai_task(task, loosening, NOW, by_agent=True)
        edit_ai_task(task, loosening, NOW, by_agent=False)
    with pytest.raises(Denied, match="waive"):
        made(by_agent=True, guardrails={"requiresHumanApproval": False})


def test_what_an_agent_rewords_needs_approval_again_and_what_the_person_rewords_does_not() -> None:
    approved = approve_ai_task(made(mode=AiMode.EXECUTE, metadata={"tags": ["x"]}), NOW)
    reworded = {"objective": "Send it to everybody"}
    assert is_cleared(edit_ai_task(approved, {**reworded, "metadata": {}}, NOW, by_agent=False))
    by_agent = edit_ai_task(approved, {**reworded, "metadata": {"approved": True}}, NOW, by_agent=True)
    assert (by_agent.metadata, is_cleared(by_agent)) == ({}, False)


def test_null_empties_what_can_be_empty_and_is_refused_elsewhere() -> None:
    task = made(deliverables="A table", due_at=NOW, priority=Priority.HIGH)
    emptied = edit_ai_task(task, {"deliverables": None, "due_at": None, "priority": None}, NOW, by_agent=False)
    assert (emptied.deliverables, emptied.due_at, emptied.priority) == ("", None, Priority.MEDIUM)
    for name in ("objective", "mode", "agent_id"):
        with pytest.raises(Invalid, match=f"{name} cannot be empty"):
            edit_ai_task(task, {name: None}, NOW, by_agent=False)


def test_words_are_taken_as_texts_too_and_one_that_is_none_is_refused() -> None:
    assert parse_work_choices({"mode": "execute", "status": None, "objective": "x"})["mode"] is AiMode.EXECUTE
    with pytest.raises(Invalid, match="mode must be one of plan_only, dry_run, execute; 'fast' is none"):
        parse_work_choices({"mode": "fast"})


def test_the_priority_may_stand_in_the_metadata_as_well() -> None:
    assert made(metadata={"priority": "urgent"}).priority is Priority.URGENT
    assert made(metadata={"priority": "urgent"}, priority=Priority.LOW).priority is Priority.LOW
    with pytest.raises(Invalid, match=r"metadata\.priority"):
        made(metadata={"priority": "very"})
