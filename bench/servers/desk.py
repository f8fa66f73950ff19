"""Frontdesk as `frontdesk up` starts it, with made-up tools next to its own."""

import functools
import sys

from bench.servers.listening import tool_names
from frontdesk.app import App
from frontdesk.identity.model import Caller
from frontdesk.settings import Settings
from frontdesk.surfaces import http
from frontdesk.surfaces.cli.serving import open_doors
from frontdesk.surfaces.mcp.core import CORE
from frontdesk.surfaces.mcp.tool import Answer, Arguments, ToolSpec


class Said(Arguments):
    """What to say back."""

    text: str


class Echo(Answer):
    """What was said."""

    text: str


async def echo(app: App, caller: Caller, said: Said) -> Echo:
    app.identity.require_agent(caller)
    return Echo(text=said.text)


def specs(count: int) -> tuple[ToolSpec, ...]:
    """So many tools, the core among them where there is room."""
    own = CORE if count > len(CORE) else ()
    made_up = (
        ToolSpec(name=name, title=name, description="Says it back.", arguments=Said, answer=Echo, run=echo)
        for name in tool_names(count - len(own))
    )
    return (*own, *made_up)


if __name__ == "__main__":
    settings = Settings.read().replaced(host="127.0.0.1", port=0)
    open_doors(settings, functools.partial(http.build, specs=specs(int(sys.argv[1]))))
