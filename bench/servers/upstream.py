"""Runs the MCP server behind the proxies: a bare Starlette handler, so that a call has a small and constant cost."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bench.servers.listening import serve, tool_names

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def application(count: int) -> Starlette:
    names = tool_names(count)
    known, listed = frozenset(names), listing(names)

    def result(method: str, params: Mapping[str, Any]) -> Mapping[str, Any] | None:
        match method:
            case "tools/call" if params["name"] in known:
                return {"content": [{"type": "text", "text": params["arguments"]["text"]}]}
            case "tools/list":
                return listed
            case "initialize":
                return welcome(params["protocolVersion"])
            case "ping":
                return {}
            case _:
                return None

    async def rpc(request: Request) -> Response:
        frame = await request.json()
        if "id" not in frame:
            return Response(status_code=202)
        found = result(frame["method"], frame.get("params", {}))
        if found is None:
            return JSONResponse({"jsonrpc": "2.0", "id": frame["id"], "error": {"code": -32601, "message": "No"}})
        return JSONResponse({"jsonrpc": "2.0", "id": frame["id"], "result": found})

    return Starlette(routes=[Route("/mcp", rpc, methods=["POST"])])


def listing(names: Sequence[str]) -> Mapping[str, Any]:
    return {"tools": [{"name": name, "description": "Says it back.", "inputSchema": SCHEMA} for name in names]}


def welcome(version: str) -> Mapping[str, Any]:
    """The answer to a handshake: no session, and any version, since a call is the same in all of them."""
    return {
        "protocolVersion": version,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "upstream", "version": "1"},
    }


if __name__ == "__main__":
    serve(application(int(sys.argv[1])), lifespan=False)
