"""A plain call goes past the SDK; nobody can tell, but for the time it takes."""

from typing import Any

import pytest

from frontdesk.app import App
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.http.context import ASGIApp
from frontdesk.interfaces.mcp.http import FastPath
from tests.support.wire import ERAS, MODERN, Answer, Era, call, send

pytestmark = pytest.mark.anyio
# The SDK alone knows what to make of a request for progress; tools that report none answer as ever.
BY_SDK = {"progressToken": "p-1"}

CALLS: tuple[tuple[str, dict[str, object], dict[str, str]], ...] = (
    ("whoami", {}, {"x-agent-id": "agent-1"}),
    ("whoami", {"agent_id": "agent-2"}, {"x-agent-id": "agent-1"}),
    ("whoami", {"agent_id": "agent-2"}, {}),
    ("whoami", {"wrong": 1}, {}),
    ("health", {}, {}),
    ("find_tools", {"query": "weather"}, {}),
    ("call_tool", {"name": "nothing::here", "arguments": {}}, {"x-agent-id": "agent-1"}),
    ("call_tool", {"arguments": {}}, {"x-agent-id": "agent-1"}),
    ("made-up", {}, {}),
)


async def answered(asgi: ASGIApp, era: Era, tool: str, arguments: dict[str, object], *, sdk: bool, **said: str) -> Any:
    headers, body = call(era, tool, arguments, BY_SDK if sdk else None)
    told = await send(asgi, headers | said | {"x-request-id": "r-1"}, body)
    return told.status, told.json


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(("tool", "arguments", "said"), CALLS)
async def test_both_ways_answer_alike(
    app: App, era: Era, tool: str, arguments: dict[str, object], said: dict[str, str]
) -> None:
    asgi = build_application(app)
    straight = await answered(asgi, era, tool, arguments, sdk=False, **said)
    assert straight == await answered(asgi, era, tool, arguments, sdk=True, **said)


@pytest.mark.parametrize("era", ERAS)
async def test_a_plain_call_does_without_the_sdk(app: App, era: Era, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object, **_named: object) -> None:
        pytest.fail("the SDK was asked")

    monkeypatch.setattr("frontdesk.interfaces.mcp.http.serve_one", refuse)
    headers, body = call(era)
    told: Answer = await send(build_application(app), headers | {"x-agent-id": "agent-1"}, body)
    assert told.structured["agent_id"] == "agent-1"


async def test_what_is_not_text_is_shaped_for_the_revision() -> None:
    straight = FastPath({}, {"name": "desk"})
    link = {"type": "resource_link", "uri": "file:///a", "name": "a", "unheard": 1}
    shaped = straight.wire_result({"resultType": "complete", "content": [link]}, "2025-06-18")
    assert shaped == {"content": [{"type": "resource_link", "uri": "file:///a", "name": "a"}]}
    modern = straight.wire_result({"resultType": "complete", "content": []}, MODERN)
    assert modern["_meta"] == {"io.modelcontextprotocol/serverInfo": {"name": "desk"}}
