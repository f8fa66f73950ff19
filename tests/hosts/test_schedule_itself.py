"""A real Letta agent schedules itself through MCP, and a worker wakes it: the whole way, with real processes."""

import json
from collections.abc import AsyncGenerator, Iterator, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
from letta_client import AsyncLetta

from frontdesk.agents.host import NewAgent
from frontdesk.app import App, open_app
from frontdesk.llm.events import TextChunk, ToolReturn, UserText
from frontdesk.schedules.delivery import compose_prompt
from frontdesk.schedules.model import RunRecord, RunStatus, ScheduleState, now_us
from frontdesk.schedules.requests import ListRuns
from tests.conftest import settings_with
from tests.hosts.conftest import PASSWORD
from tests.hosts.lab import SECONDS, of_kind, opened, script, take
from tests.hosts.test_schedule_delivery import again, deliver, run_of, told_of
from tests.requirements import shows
from tests.support.desk import Desk, frontdesk, open_desk
from tests.support.letta import LettaServer, forget_servers
from tests.support.models import ModelServer
from tests.support.scheduling import OPERATOR
from tests.support.waiting import until

pytestmark = pytest.mark.anyio
MODEL = "openai-proxy/fake-1"
PING = f"Ping me in two minutes {script({'text': 'pong, as you asked'})}"


@pytest.fixture
def reach(letta: LettaServer) -> dict[str, str]:
    return {"LETTA_BASE_URL": letta.url, "LETTA_SERVER_PASSWORD": PASSWORD}


@pytest.fixture
def desk(tmp_path: Path, reach: dict[str, str]) -> Iterator[Desk]:
    """A server as anybody starts it, which delivers what is due; only that here two minutes are two seconds."""
    with open_desk(tmp_path / "data", FRONTDESK_SCHEDULE_SHORTEST="1", **reach) as running:
        yield running


@pytest.fixture
async def app(desk: Desk, reach: dict[str, str]) -> AsyncGenerator[App]:
    """Another look at the same data; nothing is delivered from here."""
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
    """The known mishap: a prompt says "each Monday …", and its every run makes a schedule of its own."""
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
    """What a worker asked for that is no more: nobody hears the answer."""
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
