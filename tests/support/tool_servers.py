"""Tool servers with configurable behaviour: page their listing, hang, die midway, lie, rename; on loopback ports."""

import os
import subprocess
import sys
import threading
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.support.serving import address_of, listen, serve

STOP_SECONDS = 10
ROOT = Path(__file__).parents[2]
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"text": {"type": "string", "description": "What to work on."}},
    "required": ["text"],
}


@dataclass(slots=True)
class ToolServer:
    """Answers a call with its own name and the tool's, which shows where the call arrived.

    `hangs`: a listing gets no answer; `asked` is set once a client waits for one. `dies_at`: the process ends when a
    client requests this page of the listing.
    """

    name: str
    tools: list[dict[str, Any]]
    url: str = ""
    page: int = 10
    hangs: bool = False
    dies_at: int | None = None
    refuses: str = ""
    listings: int = 0
    called: list[str] = field(default_factory=list[str])
    asked: threading.Event = field(default_factory=threading.Event)

    async def post(self, request: Request) -> Response:
        frame = await request.json()
        if "id" not in frame:
            return Response(status_code=202)
        method: str = frame["method"]
        params: Mapping[str, Any] = frame.get("params") or {}
        if method == "tools/list" and self.hangs:
            self.asked.set()
            await _hung_up(request)
        answer = self._answer(method, params)
        return JSONResponse({"jsonrpc": "2.0", "id": frame["id"], **answer})

    def _answer(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        if method == "initialize":
            server = {"name": self.name, "version": "1"}
            about: Mapping[str, Any] = {"capabilities": {"tools": {}}, "serverInfo": server}
            return {"result": {"protocolVersion": params["protocolVersion"], **about}}
        if method == "tools/list" and not self.refuses:
            return {"result": self._listing(int(params.get("cursor", 0)))}
        if method == "tools/call":
            self.called.append(params["name"])
            return {"result": {"content": [{"type": "text", "text": f"{self.name}: {params['name']}"}]}}
        return {"error": {"code": -32000, "message": self.refuses or f"{method}?"}}

    def _listing(self, page: int) -> dict[str, Any]:
        if page == self.dies_at:
            os._exit(1)
        self.listings += page == 0
        start = page * self.page
        more = {"nextCursor": str(page + 1)} if start + self.page < len(self.tools) else {}
        return {"tools": self.tools[start : start + self.page], **more}


def tool(name: str, description: str = "", schema: object = SCHEMA) -> dict[str, Any]:
    """A tool as a server lists it."""
    return {"name": name, "description": description or f"Does {name}.", "inputSchema": schema}


def tools(names: Iterable[str]) -> list[dict[str, Any]]:
    return [tool(name) for name in names]


@contextmanager
def open_tool_server(name: str, listed: Iterable[dict[str, Any]] = ()) -> Generator[ToolServer]:
    """Run a server in a thread, until the end of the block."""
    server = ToolServer(name, list(listed))
    with serve(_app(server)) as address:
        server.url = f"{address}/mcp"
        yield server


@contextmanager
def open_dying_server(name: str, count: int) -> Generator[str]:
    """Run a server as a process that dies while it lists its tools for the second time; gives its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.tool_servers", name, str(count)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate(timeout=STOP_SECONDS)


async def _hung_up(request: Request) -> None:
    """Wait until the client gives up."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


class _Dying(ToolServer):
    """Lists everything once; the second time it dies at its second page."""

    def _listing(self, page: int) -> dict[str, Any]:
        self.dies_at = 1 if self.listings > 1 else None
        return ToolServer._listing(self, page)


def _app(server: ToolServer) -> Starlette:
    return Starlette(routes=[Route("/mcp", server.post, methods=["POST"])])


def main() -> None:
    name, count = sys.argv[1:]
    server = _Dying(name, tools(f"{name}_{number}" for number in range(int(count))))
    listener = listen()
    sys.stdout.write(f"{address_of(listener)}/mcp\n")
    sys.stdout.flush()
    uvicorn.Server(uvicorn.Config(_app(server), access_log=False, log_config=None)).run([listener])


if __name__ == "__main__":
    main()
