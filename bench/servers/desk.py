"""Runs Frontdesk as `frontdesk up` starts it, with invented tools next to its own."""

import functools
import sys

from bench.servers.listening import tool_names
from frontdesk.app import App
from frontdesk.identity.model import Caller
from frontdesk.interfaces.cli.serve import serve_http
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.mcp.server import CORE_TOOLS
from frontdesk.interfaces.mcp.tool_spec import McpToolInput, McpToolOutput, ToolSpec
from frontdesk.settings import Settings


class EchoInput(McpToolInput):
    """What to say back."""

    text: str


class Echo(McpToolOutput):
    """What was said."""

    text: str


async def echo(app: App, caller: Caller, said: EchoInput) -> Echo:
    app.identity.require_agent(caller)
    return Echo(text=said.text)


def specs(count: int) -> tuple[ToolSpec, ...]:
    """This many tools, including the core tools if there is room."""
    own = CORE_TOOLS if count > len(CORE_TOOLS) else ()
    made_up = (
        ToolSpec(name=name, title=name, description="Says it back.", arguments=EchoInput, answer=Echo, run=echo)
        for name in tool_names(count - len(own))
    )
    return (*own, *made_up)


if __name__ == "__main__":
    settings = Settings.read().with_values(host="127.0.0.1", port=0)
    serve_http(settings, functools.partial(build_application, specs=specs(int(sys.argv[1]))))
