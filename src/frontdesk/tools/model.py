"""Defines a catalogue tool, its kind, its review status, its id, and the text that is embedded for it."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, cast

from frontdesk.mcp_client.model import api_name

ID_SEPARATOR = "::"
# The server under which the agent host's own tools are listed.
HOST_SERVER = "host"


class ToolKind(StrEnum):
    """Where a tool runs, and so how it is called."""

    MCP = "mcp"
    HOST = "host"


class ReviewStatus(StrEnum):
    """Whether agents may get a tool. A held tool changed, and waits for a review."""

    READY = "ready"
    HELD = "held"


@dataclass(frozen=True, slots=True)
class CatalogueTool:
    """A tool that agents may get. `stale`: its server did not answer the last request."""

    id: str
    server: str
    name: str
    description: str
    parameters: Mapping[str, Any]
    kind: ToolKind = ToolKind.MCP
    annotations: Mapping[str, Any] = field(default_factory=dict[str, Any])
    standing: ReviewStatus = ReviewStatus.READY
    change: str = ""
    stale: bool = False
    seen_at: datetime | None = None
    changed_at: datetime | None = None

    @property
    def api_name(self) -> str:
        """The name that models see and callers may use. The host's own tools keep their names."""
        return self.name if self.kind is ToolKind.HOST else api_name(self.server, self.name, {})

    @property
    def parameter_names(self) -> tuple[list[str], list[str]]:
        """The required parameters, and the optional ones."""
        properties, required = self.parameters.get("properties"), self.parameters.get("required")
        known = list(cast("Mapping[str, Any]", properties)) if isinstance(properties, Mapping) else []
        needed = (
            [name for name in cast("list[object]", required) if name in known] if isinstance(required, list) else []
        )
        return cast("list[str]", needed), [name for name in known if name not in needed]


def tool_id(server: str, name: str) -> str:
    """`server::tool`. It is unique, because server names contain no separator."""
    return f"{server}{ID_SEPARATOR}{name}"


def split_id(found: str) -> tuple[str, str]:
    """The server and the tool's own name. The server's name contains no separator."""
    server, _, name = found.partition(ID_SEPARATOR)
    return server, name


_SEPARATORS = re.compile(r"[_\-./:\s]+")
_LOWER_THEN_UPPER = re.compile(r"([a-z0-9])([A-Z])")
_UPPER_THEN_WORD = re.compile(r"([A-Z]+)([A-Z][a-z])")


def tool_text(server: str, name: str, description: str, parameter_names: Iterable[str]) -> str:
    """`server | name as words: description (inputs: parameter, parameter)`, without empty parts."""
    heading = " | ".join(part for part in (space_words(server), space_words(name)) if part)
    inputs = ", ".join(space_words(parameter) for parameter in parameter_names)
    return f"{heading}: {description}" + (f" (inputs: {inputs})" if inputs else "")


def space_words(name: str) -> str:
    """`getHTTPStatus_v2` as `get HTTP Status v2`."""
    words = _SEPARATORS.sub(" ", name)
    words = _LOWER_THEN_UPPER.sub(r"\1 \2", words)
    return " ".join(_UPPER_THEN_WORD.sub(r"\1 \2", words).split())
