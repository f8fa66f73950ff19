"""A built-in agent that keeps the tasks and memories of the person it works for."""

import json
from collections.abc import AsyncGenerator
from typing import Any

import anyio
import pytest

from frontdesk.agents.host import NewAgent, Prompt
from frontdesk.app import App, open_app
from frontdesk.identity.model import Caller
from frontdesk.llm.events import ToolReturn, ToolStatus
from frontdesk.memory.model import PersonScope
from frontdesk.memory.operations.base import StatusSources
from frontdesk.memory.operations.builtin import BuiltinMemoryTools
from frontdesk.memory.tasks_rules import TaskFilter
from frontdesk.settings import Settings
from tests.requirements import shows

pytestmark = pytest.mark.anyio
SECONDS = 60
ANN = Caller("test", user_id="ann")


@pytest.fixture
async def installation(settings: Settings) -> AsyncGenerator[App]:
    async with open_app(settings) as app:
        yield app


async def told(installation: App, agent: str, caller: Caller, tool: str, **arguments: Any) -> ToolReturn:
    """What a tool says to the agent, when somebody has it call the tool."""
    script = f"@@{json.dumps([{'tool': tool, 'args': arguments}, {'text': 'done'}])}@@"
    with anyio.fail_after(SECONDS):
        prompt = Prompt(agent, caller, script)
        [said] = [event async for event in installation.host.send(prompt) if isinstance(event, ToolReturn)]
    return said


@shows("MEMORY-AGENT")
async def test_it_keeps_the_records_of_the_person_it_works_for_and_of_nobody_else(installation: App) -> None:
    agent = (await installation.host.create(NewAgent("Ada"))).id
    made = await told(installation, agent, ANN, "create_task", title="Book the train", due_date="2040-11-20")
    assert made.text.startswith("Created.\nBook the train (id ")
    assert "due Tue 2040-11-20 23:59 UTC" in made.text
    [task] = (await installation.memory.tasks.list(PersonScope("ann"), TaskFilter())).items
    assert task.title == "Book the train"
    await told(installation, agent, ANN, "add_memory", note="Ann sits by the window")
    [memory] = (await told(installation, agent, ANN, "search_memories")).text.splitlines()[1:2]
    assert "Ann sits by the window" in memory
    others = await told(installation, agent, Caller("test", user_id="bob"), "search_tasks")
    assert others.text.startswith("No task is like that.")
    stolen = await told(installation, agent, Caller("test", user_id="bob"), "get_task", id=task.id)
    assert (stolen.status, stolen.text) == (ToolStatus.ERROR, "Task not found")
    wrong = await told(installation, agent, ANN, "create_task", name="no such thing")
    assert (wrong.status, "title: Field required" in wrong.text) == (ToolStatus.ERROR, True)


@shows("MEMORY-AGENT")
async def test_it_has_the_tools_only_for_a_person_who_is_known(installation: App) -> None:
    own = BuiltinMemoryTools()
    assert own.for_caller(ANN, None) == (), "before the room stands"
    own.open(installation.memory, StatusSources(installation.check_parts, installation.journal))
    names = [tool.name for tool in own.for_caller(Caller("r", "agent-1", "ann"), None)]
    assert (len(set(names)), len(names)) == (36, 36)
    assert not {"set_access_token", "authenticate", "get_categories"} & set(names)
    assert own.for_caller(Caller("r", "agent-1"), None) == ()
    keyless = Caller("r", "agent-1", "local", credential_id="local")
    assert own.for_caller(keyless, None) == (), "whoever visits the chat without a key is nobody in particular"
    agent = (await installation.host.create(NewAgent("Ada"))).id
    said = await told(installation, agent, Caller("test"), "create_task", title="Whose?")
    assert said.status is ToolStatus.UNKNOWN
