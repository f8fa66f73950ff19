"""Many `find_tools` at once for one agent, at two replicas."""

from collections import Counter
from collections.abc import Iterator, Sequence

import anyio
import pytest

from frontdesk.agents.host import HeldTool, NewAgent
from frontdesk.app import App, open_app
from frontdesk.interfaces.http.application import build_application
from frontdesk.settings import Settings
from frontdesk.tools.servers import ServerSpec
from tests.requirements import shows
from tests.support.asking import ToolAnswered, ask
from tests.support.tool_servers import ToolServer, open_tool_server, tool

pytestmark = pytest.mark.anyio
CALLS = 200
SECONDS = 240
TOPICS = [f"topic{letter}" for letter in "abcdefghij"]
MAX_MCP, MAX_TOTAL, MIN_MCP = 12, 14, 4


@pytest.fixture(scope="module")
def crowded() -> Iterator[ToolServer]:
    """Ten topics of five tools: far more than an agent may hold."""
    listed = [tool(f"{topic}_{number}", f"Works on {topic}.") for topic in TOPICS for number in range(5)]
    with open_tool_server("crowd", listed) as server:
        yield server


def limited(settings: Settings) -> Settings:
    limits = {"max_mcp_tools": MAX_MCP, "max_total_tools": MAX_TOTAL, "min_mcp_tools": MIN_MCP}
    return settings.with_values(embeddings="off", never_detach_tools=("crowd__topica_0",), **limits)


async def many(replicas: Sequence[App], agent: str) -> list[ToolAnswered]:
    endpoints, answers = [build_application(app) for app in replicas], list[ToolAnswered]()

    async def one(number: int) -> None:
        query = {"query": TOPICS[number % len(TOPICS)], "limit": 5, "min_score": 1, "keep_tools": "topicb_0"}
        answers.append(await ask(endpoints[number % len(endpoints)], "find_tools", query, agent))

    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            for number in range(CALLS):
                tasks.start_soon(one, number)
    return answers


@shows("TOOLS-CROWD")
async def test_two_hundred_at_once_keep_every_limit_and_lose_nothing(settings: Settings, crowded: ToolServer) -> None:
    async with open_app(limited(settings)) as app, open_app(limited(settings)) as replica:
        await app.tools.catalogue.add(ServerSpec("crowd", url=crowded.url))
        await replica.tools.catalogue.load()
        agent = (await app.host.create(NewAgent("Ada"))).id
        for name in ("topica_0", "topicb_0"):
            await app.host.attach(agent, HeldTool(name, "", server="crowd", remote_name=name))
        answers = await many((app, replica), agent)
        held = [held.name for held in await app.host.tools(agent)]
        assert len(answers) == CALLS
        assert all(told.ok for told in answers)
        assert len(held) == len(set(held))
        assert MIN_MCP <= len(held) <= MAX_MCP
        assert {"crowd__topica_0", "crowd__topicb_0"} <= set(held), "what is protected, and what each call keeps"
        balance = Counter({"crowd__topica_0": 1, "crowd__topicb_0": 1})
        for told in answers:
            balance.update(one["name"] for one in told.structured["attached"])
            balance.subtract(one["name"] for one in told.structured["detached"])
            assert told.structured["failed"] == []
        assert {name for name, count in balance.items() if count} == set(held), "every change that was told was made"
        assert set(balance.values()) <= {0, 1}, "and nothing was attached twice"
