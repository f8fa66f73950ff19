"""Editors for tests: one that implements the protocol by hand with all abilities, and the Python SDK's client."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import acp
from acp.client.connection import ClientSideConnection
from acp.schema import AllowedOutcome, ReadTextFileResponse, RequestPermissionResponse, WriteTextFileResponse
from pydantic import TypeAdapter

from tests.support.acp import schema
from tests.support.acp.process import FRONTDESK, LONGEST_FRAME, Agent, left_behind, started
from tests.support.acp.schema import Answer, Frame, Id, Json, Refused, outcome, prompt, update_in
from tests.support.desk import START_SECONDS, clean_environment
from tests.support.waiting import until

# An editor that implements the protocol by hand, and checks every frame of the agent against the schema


NOT_FOUND = -32601
LOG_CHARACTERS = 4000
OBJECT = TypeAdapter(dict[str, Any])


@dataclass(slots=True)
class Client:
    """One connection. It collects the agent's mistakes, and reports them at the end at the latest."""

    agent: Agent
    capabilities: Json
    answer: Mapping[str, Answer]
    frames: list[Frame] = field(default_factory=list[Frame])
    faults: list[str] = field(default_factory=list[str])
    _next: int = 0
    _asked: dict[Id, tuple[str, asyncio.Future[Json]]] = field(default_factory=dict[Any, Any])
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _answering: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])
    _over: bool = False

    async def initialize(self, version: int = 1, **more: Any) -> Json:
        given = {"protocolVersion": version, "clientCapabilities": self.capabilities, **more}
        return await self.request("initialize", given)

    async def new_session(self, cwd: Path, **more: Any) -> Json:
        return await self.request("session/new", {"cwd": str(cwd), "mcpServers": [], **more})

    async def open_session(self, cwd: Path, **more: Any) -> str:
        """The id of a new session, once everything that follows its creation has arrived."""
        since = len(self.frames)
        opened = await self.new_session(cwd, **more)
        await self.update("available_commands_update", since=since)
        return opened["sessionId"]

    async def prompt(self, session_id: str, said: str | Sequence[Json], **more: Any) -> Json:
        return await self.request("session/prompt", prompt(session_id, said, **more))

    async def begin(self, session_id: str, said: str | Sequence[Json], **more: Any) -> asyncio.Future[Json]:
        """Start a prompt."""
        return await self.ask("session/prompt", prompt(session_id, said, **more))

    async def request(
        self, method: str, params: Json | None = None, *, number: Id | None = None, seconds: float = START_SECONDS
    ) -> Json:
        """The agent's answer; raises `Refused` if it is an error."""
        return await outcome(await self.ask(method, params, number=number), seconds)

    async def ask(self, method: str, params: Json | None = None, *, number: Id | None = None) -> asyncio.Future[Json]:
        """Start a request."""
        self._next += 1
        number = self._next if number is None else number
        waiting: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._asked[number] = (method, waiting)
        await self._say({"id": number, "method": method, **({} if params is None else {"params": params})})
        return waiting

    async def notify(self, method: str, params: Json) -> None:
        await self._say({"method": method, "params": params})

    async def write(self, line: bytes) -> None:
        """Send a line unchanged, whatever it is."""
        stdin = self.agent.process.stdin
        assert stdin is not None
        stdin.write(line + b"\n")
        await stdin.drain()

    async def until(self, holds: Callable[[Frame], bool], *, since: int = 0, seconds: float = START_SECONDS) -> Frame:
        """The first frame of the agent with a property, already received or still to come."""
        async with asyncio.timeout(seconds):
            while True:
                found = next((frame for frame in self.frames[since:] if not frame.ours and holds(frame)), None)
                if found is not None:
                    return found
                assert not self._over, f"the agent has left: {self.agent.told()}"
                self._news.clear()
                await self._news.wait()

    async def update(self, kind: str, *, since: int = 0) -> Json:
        """The first update of a kind, already received or still to come."""
        found = await self.until(lambda frame: update_in(frame).get("sessionUpdate") == kind, since=since)
        return update_in(found)

    async def heard(self) -> None:
        """Wait until the agent has read everything that was sent so far, and its earlier output has arrived."""
        with suppress(Refused):
            await self.request("_tests/heard", {})

    def updates(self, kind: str = "", *, session_id: str = "", since: int = 0) -> list[Json]:
        """The agent's updates of its sessions, in order."""
        told = [frame for frame in self.received(since) if frame.method == "session/update"]
        mine = [frame.json["params"] for frame in told if session_id in ("", frame.json["params"]["sessionId"])]
        return [one["update"] for one in mine if kind in ("", one["update"]["sessionUpdate"])]

    def said(self, *, since: int = 0) -> str:
        """The agent's text."""
        return "".join(one["content"].get("text", "") for one in self.updates("agent_message_chunk", since=since))

    def place(self, number: Id) -> int:
        """The index of the answer to a request among the frames."""
        return next(at for at, frame in enumerate(self.frames) if not frame.ours and _answers(frame, number))

    def received(self, since: int = 0) -> list[Frame]:
        return [frame for frame in self.frames[since:] if not frame.ours]

    def asked(self, method: str) -> list[Json]:
        """The agent's requests to this editor with a method."""
        return [frame.json["params"] for frame in self.received() if frame.method == method and "id" in frame.json]

    async def leave(self) -> int:
        """Close the pipe as an editor does at its end, and wait until the agent has ended too; gives its exit code."""
        stdin = self.agent.process.stdin
        assert stdin is not None
        stdin.close()
        return await self.agent.ended()

    async def listen(self) -> None:
        """Read the agent's output to its end."""
        stdout = self.agent.process.stdout
        assert stdout is not None
        try:
            async for line in stdout:
                self._take(line)
                self._news.set()
        finally:
            self._over = True
            self._news.set()
            for _, waiting in self._asked.values():
                if not waiting.done():
                    waiting.set_exception(AssertionError(f"the agent left without an answer: {self.agent.told()}"))
                    # Perhaps nothing waits for it any more.
                    waiting.exception()

    def _take(self, line: bytes) -> None:
        try:
            frame = OBJECT.validate_json(line.decode())
            assert line.endswith(b"\n"), "a frame without an end"
            self.frames.append(Frame(ours=False, json=frame))
            self._sort(frame)
        except (AssertionError, ValueError, KeyError) as error:
            self.faults.append(f"{error}\n{line[:2000]!r}")

    def _sort(self, frame: dict[str, Any]) -> None:
        if "method" in frame:
            if "id" in frame:
                self._answer(frame)
            schema.check_sent(frame)
        elif frame["id"] is None:
            # The answer to an unreadable line.
            schema.check_answer("", frame)
        else:
            self._answered(frame)

    def _answered(self, frame: Json) -> None:
        assert frame["id"] in self._asked, "an answer to nothing"
        method, waiting = self._asked.pop(frame["id"])
        try:
            schema.check_answer(method, frame)
        finally:
            if not waiting.done():
                waiting.set_result(frame)

    def _answer(self, frame: Json) -> None:
        task = asyncio.create_task(self._reply(frame["id"], frame["method"], frame.get("params", {})))
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def _reply(self, number: Id, method: str, params: Json) -> None:
        try:
            result: Json = {"result": await self.answer.get(method, self._offers_no(method))(params)}
        except Refused as refused:
            result = {"error": {"code": refused.code, "message": refused.message}}
        # An agent that has ended waits for no answer.
        with suppress(ConnectionError):
            await self._say({"id": number, **result})

    def _offers_no(self, method: str) -> Answer:
        async def refuse(params: Json) -> Json:
            self.faults.append(f"the agent asked for {method}, which this editor does not offer: {params}")
            raise Refused(NOT_FOUND, "Method not found")

        return refuse

    async def _say(self, message: Json) -> None:
        frame = {"jsonrpc": "2.0", **message}
        self.frames.append(Frame(ours=True, json=frame))
        await self.write(json.dumps(frame).encode())

    async def give_up(self) -> None:
        """End everything that could still answer."""
        tasks = list(self._answering)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _answers(frame: Frame, number: Id) -> bool:
    return "method" not in frame.json and frame.json.get("id") == number


@asynccontextmanager
async def editor(
    data: Path,
    *,
    capabilities: Json | None = None,
    answer: Mapping[str, Answer] | None = None,
    command: Sequence[str] = FRONTDESK,
    **settings: str,
) -> AsyncGenerator[Client]:
    """A connection to an agent of its own; at the end it has made no mistake, ends, and leaves nothing behind."""
    async with started(data, command, **settings) as agent:
        client = Client(agent, capabilities or {}, answer or {})
        listening = asyncio.create_task(client.listen())
        try:
            yield client
            await _part(client, listening)
        except Exception as error:
            error.add_note("\n".join([*client.faults, agent.told()[-LOG_CHARACTERS:]]))
            raise
        finally:
            await client.give_up()
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)


async def _part(client: Client, listening: asyncio.Task[None]) -> None:
    agent = client.agent
    known = agent.descendants() if agent.process.returncode is None else []
    code = await client.leave()
    left = await asyncio.to_thread(left_behind, agent.mark, known)
    assert left == [], f"left behind: {left}"
    async with asyncio.timeout(START_SECONDS):
        await listening
    assert client.faults == [], "\n".join(client.faults)
    assert code == 0, f"ended with {code}:\n{agent.told()}"


# An editor's abilities: files with unsaved text, terminals that really run, forms


RESOURCE_NOT_FOUND = -32002
FILES: Json = {"fs": {"readTextFile": True, "writeTextFile": True}}
TERMINALS: Json = {"terminal": True}
FORMS: Json = {"elicitation": {"form": {}}}


@dataclass(slots=True)
class Files:
    """`unsaved` is the text that the person has typed and not saved, by path."""

    unsaved: dict[str, str] = field(default_factory=dict[str, str])
    written: list[str] = field(default_factory=list[str])

    @property
    def answers(self) -> Mapping[str, Answer]:
        return {"fs/read_text_file": self.read, "fs/write_text_file": self.write}

    async def read(self, params: Json) -> Json:
        return {"content": self._content(params["path"])}

    async def write(self, params: Json) -> Json:
        self.written.append(params["path"])
        self.unsaved.pop(params["path"], None)
        _save(Path(params["path"]), params["content"])
        return {}

    def _content(self, path: str) -> str:
        if path in self.unsaved:
            return self.unsaved[path]
        try:
            return Path(path).read_text()
        except OSError as error:
            raise Refused(RESOURCE_NOT_FOUND, "No such file") from error


@dataclass(slots=True)
class Terminal:
    """A running command, and its output so far."""

    process: asyncio.subprocess.Process
    reading: asyncio.Task[None]
    output: bytearray

    @property
    def exit_status(self) -> Json:
        code = self.process.returncode or 0
        return {"exitCode": code, "signal": None} if code >= 0 else {"signal": signal.Signals(-code).name}


@dataclass(slots=True)
class Terminals:
    """`open` are the terminals that the agent has not released."""

    open: dict[str, Terminal] = field(default_factory=dict[str, Terminal])
    created: list[Json] = field(default_factory=list[Json])

    @property
    def answers(self) -> Mapping[str, Answer]:
        return {
            "terminal/create": self.create,
            "terminal/output": self.show,
            "terminal/wait_for_exit": self.wait,
            "terminal/kill": self.kill,
            "terminal/release": self.release,
        }

    async def create(self, params: Json) -> Json:
        self.created.append(params)
        process = await asyncio.create_subprocess_exec(
            *(params["command"], *params.get("args", [])),
            cwd=params.get("cwd"),
            env=os.environ | {one["name"]: one["value"] for one in params.get("env", [])},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        output, name = bytearray(), f"terminal-{len(self.created)}"
        self.open[name] = Terminal(process, asyncio.create_task(_read(process, output)), output)
        return {"terminalId": name}

    async def show(self, params: Json) -> Json:
        terminal = self._of(params)
        ended = {"exitStatus": terminal.exit_status} if terminal.process.returncode is not None else {}
        return {"output": terminal.output.decode(errors="replace"), "truncated": False, **ended}

    async def wait(self, params: Json) -> Json:
        terminal = self._of(params)
        await terminal.reading
        await terminal.process.wait()
        return terminal.exit_status

    async def kill(self, params: Json) -> Json:
        _kill(self._of(params))
        return {}

    async def release(self, params: Json) -> Json:
        terminal = self._of(params)
        del self.open[params["terminalId"]]
        await _end(terminal)
        return {}

    def _of(self, params: Json) -> Terminal:
        if params["terminalId"] not in self.open:
            raise Refused(RESOURCE_NOT_FOUND, "No such terminal")
        return self.open[params["terminalId"]]


@asynccontextmanager
async def open_terminals() -> AsyncGenerator[Terminals]:
    """Terminals that have always ended at the end of the block; the agent must have released them."""
    terminals = Terminals()
    try:
        yield terminals
        await until(lambda: terminals.open == {})
    finally:
        for terminal in terminals.open.values():
            await _end(terminal)


def filling(**values: Any) -> Mapping[str, Answer]:
    """A person who fills in every form with this."""

    async def fill(_params: Json) -> Json:
        return {"action": "accept", "content": values}

    return {"elicitation/create": fill}


def _save(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


async def _read(process: asyncio.subprocess.Process, into: bytearray) -> None:
    assert process.stdout is not None
    while more := await process.stdout.read(65536):
        into += more


async def _end(terminal: Terminal) -> None:
    _kill(terminal)
    await terminal.reading
    await terminal.process.wait()


def _kill(terminal: Terminal) -> None:
    with suppress(ProcessLookupError):
        os.killpg(terminal.process.pid, signal.SIGKILL)


# The Python SDK's own client, used like an editor written in Python


@dataclass(slots=True)
class Sitting:
    """An editor whose person allows everything once; it has files, and records what it receives."""

    told: list[Any] = field(default_factory=list[Any])
    permitted: list[Any] = field(default_factory=list[Any])
    written: dict[str, str] = field(default_factory=dict[str, str])

    def on_connect(self, conn: Any) -> None:
        """Nothing to do."""

    async def session_update(self, update: Any, **_more: Any) -> None:
        self.told.append(update)

    async def request_permission(self, options: list[Any], tool_call: Any, **_more: Any) -> RequestPermissionResponse:
        self.permitted.append(tool_call)
        once = next(option for option in options if option.kind == "allow_once")
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=once.option_id))

    async def read_text_file(self, path: str, **_more: Any) -> ReadTextFileResponse:
        if path not in self.written:
            raise acp.RequestError.resource_not_found(path)
        return ReadTextFileResponse(content=self.written[path])

    async def write_text_file(self, content: str, path: str, **_more: Any) -> WriteTextFileResponse:
        self.written[path] = content
        return WriteTextFileResponse()

    def updates(self, kind: str) -> list[Any]:
        return [update for update in self.told if update.session_update == kind]

    def said(self) -> str:
        return "".join(update.content.text for update in self.updates("agent_message_chunk"))


@asynccontextmanager
async def sdk_editor(data: Path, **settings: str) -> AsyncGenerator[tuple[ClientSideConnection, Sitting]]:
    """A connection of the SDK's to an agent of its own."""
    sitting: Any = Sitting()
    program, *arguments = FRONTDESK
    async with acp.spawn_agent_process(
        sitting,
        program,
        *arguments,
        env=clean_environment(FRONTDESK_DATA=str(data), **settings),
        cwd=data.parent,
        transport_kwargs={"limit": LONGEST_FRAME},
    ) as (connection, _process):
        yield connection, sitting
