"""What the built-in host keeps of an agent."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import NAMESPACE_OID, uuid5


@dataclass(frozen=True, slots=True)
class AttachedTool:
    """A tool of an MCP server that an agent holds."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    server: str
    remote_name: str
    needs_approval: bool = False


def first_conversation(agent_id: str, user_id: str | None = None) -> str:
    """The id of a person's first conversation with an agent; nobody's is there from the start."""
    if user_id is not None:
        return f"conv-{uuid5(NAMESPACE_OID, f'{agent_id} {user_id}')}"
    return f"conv-{agent_id.removeprefix('agent-')}"[:64]


def lane_of(conversation_id: str) -> str:
    return f"conversation:{conversation_id}"
