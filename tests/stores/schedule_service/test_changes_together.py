"""Changes that meet: none is lost, and what is asked for by hand has an end."""

from dataclasses import replace

import anyio
import pytest

from frontdesk.errors import Conflict, Invalid, NotFound
from frontdesk.schedules.model import now_us
from frontdesk.schedules.requests import NewSchedule, ScheduleChange
from frontdesk.schedules.store import MAX_MANUAL_RUNS, StaleSchedule
from tests.stores.schedule_service.conftest import Installation, agent, person

pytestmark = pytest.mark.anyio


async def test_two_changes_at_once_are_both_made(installation: Installation) -> None:
    ada, made = agent(installation.ada), await installation.put(installation.ada)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(installation.schedules.update, ada, made.id, ScheduleChange(prompt="Pong"))
        tasks.start_soon(installation.schedules.update, ada, made.id, ScheduleChange(attempts=3))
        tasks.start_soon(installation.schedules.update, ada, made.id, ScheduleChange(misfire="all"))
    found = (await installation.schedules.queries.get(ada, made.id)).what
    assert (found.prompt, found.policy.attempts, found.policy.misfire) == ("Pong", 3, "all")


async def test_what_was_changed_since_it_was_read_is_not_written_over(installation: Installation) -> None:
    made, store = await installation.put(installation.ada), installation.schedules.store
    await store.update(made.id, replace(made.what, prompt="Pong"), None, now_us(), made)
    with pytest.raises(StaleSchedule):
        await store.update(made.id, replace(made.what, prompt="Ping!"), None, now_us(), made)


async def test_runs_by_hand_are_only_so_many_at_a_time(installation: Installation) -> None:
    ada, made = agent(installation.ada), await installation.put(installation.ada)
    for _ in range(MAX_MANUAL_RUNS):
        await installation.schedules.run_now(ada, made.id)
    with pytest.raises(Conflict, match=f"{MAX_MANUAL_RUNS} runs of agent"):
        await installation.schedules.run_now(ada, made.id)


async def test_an_answer_for_a_timeline_is_refused_as_long_as_there_is_none(installation: Installation) -> None:
    ada, made = agent(installation.ada), await installation.put(installation.ada)
    for ask in (
        installation.schedules.update(ada, made.id, ScheduleChange(timeline=True)),
        installation.schedules.add(agent(installation.ada, "ann"), NewSchedule("Ping", every="1h", timeline=True)),
    ):
        with pytest.raises(Invalid, match="There is no timeline yet"):
            await ask
    unchanged = await installation.schedules.update(ada, made.id, ScheduleChange(timeline=False))
    assert not unchanged.schedule.what.forward.timeline


async def test_an_agent_does_not_plan_into_a_persons_conversation(installation: Installation) -> None:
    view = await installation.app.chat.open(person("ann"), installation.ada)
    with pytest.raises(NotFound, match="no conversation"):
        await installation.schedules.add(
            agent(installation.ada), NewSchedule("Ping", every="1h", conversation_id=view.session.conversation_id)
        )
