"""Tests scheduled prompts on each host: each reaches its agent once, also when a server is killed."""

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from sqlalchemy import update

from frontdesk.agents.host import AgentHost
from frontdesk.app import App, open_app
from frontdesk.db.schema import turns
from frontdesk.llm.events import Done, StopReason, TextChunk, UserText
from frontdesk.schedules.delivery import make_deliver, prompt_of
from frontdesk.schedules.model import DeliveryFailed, Occurrence, RunRecord, RunStatus, delivery_id, now_us
from frontdesk.schedules.requests import ListRuns, NewSchedule
from tests.hosts.conftest import BUILT_IN, KEY
from tests.hosts.lab import SECONDS, Lab, client_tool, of_kind, said, script, take
from tests.requirements import shows
from tests.support.desk import Desk, open_desk
from tests.support.scheduling import OPERATOR
from tests.support.waiting import until

# A scheduled prompt is marked as one, and the agent gets it once, whatever happens


LONG = "word " * 100


def run_of(agent_id: str, prompt: str, *, schedule_id: int = 42) -> Occurrence:
    due = now_us()
    return Occurrence(
        id=delivery_id(schedule_id, due),
        schedule_id=schedule_id,
        agent_id=agent_id,
        user_id=None,
        prompt=prompt,
        intended_us=due,
        number=1,
        attempt=1,
        fence=1,
    )


def again(run: Occurrence) -> Occurrence:
    """The same run as another worker continues it, without knowing how far the first worker came."""
    return replace(run, attempt=run.attempt + 1, fence=run.fence + 1, in_doubt=True)


async def deliver(host: AgentHost, run: Occurrence) -> str | None:
    with anyio.fail_after(SECONDS):
        return await make_deliver(host)(run)


async def refused(host: AgentHost, run: Occurrence) -> DeliveryFailed:
    with pytest.raises(DeliveryFailed) as caught:
        await deliver(host, run)
    return caught.value


async def told_of(host: AgentHost, run: Occurrence) -> Sequence[str]:
    """How often, and in which words, the agent got the prompt of a run."""
    events = [one.event for one in await host.history(run.agent_id)]
    return [event.text for event in events if isinstance(event, UserText) and run.id in event.text]


@shows("SCHEDULE-DELIVERY")
async def test_an_agent_gets_its_prompt_with_what_it_is_and_its_answer_comes_back(lab: Lab) -> None:
    async with lab.open() as host:
        agent = await lab.agent(host)
        run = run_of(agent.id, f"Say hello. {script({'text': 'hello there'})}")
        assert await deliver(host, run) == "hello there"
        [text] = await told_of(host, run)
    assert text.startswith("[This is a scheduled run of schedule 42, number 1, and not a request to schedule anything")
    assert text.endswith(run.prompt)


@shows("SCHEDULE-DELIVERY")
async def test_a_run_in_a_conversation_of_its_own_stays_there(lab: Lab) -> None:
    async with lab.open() as host:
        agent = await lab.agent(host)
        thread = await host.start_conversation(agent.id)
        run = replace(run_of(agent.id, script({"text": "in here"})), conversation_id=thread.id)
        assert await deliver(host, run) == "in here"
        assert await told_of(host, run) == []
        assert said([one.event for one in await host.history(agent.id, thread.id)]) == "in here"


@shows("SCHEDULE-ONCE")
async def test_a_run_that_was_taken_before_a_crash_is_known_and_not_told_again(lab: Lab) -> None:
    async with lab.open() as host:
        agent = await lab.agent(host)
        run = run_of(agent.id, script({"text": "the only answer"}))
        await deliver(host, run)
        await take(host, agent.id, script({"text": "something else"}))
    asked = len(lab.models.seen)
    async with lab.open() as host:
        assert await deliver(host, again(run)) == "the only answer"
        assert len(await told_of(host, run)) == 1
    assert len(lab.models.seen) == asked, "no model was asked again"


@shows("SCHEDULE-ONCE")
async def test_a_run_that_was_cut_off_is_taken_up_by_the_next_worker_and_told_once(lab: Lab) -> None:
    async with lab.open() as host:
        agent = await lab.agent(host)
        run = run_of(agent.id, script({"text": LONG, "chunk_delay": 0.02}))
        asked = len(lab.models.seen)
        with anyio.fail_after(SECONDS):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(deliver, host, run)
                await until(lambda: len(lab.models.seen) > asked)
                tasks.cancel_scope.cancel()
        assert await host.cancel(agent.id) is False, "the turn was left tidy"
    async with lab.open() as host:
        assert await deliver(host, again(run))
        assert len(await told_of(host, run)) == 1


@shows("SCHEDULE-ONCE")
async def test_a_run_that_found_nobody_is_told_once_when_they_are_back(lab: Lab) -> None:
    async with lab.open() as host:
        agent = await lab.agent(host)
    run = run_of(agent.id, script({"text": "back again"}))
    async with lab.open(lab.dead) as host:
        for _ in range(2):
            error = await refused(host, run)
            assert (error.permanent, error.counted) == (False, True)
            run = again(run)
    async with lab.open() as host:
        assert await deliver(host, run) == "back again"
        assert len(await told_of(host, run)) == 1


@shows("SCHEDULE-ONCE")
async def test_a_run_that_waits_for_approval_is_known_as_taken(lab: Lab) -> None:
    tool = client_tool("risky", lambda _: "done", needs_approval=True)
    async with lab.open() as host:
        agent = await lab.agent(host)
        run = run_of(agent.id, script({"text": "May I?", "tool": "risky", "args": {"x": "1"}}))
        with anyio.fail_after(SECONDS):
            events = [event async for event in host.send(replace(prompt_of(run, now_us()), tools=[tool]))]
        assert events[-1] == Done(StopReason.REQUIRES_APPROVAL)
        assert await deliver(host, again(run)) == "May I?"
        later = await refused(host, run_of(agent.id, "hello", schedule_id=43))
        assert (later.permanent, later.counted, later.retry_after) == (False, False, 60.0)
        assert "approve or reject" in str(later)


@shows("SCHEDULE-DELIVERY")
async def test_an_agent_that_is_gone_is_not_looked_for_again(lab: Lab) -> None:
    async with lab.open() as host:
        agent = await lab.agent(host)
        await host.delete(agent.id)
        error = await refused(host, run_of(agent.id, "hello"))
    assert error.permanent


@shows("SCHEDULE-DELIVERY")
async def test_a_run_that_a_person_stops_is_not_begun_again(lab: Lab) -> None:
    async with lab.open() as host:
        agent = await lab.agent(host)
        asked, errors = len(lab.models.seen), list[DeliveryFailed]()

        async def run() -> None:
            errors.append(await refused(host, run_of(agent.id, script({"text": LONG, "chunk_delay": 0.02}))))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await until(lambda: len(lab.models.seen) > asked)
            assert await host.cancel(agent.id)
    assert [(error.permanent, str(error)) for error in errors] == [(True, "Somebody cancelled the run")]


@shows("SCHEDULE-ONCE")
@pytest.mark.parametrize("lab", BUILT_IN, indirect=True)
async def test_an_agent_that_was_cut_off_in_its_answer_is_asked_to_go_on(lab: Lab) -> None:
    async with lab.open() as host:
        agent = await lab.agent(host)
        run = run_of(agent.id, script({"text": LONG, "chunk_delay": 0.02}))
        with anyio.fail_after(SECONDS):
            async with aclosing(host.send(prompt_of(run, now_us()))) as events:
                async for event in events:
                    if isinstance(event, TextChunk):
                        break
        answer = await deliver(host, again(run))
        assert answer is not None
        assert "You were cut off here" in answer, "the scripted model repeats what it was told last"
        assert len(await told_of(host, run)) == 1
        whole = await deliver(host, again(again(run)))
        assert whole is not None
        assert whole.startswith("word")
        assert whole.endswith(f"word\n\n{answer}")


@shows("SCHEDULE-ONCE")
@pytest.mark.parametrize("lab", BUILT_IN, indirect=True)
async def test_a_run_without_an_answer_is_told_again_when_the_talk_has_moved_on(lab: Lab) -> None:
    async with lab.open() as host:
        agent = await lab.agent(host)
    run = run_of(agent.id, script({"text": "at last"}))
    async with lab.open(lab.dead) as host:
        await refused(host, run)
    async with lab.open() as host:
        await take(host, agent.id, script({"text": "good morning"}))
        assert await deliver(host, again(run)) == "at last"
        assert len(await told_of(host, run)) == 2
        assert await deliver(host, again(again(run))) == "at last"


@pytest.mark.parametrize("lab", BUILT_IN, indirect=True)
async def test_a_turn_that_another_process_took_over_is_told_as_interrupted(lab: Lab) -> None:
    errors: list[DeliveryFailed] = []
    async with open_app(lab.settings) as app:
        agent = await lab.agent(app.host)
        asked = len(lab.models.seen)

        async def run() -> None:
            errors.append(await refused(app.host, run_of(agent.id, script({"text": LONG, "chunk_delay": 0.2}))))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await until(lambda: len(lab.models.seen) > asked)
            async with app.database.transaction() as connection:
                await connection.execute(update(turns).values(owner="another:1:owner"))
    assert [(error.permanent, error.counted, str(error)) for error in errors] == [
        (False, False, "The run was interrupted")
    ]


# A server is killed during a scheduled turn: the next server continues it, and no message is sent twice


SLOWLY = script({"text": "word " * 20, "chunk_delay": 0.05})


@shows("SCHEDULE-ONCE")
@pytest.mark.parametrize("lab", BUILT_IN, indirect=True)
async def test_a_turn_that_died_with_its_server_is_finished_by_the_next_under_the_same_id(
    lab: Lab, tmp_path: Path
) -> None:
    reach = reached(lab)
    async with open_app(lab.settings) as app:
        agent = await lab.agent(app.host)
        with open_desk(tmp_path / "data", **reach) as desk:
            added = await app.schedules.add(OPERATOR, NewSchedule(f"Report. {SLOWLY}", agent.id, time="in 2 hours"))
            run = await app.schedules.run_now(OPERATOR, added.schedule.id)
            await killed_at_work(desk, lab)
        with open_desk(tmp_path / "data", **reach):
            past = await delivered(app, added.schedule.id)
        assert past.id == run
        assert past.answer == ("word " * 20).strip()
        assert past.earlier, "the attempt that was lost is told"
        told = of_kind([one.event for one in await app.host.history(agent.id)], UserText)
        assert [run in one.text for one in told] == [True]


async def killed_at_work(desk: Desk, lab: Lab) -> None:
    """Kill a server as soon as its model gets a request."""
    asked = len(lab.models.seen)
    await until(lambda: len(lab.models.seen) > asked, SECONDS)
    await anyio.to_thread.run_sync(desk.kill)


async def delivered(app: App, schedule_id: int) -> RunRecord:
    with anyio.fail_after(SECONDS):
        while True:
            [past] = (await app.schedules.queries.history(OPERATOR, ListRuns(schedule_id=schedule_id))).runs
            if past.standing is RunStatus.DELIVERED:
                return past
            await anyio.sleep(0.05)


def reached(lab: Lab) -> dict[str, str]:
    """The settings of a server on the same data."""
    shared = lab.settings.database_url
    database = {} if shared is None else {"FRONTDESK_DATABASE_URL": shared.get_secret_value()}
    return database | {
        "FRONTDESK_MODEL": "openai:fake-1",
        "OPENAI_BASE_URL": lab.models.openai_url,
        "OPENAI_API_KEY": KEY,
    }
