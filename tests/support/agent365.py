"""Agent 365 for tests: the local platform in a thread, a platform that answers byte by byte, and adapters."""

import asyncio
import base64
import json
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import httpx2
import psutil
import pytest

from frontdesk.agent365.agent_identity import reset_application_name_cache
from frontdesk.agent365.environment import ENVIRONMENT_VARIABLES, MANIFEST_NAME, SHARED_APP_ID
from frontdesk.agent365.local_platform import LocalPlatformState
from frontdesk.agent365.local_tokens import TokenMode
from frontdesk.interfaces.agent365.application import build_platform_application
from frontdesk.interfaces.agent365.control import HangUpProtocol
from frontdesk.interfaces.http.uvicorn_server import UvicornServer, uvicorn_config
from tests.support.serving import address_of, listen, run_aside

# The local platform in a thread of this process, on a loopback port; tests read its log and inject failures


SECONDS = 10
# The purpose of a token when a test does not care.
APP = "11111111-2222-3333-4444-555555555555"


@dataclass(frozen=True, slots=True)
class LocalPlatform:
    """A running platform: its address, its manifest on disk, its backend, and a client for tests."""

    url: str
    manifest: Path
    standin: LocalPlatformState
    http: httpx2.Client

    def requests(self, agent: str = "") -> list[dict[str, Any]]:
        """The request log, oldest first."""
        return self.ask("GET", f"/requests?agent={quote(agent)}")["requests"]

    def chats(self) -> list[dict[str, Any]]:
        return self.ask("GET", "/chats")["chats"]

    def fault(self, part: str, **fault: Any) -> None:
        """`fault("discovery", status=503, times=1)`, `fault("server:Mail", close=True)`."""
        self.ask("PUT", "/faults", {part: fault})

    def mend(self) -> None:
        """Remove every fault."""
        self.ask("DELETE", "/faults")

    def token(self, audience: str = SHARED_APP_ID, **claims: object) -> str:
        """A token of this platform; claims replace the usual ones."""
        return self.standin.token_signer.issue(audience, time.time(), {"appid": APP, "azp": APP, **claims})

    def headers(self, audience: str = SHARED_APP_ID, **claims: object) -> dict[str, str]:
        """The header with such a token."""
        return {"authorization": f"Bearer {self.token(audience, **claims)}"}

    def discover(self, headers: Mapping[str, str] | None = None, app_id: str = APP) -> httpx2.Response:
        """Request the servers, with a valid token unless the test passes another."""
        url = f"{self.url}/agents/v2/{quote(app_id, safe='')}/mcpServers"
        return self.http.get(url, headers=self.headers() if headers is None else dict(headers))

    def rpc(
        self,
        server: str,
        method: str,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx2.Response:
        """One JSON-RPC request to a tool server, as clients of the older era send it, with a valid token."""
        frame = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
        url = f"{self.url}/agents/servers/{quote(server, safe='')}"
        said = {"content-type": "application/json", **self.headers(), **(headers or {})}
        return self.http.post(url, content=json.dumps(frame), headers=said)

    def call(self, server: str, tool: str, headers: Mapping[str, str] | None = None, /, **arguments: Any) -> Any:
        """The answer of a server's tool."""
        return self.rpc(server, "tools/call", {"name": tool, "arguments": arguments}, headers).json()["result"]

    def write(self, manifest: Mapping[str, Any]) -> None:
        """Replace the present manifest."""
        _write(self.manifest, manifest)

    def ask(self, method: str, path: str, body: object = None) -> Any:
        answer = self.http.request(method, f"{self.url}{path}", json=body).raise_for_status()
        return answer.json() if answer.content else None


@contextmanager
def local_platform(
    manifest: Mapping[str, Any] | Path,
    *,
    tokens: str = "claims",
    seed: int | None = 1,
    sleep: Callable[[float], Awaitable[None]] | None = None,
) -> Generator[LocalPlatform]:
    """Run the platform until the end of the block; a manifest that is not a path is written to a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = manifest if isinstance(manifest, Path) else Path(folder) / MANIFEST_NAME
        if not isinstance(manifest, Path):
            _write(path, manifest)
        standin = LocalPlatformState.for_manifest(path, TokenMode(tokens), seed)
        if sleep is not None:
            standin.sleep = sleep
        listener = listen()
        server = UvicornServer(uvicorn_config(build_platform_application(standin), http=HangUpProtocol))
        # A new client for each request takes longer than the request.
        with run_aside(server, listener), httpx2.Client(timeout=SECONDS) as http:
            yield LocalPlatform(address_of(listener), path, standin, http)


def _write(path: Path, manifest: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(manifest))


# A platform with scripted answers, byte by byte, and the turns and tokens for its requests


# A piece of an answer: some bytes, or one of these.
HANG_UP = None
HOLD = b"<nothing more, and the connection stays>"

Answer = Iterable[bytes | None]


@dataclass(frozen=True, slots=True)
class GatewayCall:
    """A received request; names of headers are in lower case."""

    raw: bytes
    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def said(self) -> Any:
        return json.loads(self.body)


class Gateway:
    """Gives each request the next answer, and the last one from then on."""

    def __init__(self, *answers: Answer) -> None:
        self.requests: list[GatewayCall] = []
        self.connections = 0
        self.open = 0
        self.url = ""
        self._answers = list(answers) or [whole({"mcpServers": []})]

    def environ(self, **more: str) -> dict[str, str]:
        """The environment that directs a client to this platform."""
        return {"PYTHON_ENVIRONMENT": "Production", "MCP_PLATFORM_ENDPOINT": self.url, **more}

    def answer_to(self, asked: GatewayCall) -> Answer:  # noqa: ARG002 - for those who answer what was asked
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        try:
            while True:
                asked = await _read(reader)
                self.requests.append(asked)
                await _say(self.answer_to(asked), reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.open -= 1
            writer.close()


@asynccontextmanager
async def opened(gateway: Gateway, port: int = 0) -> AsyncGenerator[Gateway]:
    """Run it on this loop until the end of the block."""
    server = await asyncio.start_server(gateway.serve, "127.0.0.1", port)
    async with server:
        gateway.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield gateway


def whole(document: object, status: int = 200, **headers: str) -> list[bytes | None]:
    """An answer in one piece; text and bytes unchanged, anything else as JSON."""
    body = (
        document if isinstance(document, bytes) else (document if isinstance(document, str) else json.dumps(document))
    )
    body = body.encode() if isinstance(body, str) else body
    return [head(status, content_length=str(len(body)), **headers) + body]


def head(status: int = 200, **headers: str) -> bytes:
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([f"HTTP/1.1 {status} Said", *lines, "", ""]).encode()


def servers(*entries: Mapping[str, object] | str) -> list[bytes | None]:
    """An answer that lists servers."""
    named = [{"mcpServerName": entry} if isinstance(entry, str) else entry for entry in entries]
    return whole({"mcpServers": named})


def jwt(claims: object = None, /, **more: object) -> str:
    """An unsigned token with these claims."""
    said = more if claims is None else claims
    parts = (base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in ({}, said))
    return ".".join([*parts, "c2ln"])


def turn(**activity: object) -> SimpleNamespace:
    """A turn whose activity holds these."""
    return SimpleNamespace(activity=SimpleNamespace(**activity))


def chatting(**more: object) -> SimpleNamespace:
    """A turn that can be sent."""
    said = {"conversation": SimpleNamespace(id="talk"), "id": "turn-1", "text": "Hello", **more}
    return turn(**said)


async def _read(reader: asyncio.StreamReader) -> GatewayCall:
    start = await reader.readuntil(b"\r\n\r\n")
    first, *lines = start.decode("latin-1").rstrip("\r\n").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    method, target, _ = first.split(" ")
    return GatewayCall(start + body, method, target, headers, body)


async def _say(answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    for piece in answer:
        if piece is None:
            raise ConnectionAbortedError
        if piece == HOLD:
            # Ends when the other side hangs up.
            await reader.read()
            raise ConnectionAbortedError
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0)


# Shared by the tests of the adapters: a manifest, a turn, a token exchange, open tasks and sockets


FILES_AUDIENCE = "api://files-app"
HANDLER = "agentic"
# The servers accept any token for the shared audience, so tokens differ only in the application that they name.
SHARED_APP, MAIL_APP, FILES_APP = "shared-app", "mail-app", "files-app"


def tool(name: str, template: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}
    return {"name": name, "description": f"Does {name}.", "inputSchema": schema, "responseTemplate": template}


def entry(name: str, *tools: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"mcpServerName": name, "tools": list(tools), **more}


MAIL = entry("Mail", tool("send_mail", "mail to {{to}}"))
FILES = entry("Files", tool("share_file", "file for {{to}}"), audience=FILES_AUDIENCE, scope="Files.Read")
MANIFEST = {"mcpServers": [MAIL, FILES]}


def host_turn(**activity: Any) -> SimpleNamespace:
    """A turn as hosts pass it in."""
    said: dict[str, Any] = {"id": "activity-1", "text": "hello", "conversation": SimpleNamespace(id="conversation-1")}
    return SimpleNamespace(activity=SimpleNamespace(**{**said, **activity}))


class Exchange:
    """Exchanges tokens as a host does, and remembers the scopes; with `gives` False it has none to give."""

    def __init__(self, platform: LocalPlatform, gives: bool = True) -> None:
        self.asked: list[str] = []
        self._platform = platform
        self._gives = gives

    async def exchange_token(self, _context: object, scopes: list[str], auth_handler_id: str, /) -> object:
        assert auth_handler_id == HANDLER
        [scope] = scopes
        self.asked.append(scope)
        audience = scope.rpartition("/")[0]
        app = FILES_APP if audience == FILES_AUDIENCE else SHARED_APP
        return SimpleNamespace(token=self._platform.token(audience, appid=app) if self._gives else "")


class NoExchange:
    """Must not be called."""

    async def exchange_token(self, _context: object, scopes: list[str], _handler: str, /) -> object:
        raise AssertionError(f"a token was exchanged for {scopes}")


def in_production(platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch) -> Exchange:
    """From now on the servers are those that the platform lists."""
    _surroundings(platform, monkeypatch)
    monkeypatch.setenv("PYTHON_ENVIRONMENT", "Production")
    return Exchange(platform)


def in_development(platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch, folder: Path) -> NoExchange:
    """From now on the servers are those of a manifest in this folder, with a token for each in its variable."""
    _surroundings(platform, monkeypatch)
    (folder / MANIFEST_NAME).write_text(platform.manifest.read_text())
    monkeypatch.chdir(folder)
    monkeypatch.setenv("BEARER_TOKEN_MAIL", f"Bearer {platform.token(appid=MAIL_APP)}")
    monkeypatch.setenv("BEARER_TOKEN_FILES", platform.token(FILES_AUDIENCE, appid=FILES_APP))
    return NoExchange()


def calls(platform: LocalPlatform) -> list[tuple[str, str, str | None, str, str | None]]:
    """Each call of a tool: (server, tool, x-ms-agentid, the result of the token check, framework)."""
    found = [seen for seen in platform.requests() if seen["rpcMethod"] == "tools/call"]
    return [(seen["server"], seen["tool"], seen["agentId"], seen["token"], seen["orchestrator"]) for seen in found]


def history(platform: LocalPlatform) -> Sequence[tuple[str, str]]:
    """The senders and texts of the only sent chat."""
    [chat] = platform.chats()
    return [(message["role"], message["content"]) for message in chat["chatHistory"]]


def own_tasks() -> set[asyncio.Task[Any]]:
    """The running tasks, except those that run the tests."""
    return {task for task in asyncio.all_tasks() if not _runs_tests(task)}


def own_connections(platform: LocalPlatform) -> int:
    """How many sockets of this process are connected to the platform."""
    port = int(platform.url.rpartition(":")[2])
    return sum(bool(each.raddr) and each.raddr.port == port for each in psutil.Process().net_connections("tcp"))


def _runs_tests(task: asyncio.Task[Any]) -> bool:
    return getattr(task.get_coro(), "__qualname__", "").startswith("TestRunner.")


def _surroundings(platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ENVIRONMENT_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MCP_PLATFORM_ENDPOINT", platform.url)
    reset_application_name_cache()
