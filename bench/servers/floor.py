"""Runs the minimal server: the least Starlette code that answers a `tools/call`, without identity and records."""

import sys
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from bench.servers.listening import serve, tool_names


def echo(text: str) -> str:
    return text


def application(count: int) -> Starlette:
    tools = dict.fromkeys(tool_names(count), echo)

    async def rpc(request: Request) -> JSONResponse:
        frame = await request.json()
        if frame["method"] != "tools/call":
            return JSONResponse({"jsonrpc": "2.0", "id": frame["id"], "error": {"code": -32601, "message": "No"}})
        params: dict[str, Any] = frame["params"]
        text = tools[params["name"]](**params["arguments"])
        result = {"resultType": "complete", "content": [{"type": "text", "text": text}]}
        return JSONResponse({"jsonrpc": "2.0", "id": frame["id"], "result": result})

    return Starlette(routes=[Route("/mcp", rpc, methods=["POST"])])


if __name__ == "__main__":
    serve(application(int(sys.argv[1])), lifespan=False)
