"""Runs the peer: FastMCP with as many trivial tools, stateless and with plain JSON answers, its cheapest HTTP setup.

It answers both eras that way. In the newer one it lists all its tools for each call with arguments, to compare the
`Mcp-Param-*` headers with the called tool's schema: that is why its cost there grows with the number of tools.
"""

import importlib
import sys
from collections.abc import Callable
from typing import Any

from bench.servers.listening import serve, tool_names


def application(count: int) -> Any:  # noqa: ANN401 - FastMCP lives in another environment, unseen by the type checker
    server = importlib.import_module("fastmcp").FastMCP("peer")
    for name in tool_names(count):
        server.tool(_tool(), name=name)
    return server.http_app(path="/mcp", stateless_http=True, json_response=True)


def _tool() -> Callable[[str], str]:
    def echo(text: str) -> str:
        """Say it back."""
        return text

    return echo


if __name__ == "__main__":
    serve(application(int(sys.argv[1])), lifespan=True)
