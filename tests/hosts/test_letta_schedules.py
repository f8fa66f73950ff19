"""Tests scheduled prompts and Letta agents: a server that is busy or fails, and an agent that schedules itself."""

import json
from collections.abc import AsyncGenerator, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from letta_client import AsyncLetta

from frontdesk.agents.host import AgentHost, NewAgent
from frontdesk.app import App, open_app
from frontdesk.llm.events import TextChunk, ToolReturn, UserText
from frontdesk.schedules.delivery import compose_prompt
from frontdesk.schedules.model import DeliveryFailed, RunRecord, RunStatus, ScheduleState, now_us
from frontdesk.schedules.requests import ListRuns
from tests.conftest import settings_with
from tests.hosts.conftest import PASSWORD
from tests.hosts.lab import SECONDS, of_kind, opened, script, take
from tests.hosts.test_schedule_delivery import again, deliver, refused, run_of, told_of
from tests.requirements import shows
from tests.support.desk import Desk, frontdesk, open_desk
from tests.support.letta import AGENT, RUN, LettaServer, Mood, MoodyLetta, a_run, forget_servers, open_moody_letta
from tests.support.models.application import ModelServer
from tests.support.scheduling import OPERATOR
from tests.support.waiting import until

# Scheduled prompts to a Letta server that is busy, slow, failing or cut off: reports, retries, abandoned runs


@pytest.fixture
def moody_letta() -> Iterator[MoodyLetta]:
    with open_moody_letta() as server:
        yield server


@pytest.fixture
async def host(tmp_path: Path, moody_letta: MoodyLetta) -> AsyncGenerator[AgentHost]:
    async with opened(settings_with(FRONTDESK_DATA=tmp_path / "data", LETTA_BASE_URL=moody_letta.url)) as opened_host:
        yield opened_host


@shows("SCHEDULE-DELIVERY")
async def test_letta_is_told_whose_run_it_is_and_under_which_id(host: AgentHost, moody_letta: MoodyLetta) -> None:
    run = run_of(AGENT, "Report.")
    assert await deliver(host, run) == "All is well."
    [asked], [headers] = moody_letta.asked, moody_letta.headers
    assert asked["messages"][0]["otid"] == run.id
    assert asked["messages"][0]["content"].endswith("\n\nReport.")
    assert (headers["x-agent-id"], headers["x-request-id"]) == (AGENT, run.id)


@shows("SCHEDULE-DELIVERY")
async def test_a_busy_agent_is_waited_for_and_what_it_does_is_left_alone(
    host: AgentHost, moody_letta: MoodyLetta
) -> None:
    moody_letta.moods, moody_letta.runs = [(409, {"detail": "The conversation is busy"}, {})], [[], [a_run(9)]]
    error = await refused(host, run_of(AGENT, "Report."))
    assert (error.permanent, error.counted, error.retry_after) == (False, False, 2.0)
    assert moody_letta.cancelled == [], "what runs there is somebody else's"


async def test_an_agent_that_came_to_wait_for_approval_meanwhile_is_asked_again_later(
    host: AgentHost, moody_letta: MoodyLetta
) -> None:
    moody_letta.moods = [(409, {"detail": {"code": "PENDING_APPROVAL", "message": "waits"}}, {})]
    moody_letta.runs = [[], [a_run(9)]]
    error = await refused(host, run_of(AGENT, "Report."))
    assert (error.permanent, error.counted) == (False, False)
    assert moody_letta.cancelled == []


@shows("SCHEDULE-DELIVERY")
@pytest.mark.parametrize("status", [429, 503])
async def test_a_wait_that_letta_asks_for_is_kept(host: AgentHost, moody_letta: MoodyLetta, status: int) -> None:
    moody_letta.moods = [(status, {"detail": "Slow down"}, {"Retry-After": "7"})]
    error = await refused(host, run_of(AGENT, "Report."))
    assert (error.permanent, error.counted, error.retry_after) == (False, True, 7.0)


@shows("SCHEDULE-DELIVERY")
async def test_a_failing_server_counts_and_is_tried_again(host: AgentHost, moody_letta: MoodyLetta) -> None:
    moody_letta.moods = [(500, {"detail": "A database error occurred."}, {})]
    run = run_of(AGENT, "Report.")
    error = await refused(host, run)
    assert (error.permanent, error.counted, error.in_doubt) == (False, True, True)
    assert await deliver(host, again(run)) == "All is well."
    assert [asked["messages"][0]["otid"] for asked in moody_letta.asked] == [run.id, run.id]


async def test_what_letta_will_never_take_is_not_sent_again(host: AgentHost, moody_letta: MoodyLetta) -> None:
    moody_letta.moods = [(400, {"detail": "The context window is exceeded"}, {})]
    assert (await refused(host, run_of(AGENT, "Report."))).permanent


@shows("SCHEDULE-ONCE")
@pytest.mark.parametrize("mood", [Mood.CUT, Mood.DROPS])
async def test_an_answer_that_was_cut_off_is_looked_up_and_nothing_is_said_twice(
    host: AgentHost, moody_letta: MoodyLetta, mood: Mood
) -> None:
    moody_letta.moods = [mood]
    run = run_of(AGENT, "Report.")
    error = await refused(host, run)
    assert (error.permanent, error.counted, error.in_doubt) == (False, True, True)
    assert moody_letta.cancelled == [{"run_ids": [RUN]}], "the rest of it would be heard by nobody"
    assert await deliver(host, again(run)) == "All is well."
    assert len(moody_letta.asked) == 1


@shows("SCHEDULE-DELIVERY")
async def test_a_server_that_hangs_is_left_when_the_worker_stops_and_its_run_is_stopped(
    host: AgentHost, moody_letta: MoodyLetta
) -> None:
    moody_letta.moods = [Mood.SILENT]
    run = run_of(AGENT, "Report.")
    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(deliver, host, run)
            await until(lambda: len(moody_letta.asked) == 1)
            tasks.cancel_scope.cancel()
    assert moody_letta.cancelled, "the turn is left tidy"
    assert await deliver(host, again(run)) == "All is well."


@shows("SCHEDULE-DELIVERY")
async def test_a_run_comes_after_what_was_begun_elsewhere(host: AgentHost, moody_letta: MoodyLetta) -> None:
    moody_letta.runs = [[a_run(1)], [a_run(1)], [a_run(1), a_run(2)], [a_run(2)]]
    assert await deliver(host, run_of(AGENT, "Report.")) == "All is well."
    assert moody_letta.looks == 4, "the second began while we waited, and might be followed by a third"


async def test_a_run_that_a_dead_server_left_behind_is_not_waited_for(host: AgentHost, moody_letta: MoodyLetta) -> None:
    moody_letta.runs = [[a_run(1, datetime.now(UTC) - timedelta(hours=1))]]
    assert await deliver(host, run_of(AGENT, "Report.")) == "All is well."
    assert moody_letta.looks == 1


@shows("SCHEDULE-ONCE")
async def test_a_run_in_doubt_is_looked_for_once_it_has_ended(host: AgentHost, moody_letta: MoodyLetta) -> None:
    run = run_of(AGENT, "Report.")
    await deliver(host, run)
    # After a crash: a request that has only just arrived, and so is not among the runs yet.
    said, moody_letta.messages = moody_letta.messages, []
    moody_letta.runs = [[], [], [a_run(1)], [a_run(1)], []]
    waits = again(run)
    outcome: list[str | DeliveryFailed | None] = []

    async def wait() -> None:
        outcome.append(await deliver(host, waits))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await until(lambda: moody_letta.looks >= 4)
        moody_letta.messages = said
    assert outcome == ["All is well."]
    assert len(moody_letta.asked) == 1


async def test_nobody_is_there_at_all(tmp_path: Path) -> None:
    nobody = settings_with(FRONTDESK_DATA=tmp_path / "data", LETTA_BASE_URL="http://127.0.0.1:9")
    async with opened(nobody) as host:
        error = await refused(host, replace(run_of(AGENT, "Report."), in_doubt=True))
    assert (error.permanent, error.counted, error.in_doubt) == (False, True, True)


# A real Letta agent schedules itself through MCP, and a worker wakes it, with real processes


MODEL = "openai-proxy/fake-1"
PING = f"Ping me in two minutes {script({'text': 'pong, as you asked'})}"


@pytest.fixture
def reach(letta: LettaServer) -> dict[str, str]:
    return {"LETTA_BASE_URL": letta.url, "LETTA_SERVER_PASSWORD": PASSWORD}


@pytest.fixture
def desk(tmp_path: Path, reach: dict[str, str]) -> Iterator[Desk]:
    """A server in its usual setup, which delivers due prompts; but two minutes are two seconds here."""
    with open_desk(tmp_path / "data", FRONTDESK_SCHEDULE_SHORTEST="1", **reach) as running:
        yield running


@pytest.fixture
async def app(desk: Desk, reach: dict[str, str]) -> AsyncGenerator[App]:
    """Another view of the same data; this one delivers nothing."""
    async with (
        open_app(settings_with(FRONTDESK_DATA=desk.data, **reach)) as opened_app,
        AsyncLetta(base_url=reach["LETTA_BASE_URL"], api_key=PASSWORD) as client,
    ):
        yield opened_app
        await forget_servers(client)


@shows("SCHEDULE-LETTA")
async def test_a_letta_agent_schedules_itself_through_mcp_is_woken_and_answers(
    app: App, desk: Desk, reach: dict[str, str]
) -> None:
    agent = await app.host.create(NewAgent("Ann", model=MODEL))
    connected = frontdesk("letta", "connect", agent.id, "--url", desk.mcp, data=desk.data, **reach)
    assert connected.returncode == 0, connected.stderr
    asked = {"prompt": PING, "every": "2s", "max_repetitions": 1}
    ask = script({"tool": "promptyoself_schedule_every", "args": asked}, {"text": "I will."})

    made = returned(await take(app.host, agent.id, ask))
    assert made["status"] == "success", made
    past = await delivered(app, made["id"])

    assert past.agent_id == agent.id
    assert (past.attempt, past.answer, past.earlier) == (1, "pong, as you asked", ())
    assert (await app.schedules.queries.get(OPERATOR, made["id"])).state is ScheduleState.ENDED
    events = [one.event for one in await app.host.history(agent.id)]
    assert [event.text for event in of_kind(events, TextChunk)][-2:] == ["I will.", "pong, as you asked"]
    woken = of_kind(events, UserText)[-1].text
    assert woken.startswith(f"[This is a scheduled run of schedule {made['id']}, number 1,")
    assert past.id in woken
    assert woken.endswith(PING)


@shows("SCHEDULE-LETTA")
async def test_a_run_cannot_multiply_itself(app: App, desk: Desk, reach: dict[str, str]) -> None:
    """The known mistake: a prompt says "each Monday …", and each run of it makes another schedule."""
    agent = await app.host.create(NewAgent("Ben", model=MODEL))
    connected = frontdesk("letta", "connect", agent.id, "--url", desk.mcp, data=desk.data, **reach)
    assert connected.returncode == 0, connected.stderr
    more = {"prompt": "Each second, and again", "every": "30m"}
    inner = script({"tool": "promptyoself_schedule_every", "args": more}, {"text": "refused"})
    asked = {"prompt": f"Each second, do it. {inner}", "every": "2s", "max_repetitions": 2}

    made = returned(await take(app.host, agent.id, script({"tool": "promptyoself_schedule_every", "args": asked})))
    past = await delivered(app, made["id"])

    assert past.answer == "refused"
    events = [one.event for one in await app.host.history(agent.id)]
    assert "repeats by itself" in of_kind(events, ToolReturn)[-1].text
    assert [one.id for one in (await app.schedules.queries.list(OPERATOR)).schedules if one.id != made["id"]] == []


@shows("SCHEDULE-ONCE")
async def test_a_run_that_a_dead_worker_left_at_work_is_waited_for_and_not_told_again(
    tmp_path: Path, letta: LettaServer, letta_models: ModelServer, reach: dict[str, str]
) -> None:
    async with (
        opened(settings_with(FRONTDESK_DATA=tmp_path / "data", **reach)) as host,
        AsyncLetta(base_url=letta.url, api_key=PASSWORD, timeout=SECONDS) as client,
        anyio.create_task_group() as tasks,
    ):
        agent = await host.create(NewAgent("Cleo", model=MODEL))
        run = run_of(agent.id, script({"text": "late, but here", "delay": 3.0}))
        before = len(letta_models.seen)
        tasks.start_soon(left_at_work, client, agent.id, compose_prompt(run, now_us()), run.id)
        await until(lambda: len(letta_models.seen) > before)
        assert await deliver(host, again(run)) == "late, but here"
        assert len(await told_of(host, run)) == 1


async def left_at_work(client: AsyncLetta, agent_id: str, text: str, otid: str) -> None:
    """A request from a worker that has ended: nobody receives the answer."""
    await client.agents.messages.create(agent_id, messages=[{"role": "user", "content": text, "otid": otid}])


async def delivered(app: App, schedule_id: int) -> RunRecord:
    """The first run of a schedule, once it has been delivered."""
    with anyio.fail_after(SECONDS):
        while True:
            found = (await app.schedules.queries.history(OPERATOR, ListRuns(schedule_id=schedule_id))).runs
            if found and found[-1].standing is RunStatus.DELIVERED:
                return found[-1]
            await anyio.sleep(0.05)


def returned(events: Any) -> Mapping[str, Any]:
    return json.loads(of_kind(events, ToolReturn)[0].text)
