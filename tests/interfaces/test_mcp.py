"""Tests the MCP endpoint: forms of answers, calls that bypass the SDK, and any input without a failure."""

import asyncio
import io
import json
import logging
from collections.abc import AsyncGenerator, Coroutine, Generator, Iterator, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
import structlog
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp.shared.transport_context import TransportContext
from pydantic import BaseModel
from structlog.testing import capture_logs

from frontdesk.app import CORE_OPERATIONS, App, open_app, running
from frontdesk.errors import NotFound, Unavailable
from frontdesk.identity import keys
from frontdesk.interfaces import logs
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.http.context import ASGIApp
from frontdesk.interfaces.mcp import http
from frontdesk.interfaces.mcp.http import QUICK_SECONDS, FastPath, Outbox, SdkChannel, run_request, send_reply
from frontdesk.operations import Call, ErrorFormat, McpPath, McpTool, Operation, OperationRequest, Requires
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.wire import ERAS, MODERN, Answer, Era, call, send

# The forms of an answer: JSON, a stream, or nothing because the client left


Message = MutableMapping[str, Any]


class Client:
    """The other end of one exchange."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.left = anyio.Event()
        self.pinged = anyio.Event()

    async def receive(self) -> Message:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        self.messages.append(message)
        if message.get("body") == b": ping\r\n\r\n":
            self.pinged.set()

    @property
    def content_type(self) -> bytes:
        return dict(self.messages[0]["headers"])[b"content-type"]

    @property
    def events(self) -> list[Any]:
        body = b"".join(message["body"] for message in self.messages[1:])
        return [json.loads(line[6:]) for line in body.split(b"\r\n") if line.startswith(b"data: ")]


def outbox(**values: Any) -> SdkChannel:
    transport = TransportContext(kind="test", can_send_request=False)
    return SdkChannel(1, "r-1", transport=transport, message_metadata=None, **values)


async def exchange(work: Coroutine[Any, Any, dict[str, Any]], box: Outbox, client: Client) -> None:
    task = asyncio.create_task(run_request(work, box, modern=True))
    with anyio.fail_after(10):
        await send_reply(task, box, client.receive, client.send)


async def test_a_quick_silent_tool_answers_plain_json() -> None:
    client, box = Client(), outbox()

    async def work() -> dict[str, Any]:
        return {"done": True}

    await exchange(work(), box, client)
    assert client.content_type == b"application/json"
    assert json.loads(client.messages[1]["body"])["result"] == {"done": True}


async def test_progress_is_streamed_before_the_answer() -> None:
    client, box = Client(), outbox(progress_token="p")

    async def work() -> dict[str, Any]:
        await box.progress(1, 2, "half")
        await anyio.sleep(QUICK_SECONDS * 2)
        await box.progress(2, 2)
        return {"done": True}

    await exchange(work(), box, client)
    assert client.content_type == b"text/event-stream"
    assert [event.get("method", "result") for event in client.events] == [
        "notifications/progress",
        "notifications/progress",
        "result",
    ]
    assert client.events[0]["params"] == {"progressToken": "p", "progress": 1, "total": 2, "message": "half"}


async def test_progress_nobody_asked_for_is_not_sent() -> None:
    client, box = Client(), outbox()

    async def work() -> dict[str, Any]:
        await box.progress(1)
        return {}

    await exchange(work(), box, client)
    assert client.content_type == b"application/json"


async def test_a_client_that_leaves_cancels_the_work() -> None:
    client, box, cancelled = Client(), outbox(), anyio.Event()

    async def work() -> dict[str, Any]:
        client.left.set()
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()
        return {}

    await exchange(work(), box, client)
    with anyio.fail_after(5):
        await cancelled.wait()
    assert client.messages == []


async def test_a_long_silence_is_kept_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "PING_SECONDS", 0.01)
    client, box = Client(), outbox()

    async def work() -> dict[str, Any]:
        await client.pinged.wait()
        return {"done": True}

    await exchange(work(), box, client)
    assert client.events[-1]["result"] == {"done": True}
    assert client.messages[-1]["more_body"] is False


# A plain call bypasses the SDK; clients notice nothing but the shorter time


# Only the SDK handles a request for progress; tools without progress answer as usual.
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


# What a tool of a capability gets from the endpoint: an address, a form for errors, a stream


class Reminder(OperationRequest):
    prompt: str
    times: int = 1


class EchoOutput(BaseModel):
    said: str


async def remind(_app: App, call: Call, arguments: Reminder) -> EchoOutput:
    if arguments.prompt == "gone":
        raise NotFound("There is no such prompt; list them first")
    if arguments.prompt == "down":
        raise Unavailable("The agent host does not answer")
    if arguments.prompt == "bug":
        raise RuntimeError(arguments.prompt)
    await anyio.sleep(0.1 if arguments.prompt == "slow" else 0)
    return EchoOutput(said=f"{call.caller.agent_id}: {arguments.prompt * arguments.times}")


REMIND = Operation(
    name="remind",
    summary="Says something",
    request=Reminder,
    run=remind,
    requires=Requires.AGENT,
    mcp=McpTool(
        title="Remind",
        description="Says something.",
        path=McpPath.SCHEDULE,
        response=EchoOutput,
        error_format=ErrorFormat.RESULT,
    ),
)


@pytest.fixture(scope="module")
async def asgi(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[ASGIApp]:
    """One installation for all tests: no tool here leaves anything behind in it."""
    async with open_app(settings_with(FRONTDESK_DATA=tmp_path_factory.mktemp("tools") / "data")) as app:
        yield build_application(app, [app.bind(operation, app) for operation in (*CORE_OPERATIONS, REMIND)])


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


# Any input: never a 500, and never a secret or a body in the log


SECRET = "S3CRET"
ISSUER = {"issuer": "https://id.example", "hs256_secret": f"{SECRET}-of-the-issuer-0123456789", "algorithms": ["HS256"]}

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just(SECRET)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4)
)
objects = st.dictionaries(
    st.sampled_from(["agent_id", "agentId", "agent", "metadata", "progressToken", "x"]) | st.text(max_size=10),
    values,
    max_size=5,
)
header_text = st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=60)
parts = st.lists(st.from_regex(r"[A-Za-z0-9_-]{0,40}", fullmatch=True), max_size=5)
tokens = st.one_of(
    header_text,
    header_text.map(lambda text: f"Bearer {text}{SECRET}"),
    parts.map(lambda found: "Bearer " + ".".join(found)),
    st.just(f"Bearer {keys.generate_key()[2]}"),
)
names = (
    "x-agent-id",
    "x-agent-name",
    "x-agent-capabilities",
    "x-request-id",
    "x-user-auth-token",
    "mcp-session-id",
    "origin",
    "mcp-name",
    "x-forwarded-for",
)
headers = st.dictionaries(st.sampled_from(names), header_text, max_size=4)
# The same examples on every run: a failure here is caused by the code, and can be repeated.
fuzzed = settings(
    max_examples=200, deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)


class Target:
    """An open server in process, with its log; it gets hypothesis' examples one by one."""

    def __init__(self, portal: BlockingPortal, asgi: ASGIApp, log: io.StringIO) -> None:
        self._portal = portal
        self._asgi = asgi
        self._log = log

    def check(self, said: dict[str, str], body: bytes) -> Answer:
        answer = self._portal.call(send, self._asgi, said, body)
        assert answer.status < 500, answer.body
        assert b"Internal server error" not in answer.body
        assert SECRET not in self._log.getvalue()
        return answer


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with _logged() as log, start_blocking_portal() as portal:
        folder: Path = tmp_path_factory.mktemp("fuzz")
        given_settings = settings_with(FRONTDESK_DATA=folder, FRONTDESK_ISSUERS=[ISSUER])
        with (
            portal.wrap_async_context_manager(open_app(given_settings)) as app,
            portal.wrap_async_context_manager(running(app)),
        ):
            yield Target(portal, build_application(app), log)


@contextmanager
def _logged() -> Generator[io.StringIO]:
    """The log of a server at its default level, libraries' records included."""
    sink = io.StringIO()
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    logs.configure_logs(settings_with())
    structlog.configure(logger_factory=structlog.WriteLoggerFactory(sink), cache_logger_on_first_use=False)
    yield sink
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)


@shows("FUZZ")
@fuzzed
@given(era=st.sampled_from(ERAS), said=headers, arguments=objects, meta=objects, token=st.none() | tokens)
def test_no_headers_arguments_metadata_or_token_break_a_call(
    target: Target,
    era: Era,
    said: dict[str, str],
    arguments: dict[str, object],
    meta: dict[str, object],
    token: str | None,
) -> None:
    base, body = call(era, arguments=arguments, meta={key: value for key, value in meta.items() if "/" not in key})
    target.check(base | said | ({"authorization": token} if token is not None else {}), body)


@fuzzed
@given(era=st.sampled_from(ERAS), frame=values | objects | st.lists(objects, max_size=3))
def test_no_frame_breaks_the_endpoint(target: Target, era: Era, frame: object) -> None:
    base, _ = call(era)
    target.check(base, json.dumps(frame).encode())


@fuzzed
@given(
    era=st.sampled_from(ERAS),
    method=st.sampled_from(["tools/call", "tools/list", "initialize", "ping", "server/discover", "nope", ""])
    | st.text(),
    number=scalars,
    params=values,
)
def test_no_method_id_or_params_break_the_endpoint(
    target: Target, era: Era, method: str, number: object, params: object
) -> None:
    base, _ = call(era)
    frame = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    target.check(base | {"mcp-method": "tools/call"}, json.dumps(frame).encode())


@fuzzed
@given(
    era=st.sampled_from(ERAS),
    body=st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")),
)
def test_no_bytes_break_the_endpoint(target: Target, era: Era, body: bytes) -> None:
    base, _ = call(era)
    answer = target.check(base, body)
    assert answer.status in (200, 202, 400, 404)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"whoami","arguments":{"agent_id":NaN}}}',
        b'{"jsonrpc":"2.0","id":"\\ud800","method":"tools/call","params":{"name":"\\ud800"}}',
        b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"ping"}',
        b'{"jsonrpc":"2.0","id":null,"method":"ping"}',
        b"",
        b"\xff\xfe",
    ],
    ids=["deep", "nan", "surrogate", "huge number", "null id", "empty", "not utf-8"],
)
def test_known_traps_are_answered(target: Target, era: Era, body: bytes) -> None:
    base, _ = call(era)
    assert target.check(base, body).json["error"]["code"] < 0


def test_a_body_that_is_too_large_is_refused(target: Target) -> None:
    base, _ = call("2026-07-28")
    assert target.check(base, b" " * (5 * 1024 * 1024)).status == 413
