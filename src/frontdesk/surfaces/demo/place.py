"""How the tool server that comes with Frontdesk is reached."""

import sys

from frontdesk.tools.catalogue.servers import ServerSpec, Transport

NAME = "demo-desk"
MODULE = "frontdesk.surfaces.demo.tools"
ABOUT = "Tools to try things with: their answers are made up, and nothing is done."


def spec(name: str = NAME) -> ServerSpec:
    """The server as the catalogue takes it: a program of our own, started where Frontdesk runs."""
    return ServerSpec(name, Transport.STDIO, command=sys.executable, args=("-m", MODULE), description=ABOUT)
