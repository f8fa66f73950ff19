"""What the built-in host keeps of an agent."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class AttachedTool:
    """A tool of an MCP server that an agent holds."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    server: str
    remote_name: str
    needs_approval: bool = False


def first_conversation(agent_id: str) -> str:
    """The id of the conversation that every agent has from the start."""
    return f"conv-{agent_id.removeprefix('agent-')}"[:64]


def lane_of(conversation_id: str) -> str:
    return f"conversation:{conversation_id}"
