"""A tool that was handed to an agent of a Letta server, as the door for such tools lists it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PATH = "/mcp/held"


def lane_of(agent_id: str) -> str:
    """What turns of an agent of Letta's stand in, one after the other."""
    return f"letta:{agent_id}"


@dataclass(frozen=True, slots=True)
class Handed:
    """A copy of what the catalogue said; `registered_as` is the MCP server under which Letta has it just so."""

    name: str
    server: str
    remote_name: str
    description: str
    parameters: Mapping[str, Any]
    registered_as: str | None = None

    @property
    def identity(self) -> tuple[str, str]:
        """Whose tool it is, and its name there."""
        return self.server, self.remote_name

    def says_the_same_as(self, other: "Handed") -> bool:
        """Whether Letta would be told the same of both."""
        return (self.description, self.parameters) == (other.description, other.parameters)
