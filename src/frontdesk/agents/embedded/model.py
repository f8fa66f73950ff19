"""What the built-in host keeps of an agent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from frontdesk.agents.host import Block

PERSONA = "persona"
HUMAN = "human"


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


def starting_blocks(name: str, given: Sequence[Block]) -> Sequence[Block]:
    """The blocks of a new agent: those given, and a persona and a human where they were not."""
    labels = {block.label for block in given}
    usual = (
        Block(PERSONA, f"I am {name}.", "Who I am, how I speak and what I care about."),
        Block(HUMAN, "", "What I know about the person I talk with."),
    )
    return [*(block for block in usual if block.label not in labels), *given]
