"""Approvals on the built-in host: what is given up, what is lost, and what an endpoint's odd ids do."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from frontdesk.agents.host import Approval, NewAgent
from frontdesk.errors import Invalid
from frontdesk.llm.events import ApprovalRequest, Done, StopReason, ToolReturn, ToolStatus
from frontdesk.settings import Settings
from tests.conftest import settings_with
from tests.hosts.conftest import KEY
from tests.hosts.lab import client_tool, of_kind, opened, said, script, take
from tests.requirements import shows
from tests.support.models import ModelServer

pytestmark = pytest.mark.anyio


@pytest.fixture
def thinking(tmp_path: Path, models: ModelServer) -> Settings:
    return settings_with(
        FRONTDESK_DATA=tmp_path / "data",
        OPENAI_BASE_URL=models.openai_url,
        OPENAI_API_KEY=KEY,
        FRONTDESK_MODEL="openai:fake-1",
    )


@shows("HOST")
async def test_a_cancelled_approval_says_that_nothing_ran(thinking: Settings) -> None:
    tools = [client_tool("risky", lambda _: "done", needs_approval=True), client_tool("free", lambda _: "done")]
    calls: list[Mapping[str, Any]] = [{"name": name, "args": {}} for name in ("risky", "free")]
    async with opened(thinking) as host:
        agent = (await host.create(NewAgent("Ada"))).id
        await take(host, agent, script({"tools": calls}), tools=tools)
        assert await host.cancel(agent)
        assert not await host.pending(agent)
        told = [one.event for one in await host.history(agent)]
        ended = of_kind(told, ToolReturn)
        assert [back.status for back in ended] == [ToolStatus.DENIED] * 2, (
            "what was held back with it did not run either"
        )
        assert all("did not run" in back.text for back in ended)
        assert told[-1] == Done(StopReason.CANCELLED)
        assert said(await take(host, agent, script({"text": "on"}))) == "on"


@shows("HOST")
async def test_what_comes_after_a_call_that_needs_approval_runs_after_it(thinking: Settings) -> None:
    ran: list[str] = []

    def note(answer: str) -> Callable[[dict[str, str]], str]:
        def run(given: dict[str, str]) -> str:
            ran.append(given["x"])
            return answer

        return run

    tools = [
        client_tool("free", note("free went")),
        client_tool("risky", note("risky went"), needs_approval=True),
    ]
    named = (("free", "0"), ("risky", "1"), ("free", "2"), ("risky", "3"), ("free", "4"))
    calls = [{"name": name, "args": {"x": x}} for name, x in named]
    async with opened(thinking) as host:
        agent = (await host.create(NewAgent("Ada"))).id
        events = await take(host, agent, script({"tools": calls}, {"text": "all done"}), tools=tools)
        assert ran == ["0"]
        told = [one.event for one in await host.history(agent)]
        assert [back.status for back in of_kind(told, ToolReturn)] == [ToolStatus.OK], "nothing else came to an end"
        first, second = of_kind(events, ApprovalRequest)
        with pytest.raises(Invalid, match="each of"):
            await take(host, agent, approvals=[Approval(first.call_id, approve=True)], tools=tools)
        words = [Approval(first.call_id, approve=True), Approval(second.call_id, approve=False, reason="no")]
        events = await take(host, agent, approvals=words, tools=tools)
        assert ran == ["0", "1", "2", "4"]
        ended = [back.status for back in of_kind(events, ToolReturn)]
        assert ended == [ToolStatus.DENIED, ToolStatus.OK, ToolStatus.OK, ToolStatus.OK]
        assert said(events) == "all done"
        assert events[-1] == Done(StopReason.END_TURN)


@shows("HOST")
async def test_an_approval_after_an_interrupted_tool_sends_the_model_a_sound_history(
    thinking: Settings, models: ModelServer
) -> None:
    risky = client_tool("risky", lambda _: "went", needs_approval=True)
    async with opened(thinking) as host:
        agent = (await host.create(NewAgent("Ada"))).id
        await take(host, agent, script({"tool": "risky", "args": {}}), tools=[risky])
        await host.cancel(agent)
        events = await take(host, agent, script({"tool": "risky", "args": {}}, {"text": "ok"}), tools=[risky])
        word = Approval(of_kind(events, ApprovalRequest)[0].call_id, approve=True)
        events = await take(host, agent, approvals=[word], tools=[risky])
        assert said(events) == "ok"
    messages = models.seen[-1].body["messages"]
    asked = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
    answered = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    assert asked == answered


@shows("HOST")
async def test_an_approved_call_whose_tool_is_gone_is_told_to_the_model(thinking: Settings) -> None:
    tool = client_tool("risky", lambda _: "went", needs_approval=True)
    async with opened(thinking) as host:
        agent = (await host.create(NewAgent("Ada"))).id
        events = await take(host, agent, script({"tool": "risky", "args": {}}, {"text": "pity"}), tools=[tool])
        word = Approval(of_kind(events, ApprovalRequest)[0].call_id, approve=True)
        events = await take(host, agent, approvals=[word])
        assert of_kind(events, ToolReturn)[0].status is ToolStatus.UNKNOWN
        assert said(events) == "pity"
