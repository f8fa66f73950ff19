"""The rules of memory blocks, the same on every host."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace

from frontdesk.agents.host import Block
from frontdesk.errors import Conflict, Invalid
from frontdesk.identity.keys import FIRST_USER
from frontdesk.loop.text import is_storable, storable

LABEL_LENGTH = 100
MOST = 50
PER_PERSON = "human"


def is_per_person(block: Block) -> bool:
    """Whether each person has a text of their own in it."""
    return block.label == PER_PERSON if block.per_person is None else block.per_person


def row_of(user_id: str | None) -> str:
    """Whose row of a block a turn reads and writes.

    The person at this machine is `local` in an editor and named nowhere in a terminal, and is one.
    """
    return "" if user_id is None or user_id == FIRST_USER else user_id


def is_open(block: Block, *, runs: bool) -> bool:
    """Whether a turn may change the block at all; `runs` is whether it acts for somebody who runs the agent."""
    return runs or block.people_write or is_per_person(block)


def check_open(block: Block, memory: Sequence[Block], *, runs: bool) -> None:
    """`Invalid`, in words for the model, where the block belongs to all whom the agent works for."""
    if is_open(block, runs=runs):
        return
    others = [one.label for one in memory if is_open(one, runs=runs) and not one.read_only]
    instead = (
        f"write what you learn of this person to: {', '.join(others)}" if others else "keep it in the conversation"
    )
    raise Invalid(
        f"The memory block '{block.label}' is shared by everybody this agent works for, and only whoever runs the "
        f"agent may change it; {instead}"
    )


def starting(name: str, given: Sequence[Block]) -> Sequence[Block]:
    """The blocks of a new agent: those given, and the usual two where they were not; `Invalid` where they cannot be."""
    labels = {block.label for block in given}
    usual = (
        Block("persona", f"I am {name}.", "Who I am, how I speak and what I care about."),
        Block("human", "", "What I know about the person I talk with."),
    )
    blocks = [*(block for block in usual if block.label not in labels), *given]
    _check(blocks)
    return blocks


def changed(block: Block, change: Callable[[str], str]) -> Block:
    """The block with another value; `Invalid` where it may not be written, or takes less."""
    if block.read_only:
        raise Invalid(f"The memory block '{block.label}' is read-only; write to another one")
    after = replace(block, value=storable(change(block.value)))
    _check_size(after)
    return after


def mark_of(value: str) -> str:
    """Tells a value from others: what somebody who changes it had before their eyes."""
    return hashlib.sha256(value.encode(errors="surrogatepass")).hexdigest()[:16]


def replacing(label: str, value: str, seen: str | None) -> Callable[[str], str]:
    """A change to another value; `Conflict` where what stands there is not any more what `seen` marks."""

    def change(before: str) -> str:
        if seen is not None and mark_of(before) != seen:
            raise Conflict(
                f"The memory block '{label[:100]}' was changed meanwhile; look at it again and repeat the change"
            )
        return value

    return change


def _check(blocks: Sequence[Block]) -> None:
    if len(blocks) > MOST:
        raise Invalid(f"An agent may have at most {MOST} memory blocks")
    if len({block.label for block in blocks}) < len(blocks):
        raise Invalid("Two memory blocks have the same label; give each its own")
    for block in blocks:
        if not block.label or len(block.label) > LABEL_LENGTH:
            raise Invalid(f"A memory block's label must have 1 to {LABEL_LENGTH} characters")
        if not all(map(is_storable, (block.label, block.value, block.description))):
            raise Invalid("A text has characters that cannot be stored; remove NUL and broken Unicode")
        _check_size(block)


def _check_size(block: Block) -> None:
    if len(block.value) > block.limit:
        raise Invalid(f"The memory block '{block.label}' takes {block.limit} characters; this is {len(block.value)}")
