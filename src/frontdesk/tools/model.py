"""The words of the tools room: a tool, the server it is of, and where it stands in the catalogue."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, cast

from frontdesk.loop.mcp.names import api_name

SEPARATOR = "::"
# The server under which the agent host's own tools are listed.
HOST_SERVER = "host"


class Kind(StrEnum):
    """Where a tool lives, and so how it is called."""

    MCP = "mcp"
    HOST = "host"


class Standing(StrEnum):
    """Whether a tool may be handed out. A held one changed, and waits for somebody to look at the change."""

    READY = "ready"
    HELD = "held"


@dataclass(frozen=True, slots=True)
class CatalogueTool:
    """A tool that agents may be given. `stale`: its server did not answer when it was last asked."""

    id: str
    server: str
    name: str
    description: str
    parameters: Mapping[str, Any]
    kind: Kind = Kind.MCP
    annotations: Mapping[str, Any] = field(default_factory=dict[str, Any])
    standing: Standing = Standing.READY
    change: str = ""
    stale: bool = False
    seen_at: datetime | None = None
    changed_at: datetime | None = None

    @property
    def api_name(self) -> str:
        """What models see it as, and whoever calls it may say; the host's own go by their names."""
        return self.name if self.kind is Kind.HOST else api_name(self.server, self.name, {})

    @property
    def parameter_names(self) -> tuple[list[str], list[str]]:
        """(the parameters that it must be given, those that it may be given)."""
        properties, required = self.parameters.get("properties"), self.parameters.get("required")
        known = list(cast("Mapping[str, Any]", properties)) if isinstance(properties, Mapping) else []
        needed = (
            [name for name in cast("list[object]", required) if name in known] if isinstance(required, list) else []
        )
        return cast("list[str]", needed), [name for name in known if name not in needed]


def tool_id(server: str, name: str) -> str:
    """`server::tool`: no two tools share one, whatever a server calls its own."""
    return f"{server}{SEPARATOR}{name}"


def split_id(found: str) -> tuple[str, str]:
    """The server and the tool's own name; a server's name holds no separator."""
    server, _, name = found.partition(SEPARATOR)
    return server, name
