"""Tools given to the real Letta server as Python source, and agents listed from it."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from frontdesk.agents.host import NewAgent
from frontdesk.app import App, open_app
from frontdesk.errors import Denied, FrontdeskError, Invalid, Unavailable
from frontdesk.identity.model import AgentIdSource, Caller
from frontdesk.schedules.requests import NewSchedule
from tests.conftest import settings_with
from tests.hosts.conftest import PASSWORD
from tests.support.letta import LettaServer
from tests.support.scheduling import OPERATOR

pytestmark = pytest.mark.anyio
SOURCE = '''
def add_up_for_frontdesk(first: int, second: int) -> int:
    """Add two numbers.

    Args:
        first (int): One of them.
        second (int): The other.
    """
    return first + second
'''


@pytest.fixture
async def app(letta: LettaServer, tmp_path: Path) -> AsyncGenerator[App]:
    settings = settings_with(FRONTDESK_DATA=tmp_path / "data", LETTA_BASE_URL=letta.url, LETTA_SERVER_PASSWORD=PASSWORD)
    async with open_app(settings) as opened:
        yield opened


async def test_a_tool_is_uploaded_and_replaced(app: App) -> None:
    made = await app.schedules.host.upload_tool(OPERATOR, SOURCE, "sum", "Adds up.")
    assert made.tool_id.startswith("tool-")
    assert made.name == "add_up_for_frontdesk"
    assert "add_up_for_frontdesk" in {tool.name for tool in await app.host.host_tools()}
    again = await app.schedules.host.upload_tool(OPERATOR, SOURCE.replace("first + second", "second + first"))
    assert again == made


async def test_what_is_no_function_is_refused(app: App) -> None:
    for source in ("", "   ", "x" * 1_000_001):
        with pytest.raises(Invalid, match="one top-level Python function"):
            await app.schedules.host.upload_tool(OPERATOR, source)
    with pytest.raises(FrontdeskError):
        await app.schedules.host.upload_tool(OPERATOR, "this is no python(")


async def test_callers_from_elsewhere_upload_nothing_without_being_granted_it(app: App) -> None:
    with pytest.raises(Denied, match="schedules:admin"):
        await app.schedules.host.upload_tool(
            Caller("1", "agent-1", verified=True, source=AgentIdSource.CREDENTIAL), SOURCE
        )


async def test_agents_are_listed_to_those_who_could_name_them(app: App) -> None:
    ada, bob = [(await app.host.create(NewAgent(name, model="openai-proxy/fake-1"))).id for name in ("Ada", "Bob")]
    assert {ada, bob} <= {agent.id for agent in await app.schedules.host.agents(OPERATOR)}
    narrow = Caller("1", ada, verified=True, source=AgentIdSource.CREDENTIAL)
    assert [agent.id for agent in await app.schedules.host.agents(narrow)] == [ada]
    assert list(await app.schedules.host.agents(Caller("1", user_id="ann", verified=True))) == []


async def test_a_persons_prompt_gets_a_conversation_and_an_agents_own_are_known(app: App) -> None:
    ada = (await app.host.create(NewAgent("Ada", model="openai-proxy/fake-1"))).id
    ann = Caller("1", ada, "ann", AgentIdSource.CREDENTIAL, verified=True)
    hers = (await app.schedules.add(ann, NewSchedule("Hi", every="5m"))).schedule.what.conversation_id
    assert hers
    itself = Caller("1", ada, source=AgentIdSource.HEADER, local=True)
    for conversation in (hers, "default"):
        added = await app.schedules.add(itself, NewSchedule("Hi", every="5m", conversation_id=conversation))
        assert added.schedule.what.conversation_id == conversation


async def test_the_host_is_tested(app: App, letta: LettaServer, tmp_path: Path) -> None:
    told = await app.schedules.host.test(OPERATOR)
    assert (told.message, told.details) == ("Connected", {"host": "letta", "base_url": letta.url})
    away = settings_with(FRONTDESK_DATA=tmp_path / "away", LETTA_BASE_URL="http://127.0.0.1:9")
    async with open_app(away) as other:
        with pytest.raises(Unavailable, match="does not answer"):
            await other.schedules.host.test(OPERATOR)
        with pytest.raises(Unavailable, match="Agent validation failed: The Letta server"):
            await other.schedules.add(OPERATOR, NewSchedule("Hi", "agent-1", every="5m"))
        with pytest.raises(Invalid, match="Missing LETTA_API_KEY or LETTA_SERVER_PASSWORD"):
            await other.schedules.host.upload_tool(OPERATOR, SOURCE)
