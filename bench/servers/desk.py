"""Runs Frontdesk as `frontdesk up` starts it, with invented tools next to its own."""

import sys

from pydantic import BaseModel

from bench.servers.listening import tool_names
from frontdesk.app import CORE_OPERATIONS, App
from frontdesk.interfaces.cli.serve import serve_http
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.http.context import ASGIApp
from frontdesk.operations import Call, McpTool, Operation, OperationRequest, Requires
from frontdesk.settings import Settings


class EchoInput(OperationRequest):
    """What to say back."""

    text: str


class Echo(BaseModel):
    """What was said."""

    text: str


async def echo(_app: App, _call: Call, request: EchoInput) -> Echo:
    return Echo(text=request.text)


def operations(count: int) -> list[Operation]:
    """So many operations with a tool, the core ones among them if there is room."""
    core = CORE_OPERATIONS if count > len(CORE_OPERATIONS) else ()
    return [*core, *map(echo_operation, tool_names(count - len(core)))]


def echo_operation(name: str) -> Operation:
    return Operation(
        name=name,
        summary="Says it back",
        request=EchoInput,
        run=echo,
        requires=Requires.AGENT,
        mcp=McpTool(title=name, description="Says it back.", response=Echo),
    )


def build(app: App) -> ASGIApp:
    return build_application(app, [app.bind(operation, app) for operation in operations(int(sys.argv[1]))])


if __name__ == "__main__":
    serve_http(Settings.read().with_values(host="127.0.0.1", port=0), build)
