"""Tests the agents' work queue: added, found, claimed under a lease, reported, and separate for each person."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import update

from frontdesk.db.schema import ai_tasks
from frontdesk.errors import Conflict, Denied, Invalid, MissingScope, NotFound, Unavailable
from frontdesk.memory.model import AiMode, AiStatus, AiTask, AiTaskType, Guardrails, PersonScope, Priority
from frontdesk.memory.store import PersonDatabase
from frontdesk.memory.tasks_store import fetch_task
from frontdesk.memory.work_queue import WorkQueueService
from frontdesk.memory.work_queue_rules import AiTaskFilter
from tests.stores.memory.conftest import ANN, BOB
from tests.support.memory import add_tasks, add_work, let_lapse, queue_on

ADA, EVE = PersonScope("ann", "agent-ada"), PersonScope("ann", "agent-eve")
SHORT = timedelta(minutes=5)
DAYS_AGO = datetime.now(UTC) - timedelta(days=2)
ABSENT = "01990000-0000-7000-8000-000000000000"


@pytest.fixture
def queue(records: PersonDatabase) -> WorkQueueService:
    return queue_on(records)


def steps_of(task: AiTask) -> list[tuple[str | None, str, str | None]]:
    return [(one.from_status, one.to_status, one.by_agent) for one in task.history]


async def test_what_is_put_in_comes_back_whole_and_marks_its_task(
    records: PersonDatabase, queue: WorkQueueService
) -> None:
    first = await add_work(records, ANN)
    whole: dict[str, Any] = {
        "deliverables": "A table",
        "context": "Near the station",
        "acceptance_criteria": "Prices are of today",
        "dependencies": [first.id, first.id.upper()],
        "mode": AiMode.EXECUTE,
        "guardrails": {"costCapUSD": 2.5, "timeCapMin": 30, "dataScopes": ["mail"]},
        "metadata": {"priority": "high", "tags": ["travel"], "note": "nul\0"},
        "estimated_cost_usd": 0.5,
        "estimated_duration_min": 10,
        "is_local_task": True,
        "executor_workspace_id": "ws-1",
        "due_at": "2026-11-20",
    }
    made = await add_work(records, ANN, **whole)
    assert made == await queue.get(ANN, made.id)
    assert (made.status, made.agent_name, made.priority) == (AiStatus.ASSIGNED, "Ada", Priority.HIGH)
    assert made.guardrails == Guardrails(costCapUSD=2.5, timeCapMin=30, dataScopes=("mail",))
    assert made.metadata == {"priority": "high", "tags": ["travel"], "note": "nul"}
    assert made.dependencies == (first.id,)
    assert made.due_at == datetime(2026, 11, 20, 23, 59, 59, tzinfo=UTC), "a mere day is over at its end"
    assert steps_of(made) == [(None, "assigned", None)]
    task = await records.read(ANN, lambda mine: fetch_task(mine, made.task_id))
    assert task is not None
    assert task.is_ai_task
    await queue.delete(ANN, made.id)
    task = await records.read(ANN, lambda mine: fetch_task(mine, made.task_id))
    assert task is not None
    assert not task.is_ai_task
    with pytest.raises(NotFound, match="AI task not found"):
        await queue.get(ANN, made.id)


async def test_what_cannot_be_put_in_is_refused_with_the_reason(
    records: PersonDatabase, queue: WorkQueueService
) -> None:
    made = await add_work(records, ANN)
    given = {"objective": "x", "task_type": AiTaskType.CODING, "agent_id": "agent-ada", "task_id": made.task_id}
    with pytest.raises(Conflict, match="already has an AI task for this task"):
        await queue.create(ANN, given)
    other = await queue.create(ANN, {**given, "agent_id": "agent-zoe"})
    assert other.agent_name == "agent-zoe", "the host knows no name for it"
    with pytest.raises(Conflict, match="already has"):
        await queue.update(ANN, other.id, {"agent_id": "agent-ada"})
    [hers] = await add_tasks(records, BOB)
    for task_id in (hers, ABSENT, "no id", made.id):
        with pytest.raises(NotFound, match="Task not found"):
            await queue.create(ANN, {**given, "task_id": task_id})
    [free] = await add_tasks(records, ANN)
    with pytest.raises(Invalid, match="that is not there"):
        await queue.create(ANN, {**given, "task_id": free, "dependencies": [ABSENT]})
    with pytest.raises(Invalid, match="no 'leased_by'"):
        await queue.create(ANN, {**given, "task_id": free, "leased_by": "me"})
    with pytest.raises(MissingScope):
        await queue.create(PersonScope("ann", scopes=frozenset({"ai_tasks.read"})), given)


async def test_an_agent_is_called_by_its_id_while_its_host_is_away(records: PersonDatabase) -> None:
    async def away(_agent_id: str) -> str | None:
        raise Unavailable("The agent host does not answer")

    [task_id] = await add_tasks(records, ANN)
    given = {"objective": "x", "task_type": AiTaskType.CODING, "task_id": task_id, "agent_id": "agent-ada"}
    assert (await WorkQueueService(records, away).create(ANN, given)).agent_name == "agent-ada"


async def test_a_list_is_of_what_was_asked_for_and_in_its_order(
    records: PersonDatabase, queue: WorkQueueService
) -> None:
    ada = await add_work(records, ANN, priority=Priority.LOW, due_at="2026-11-21")
    bob = await add_work(records, ANN, "agent-bob", priority=Priority.URGENT, mode=AiMode.DRY_RUN)
    named = await add_work(records, ANN, "agent-3", agent_name="ADA", is_local_task=True, executor_workspace_id="w")
    pending = await add_work(records, ANN, "agent-4", status=AiStatus.PENDING, task_type=AiTaskType.CODING)

    async def ids(**wanted: Any) -> list[str]:
        return [task.id for task in (await queue.list(ANN, AiTaskFilter(**wanted))).items]

    assert await ids() == [named.id, bob.id, ada.id, pending.id], "the newest first, and last what has no such time"
    assert await ids(agent_name="ada", sort_order="asc") == [ada.id, named.id]
    assert await ids(agent_name="AGENT-BOB") == await ids(agent_id="agent-bob") == await ids(mode=AiMode.DRY_RUN)
    assert await ids(agent_name="nobody") == []
    assert await ids(status=AiStatus.PENDING) == await ids(task_type=AiTaskType.CODING) == [pending.id]
    assert await ids(is_local_task=True) == await ids(executor_workspace_id="w") == [named.id]
    assert await ids(sort_by="priority") == [bob.id, pending.id, named.id, ada.id]
    assert (await ids(sort_by="due_at"))[0] == ada.id
    part = await queue.list(ANN, AiTaskFilter(limit=2, offset=1, sort_by="updated_at", sort_order="asc"))
    assert ([task.id for task in part.items], part.total, part.has_more) == ([bob.id, named.id], 4, True)
    assert [task.id for task in await queue.list_waiting(ANN, "Ada")] == [ada.id, named.id]
    assert (await queue.list(BOB, AiTaskFilter())).total == len(await queue.list_waiting(BOB, "Ada")) == 0


async def test_nobody_reaches_the_work_of_somebody_else(records: PersonDatabase, queue: WorkQueueService) -> None:
    made = await add_work(records, ANN)
    for attempt in (
        queue.get(BOB, made.id),
        queue.update(BOB, made.id, {"objective": "mine"}),
        queue.delete(BOB, made.id),
        queue.approve(BOB, made.id),
        queue.accept(BOB, made.id),
        queue.renew(BOB, made.id, 0),
        queue.report(BOB, made.id, AiStatus.PAUSED),
        queue.complete(BOB, made.id),
        queue.fail(BOB, made.id, "no"),
    ):
        with pytest.raises(NotFound, match="AI task not found"):
            await attempt
    assert await queue.claim(PersonScope("bob", "agent-ada")) is None
    assert (await queue.stats(BOB)).total == 0
    assert await queue.get(ANN, made.id) == made


async def test_work_goes_from_its_acceptance_to_its_end_and_all_that_was_told_is_kept(
    records: PersonDatabase, queue: WorkQueueService
) -> None:
    made = await add_work(records, ANN)
    taken = await queue.accept(ADA, made.id, 0.25, 120)
    assert (taken.status, taken.leased_by, taken.claims) == (AiStatus.IN_PROGRESS, "agent-ada", 1)
    assert (taken.estimated_cost_usd, taken.estimated_duration_min) == (0.25, 120)
    assert taken.started_at is not None
    assert taken.leased_until == taken.started_at + timedelta(minutes=120), "as long as the work is said to take"
    told = {"progress_message": "Two found", "execution_result": {"logs": ["began"], "metrics": {"found": 2}}}
    assert (await queue.report(ADA, made.id, AiStatus.IN_PROGRESS, told)).progress_message == "Two found"
    await queue.report(ADA, made.id, "paused", {"progress_message": "Waiting for prices"})
    with pytest.raises(Conflict, match="is paused, and nobody works on it"):
        await queue.report(ADA, made.id, None, {"progress_message": "still"})
    with pytest.raises(Conflict, match="paused cannot become completed; it can become in_progress"):
        await queue.complete(ADA, made.id)
    assert (await queue.report(ADA, made.id, AiStatus.IN_PROGRESS)).claims == 2
    artifacts = [{"type": "file", "name": "hotels.md", "content": "…"}]
    end = {"output": "Take the second", "artifacts": artifacts, "metrics": {"found": 3}, "actual_cost_usd": 0.2}
    done = await queue.complete(ADA, made.id, end, claims=2)
    assert done.execution_result == {
        "output": "Take the second",
        "artifacts": artifacts,
        "logs": ["began"],
        "metrics": {"found": 3},
    }
    assert (done.status, done.actual_cost_usd, done.actual_duration_min) == (AiStatus.COMPLETED, 0.2, 1)
    assert done.completed_at is not None
    assert (done.leased_by, done.leased_until) == (None, None)
    assert steps_of(done) == [
        (None, "assigned", None),
        ("assigned", "in_progress", "agent-ada"),
        ("in_progress", "paused", "agent-ada"),
        ("paused", "in_progress", "agent-ada"),
        ("in_progress", "completed", "agent-ada"),
    ]
    assert done.history[2].note == "Waiting for prices"
    assert done == await queue.get(ANN, made.id)
    with pytest.raises(Conflict, match="completed is final"):
        await queue.update(ANN, made.id, {"status": AiStatus.ASSIGNED})
    with pytest.raises(Invalid, match="status must be one of in_progress"):
        await queue.report(ADA, made.id, AiStatus.CANCELLED)
    with pytest.raises(Invalid, match="no 'objective'"):
        await queue.report(ADA, made.id, None, {"objective": "another"})


async def test_what_failed_says_why_and_can_be_assigned_again_in_other_words(
    records: PersonDatabase, queue: WorkQueueService
) -> None:
    made = await add_work(records, ANN)
    await queue.accept(ADA, made.id)
    failed = await queue.fail(ADA, made.id, "The site is down")
    assert (failed.status, failed.error_message) == (AiStatus.FAILED, "The site is down")
    assert failed.history[-1].note == "The site is down"
    assert await queue.list_waiting(ANN, "Ada") == []
    with pytest.raises(Conflict, match="is failed cannot be changed"):
        await queue.update(ANN, made.id, {"objective": "Another site"})
    again = await queue.update(ANN, made.id, {"objective": "Another site", "status": AiStatus.ASSIGNED})
    assert (again.status, again.objective, again.error_message) == (AiStatus.ASSIGNED, "Another site", "")
    taken = await queue.claim(ADA)
    assert taken is not None
    assert (taken.id, taken.claims) == (made.id, 2)


async def test_work_is_changed_while_nobody_works_on_it(records: PersonDatabase, queue: WorkQueueService) -> None:
    made = await add_work(records, ANN, deliverables="A table", due_at="2026-11-20")
    changes = {"agent_id": "agent-bob", "deliverables": None, "due_at": "2026-11-21T09:00", "task_id": made.task_id}
    changed = await queue.update(ANN, made.id, {**changes, "guardrails": {"timeCapMin": 5}}, "Europe/Berlin")
    assert (changed.agent_id, changed.agent_name, changed.deliverables) == ("agent-bob", "Bob", "")
    assert changed.due_at == datetime(2026, 11, 21, 8, tzinfo=UTC)
    assert changed.guardrails == Guardrails(timeCapMin=5)
    [other] = await add_tasks(records, ANN)
    with pytest.raises(Invalid, match="stays with its task"):
        await queue.update(ANN, made.id, {"task_id": other})
    begun = await queue.update(ANN, made.id, {"objective": "Quick", "status": AiStatus.IN_PROGRESS})
    assert (begun.objective, begun.leased_by, begun.claims) == ("Quick", "agent-bob", 1), "the person begins it for Bob"
    with pytest.raises(Conflict, match="is in_progress cannot be changed; it must be assigned or paused or pending"):
        await queue.update(ANN, made.id, {"objective": "Quicker"})
    assert (await queue.update(ANN, made.id, {"status": AiStatus.CANCELLED})).leased_by is None


async def test_one_holds_the_work_and_no_other_agent_moves_it_but_the_person_can(
    records: PersonDatabase, queue: WorkQueueService
) -> None:
    made = await add_work(records, ANN)
    await queue.accept(ADA, made.id, lease=SHORT)
    with pytest.raises(Conflict, match="'agent-ada' works on this AI task and holds it until"):
        await queue.accept(EVE, made.id)
    with pytest.raises(Conflict, match="You hold this AI task already"):
        await queue.accept(ADA, made.id)
    with pytest.raises(Conflict, match="holds it until"):
        await queue.accept(ANN, made.id)
    assert await queue.claim(EVE, "Ada") is None
    for attempt in (
        queue.complete(EVE, made.id),
        queue.fail(EVE, made.id, "no"),
        queue.renew(EVE, made.id, 1),
        queue.update(EVE, made.id, {"status": AiStatus.CANCELLED}),
        queue.delete(EVE, made.id),
    ):
        with pytest.raises(Conflict, match="another agent works on it now"):
            await attempt
    paused = await queue.update(ANN, made.id, {"status": AiStatus.PAUSED})
    assert (paused.status, paused.history[-1].by_agent) == (AiStatus.PAUSED, None)
    with pytest.raises(Conflict, match="is paused, and nobody works on it"):
        await queue.renew(ADA, made.id, 1)


async def test_who_fell_silent_loses_the_work_to_the_next_and_is_told_so(
    records: PersonDatabase, queue: WorkQueueService
) -> None:
    made = await add_work(records, ANN)
    first = await queue.claim(ADA, lease=SHORT)
    assert first is not None
    await let_lapse(records, ANN)
    assert [task.id for task in await queue.list_waiting(ANN, "Ada")] == [made.id]
    held = await queue.report(ADA, made.id, None, {"progress_message": "slow"}, claims=1)
    assert held.leased_until is not None, "nobody else came, so it is still Ada's, and for longer"
    assert await queue.claim(EVE, "Ada") is None
    await let_lapse(records, ANN)
    second = await queue.claim(EVE, "Ada", lease=SHORT)
    assert second is not None
    assert (second.id, second.claims, second.leased_by) == (made.id, 2, "agent-eve")
    assert second.history[-1].note == "The lease of 'agent-ada' lapsed; taken over"
    for attempt in (queue.complete(ADA, made.id, {"output": "late"}), queue.renew(ADA, made.id, 1)):
        with pytest.raises(Conflict, match="another agent works on it now"):
            await attempt
    with pytest.raises(Conflict, match="Claim 1 of this AI task is over"):
        await queue.complete(PersonScope("ann", "agent-eve"), made.id, claims=1)
    renewed = await queue.renew(EVE, made.id, 2)
    assert renewed.leased_until is not None
    assert second.leased_until is not None
    assert renewed.leased_until > second.leased_until
    await let_lapse(records, ANN)
    assert (await queue.accept(ADA, made.id)).claims == 3, "taken over by name as well"
    assert (await queue.complete(ADA, made.id)).execution_result == {}


async def test_the_most_pressing_is_claimed_first_and_then_the_oldest(
    records: PersonDatabase, queue: WorkQueueService
) -> None:
    priorities = (Priority.LOW, Priority.MEDIUM, Priority.URGENT, Priority.MEDIUM, Priority.HIGH)
    made = [await add_work(records, ANN, priority=priority) for priority in priorities]
    await add_work(records, ANN, "agent-bob", priority=Priority.URGENT)
    await add_work(records, ANN, status=AiStatus.PENDING, priority=Priority.URGENT)
    claimed: list[str] = []
    while (task := await queue.claim(ADA)) is not None:
        claimed.append(task.id)
    assert claimed == [made[place].id for place in (2, 4, 1, 3, 0)]
    taken = await queue.claim(ANN, "bob")
    assert taken is not None
    assert taken.leased_by == "agent-bob", "a person's program that works for Bob"
    with pytest.raises(Invalid, match="give agent_name"):
        await queue.claim(ANN)


async def test_what_is_to_be_executed_waits_for_the_persons_word(
    records: PersonDatabase, queue: WorkQueueService
) -> None:
    made = await add_work(
        records, ANN, mode=AiMode.EXECUTE, priority=Priority.URGENT, metadata={"x": {"approved": True}}
    )
    plan = await add_work(records, ANN)
    with pytest.raises(Conflict, match="require the person's approval"):
        await queue.accept(ADA, made.id)
    with pytest.raises(Conflict, match="require the person's approval"):
        await queue.report(ADA, made.id, AiStatus.IN_PROGRESS)
    taken = await queue.claim(ADA)
    assert taken is not None
    assert taken.id == plan.id, "what waits for a word stands in nobody's way"
    assert await queue.claim(ADA) is None
    with pytest.raises(Denied, match="An agent cannot approve"):
        await queue.approve(ADA, made.id)
    with pytest.raises(Denied, match="An agent cannot change guardrails"):
        await queue.update(ADA, made.id, {"guardrails": {"requiresHumanApproval": False}})
    await queue.update(ADA, made.id, {"metadata": {"approved": True}})
    assert await queue.claim(ADA) is None
    approved = await queue.approve(ANN, made.id)
    assert (approved.metadata, approved.history[-1].note) == ({"approved": True}, "Approved")
    taken = await queue.claim(ADA)
    assert taken is not None
    assert taken.id == made.id
    await queue.complete(ADA, made.id)
    with pytest.raises(Conflict, match="nothing left to approve"):
        await queue.approve(ANN, made.id)


async def test_work_waits_for_what_it_depends_on_and_never_for_itself(
    records: PersonDatabase, queue: WorkQueueService
) -> None:
    first = await add_work(records, ANN, "agent-bob")
    second = await add_work(records, ANN, dependencies=[first.id])
    third = await add_work(records, ANN, dependencies=[second.id])
    with pytest.raises(Conflict, match=f"must be completed first: {first.id}"):
        await queue.accept(ADA, second.id)
    assert await queue.claim(ADA) is None
    with pytest.raises(Invalid, match="wait for itself"):
        await queue.update(ANN, first.id, {"dependencies": [third.id]})
    await queue.accept(PersonScope("ann", "agent-bob"), first.id)
    await queue.complete(PersonScope("ann", "agent-bob"), first.id)
    claimed = await queue.claim(ADA)
    assert claimed is not None
    assert claimed.id == second.id
    assert await queue.claim(ADA) is None
    await queue.delete(ANN, second.id)
    claimed = await queue.claim(ADA)
    assert claimed is not None
    assert claimed.id == third.id, "what was deleted is waited for no longer"


async def test_caps_hold_back_estimates_and_warn_of_what_was_spent(
    records: PersonDatabase, queue: WorkQueueService
) -> None:
    made = await add_work(records, ANN, guardrails={"costCapUSD": 1.0, "timeCapMin": 30})
    with pytest.raises(Conflict, match=r"cost of 1\.5 USD is above the cap of 1 USD"):
        await queue.accept(ADA, made.id, 1.5)
    with pytest.raises(Conflict, match="time of 31 minutes is above the cap of 30"):
        await queue.accept(ADA, made.id, None, 31)
    await queue.accept(ADA, made.id, 1.0, 30)
    assert len((await queue.report(ADA, made.id, None, {"actual_cost_usd": 0.9})).history) == 2
    warned = await queue.report(ADA, made.id, None, {"actual_cost_usd": 1.1})
    assert warned.history[-1].note == "Warning: cost of 1.1 USD is above the cap of 1 USD (costCapUSD)"
    assert len((await queue.report(ADA, made.id, None, {"progress_message": "on"})).history) == 3, "said once"
    done = await queue.complete(ADA, made.id, {"actual_cost_usd": 1.2, "actual_duration_min": 45})
    assert done.status is AiStatus.COMPLETED
    assert "1.2 USD" in done.history[-1].note
    assert "45 minutes" in done.history[-1].note


async def test_figures_are_of_all_the_persons_work(records: PersonDatabase, queue: WorkQueueService) -> None:
    empty = await queue.stats(ANN)
    assert (empty.total, empty.success_rate, empty.avg_duration_min, empty.by_status) == (0, 0.0, None, {})
    made = [await add_work(records, ANN, due_at="2020-01-01") for _ in range(4)]
    await add_work(records, ANN, "agent-bob", mode=AiMode.EXECUTE, task_type=AiTaskType.CODING, due_at="2999-01-01")
    await add_work(records, BOB)
    for place, minutes in ((0, 10), (1, 21)):
        await queue.accept(ADA, made[place].id)
        await queue.complete(ADA, made[place].id, {"actual_cost_usd": 0.1, "actual_duration_min": minutes})
    await queue.accept(ADA, made[2].id)
    await queue.fail(ADA, made[2].id, "no")
    stats = await queue.stats(ANN)
    assert (stats.total, stats.by_status) == (5, {"assigned": 2, "completed": 2, "failed": 1})
    assert (stats.by_mode, stats.by_type) == ({"execute": 1, "plan_only": 4}, {"coding": 1, "research": 4})
    assert stats.by_agent == {"Ada": 4, "Bob": 1}
    assert stats.by_task_type == stats.by_type
    assert (stats.active, stats.completed, stats.failed) == (2, 2, 1)
    assert (stats.pending_for_agent, stats.in_progress) == (2, 0)
    assert (stats.success_rate, stats.avg_duration_min, stats.avg_completion_time) == (0.667, 15.5, 15.5)
    assert (stats.avg_cost_usd, stats.total_cost_usd) == (0.1, 0.2)
    assert stats.overdue == 1, "the open one of the past"
    long_ago = update(ai_tasks).where(ai_tasks.c.id == made[0].id).values(completed_at=DAYS_AGO)
    await records.change(ANN, lambda mine: mine.connection.execute(long_ago))
    stats = await queue.stats(ANN)
    assert (stats.completed_today, stats.failed_today, stats.total_cost_today) == (1, 1, 0.1), "of today alone"
