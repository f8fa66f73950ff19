"""A tool server that says back what it was shown, wherever a server can say something of its own."""

import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.support.serving import serve

TOOLS = ("fails", "fails_at_length", "fails_in_figures", "asks_back", "is_refused")
# What stands before the headers in a long answer.
FILLING = "x" * 900


@dataclass(slots=True)
class Parrot:
    """Its tools fail, each in another way; `lists` and `greets` turned off, so do listing and handshake."""

    url: str = ""
    lists: bool = True
    greets: bool = True

    async def post(self, request: Request) -> Response:
        frame = await request.json()
        if "id" not in frame:
            return Response(status_code=202)
        answer = self._answer(frame, json.dumps(dict(request.headers)))
        return JSONResponse({"jsonrpc": "2.0", "id": frame["id"], **answer})

    def _answer(self, frame: Mapping[str, Any], shown: str) -> dict[str, Any]:
        match frame["method"]:
            case "initialize":
                version = "2025-06-18" if self.greets else shown
                return {"result": {"protocolVersion": version, "capabilities": {}, "serverInfo": {"name": "parrot"}}}
            case "tools/list" if self.lists:
                return {"result": {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]}}
            case "tools/call" if (name := frame["params"]["name"]) != "is_refused":
                return {"result": _failed(name, shown)}
            case _:
                return {"error": {"code": -32000, "message": f"not with {shown}"}}


def _failed(tool: str, shown: str) -> dict[str, Any]:
    text = {"type": "text", "text": f"not with {shown}"}
    results: dict[str, dict[str, Any]] = {
        "fails": {"isError": True, "content": [text]},
        "fails_at_length": {"isError": True, "content": [{**text, "text": FILLING + shown}] * 20},
        "fails_in_figures": {"isError": True, "content": [], "structuredContent": {"seen": [{shown: shown}]}},
        "asks_back": {"resultType": shown, "content": []},
    }
    return results[tool]


@contextmanager
def open_parrot() -> Generator[Parrot]:
    parrot = Parrot()
    with serve(Starlette(routes=[Route("/mcp", parrot.post, methods=["POST"])])) as address:
        parrot.url = f"{address}/mcp"
        yield parrot
