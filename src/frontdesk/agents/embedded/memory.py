"""An agent's memory within a turn: what stands before its eyes, and the tools with which it changes that."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pydantic import Field

from frontdesk.agents.embedded.store import AgentStore, Guard
from frontdesk.agents.host import Block
from frontdesk.errors import Invalid
from frontdesk.loop.events import MemoryEdit
from frontdesk.loop.tools import Given, Tool, ToolOutcome, typed_tool


class Insert(Given):
    """Add to a block."""

    label: str = Field(description="The block's label")
    new_string: str = Field(description="The text to add, as a line of its own")
    insert_line: int = Field(-1, description="After which line: 0 is the beginning, -1 the end")


class Replace(Given):
    """Replace a passage."""

    label: str = Field(description="The block's label")
    old_string: str = Field(min_length=1, description="The passage, exactly as it stands, once in the block")
    new_string: str = Field(description="What is to stand there instead; empty to remove it")


class Rethink(Given):
    """Write a block anew."""

    label: str = Field(description="The block's label")
    new_memory: str = Field(description="The block's whole new text")


@dataclass(slots=True)
class Memory:
    """The blocks as a turn for one person sees them; an edit is stored at once, and shown from the next request on.

    `runs`: the turn acts for somebody who runs the agent. `guard` keeps a turn that was given up from writing.
    """

    store: AgentStore
    agent_id: str
    user_id: str | None = None
    runs: bool = False
    guard: Guard | None = None
    blocks: dict[str, Block] = field(default_factory=dict[str, Block])

    def shown(self) -> str:
        """The blocks as they stand in the instructions."""
        return "\n".join(
            f'<block label="{block.label}" limit="{block.limit}"{" read_only" if block.read_only else ""}>\n'
            f"{block.value}\n</block>"
            for block in self.blocks.values()
        )

    def tools(self) -> Sequence[Tool]:
        return (
            typed_tool("memory_insert", "Add a line to one of your memory blocks.", Insert, self._insert),
            typed_tool("memory_replace", "Replace a passage in one of your memory blocks.", Replace, self._replace),
            typed_tool("memory_rethink", "Write one of your memory blocks anew, as a whole.", Rethink, self._rethink),
        )

    async def _insert(self, given: Insert) -> ToolOutcome:
        return await self._edit(given.label, lambda value: inserted(value, given.new_string, given.insert_line))

    async def _replace(self, given: Replace) -> ToolOutcome:
        return await self._edit(given.label, lambda value: replaced(value, given.old_string, given.new_string))

    async def _rethink(self, given: Rethink) -> ToolOutcome:
        return await self._edit(given.label, lambda _value: given.new_memory)

    async def _edit(self, label: str, change: Callable[[str], str]) -> ToolOutcome:
        before, after = await self.store.edit_block(
            self.agent_id, label, change, datetime.now(UTC), self.user_id, runs=self.runs, guard=self.guard
        )
        self.blocks[label] = after
        return ToolOutcome(after.value, events=(MemoryEdit(label, before.value, after.value),))


def inserted(value: str, text: str, line: int) -> str:
    lines = value.split("\n") if value else []
    if line < -1 or line > len(lines):
        raise Invalid(f"There is no line {line}; the block has {len(lines)} lines")
    at = len(lines) if line == -1 else line
    return "\n".join([*lines[:at], text, *lines[at:]])


def replaced(value: str, old: str, new: str) -> str:
    times = value.count(old)
    if times != 1:
        raise Invalid("The passage is not in the block" if times == 0 else f"The passage stands there {times} times")
    return value.replace(old, new)
