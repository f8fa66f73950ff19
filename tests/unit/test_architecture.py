"""Tests the layers of the tree, and the request traces of the architecture page against execution."""

import ast
import inspect
import json
import re
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Generator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import anyio
import httpx2
import uvicorn

from frontdesk.agents.host import NewAgent
from frontdesk.app import App, open_app, running
from frontdesk.identity.model import Caller
from frontdesk.interfaces.acp.connection import EditorConnection
from frontdesk.interfaces.acp.editor import Editor
from frontdesk.interfaces.acp.handshake import AcpServer, AgentCapabilities, EditorCapabilities
from frontdesk.interfaces.acp.jsonrpc import RpcPeer
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.http.uvicorn_server import BoundedHeadProtocol, UvicornServer, open_listener
from frontdesk.schedules.requests import NewSchedule
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.desk import ROOT
from tests.support.serving import address_of
from tests.support.tool_servers import open_tool_server, tool
from tests.support.waiting import until
from tests.support.webhooks import open_webhooks
from tests.support.wire import MODERN, call
from tests.unit.acp.lab import Memory

# The layers of the packages, checked by their import contracts


SECONDS = 120


@shows("FLOORS")
def test_imports_point_down_and_siblings_do_not_meet() -> None:
    program = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [program, "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stdout


# The functions on the architecture page exist, and requests enter them in the order of its traces


PAGE = ROOT / "docs/guide/architecture.md"
SOURCE = ROOT / "src/frontdesk"
STEP = re.compile(r"`([\w/]+\.py)`: `([\w.]+)`")
REQUEST, RESPONSE = "The request of every tool", "The response of every tool"
# The requests of this test, and the parts of the page that describe each.
TRACES: Mapping[str, Sequence[str]] = {
    "find_tools": (REQUEST, "find_tools", RESPONSE),
    "call_tool": (REQUEST, "call_tool", RESPONSE),
    "memory search by MCP": (REQUEST, "search_memories", "The search", "The memories in the MCP response", RESPONSE),
    "memory search by REST": ("GET /api/memories/search", "The search", "The memories in the REST response"),
    "people": ("GET /people",),
    "due prompt": ("From the clock to the webhook",),
    "editor's prompt": ("From the editor to the agent and back",),
    "chat": ("From the endpoint to the host", "The built-in host", "From the host to the stream"),
}
# tests/hosts runs these with a real Letta server.
ON_LETTA = {"On Letta"}

RESUMABLE = inspect.CO_COROUTINE | inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR
TRACE_SECONDS = 20
SCRIPT = '@@[{"tool": "post__send_mail", "args": {"text": "hello"}}, {"text": "Sent it."}]@@'
WRITE_SCRIPT = '@@[{"tool": "write_file", "args": {"path": "note.txt", "content": "hello"}}, {"text": "Written."}]@@'
CALLS: Mapping[str, Mapping[str, object]] = {
    "find_tools": {"query": "send an e-mail", "min_score": 10},
    "call_tool": {"name": "post::send_mail", "arguments": {"text": "hello"}},
    "search_memories": {"search": "window seat"},
}

Step = tuple[str, str]

TURN_ENDED: Step = ("agents/embedded/turn.py", "TurnRunner.end")
WEBHOOK_SENT: Step = ("schedules/webhook_store.py", "WebhookStore.sent")


def steps_of(text: str) -> list[Step]:
    return [(found[1], found[2]) for found in STEP.finditer(text)]


def parts() -> dict[str, list[Step]]:
    """The numbered steps of the page below each of its smallest headings."""
    _, *found = re.split(r"^### (.+)$", PAGE.read_text(), flags=re.MULTILINE)
    numbered = re.compile(r"^\d+\. .*$", re.MULTILINE)
    return {
        title: [step for line in numbered.findall(body) for step in steps_of(line)]
        for title, body in zip(found[::2], found[1::2], strict=True)
    }


def test_every_function_that_the_page_names_is_in_the_file_that_it_names() -> None:
    named = steps_of(PAGE.read_text())
    assert len(named) > 80
    assert [step for step in named if not is_defined(*step)] == []


def is_defined(path: str, name: str) -> bool:
    if not SOURCE.joinpath(path).exists():
        return False
    body: Sequence[ast.stmt] = ast.parse(SOURCE.joinpath(path).read_text()).body
    for word in name.split("."):
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        found = [node for node in body if isinstance(node, kinds) and node.name == word]
        if not found:
            return False
        body = found[-1].body
    return True


def test_every_step_of_the_page_belongs_to_a_trace() -> None:
    documented = parts()
    assert set(documented) == {title for titles in TRACES.values() for title in titles} | ON_LETTA
    assert all(documented.values())
    assert len(re.findall(r"^\d+\. ", PAGE.read_text(), re.MULTILINE)) == sum(map(len, documented.values()))


@dataclass(slots=True)
class Tracer:
    """Records the functions of the package in the order in which they are entered, on threads started later too."""

    entered: list[Step] = field(default_factory=list[Step])
    # A coroutine is entered again each time it resumes. Its frame is kept, so that no other frame gets the same id.
    frames: dict[int, FrameType] = field(default_factory=dict[int, FrameType])

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(f"{SOURCE}/") and id(frame) not in self.frames:
            if code.co_flags & RESUMABLE:
                self.frames[id(frame)] = frame
            self.entered.append((code.co_filename.removeprefix(f"{SOURCE}/"), code.co_qualname))

    @contextmanager
    def tracing(self) -> Generator[None]:
        before = sys.getprofile()
        threading.setprofile(self)
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(before)
            threading.setprofile(None)


def first_missing(steps: Sequence[Step], entered: Sequence[Step]) -> Step | None:
    """The first step that was not entered after those before it; a function defined inside another counts as it."""
    remaining: Iterator[Step] = iter(entered)
    for path, name in steps:
        if not any(file == path and (entry == name or entry.startswith(f"{name}.<")) for file, entry in remaining):
            return path, name
    return None


@shows("DOCS-TRACES")
async def test_requests_enter_the_functions_in_the_order_of_the_page(tmp_path: Path) -> None:
    documented, tracer = parts(), Tracer()
    with (
        open_tool_server("post", [tool("send_mail", "Send an e-mail to somebody.")]) as post,
        open_webhooks(tmp_path / "received.jsonl") as webhooks,
        tracer.tracing(),
    ):
        settings = settings_with(
            FRONTDESK_DATA=tmp_path / "data",
            FRONTDESK_PORT=0,
            FRONTDESK_MCP_SERVERS=[{"name": "post", "url": post.url}],
            FRONTDESK_WEBHOOK_SECRET="s" * 40,
            FRONTDESK_WEBHOOK_PRIVATE=True,
        )
        async with open_app(settings) as app, serving(app) as client:
            entered = await trace_all(app, client, tracer, webhooks.url, tmp_path)
            assert webhooks.received("/ok")
    steps = {name: [step for part in titles for step in documented[part]] for name, titles in TRACES.items()}
    assert {name: first_missing(steps[name], entered[name]) for name in TRACES} == dict.fromkeys(TRACES)


async def trace_all(
    app: App, client: httpx2.AsyncClient, tracer: Tracer, webhook: str, folder: Path
) -> dict[str, Sequence[Step]]:
    """Makes each request once; returns the functions that were entered for each."""
    await until(lambda: app.tools.catalogue.progress().embedded == 1, TRACE_SECONDS)
    ada = await app.host.create(NewAgent(name="Ada"))
    _, key = await app.identity.create_key(name="tracer", agent_id=ada.id, user_id="ann")
    signed_in = {"authorization": f"Bearer {key}"}
    return {
        "find_tools": await call_tool(client, tracer, signed_in, "find_tools"),
        "call_tool": await call_tool(client, tracer, signed_in, "call_tool"),
        "memory search by REST": await search_by_rest(app, client, tracer, signed_in),
        "memory search by MCP": await call_tool(client, tracer, signed_in, "search_memories", "/mcp/memory"),
        "people": await open_page(client, tracer),
        "chat": await chat(client, tracer, ada.id),
        "editor's prompt": await prompt_from_editor(app, tracer, folder),
        "due prompt": await deliver_prompt(app, tracer, ada.id, webhook),
    }


async def call_tool(
    client: httpx2.AsyncClient, tracer: Tracer, signed_in: Mapping[str, str], name: str, path: str = "/mcp"
) -> Sequence[Step]:
    begin = len(tracer.entered)
    headers, body = call(MODERN, name, CALLS[name])
    answer = await client.post(path, content=body, headers={**headers, **signed_in})
    assert "error" not in answer.json(), answer.text
    return tracer.entered[begin:]


async def search_by_rest(
    app: App, client: httpx2.AsyncClient, tracer: Tracer, signed_in: Mapping[str, str]
) -> Sequence[Step]:
    """Adds a memory; once it is indexed, searches for it by words and by meaning."""
    added = await client.post("/api/memories", json={"note": "Ann likes the window seat"}, headers=signed_in)
    assert added.status_code == 201, added.text
    await app.memory_indexer.index_all()
    begin = len(tracer.entered)
    found = await client.get("/api/memories/search", params={"q": "window seat"}, headers=signed_in)
    assert [one["memory"]["note"] for one in found.json()["results"]] == ["Ann likes the window seat"]
    return tracer.entered[begin:]


async def open_page(client: httpx2.AsyncClient, tracer: Tracer) -> Sequence[Step]:
    begin = len(tracer.entered)
    page = await client.get("/people", headers={"accept": "text/html"})
    assert "/people/ann" in page.text
    return tracer.entered[begin:]


async def chat(client: httpx2.AsyncClient, tracer: Tracer, agent_id: str) -> Sequence[Step]:
    """A person sends a message for which the agent uses a tool that it holds, and reads the reply afterwards."""
    opened = await client.post("/api/agents/sessions", json={"agentId": agent_id})
    session = opened.json()["sessionId"]
    begin = len(tracer.entered)
    said = await client.post("/api/agents/messages", json={"sessionId": session, "message": SCRIPT})
    assert said.status_code == 200, said.text
    await until(lambda: TURN_ENDED in tracer.entered[begin:], TRACE_SECONDS)
    heard = await client.get("/api/agents/stream", params={"sessionId": session})
    assert "Sent it." in heard.text
    return tracer.entered[begin:]


async def prompt_from_editor(app: App, tracer: Tracer, folder: Path) -> Sequence[Step]:
    """Sends an editor's prompt for which the agent writes a file once the person has allowed it."""
    carrier, number = Memory(), count(1)

    async def ask(method: str, **params: object) -> dict[str, Any]:
        asked = f"editor-{next(number)}"
        carrier.incoming.put_nowait(frame(id=asked, method=method, params=params))
        while True:
            heard = json.loads(await carrier.outgoing.get())
            if heard.get("id") == asked:
                return heard["result"]
            if heard.get("method") == "session/request_permission":
                allowed = {"outcome": {"outcome": "selected", "optionId": "allow_once"}}
                carrier.incoming.put_nowait(frame(id=heard["id"], result=allowed))

    @asynccontextmanager
    async def connect(peer: RpcPeer, can: EditorCapabilities) -> AsyncGenerator[EditorConnection]:
        async def who() -> Caller:
            return Caller("tracer", user_id="ann", local=True, any_agent=True)

        async with EditorConnection.open(app, Editor(peer, can), who, None) as connection:
            yield connection

    answer, begin = dict[str, Any](), 0
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(AcpServer(carrier, AgentCapabilities(), connect, _raise).run)
        await ask("initialize", protocolVersion=1)
        session = await ask("session/new", cwd=str(folder), mcpServers=[])
        begin = len(tracer.entered)
        said = [{"type": "text", "text": WRITE_SCRIPT}]
        with anyio.fail_after(TRACE_SECONDS):
            answer = await ask("session/prompt", sessionId=session["sessionId"], prompt=said)
        carrier.incoming.put_nowait(None)
    assert answer == {"stopReason": "end_turn"}
    assert folder.joinpath("note.txt").read_text() == "hello"
    return tracer.entered[begin:]


def _raise(bug: Exception) -> None:
    raise bug


def frame(**fields: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **fields}).encode()


async def deliver_prompt(app: App, tracer: Tracer, agent_id: str, webhook: str) -> Sequence[Step]:
    """Schedules a prompt that is due immediately, with a webhook; the worker has been running from the start."""
    me = Caller("tracer", agent_id, None, local=True, any_agent=True)
    soon = datetime.now(UTC) + timedelta(seconds=0.5)
    await app.schedules.add(
        me, NewSchedule(prompt="Say hello", agent_id=agent_id, time=soon.isoformat(), webhook=f"{webhook}/ok")
    )
    await until(lambda: WEBHOOK_SENT in tracer.entered, TRACE_SECONDS)
    return tracer.entered


@asynccontextmanager
async def serving(app: App) -> AsyncGenerator[httpx2.AsyncClient]:
    """Serves the app on a socket as `frontdesk up` does, and yields a client of it."""
    listener = open_listener(app.settings)
    config = uvicorn.Config(
        build_application(app), http=BoundedHeadProtocol, lifespan="off", access_log=False, log_config=None
    )
    server = UvicornServer(config)
    async with running(app), anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve, [listener])
        async with httpx2.AsyncClient(base_url=address_of(listener), timeout=TRACE_SECONDS) as client:
            yield client
        server.should_exit = True
