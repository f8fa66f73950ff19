"""A built-in agent that plans for itself, with the tools that every one of them has."""

import json
from collections.abc import AsyncGenerator
from typing import Any

import anyio
import pytest

from frontdesk.agents.host import NewAgent, Prompt
from frontdesk.app import App, open_app, running
from frontdesk.identity.model import Caller
from frontdesk.llm.events import ToolReturn
from frontdesk.schedules.model import RunRecord, RunStatus
from frontdesk.schedules.requests import ListRuns
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.scheduling import OPERATOR
from tests.surfaces.schedule.conftest import SECONDS

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def installation(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[App]:
    data = tmp_path_factory.mktemp("own") / "data"
    async with open_app(settings_with(FRONTDESK_DATA=data, FRONTDESK_EMBEDDINGS="off")) as app, running(app):
        yield app


@pytest.fixture
async def agent(installation: App) -> str:
    return (await installation.host.create(NewAgent("Ada"))).id


async def told(installation: App, agent: str, tool: str, user: str | None = None, **arguments: Any) -> str:
    """What a tool says to the agent, when somebody has it call the tool."""
    script = f"@@{json.dumps([{'tool': tool, 'args': arguments}, {'text': 'done'}])}@@"
    prompt = Prompt(agent, Caller("test", user_id=user), script)
    with anyio.fail_after(SECONDS):
        said = [event async for event in installation.host.send(prompt) if isinstance(event, ToolReturn)]
    return said[0].text


async def delivered(installation: App, agent: str) -> RunRecord:
    with anyio.fail_after(SECONDS):
        while True:
            wanted = ListRuns(agent_id=agent, standing=RunStatus.DELIVERED)
            for past in (await installation.schedules.queries.history(OPERATOR, wanted)).runs:
                return past
            await anyio.lowlevel.checkpoint()


@shows("SCHEDULE-SELF")
async def test_it_schedules_itself_is_prompted_and_answers(installation: App, agent: str) -> None:
    said = await told(installation, agent, "schedule_prompt", prompt="Ping me in two minutes", when="in 1 second")
    assert said.startswith("Scheduled with number ")
    assert "once, UTC, at " in said
    past = await delivered(installation, agent)
    assert past.answer


async def test_it_lists_and_cancels_what_it_planned(installation: App, agent: str) -> None:
    assert await told(installation, agent, "list_schedules") == "Nothing is scheduled."
    said = await told(
        *(installation, agent, "schedule_prompt"),
        prompt="Daily report",
        when="every weekday at 9",
        zone="Europe/Berlin",
    )
    number = int(said.split()[3].rstrip(":"))
    listed = await told(installation, agent, "list_schedules")
    assert listed.startswith(f"{number}: cron 0 9 * * MON-FRI (every weekday at 09:00), Europe/Berlin; next at ")
    assert listed.endswith("active; Daily report")
    assert await told(installation, agent, "cancel_schedule", schedule_id=number) == f"Schedule {number} cancelled"
    again = await told(installation, agent, "cancel_schedule", schedule_id=number)
    assert again == f"Schedule {number} not found or already cancelled"


async def test_what_it_plans_for_one_person_is_not_there_for_another(installation: App, agent: str) -> None:
    said = await told(installation, agent, "schedule_prompt", "ann", prompt="Ask Ann", when="every day at 9")
    assert said.startswith("Scheduled")
    assert "Ask Ann" in await told(installation, agent, "list_schedules", "ann")
    assert await told(installation, agent, "list_schedules", "bob") == "Nothing is scheduled."


@shows("KEPT-01")
async def test_what_is_planned_for_nobody_is_not_there_in_a_persons_turn_nor_a_persons_in_nobodys(
    installation: App, agent: str
) -> None:
    plans: dict[str | None, str] = {None: "Feed the cat", "local": "Call the vet", "ann": "Ask Ann"}
    numbers: dict[str | None, str] = {}
    for person, prompt in plans.items():
        said = await told(installation, agent, "schedule_prompt", person, prompt=prompt, when="every day at 9")
        numbers[person] = said.split()[3].rstrip(":")
    # The person at this machine is nobody in a terminal and `local` in an editor.
    own: dict[str | None, set[str | None]] = {
        None: {None, "local"},
        "local": {None, "local"},
        "ann": {"ann"},
        "bob": set(),
    }
    for person, seen in own.items():
        listed = await told(installation, agent, "list_schedules", person)
        assert {one for one, prompt in plans.items() if prompt in listed} == seen
        for other in plans.keys() - seen:
            answer = await told(installation, agent, "cancel_schedule", person, schedule_id=numbers[other])
            assert answer == f"Schedule {numbers[other]} not found or already cancelled"


async def test_a_mistake_is_told_in_words_that_help(installation: App, agent: str) -> None:
    said = await told(installation, agent, "schedule_prompt", prompt="x", when="sooner or later")
    assert "is no rule that can be read" in said
    assert "prompt" in await told(installation, agent, "schedule_prompt", when="in 1 hour")
