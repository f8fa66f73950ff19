"""Runs a real Letta server process, offline; and a server with Letta's API that fails as tests configure."""

import json
import os
import re
import signal
import subprocess
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum, auto
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx2
from letta_client import AsyncLetta
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from tests.support.environments import program
from tests.support.serving import serve

# A real Letta V1 server process, offline: its model is scripted, its database one of the tests' PostgreSQL


START_SECONDS = 180
STOP_SECONDS = 15
ANSWER_SECONDS = 10
LOG_TAIL = 4000
LAUNCHER = Path(__file__).with_name("letta_launcher.py")


@dataclass(frozen=True, slots=True)
class LettaServer:
    """A running server: its address, its process, its log, and the address of its database."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path
    database_url: str

    @property
    def port(self) -> int:
        """For another server on the same port, after this one's end."""
        return int(self.url.rpartition(":")[2])

    def logged(self) -> str:
        return _read(self.log)

    def kill(self) -> None:
        _kill(self.process)


async def forget_servers(client: AsyncLetta) -> None:
    """Remove all MCP servers from Letta, so that the next test finds it as this one did."""
    for server in await client.mcp_servers.list():
        await client.mcp_servers.delete(server.id or "")


@contextmanager
def open_letta(
    folder: Path, database_url: str, openai_url: str, password: str | None = None, *, port: int = 0
) -> Generator[LettaServer]:
    """Start a server and stop it at the end; it keeps all its data in the database, its models are `openai-proxy/…`.

    The first start after an installation takes twice as long as the next, which finds the compiled modules.
    """
    python = program("letta", "python")
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "letta.log"
    with log.open("wb") as sink:
        process = subprocess.Popen(
            # -P, otherwise this very module would be the one called letta. The last flag is Letta's own: it leaves out
            # the description of the API, a fifth of the time to start.
            [python, "-P", "-W", "ignore", LAUNCHER, str(port), "--no-generation"],
            env=_environment(folder, database_url, openai_url, password),
            stdout=sink,
            stderr=sink,
            cwd=folder,
            # Each of an agent's tools is a process of Letta's; a process group ends both together.
            start_new_session=True,
        )
    try:
        yield _healthy(process, log, database_url)
    finally:
        # It would wait for streams that nobody reads any more; all its data is in a database that is deleted with it.
        _kill(process)


def _environment(folder: Path, database_url: str, openai_url: str, password: str | None) -> dict[str, str]:
    """Only PATH comes from this process: Letta requests the models of each provider whose key it finds."""
    secure = {} if password is None else {"LETTA_SERVER_SECURE": "true", "LETTA_SERVER_PASSWORD": password}
    return secure | {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "LETTA_DIR": str(folder / ".letta"),
        "LETTA_PG_URI": _with_host(database_url),
        # The other tests need some of the database server's hundred connections too.
        "LETTA_PG_POOL_SIZE": "10",
        "LETTA_DISABLE_SQLALCHEMY_POOLING": "false",
        "LETTA_DISABLE_TRACING": "true",
        # Otherwise it keeps every request to a model for ever.
        "LETTA_TRACK_PROVIDER_TRACE": "false",
        "OPENAI_API_KEY": "sk-scripted",
        "OPENAI_BASE_URL": openai_url,
        "DO_NOT_TRACK": "1",
    }


def _with_host(database_url: str) -> str:
    """The database's address in Letta's form: with a host and a password, though it is used through its socket."""
    parts = urlsplit(database_url)
    return parts._replace(netloc="postgres:x@localhost:5432", query=f"{parts.query}&ssl=disable").geturl()


def _healthy(process: subprocess.Popen[bytes], log: Path, database_url: str) -> LettaServer:
    for _ in range(START_SECONDS * 10):
        found = re.search(r"Uvicorn running on (http://\S+)", _read(log))
        if found:
            # No proxy of the environment is used between the tests and their own machine.
            httpx2.get(f"{found[1]}/v1/health/", timeout=ANSWER_SECONDS, trust_env=False).raise_for_status()
            return LettaServer(found[1], process, log, database_url)
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.1)
            break
    raise AssertionError(f"Letta did not start:\n{_read(log)[-LOG_TAIL:]}")


def _read(log: Path) -> str:
    # The process is still writing, so the last character may be incomplete.
    return log.read_text(encoding="utf-8", errors="replace")


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(STOP_SECONDS)


# A server with the part of Letta's API that a turn needs, which fails as tests configure


AGENT = "agent-11111111-1111-4111-8111-111111111111"
TALK = "conv-11111111-1111-4111-8111-111111111111"
# The beginning of the ids of agents that are made during a test.
MADE = "agent-22222222-2222-4222-"
RUN = "run-11111111-1111-4111-8111-111111111111"


class Mood(Enum):
    """The treatment of a message: answered, cut off in the middle of the answer, or accepted without an answer."""

    GOOD = auto()
    CUT = auto()
    SILENT = auto()
    DROPS = auto()


@dataclass(slots=True)
class MoodyLetta:
    """`moods` are for the next messages: a mood, or a refusal's status with its body and headers."""

    url: str = ""
    moods: list[Mood | tuple[int, Any, Mapping[str, str]]] = field(default_factory=list[Any])
    asked: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])
    headers: list[Mapping[str, str]] = field(default_factory=list[Mapping[str, str]])
    messages: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    cancelled: list[Any] = field(default_factory=list[Any])
    looks: int = 0
    # All requests, to any path.
    requests: list[Request] = field(default_factory=list[Request])
    # The running runs, one entry for each look; the last one stays.
    runs: list[list[dict[str, Any]]] = field(default_factory=lambda: [[]])

    # The requests that made agents, by agent id, besides the fixed agent; and the treatment of the next ones.
    made: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    making: list[int] = field(default_factory=list[int])

    async def agent(self, request: Request) -> Response:
        agent_id = request.path_params["agent_id"]
        if request.method == "DELETE":
            self.made.pop(agent_id, None)
        elif agent_id.startswith(MADE):
            found = self.made.get(agent_id)
            return JSONResponse({"detail": "No such agent"}, 404) if found is None else _as_agent(agent_id, found)
        return _as_agent(AGENT, {"name": "Ada"})

    async def agents(self, request: Request) -> Response:
        tags = set(request.query_params.getlist("tags"))
        found = [_agent_of(one, of) for one, of in self.made.items() if tags <= set(of["tags"])]
        return JSONResponse(found if tags else [_agent_of(AGENT, {"name": "Ada"}), *found])

    async def make(self, request: Request) -> Response:
        made_of = await request.json()
        agent_id = f"{MADE}{len(self.made):04}-4111-8111-111111111111"
        self.made[agent_id] = made_of
        # The agent is made, whatever the answer is.
        return _as_agent(agent_id, self.made[agent_id], self.making.pop(0) if self.making else 200)

    async def talk(self, request: Request) -> Response:
        """Begin a conversation; the fixed agent's has the id that tests know."""
        agent_id = request.query_params["agent_id"]
        return JSONResponse({"id": TALK if agent_id == AGENT else f"conv-{agent_id}", "agent_id": agent_id})

    async def conversation(self, request: Request) -> Response:
        conversation_id = request.path_params["conversation_id"]
        agent_id = conversation_id.removeprefix("conv-")
        return JSONResponse({"id": conversation_id, "agent_id": agent_id if agent_id in self.made else AGENT})

    async def active(self, _request: Request) -> Response:
        self.looks += 1
        return JSONResponse(self.runs.pop(0) if len(self.runs) > 1 else self.runs[0])

    async def history(self, request: Request) -> Response:
        return JSONResponse(self.messages[::-1][: int(request.query_params["limit"])])

    async def cancel(self, request: Request) -> Response:
        self.cancelled.append(await request.json())
        return JSONResponse({})

    async def message(self, request: Request) -> Response:
        body = await request.json()
        self.asked.append(body)
        self.headers.append(dict(request.headers))
        mood = self.moods.pop(0) if self.moods else Mood.GOOD
        if not isinstance(mood, Mood):
            status, said, headers = mood
            return JSONResponse(said, status, dict(headers))
        return StreamingResponse(self._answer(body["messages"][-1], mood), media_type="text/event-stream")

    async def _answer(self, said: Mapping[str, Any], mood: Mood) -> AsyncGenerator[bytes]:
        yield _event("ping", run_id=RUN)
        if mood is Mood.SILENT:
            await anyio.sleep_forever()
        self._keep("user_message", said["content"], said.get("otid"))
        self._keep("assistant_message", "All is well.", None)
        if mood is Mood.DROPS:
            raise ConnectionAbortedError
        yield _event("assistant_message", content="All is ", id="message-2", run_id=RUN, date=_now())
        if mood is Mood.CUT:
            raise ConnectionAbortedError
        yield _event("assistant_message", content="well.", id="message-2", run_id=RUN, date=_now())
        yield _event("stop_reason", stop_reason="end_turn")
        yield _event("usage_statistics", step_count=1, prompt_tokens=1, completion_tokens=1)

    def _keep(self, kind: str, content: str, otid: str | None) -> None:
        number = f"message-{len(self.messages) + 1}"
        self.messages.append(
            {"message_type": kind, "id": number, "date": _now(), "content": content, "otid": otid, "run_id": RUN}
        )


@contextmanager
def open_moody_letta() -> Generator[MoodyLetta]:
    """Run the server, until the end of the block."""
    server = MoodyLetta()
    agent, conversation = "/v1/agents/{agent_id}", "/v1/conversations/{conversation_id}"
    routes = [
        Route(agent, server.agent, methods=["GET", "PATCH", "DELETE"]),
        Route(f"{agent}/messages", server.message, methods=["POST"]),
        Route(f"{agent}/messages", server.history, methods=["GET"]),
        Route(f"{agent}/messages/cancel", server.cancel, methods=["POST"]),
        Route("/v1/agents/", server.agents, methods=["GET"]),
        Route("/v1/agents/", server.make, methods=["POST"]),
        Route("/v1/conversations/", server.talk, methods=["POST"]),
        Route(conversation, server.conversation),
        Route(f"{conversation}/messages", server.message, methods=["POST"]),
        Route(f"{conversation}/messages", server.history, methods=["GET"]),
        Route("/v1/runs/", server.active),
    ]
    app = Starlette(routes=routes)

    async def noted(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            server.requests.append(Request(scope))
        await app(scope, receive, send)

    with serve(noted) as address:
        server.url = address
        yield server


def a_run(number: int, made: datetime | None = None) -> dict[str, Any]:
    return {
        "id": f"run-{number}",
        "agent_id": AGENT,
        "status": "running",
        "created_at": (made or datetime.now(UTC)).isoformat(),
    }


def _agent_of(agent_id: str, made_of: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"id": agent_id, "name": made_of["name"], "tags": made_of.get("tags", []), "blocks": []}


def _as_agent(agent_id: str, made_of: Mapping[str, Any], status: int = 200) -> Response:
    return JSONResponse(_agent_of(agent_id, made_of) if status == 200 else {"detail": "Trouble"}, status)


def _event(kind: str, **fields: Any) -> bytes:
    return b"data: %b\n\n" % json.dumps({"message_type": kind, **fields}).encode()


def _now() -> str:
    return datetime.now(UTC).isoformat()
