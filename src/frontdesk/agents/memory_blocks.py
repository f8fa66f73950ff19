"""Decides which person's text a memory block has and who may change it, and lists a block's changes."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from frontdesk.agents.host import AgentHost, BlockVersion, MemoryBlock, PersonFilter
from frontdesk.errors import Conflict, Invalid, NotFound
from frontdesk.identity.keys import LOCAL_USER
from frontdesk.text import is_storable, storable

LABEL_LENGTH = 100
MAX_BLOCKS = 50
PER_PERSON_LABEL = "human"


def is_per_person(block: MemoryBlock) -> bool:
    """Whether each person has their own text in the block."""
    return block.label == PER_PERSON_LABEL if block.per_person is None else block.per_person


def block_row_user(user_id: str | None) -> str:
    """The user whose row of a block a turn reads and writes.

    The person at this machine is `local` in an editor and has no name in a terminal; both are the same person.
    """
    return "" if user_id is None or user_id == LOCAL_USER else user_id


def may_change_block(block: MemoryBlock, *, runs: bool) -> bool:
    """Whether a turn may change the block at all; `runs` is true where it acts for a person who runs the agent."""
    return runs or block.people_write or is_per_person(block)


def require_block_changeable(block: MemoryBlock, memory: Sequence[MemoryBlock], *, runs: bool) -> None:
    """Raise `Invalid`, in words for the model, where the block is shared by everybody for whom the agent works."""
    if may_change_block(block, runs=runs):
        return
    others = [one.label for one in memory if may_change_block(one, runs=runs) and not one.read_only]
    instead = (
        f"write what you learn of this person to: {', '.join(others)}" if others else "keep it in the conversation"
    )
    raise Invalid(
        f"The memory block '{block.label}' is shared by everybody this agent works for, and only people who run the "
        f"agent may change it; {instead}"
    )


def initial_blocks(name: str, given: Sequence[MemoryBlock]) -> Sequence[MemoryBlock]:
    """The given blocks, with the usual two where they are missing; raises `Invalid` for impossible blocks."""
    labels = {block.label for block in given}
    usual = (
        MemoryBlock("persona", f"I am {name}.", "Who I am, how I speak and what I care about."),
        MemoryBlock("human", "", "What I know about the person I talk with."),
    )
    blocks = [*(block for block in usual if block.label not in labels), *given]
    _check_blocks(blocks)
    return blocks


def change_block(block: MemoryBlock, change: Callable[[str], str]) -> MemoryBlock:
    """The block with another value; raises `Invalid` if it may not be written or the value is too long."""
    if block.read_only:
        raise Invalid(f"The memory block '{block.label}' is read-only; write to another one")
    after = replace(block, value=storable(change(block.value)))
    _check_block_size(after)
    return after


def value_fingerprint(value: str) -> str:
    """A short text that identifies a value; an editor sends back the fingerprint of the value that it saw."""
    return hashlib.sha256(value.encode(errors="surrogatepass")).hexdigest()[:16]


def make_replacement(label: str, value: str, seen: str | None) -> Callable[[str], str]:
    """A change to another value; raises `Conflict` where the present value no longer has the fingerprint `seen`."""

    def change(before: str) -> str:
        if seen is not None and value_fingerprint(before) != seen:
            raise Conflict(
                f"The memory block '{label[:100]}' was changed meanwhile; look at it again and repeat the change"
            )
        return value

    return change


def _check_blocks(blocks: Sequence[MemoryBlock]) -> None:
    if len(blocks) > MAX_BLOCKS:
        raise Invalid(f"An agent may have at most {MAX_BLOCKS} memory blocks")
    if len({block.label for block in blocks}) < len(blocks):
        raise Invalid("Two memory blocks have the same label; give each its own")
    for block in blocks:
        if not block.label or len(block.label) > LABEL_LENGTH:
            raise Invalid(f"A memory block's label must have 1 to {LABEL_LENGTH} characters")
        if not all(map(is_storable, (block.label, block.value, block.description))):
            raise Invalid("A text has characters that cannot be stored; remove NUL and broken Unicode")
        _check_block_size(block)


def _check_block_size(block: MemoryBlock) -> None:
    if len(block.value) > block.limit:
        raise Invalid(f"The memory block '{block.label}' takes {block.limit} characters; this is {len(block.value)}")


@dataclass(frozen=True, slots=True)
class BlockChange:
    """One change of a block's value."""

    at: datetime
    before: str
    after: str


def block_changes(now: str, versions: Sequence[BlockVersion]) -> Sequence[BlockChange]:
    """The changes of a block, the newest first, from its present value and its earlier versions."""
    after = [now, *(version.value for version in versions)]
    return [BlockChange(version.until, version.value, later) for version, later in zip(versions, after, strict=False)]


async def find_block(host: AgentHost, agent_id: str, label: str, user_id: PersonFilter = None) -> MemoryBlock:
    found = {block.label: block for block in await host.blocks(agent_id, user_id)}
    if label not in found:
        raise NotFound(f"There is no memory block '{label[:100]}'; there are: {', '.join(found) or 'none'}")
    return found[label]
