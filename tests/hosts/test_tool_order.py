"""In which order the tools of one model turn run: as they were called, those that only read beside each other."""

import random
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest

from frontdesk.agents.host import NewAgent
from frontdesk.agents.letta.turn import run_client_tools
from frontdesk.app import App, open_app
from frontdesk.identity.model import AgentIdSource, Caller
from frontdesk.llm.events import ApprovalRequest, Event, StopReason, ToolCall, ToolReturn, ToolStatus
from frontdesk.llm.tools import Tool, ToolOutcome
from frontdesk.tools.servers import ServerSpec
from tests.conftest import settings_with
from tests.hosts.conftest import BUILT_IN
from tests.hosts.lab import of_kind, script, take
from tests.requirements import shows
from tests.support.postgres import Postgres
from tests.support.tool_servers import open_tool_server, tool

pytestmark = pytest.mark.anyio
ANN = Caller("req-test", user_id="ann", source=AgentIdSource.CREDENTIAL, verified=True)
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"x": {"type": "string"}}}
BATCHES = 25


@pytest.fixture(scope="module", params=BUILT_IN)
async def app(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[App]:
    """Agents of our own that think offline, on either database."""
    data: dict[str, Any] = {"FRONTDESK_DATA": tmp_path_factory.mktemp("order"), "FRONTDESK_EMBEDDINGS": "off"}
    if request.param == "postgresql":
        server: Postgres = request.getfixturevalue("postgres")
        data["FRONTDESK_DATABASE_URL"] = server.create_database()
    async with open_app(settings_with(**data)) as opened:
        yield opened


@dataclass
class Bench:
    """Tools that note when they begin and end. Those that read wait until as many as can run beside them do."""

    began: list[str] = field(default_factory=list[str])
    log: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    meet: dict[str, tuple[int, anyio.Event]] = field(default_factory=dict[str, tuple[int, anyio.Event]])

    def tools(self) -> Sequence[Tool]:
        read = Tool("read", "Reads.", SCHEMA, self._read, reads_only=True)
        return [read, Tool("change", "Changes.", SCHEMA, self._change)]

    def plan(self, kinds: Sequence[str]) -> list[dict[str, Any]]:
        """Calls of these kinds; each stretch of reading has one meeting."""
        calls: list[dict[str, Any]] = []
        group: list[str] = []
        for number, kind in enumerate([*kinds, ""]):
            name = f"{kind} {number}"
            if kind == "read":
                group.append(name)
            else:
                meeting = (len(group), anyio.Event())
                self.meet |= dict.fromkeys(group, meeting)
                group = []
            if kind:
                calls.append({"name": kind, "args": {"x": name}})
        return calls

    async def _read(self, given: Any) -> ToolOutcome:
        name = given["x"]
        self.log.append(("begins", name))
        self.began.append(name)
        count, event = self.meet[name]
        if sum(self.meet[one][1] is event for one in self.began if one in self.meet) == count:
            event.set()
        with anyio.fail_after(20):
            await event.wait()
        self.log.append(("ends", name))
        return ToolOutcome(name)

    async def _change(self, given: Any) -> ToolOutcome:
        self.log.append(("begins", given["x"]))
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        self.log.append(("ends", given["x"]))
        return ToolOutcome(given["x"])

    def check(self, kinds: Sequence[str]) -> None:
        """Whatever changes something stands between what was called before and after it."""
        at = {(what, name): place for place, (what, name) in enumerate(self.log)}
        names = [f"{kind} {number}" for number, kind in enumerate(kinds)]
        assert len(self.log) == 2 * len(names)
        for number, name in enumerate(names):
            for later in names[number + 1 :]:
                if "change" in name + later:
                    assert at["ends", name] < at["begins", later], (kinds, self.log)


@shows("KEPT-09")
async def test_a_search_after_a_create_in_one_batch_finds_what_was_created(app: App) -> None:
    agent = (await app.host.create(NewAgent("Ada"))).id
    for number in range(5):
        calls = [
            {"name": "search_tasks", "args": {"keyword": f"errand{number}"}},
            {"name": "create_task", "args": {"title": f"errand{number}"}},
            {"name": "search_tasks", "args": {"keyword": f"errand{number}"}},
        ]
        events = await take(app.host, agent, script({"tools": calls}, {"text": "done"}), caller=ANN)
        returns = _returns(events)
        assert [back.status for back in returns] == [ToolStatus.OK] * 3
        assert [f"errand{number}" in back.text for back in returns] == [False, True, True]


@shows("KEPT-09")
async def test_calls_run_in_the_order_given_and_reads_beside_each_other(app: App) -> None:
    agent, chance = (await app.host.create(NewAgent("Ada"))).id, random.Random(9)
    for _ in range(BATCHES):
        kinds = chance.choices(["read", "change"], [2, 1], k=chance.randint(1, 10))
        bench = Bench()
        said = script({"tools": bench.plan(kinds)}, {"text": "done"})
        events = await take(app.host, agent, said, tools=bench.tools())
        bench.check(kinds)
        assert [call.arguments["x"] for call in of_kind(events, ToolCall)] == _names(kinds)
        assert {back.text for back in of_kind(events, ToolReturn)} == set(_names(kinds))


@shows("KEPT-09")
async def test_the_caller_s_tools_of_a_letta_agent_run_in_the_order_given() -> None:
    chance = random.Random(90)
    for _ in range(BATCHES):
        kinds = chance.choices(["read", "change"], [2, 1], k=chance.randint(1, 10))
        bench, heard = Bench(), list[Event]()
        tools = {one.name: one for one in bench.tools()}
        planned = [ApprovalRequest(f"call-{at}", one["name"], one["args"]) for at, one in enumerate(bench.plan(kinds))]

        async def emit(event: Event, heard: list[Event] = heard) -> None:
            heard.append(event)

        answers = await run_client_tools(planned, tools, emit)
        bench.check(kinds)
        assert [one["tool_return"] for one in answers] == _names(kinds)
        assert [call.arguments["x"] for call in of_kind(heard, ToolCall)] == _names(kinds)


@shows("KEPT-09")
async def test_a_server_s_word_that_a_tool_reads_only_counts_for_the_order(app: App) -> None:
    looks = {**tool("look"), "annotations": {"readOnlyHint": True}}
    listed = [looks, tool("burn"), {**tool("lie"), "annotations": {"readOnlyHint": "yes"}}]
    with open_tool_server("shed", listed) as server:
        await app.tools.catalogue.add(ServerSpec("shed", url=server.url))
        known = [await app.tools.dispatcher.reads_only(f"shed::{name}") for name in ("look", "burn", "lie", "gone")]
        assert known == [True, False, False, False]
        await app.tools.catalogue.remove("shed")


@shows("KEPT-09")
async def test_a_turn_that_is_left_runs_nothing_more_and_the_next_is_told(app: App) -> None:
    ran: list[str] = []

    async def hang(given: Any) -> ToolOutcome:
        ran.append(given["x"])
        reached.set()
        await anyio.sleep_forever()
        raise AssertionError

    reached = anyio.Event()
    tools = [Tool("hang", "Hangs.", SCHEMA, hang)]
    agent = (await app.host.create(NewAgent("Ada"))).id
    calls = [{"name": "hang", "args": {"x": str(number)}} for number in range(3)]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: take(app.host, agent, script({"tools": calls}), tools=tools))
        await reached.wait()
        assert await app.host.cancel(agent)
    assert ran == ["0"]
    told = [one.event for one in await app.host.history(agent)]
    assert len(of_kind(told, ToolReturn)) == 3, "each call has an end"
    events = await take(app.host, agent, script({"text": "on"}))
    assert getattr(events[-1], "stop", None) is StopReason.END_TURN


def _names(kinds: Sequence[str]) -> list[str]:
    return [f"{kind} {number}" for number, kind in enumerate(kinds)]


def _returns(events: Sequence[Event]) -> list[ToolReturn]:
    """In the order of their calls."""
    back = {one.call_id: one for one in of_kind(events, ToolReturn)}
    return [back[call.call_id] for call in of_kind(events, ToolCall)]
