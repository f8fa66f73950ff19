"""The tools of every built-in agent: for its memory, for search in its conversations, and for a plan."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pydantic import Field
from pydantic_ai.messages import ModelRequest

from frontdesk.agents.embedded.conversation_store import ConversationStore
from frontdesk.agents.embedded.store import AgentStore, EditGuard
from frontdesk.agents.host import MemoryBlock
from frontdesk.errors import Invalid
from frontdesk.identity.rights import AGENTS_READ
from frontdesk.llm.events import MemoryEdit, Plan, PlanStep, StepStatus
from frontdesk.llm.messages import message_text
from frontdesk.llm.tools import Tool, ToolInput, ToolOutcome, typed_tool


class MemoryInsertInput(ToolInput):
    """The arguments of a tool that adds a text to a block."""

    label: str = Field(description="The block's label")
    new_string: str = Field(description="The text to add, as a line of its own")
    insert_line: int = Field(-1, description="After which line: 0 is the beginning, -1 the end")


class MemoryReplaceInput(ToolInput):
    """The arguments of a tool that replaces a passage."""

    label: str = Field(description="The block's label")
    old_string: str = Field(min_length=1, description="The passage, exactly as it stands, once in the block")
    new_string: str = Field(description="What is to stand there instead; empty to remove it")


class MemoryRethinkInput(ToolInput):
    """The arguments of a tool that replaces a block's whole text."""

    label: str = Field(description="The block's label")
    new_memory: str = Field(description="The block's whole new text")


@dataclass(slots=True)
class MemoryTools:
    """The memory blocks of one turn for one person; an edit is stored immediately, and the next request shows it.

    `runs` is true if the turn acts for a person who runs the agent. `guard` stops the writes of a turn that another
    process took over.
    """

    store: AgentStore
    agent_id: str
    user_id: str | None = None
    runs: bool = False
    guard: EditGuard | None = None
    blocks: dict[str, MemoryBlock] = field(default_factory=dict[str, MemoryBlock])

    def render(self) -> str:
        """The blocks as text for the instructions."""
        return "\n".join(
            f'<block label="{block.label}" limit="{block.limit}"{" read_only" if block.read_only else ""}>\n'
            f"{block.value}\n</block>"
            for block in self.blocks.values()
        )

    def tools(self) -> Sequence[Tool]:
        return (
            typed_tool("memory_insert", "Add a line to one of your memory blocks.", MemoryInsertInput, self._insert),
            typed_tool(
                "memory_replace", "Replace a passage in one of your memory blocks.", MemoryReplaceInput, self._replace
            ),
            typed_tool(
                "memory_rethink", "Write one of your memory blocks anew, as a whole.", MemoryRethinkInput, self._rethink
            ),
        )

    async def _insert(self, request: MemoryInsertInput) -> ToolOutcome:
        return await self._edit(
            request.label, lambda value: insert_line(value, request.new_string, request.insert_line)
        )

    async def _replace(self, request: MemoryReplaceInput) -> ToolOutcome:
        return await self._edit(
            request.label, lambda value: replace_passage(value, request.old_string, request.new_string)
        )

    async def _rethink(self, request: MemoryRethinkInput) -> ToolOutcome:
        return await self._edit(request.label, lambda _value: request.new_memory)

    async def _edit(self, label: str, change: Callable[[str], str]) -> ToolOutcome:
        before, after = await self.store.edit_block(
            self.agent_id, label, change, datetime.now(UTC), self.user_id, runs=self.runs, guard=self.guard
        )
        self.blocks[label] = after
        return ToolOutcome(after.value, events=(MemoryEdit(label, before.value, after.value),))


def insert_line(value: str, text: str, line: int) -> str:
    lines = value.split("\n") if value else []
    if line < -1 or line > len(lines):
        raise Invalid(f"There is no line {line}; the block has {len(lines)} lines")
    at = len(lines) if line == -1 else line
    return "\n".join([*lines[:at], text, *lines[at:]])


def replace_passage(value: str, old: str, new: str) -> str:
    times = value.count(old)
    if times != 1:
        raise Invalid("The passage is not in the block" if times == 0 else f"The passage stands there {times} times")
    return value.replace(old, new)


RESULT_CHARACTERS = 500


class ConversationSearchInput(ToolInput):
    """What to look for."""

    query: str = Field(min_length=1, max_length=400, description="Words that must all be in the message")
    limit: int = Field(10, ge=1, le=50, description="At most so many messages")


class PlanStepInput(ToolInput):
    """One step."""

    text: str = Field(min_length=1, max_length=500, description="What is to be done")
    status: StepStatus = Field(StepStatus.PENDING, description="How far it is")


class PlanInput(ToolInput):
    """The plan as a whole."""

    steps: list[PlanStepInput] = Field(max_length=50, description="Every step, done or not, in order")


def conversation_search(store: ConversationStore, agent_id: str, user_id: str | None) -> Tool:
    """A tool that searches the agent's conversations with this person, and no others."""

    async def search(request: ConversationSearchInput) -> ToolOutcome:
        found = await store.search(agent_id, user_id, request.query, request.limit)
        lines = [
            f"[{at:%Y-%m-%d %H:%M} UTC] {'user' if isinstance(message, ModelRequest) else 'you'}: "
            f"{message_text(message)[:RESULT_CHARACTERS]}"
            for at, message in found
        ]
        return ToolOutcome("\n".join(lines) or "Nothing was said with these words.")

    description = "Search everything said in your conversations with this person."
    return typed_tool("conversation_search", description, ConversationSearchInput, search, AGENTS_READ, reads_only=True)


def update_plan() -> Tool:
    """A tool that shows a plan; the plan is stored only in the conversation."""

    async def plan(request: PlanInput) -> ToolOutcome:
        steps: Sequence[PlanStep] = tuple(PlanStep(step.text, step.status) for step in request.steps)
        return ToolOutcome("The plan is shown.", events=(Plan(steps),))

    return typed_tool(
        "update_plan", "Show your plan for a task of several steps; call it again as steps are done.", PlanInput, plan
    )
