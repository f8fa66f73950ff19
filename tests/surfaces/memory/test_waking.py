"""A task that is due wakes the agent it is assigned to: memory and scheduler, as the app joins them."""

from datetime import UTC, datetime, timedelta

import pytest

from frontdesk.agents.host import NewAgent
from frontdesk.app import App
from frontdesk.identity.model import Caller
from frontdesk.identity.rights import TASKS_WRITE
from frontdesk.memory.model import PersonScope, TaskStatus
from frontdesk.schedules.model import ScheduleState
from frontdesk.schedules.requests import ListSchedules
from tests.requirements import shows

pytestmark = pytest.mark.anyio
ANN = PersonScope("ann")
DUE = (datetime.now(UTC) + timedelta(days=2)).replace(microsecond=0)
INSTALLATION = Caller("test", local=True, any_agent=True)


async def _planned(app: App) -> list[tuple[str, str | None, str, ScheduleState]]:
    """For which agent and person what is planned, and how that stands."""
    listed = await app.schedules.queries.list(INSTALLATION, ListSchedules(include_cancelled=True))
    return [(one.what.agent_id, one.what.user_id, one.what.prompt, one.state) for one in listed.schedules]


@shows("MEMORY-WAKE")
async def test_an_agent_is_woken_for_its_task_which_moves_with_it_and_is_taken_back_when_it_is_done(app: App) -> None:
    clerk = await app.host.create(NewAgent("Clerk"))
    task = await app.memory.tasks.create(ANN, {"title": "File it", "assignee": "clerk", "due_date": DUE.isoformat()})
    assert task.wake_schedule_id is not None
    [(agent, person, prompt, state)] = await _planned(app)
    assert (agent, person, state) == (clerk.id, "ann", ScheduleState.ACTIVE)
    assert "File it" in prompt
    assert task.id in prompt
    later = (DUE + timedelta(days=1)).isoformat()
    moved = await app.memory.tasks.update(ANN, task.id, {"due_date": later})
    assert [state for *_, state in await _planned(app)] == [ScheduleState.CANCELLED, ScheduleState.ACTIVE]
    assert moved.wake_schedule_id not in (None, task.wake_schedule_id)
    done = await app.memory.tasks.set_status(ANN, task.id, TaskStatus.COMPLETED)
    assert done.wake_schedule_id is None
    assert {state for *_, state in await _planned(app)} == {ScheduleState.CANCELLED}


async def test_a_person_as_assignee_wakes_nobody_and_a_key_that_may_not_is_told_so(app: App) -> None:
    await app.host.create(NewAgent("Clerk"))
    due = {"due_date": DUE.isoformat()}
    plain = await app.memory.tasks.create(ANN, {"title": "Call Bo", "assignee": "Bo", **due})
    assert (plain.wake_schedule_id, plain.wake_note) == (None, "")
    limited = PersonScope("ann", scopes=frozenset({TASKS_WRITE}))
    kept = await app.memory.tasks.create(limited, {"title": "File it", "assignee": "Clerk", **due})
    assert kept.wake_schedule_id is None
    assert "schedules:write" in kept.wake_note
    assert await _planned(app) == []


async def test_what_is_deleted_or_closed_by_its_subtasks_wakes_nobody_any_more(app: App) -> None:
    await app.host.create(NewAgent("Clerk"))
    asked = {"assignee": "Clerk", "due_date": DUE.isoformat()}
    parent = await app.memory.tasks.create(
        ANN, {"title": "Move", "completion_behavior": "auto_when_subtasks_complete", **asked}
    )
    child = await app.memory.tasks.create(ANN, {"title": "Pack", "parent_task_id": parent.id, **asked})
    assert [state for *_, state in await _planned(app)] == [ScheduleState.ACTIVE, ScheduleState.ACTIVE]
    await app.memory.tasks.set_status(ANN, child.id, TaskStatus.COMPLETED)
    assert (await app.memory.tasks.get(ANN, parent.id)).status is TaskStatus.COMPLETED
    assert {state for *_, state in await _planned(app)} == {ScheduleState.CANCELLED}
    alone = await app.memory.tasks.create(ANN, {"title": "Sweep", **asked})
    await app.memory.tasks.delete(ANN, alone.id)
    assert {state for *_, state in await _planned(app)} == {ScheduleState.CANCELLED}
