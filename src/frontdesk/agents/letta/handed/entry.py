"""Which MCP server Letta should know the handed tools under: where Letta reaches us, and what proves who is calling."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from letta_client.types import StreamableHTTPMcpServer

from frontdesk.agents.letta.handed.model import PATH

DOOR = re.compile(r"/mcp(/\w+)?/?$")
NAME = "frontdesk"
# Letta finds a tool's server by a tag in which a colon ends the name.
UNUSABLE = ":"


@dataclass(frozen=True, slots=True)
class Entry:
    """An MCP server as Letta should have it."""

    name: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    def is_like(self, known: StreamableHTTPMcpServer) -> bool:
        return known.server_url == self.url and (known.custom_headers or {}) == self.headers


def wanted_entry(connected: Sequence[StreamableHTTPMcpServer], names: Collection[str], base_url: str) -> Entry:
    """Beside one that `frontdesk letta connect` made, whose address is proven; else below our own address.

    Of several the one that has such an entry beside it already (`names` are all that Letta has): tools that were
    handed out before are known under that.
    """
    usable = [known for known in connected if _is_usable(known)]
    usable.sort(key=lambda known: name_beside(known.server_name) not in names)
    if not usable:
        return Entry(name_beside(NAME), f"{base_url.rstrip('/')}{PATH}")
    first = usable[0]
    return Entry(name_beside(first.server_name), held_url(first.server_url), first.custom_headers or {})


def held_url(door: str) -> str:
    """The address of the handed tools, from that of another door of the same house."""
    return DOOR.sub(PATH, door)


def name_beside(name: str) -> str:
    return f"{name}-held"


def _is_usable(known: StreamableHTTPMcpServer) -> bool:
    door = DOOR.search(known.server_url)
    return door is not None and not known.server_url.endswith(PATH) and UNUSABLE not in known.server_name
