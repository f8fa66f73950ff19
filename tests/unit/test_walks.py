"""The page on how the house is built: every function it names is there, and its walks are walked as they are drawn."""

import ast
import inspect
import json
import re
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
import pytest
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
from tests.unit.acp.talking import Memory

pytestmark = pytest.mark.anyio
PAGE = ROOT / "docs/guide/architecture.md"
SOURCE = ROOT / "src/frontdesk"
STEP = re.compile(r"`([\w/]+\.py)`: `([\w.]+)`")
# What is walked here, and of which parts of the page that walk is made.
WALKS: Mapping[str, Sequence[str]] = {
    "find_tools": ("The way in, the same for every tool", "find_tools", "The way out"),
    "call_tool": ("The way in, the same for every tool", "call_tool", "The way out"),
    "due": ("From the clock to the webhook",),
    "editor": ("From the editor to the agent, and back",),
    "turn": ("From the door to the host", "The built-in host", "Back to the reader, whichever host it was"),
}
# Walked by tests/hosts with a real Letta server.
ELSEWHERE = {"On Letta"}

GOES_ON = inspect.CO_COROUTINE | inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR
SECONDS = 20
SCRIPT = '@@[{"tool": "post__send_mail", "args": {"text": "hello"}}, {"text": "Sent it."}]@@'
WRITES = '@@[{"tool": "write_file", "args": {"path": "note.txt", "content": "hello"}}, {"text": "Written."}]@@'
CALLS: Mapping[str, Mapping[str, object]] = {
    "find_tools": {"query": "send an e-mail", "min_score": 10},
    "call_tool": {"name": "post::send_mail", "arguments": {"text": "hello"}},
}

Step = tuple[str, str]

ENDED: Step = ("agents/embedded/turn.py", "Performance.end")
SENT: Step = ("schedules/webhook_store.py", "ForwardStore.sent")


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


def test_every_function_that_the_page_names_is_where_it_says() -> None:
    named = steps_of(PAGE.read_text())
    assert len(named) > 80
    assert [step for step in named if not is_there(*step)] == []


def is_there(path: str, name: str) -> bool:
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


def test_every_step_of_the_page_belongs_to_a_walk() -> None:
    drawn = parts()
    assert set(drawn) == {title for titles in WALKS.values() for title in titles} | ELSEWHERE
    assert all(drawn.values())
    assert len(re.findall(r"^\d+\. ", PAGE.read_text(), re.MULTILINE)) == sum(map(len, drawn.values()))


@dataclass(slots=True)
class Trace:
    """Which functions of the product were entered, in what order, by every thread that was begun meanwhile."""

    entered: list[Step] = field(default_factory=list[Step])
    # A coroutine is entered again each time it goes on; its frame is the same one, and is kept so that it stays so.
    frames: dict[int, FrameType] = field(default_factory=dict[int, FrameType])

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(f"{SOURCE}/") and id(frame) not in self.frames:
            if code.co_flags & GOES_ON:
                self.frames[id(frame)] = frame
            self.entered.append((code.co_filename.removeprefix(f"{SOURCE}/"), code.co_qualname))

    @contextmanager
    def looking(self) -> Generator[None]:
        before = sys.getprofile()
        threading.setprofile(self)
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(before)
            threading.setprofile(None)


def first_not_walked(drawn: Sequence[Step], entered: Sequence[Step]) -> Step | None:
    """The first step that does not follow those before it; what a function made and handed out counts as itself."""
    walked: Iterator[Step] = iter(entered)
    for path, name in drawn:
        if not any(there == path and (entry == name or entry.startswith(f"{name}.<")) for there, entry in walked):
            return path, name
    return None


@shows("DOCS-WALKS")
async def test_the_walks_are_walked_as_they_are_drawn(tmp_path: Path) -> None:
    drawn, trace = parts(), Trace()
    with (
        open_tool_server("post", [tool("send_mail", "Send an e-mail to somebody.")]) as post,
        open_webhooks(tmp_path / "received.jsonl") as webhooks,
        trace.looking(),
    ):
        settings = settings_with(
            FRONTDESK_DATA=tmp_path / "data",
            FRONTDESK_PORT=0,
            FRONTDESK_MCP_SERVERS=[{"name": "post", "url": post.url}],
            FRONTDESK_WEBHOOK_SECRET="s" * 40,
            FRONTDESK_WEBHOOK_PRIVATE=True,
        )
        async with open_app(settings) as app, open_client(app) as client:
            walked = await walk_all(app, client, trace, webhooks.url, tmp_path)
            assert webhooks.received("/ok")
    whole = {name: [step for part in titles for step in drawn[part]] for name, titles in WALKS.items()}
    assert {name: first_not_walked(steps, walked[name]) for name, steps in whole.items()} == dict.fromkeys(WALKS)


async def walk_all(
    app: App, client: httpx2.AsyncClient, trace: Trace, webhook: str, folder: Path
) -> dict[str, Sequence[Step]]:
    """Go each walk once; what was entered on each."""
    await until(lambda: app.tools.catalogue.progress().embedded == 1, SECONDS)
    ada = await app.host.create(NewAgent(name="Ada"))
    _, key = await app.identity.create_key(name="walker", agent_id=ada.id, user_id=None)
    walked: dict[str, Sequence[Step]] = {}
    for name, arguments in CALLS.items():
        begin = len(trace.entered)
        headers, body = call(MODERN, name, arguments)
        answer = await client.post("/mcp", content=body, headers={**headers, "authorization": f"Bearer {key}"})
        assert "error" not in answer.json(), answer.text
        walked[name] = trace.entered[begin:]
    walked["turn"] = await talk(client, trace, ada.id)
    walked["editor"] = await edit(app, trace, folder)
    walked["due"] = await wake(app, trace, ada.id, webhook)
    return walked


async def talk(client: httpx2.AsyncClient, trace: Trace, agent_id: str) -> Sequence[Step]:
    """A person's message, for which the agent uses the tool it was given; then its reply, heard late."""
    opened = await client.post("/api/agents/sessions", json={"agentId": agent_id})
    session = opened.json()["sessionId"]
    begin = len(trace.entered)
    said = await client.post("/api/agents/messages", json={"sessionId": session, "message": SCRIPT})
    assert said.status_code == 200, said.text
    await until(lambda: ENDED in trace.entered[begin:], SECONDS)
    heard = await client.get("/api/agents/stream", params={"sessionId": session})
    assert "Sent it." in heard.text
    return trace.entered[begin:]


async def edit(app: App, trace: Trace, folder: Path) -> Sequence[Step]:
    """An editor's prompt, for which the agent writes a file once the person has allowed it."""
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
            return Caller("walker", user_id="ann", local=True, any_agent=True)

        async with EditorConnection.open(app, Editor(peer, can), who, None) as connection:
            yield connection

    answer, begin = dict[str, Any](), 0
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(AcpServer(carrier, AgentCapabilities(), connect, _raise).run)
        await ask("initialize", protocolVersion=1)
        session = await ask("session/new", cwd=str(folder), mcpServers=[])
        begin = len(trace.entered)
        said = [{"type": "text", "text": WRITES}]
        with anyio.fail_after(SECONDS):
            answer = await ask("session/prompt", sessionId=session["sessionId"], prompt=said)
        carrier.incoming.put_nowait(None)
    assert answer == {"stopReason": "end_turn"}
    assert folder.joinpath("note.txt").read_text() == "hello"
    return trace.entered[begin:]


def _raise(bug: Exception) -> None:
    raise bug


def frame(**fields: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **fields}).encode()


async def wake(app: App, trace: Trace, agent_id: str, webhook: str) -> Sequence[Step]:
    """A prompt that comes due at once, and its answer at the webhook; the worker has been waiting from the start."""
    me = Caller("walker", agent_id, None, local=True, any_agent=True)
    soon = datetime.now(UTC) + timedelta(seconds=0.5)
    await app.schedules.add(
        me, NewSchedule(prompt="Say hello", agent_id=agent_id, time=soon.isoformat(), webhook=f"{webhook}/ok")
    )
    await until(lambda: SENT in trace.entered, SECONDS)
    return trace.entered


@asynccontextmanager
async def open_client(app: App) -> AsyncGenerator[httpx2.AsyncClient]:
    """The app at work and served as `frontdesk up` does it, on a socket; and a client of it."""
    listener = open_listener(app.settings)
    config = uvicorn.Config(
        build_application(app), http=BoundedHeadProtocol, lifespan="off", access_log=False, log_config=None
    )
    server = UvicornServer(config)
    async with running(app), anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve, [listener])
        async with httpx2.AsyncClient(base_url=address_of(listener), timeout=SECONDS) as client:
            yield client
        server.should_exit = True
