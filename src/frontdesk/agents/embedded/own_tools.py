"""The tools every built-in agent has besides its memory: looking back, and saying what it is going to do."""

from collections.abc import Sequence

from pydantic import Field
from pydantic_ai.messages import ModelRequest

from frontdesk.agents.embedded.talk.store import TalkStore
from frontdesk.identity.rights import AGENTS_READ
from frontdesk.loop.events import Plan, PlanStep, StepStatus
from frontdesk.loop.messages import text_of
from frontdesk.loop.tools import Given, Tool, ToolOutcome, typed_tool

FOUND_CHARACTERS = 500


class Search(Given):
    """What to look for."""

    query: str = Field(min_length=1, max_length=400, description="Words that must all be in the message")
    limit: int = Field(10, ge=1, le=50, description="At most so many messages")


class Step(Given):
    """One step."""

    text: str = Field(min_length=1, max_length=500, description="What is to be done")
    status: StepStatus = Field(StepStatus.PENDING, description="How far it is")


class Steps(Given):
    """The plan as a whole."""

    steps: list[Step] = Field(max_length=50, description="Every step, done or not, in order")


def conversation_search(store: TalkStore, agent_id: str, user_id: str | None) -> Tool:
    """Look back over the agent's conversations with this one person; other people's are out of its reach."""

    async def search(given: Search) -> ToolOutcome:
        found = await store.search(agent_id, user_id, given.query, given.limit)
        lines = [
            f"[{at:%Y-%m-%d %H:%M} UTC] {'user' if isinstance(message, ModelRequest) else 'you'}: "
            f"{text_of(message)[:FOUND_CHARACTERS]}"
            for at, message in found
        ]
        return ToolOutcome("\n".join(lines) or "Nothing was said with these words.")

    description = "Search everything said in your conversations with this person."
    return typed_tool("conversation_search", description, Search, search, AGENTS_READ, reads_only=True)


def update_plan() -> Tool:
    """Show what the agent is going to do; the plan lives in the conversation alone."""

    async def plan(given: Steps) -> ToolOutcome:
        steps: Sequence[PlanStep] = tuple(PlanStep(step.text, step.status) for step in given.steps)
        return ToolOutcome("The plan is shown.", events=(Plan(steps),))

    return typed_tool(
        "update_plan", "Show your plan for a task of several steps; call it again as steps are done.", Steps, plan
    )
