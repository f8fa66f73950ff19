"""An agent's memory blocks as Letta has them, and what a turn changed in them."""

from collections.abc import Mapping, Sequence

from letta_client.types import BlockResponse
from letta_client.types.agents import Block as LettaBlock

from frontdesk.agents.host import Block
from frontdesk.loop.events import Event, MemoryEdit, ToolReturn, ToolStatus

MEMORY_TOOLS = frozenset(
    {
        "core_memory_append",
        "core_memory_replace",
        "memory",
        "memory_apply_patch",
        "memory_insert",
        "memory_replace",
        "memory_rethink",
    }
)
LIMIT = 100_000


def block_of(given: LettaBlock | BlockResponse) -> Block:
    return Block(
        given.label or "", given.value, given.description or "", given.limit or LIMIT, read_only=bool(given.read_only)
    )


def values_of(blocks: Sequence[Block]) -> dict[str, str]:
    return {block.label: block.value for block in blocks}


def edits(before: Mapping[str, str], after: Mapping[str, str]) -> list[MemoryEdit]:
    """What changed, in the order of the blocks; a block that came or went was or is empty."""
    labels = [*after, *(label for label in before if label not in after)]
    changes = [MemoryEdit(label, before.get(label, ""), after.get(label, "")) for label in labels]
    return [change for change in changes if change.before != change.after]


def may_have_changed(events: Sequence[Event]) -> bool:
    """Whether a memory tool among these worked."""
    return any(
        isinstance(event, ToolReturn) and event.status is ToolStatus.OK and event.name in MEMORY_TOOLS
        for event in events
    )
