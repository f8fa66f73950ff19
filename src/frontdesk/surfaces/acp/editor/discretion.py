"""What went wrong with a server, without what only its editor and the server itself may know; pure."""

import re
from collections.abc import Iterator, Sequence
from urllib.parse import parse_qsl, unquote, urlsplit

from frontdesk.loop.mcp.model import McpServer, bare_token
from frontdesk.loop.text import one_line

LONGEST = 300
# Shorter values are words such as `true` or `/mcp`, and would leave nothing readable.
SECRET_LENGTH = 6
SECRET = "[secret]"  # noqa: S105 - no secret
ASSIGNED = re.compile(r"=(.+)", re.DOTALL)


def discreet(said: str, server: McpServer) -> str:
    """A text on one line in which the server goes by its name, and nothing of how it is reached is left."""
    secrets = sorted({one for one in _secrets(server) if len(one) >= SECRET_LENGTH}, key=len, reverse=True)
    # Its name is no secret, even where it is also a word of its command.
    between = [_without(secrets, part) for part in said.split(str(server))]
    return one_line(f"The MCP server '{server.name}'".join(between), LONGEST)


def _without(secrets: Sequence[str], said: str) -> str:
    for secret in secrets:
        said = said.replace(secret, SECRET)
    return said


def _secrets(server: McpServer) -> Iterator[str]:
    yield from server.env.values()
    for value in server.headers.values():
        yield value
        yield bare_token(value) or ""
    for argument in server.command[1:]:
        yield argument
        yield from ASSIGNED.findall(argument)
    yield from _parts(server.url)


def _parts(url: str) -> Iterator[str]:
    """An address and all of it that might be a key: steps of the path, and what the query says."""
    parts = urlsplit(url)
    yield from (url, parts.path, parts.query, parts.fragment)
    for step in parts.path.split("/"):
        yield step
        yield unquote(step)
    for _, value in parse_qsl(parts.query):
        yield value
