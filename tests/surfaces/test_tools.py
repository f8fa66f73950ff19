"""What a tool of a capability gets from the endpoint: its own address, its own way to tell errors, a stream."""

from collections.abc import AsyncGenerator
from typing import Any

import anyio
import pytest
from structlog.testing import capture_logs

from frontdesk.app import App, McpPath, open_app
from frontdesk.errors import NotFound, Unavailable
from frontdesk.identity.model import Caller
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.http.context import ASGIApp
from frontdesk.interfaces.mcp.server import CORE_TOOLS
from frontdesk.interfaces.mcp.tool_spec import ErrorFormat, McpToolInput, McpToolOutput, ToolSpec
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.wire import ERAS, MODERN, Era, call, send

pytestmark = pytest.mark.anyio


class Reminder(McpToolInput):
    prompt: str
    times: int = 1


class EchoOutput(McpToolOutput):
    said: str


async def remind(app: App, caller: Caller, arguments: Reminder) -> EchoOutput:
    app.identity.require_agent(caller)
    if arguments.prompt == "gone":
        raise NotFound("There is no such prompt; list them first")
    if arguments.prompt == "down":
        raise Unavailable("The agent host does not answer")
    if arguments.prompt == "bug":
        raise RuntimeError(arguments.prompt)
    await anyio.sleep(0.1 if arguments.prompt == "slow" else 0)
    return EchoOutput(said=f"{caller.agent_id}: {arguments.prompt * arguments.times}")


SPEC = ToolSpec(
    name="remind",
    title="Remind",
    description="Says something.",
    arguments=Reminder,
    answer=EchoOutput,
    run=remind,
    mcp_path=McpPath.SCHEDULE,
    error_format=ErrorFormat.RESULT,
)


@pytest.fixture(scope="module")
async def asgi(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[ASGIApp]:
    """One installation for all: no tool here leaves anything behind in it."""
    async with open_app(settings_with(FRONTDESK_DATA=tmp_path_factory.mktemp("tools") / "data")) as app:
        yield build_application(app, (*CORE_TOOLS, SPEC))


async def ask(asgi: ASGIApp, era: Era, arguments: dict[str, Any], path: str = "/mcp/schedule", **headers: str) -> Any:
    said, body = call(era, "remind", arguments)
    return await send(asgi, said | headers, body, path=path)


@shows("ID-RESULT")
@pytest.mark.parametrize("era", ERAS)
async def test_a_schedule_tool_tells_a_missing_agent_as_a_result(asgi: ASGIApp, era: Era) -> None:
    result = (await ask(asgi, era, {"prompt": "hi"})).json["result"]
    assert result["structuredContent"] == {"error": "agent_id is required and could not be inferred"}
    assert result["isError"] is True


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("path", ["/mcp", "/mcp/schedule"])
async def test_a_capability_is_at_its_own_address_and_at_the_common_one(asgi: ASGIApp, era: Era, path: str) -> None:
    answer = await ask(asgi, era, {"prompt": "hi", "times": 2, "request_heartbeat": True, "agent_id": "a"}, path)
    assert answer.structured == {"said": "a: hihi"}
    assert (await ask(asgi, era, {}, "/mcp/memory")).status == 404


@pytest.mark.parametrize("era", ERAS)
async def test_a_slow_tool_answers_too(asgi: ASGIApp, era: Era) -> None:
    assert (await ask(asgi, era, {"prompt": "slow", "agent_id": "a"})).structured == {"said": "a: slow"}


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "prompt: Field required"),
        ({"prompt": 5}, "prompt: Input should be a valid string"),
        ({"prompt": "x", "tmies": 2}, "tmies: Extra inputs are not permitted"),
        ({"prompt": "gone"}, "There is no such prompt; list them first"),
    ],
)
async def test_invalid_arguments_and_failures_are_results(
    asgi: ASGIApp, era: Era, arguments: dict[str, Any], said: str
) -> None:
    result = (await ask(asgi, era, arguments | {"agent_id": "a"})).json["result"]
    assert result["isError"] is True
    assert said in result["structuredContent"]["error"]
    assert said in result["content"][0]["text"]


@pytest.mark.parametrize("era", ERAS)
async def test_a_part_that_is_down_is_said_as_such(asgi: ASGIApp, era: Era) -> None:
    answer = await ask(asgi, era, {"prompt": "down", "agent_id": "a"})
    assert answer.error == (-32013, "The agent host does not answer")
    assert answer.status == (503 if era == MODERN else 200)
    assert (answer.json["error"]["data"], answer.headers["retry-after"]) == ({"retryAfterMs": 2000}, "2")


@pytest.mark.parametrize("era", ERAS)
async def test_a_bug_is_told_without_its_insides(asgi: ASGIApp, era: Era) -> None:
    with capture_logs() as logged:
        answer = await ask(asgi, era, {"prompt": "bug", "agent_id": "a"})
    assert answer.error == (-32603, "Internal server error")
    assert "request_failed" in [line["event"] for line in logged]


@pytest.mark.parametrize("era", ERAS)
async def test_an_unknown_tool_is_a_protocol_error(asgi: ASGIApp, era: Era) -> None:
    said, body = call(era, "nope")
    assert (await send(asgi, said, body)).error == (-32602, "Unknown tool: nope")
