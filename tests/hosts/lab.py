"""A host under test, of any kind, behind one interface that hides the differences from the tests."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass
from json import dumps
from typing import Any, TypeVar

import anyio

from frontdesk.agents.host import Agent, AgentHost, Approval, MemoryBlock, NewAgent, Prompt
from frontdesk.app import open_app
from frontdesk.identity.model import Caller
from frontdesk.llm.events import Event, TextChunk
from frontdesk.llm.tools import Tool, ToolOutcome
from frontdesk.settings import Settings
from tests.support.models.application import ModelServer

SECONDS = 60
CALLER = Caller("req-test", local=True)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Lab:
    """Opens a host again and again on the same data: each time as a new process would see it."""

    settings: Settings
    model: str | None
    models: ModelServer
    dead: Settings
    bad_key: Settings

    def open(self, settings: Settings | None = None) -> AbstractAsyncContextManager[AgentHost]:
        return opened(settings or self.settings)

    async def agent(self, host: AgentHost, **blocks: str) -> Agent:
        memory = [MemoryBlock(label, value) for label, value in blocks.items()]
        return await host.create(NewAgent("Ada", "A test.", self.model, memory))


@asynccontextmanager
async def opened(settings: Settings) -> AsyncGenerator[AgentHost]:
    async with open_app(settings) as app:
        yield app.host


def script(*steps: dict[str, Any]) -> str:
    """A message that makes the scripted model do this."""
    return f"@@{dumps(steps)}@@"


async def take(
    host: AgentHost,
    agent_id: str,
    text: str | None = None,
    *,
    approvals: Sequence[Approval] = (),
    tools: Sequence[Tool] = (),
    conversation_id: str | None = None,
    max_steps: int = 10,
    caller: Caller = CALLER,
    **more: Any,
) -> list[Event]:
    """The events of one whole turn; `more` are the other fields of the prompt."""
    prompt = Prompt(agent_id, caller, text, approvals, conversation_id, tools, max_steps, **more)
    with anyio.fail_after(SECONDS):
        async with aclosing(host.send(prompt)) as events:
            return [event async for event in events]


def said(events: Sequence[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextChunk))


def of_kind(events: Sequence[Event], kind: type[T]) -> list[T]:
    return [event for event in events if isinstance(event, kind)]


def client_tool(name: str, answer: Callable[[Any], str], *, needs_approval: bool = False) -> Tool:
    """A tool of the caller's, for one turn."""

    async def run(arguments: Any) -> ToolOutcome:
        return ToolOutcome(answer(arguments))

    schema = {"type": "object", "properties": {"x": {"type": "string"}}}
    return Tool(name, "Does what the test wants.", schema, run, needs_approval)
