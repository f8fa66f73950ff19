"""Runs FastMCP's BM25 search in the peers' environment: reads tools in one line, then a question a line."""

import asyncio
import importlib
import json
import logging
import sys
import time
from collections.abc import Mapping
from typing import Any

DEPTH = 10


def main() -> None:
    # It logs a paragraph about each name that does not follow its recommendation.
    logging.disable(logging.WARNING)
    transforms = importlib.import_module("fastmcp.server.transforms.search")
    tool_class = importlib.import_module("fastmcp.tools.base").Tool
    search = transforms.BM25SearchTransform(max_results=DEPTH)
    tools = [_tool(tool_class, told) for told in json.loads(sys.stdin.readline())]
    with asyncio.Runner() as runner:
        for line in sys.stdin:
            started = time.process_time_ns()
            found = runner.run(search._search(tools, json.loads(line)))  # noqa: SLF001 - its public way wants a running server
            spent = time.process_time_ns() - started
            print(json.dumps({"names": [tool.name for tool in found], "cpu_ms": spent / 1e6}), flush=True)


def _tool(tool_class: Any, told: Mapping[str, Any]) -> Any:  # noqa: ANN401 - unseen by the type checker
    properties = {name: {"type": "string", "description": text} for name, text in told["parameters"].items()}
    schema = {"type": "object", "properties": properties}
    return tool_class(name=told["name"], description=told["description"], parameters=schema)


if __name__ == "__main__":
    main()
