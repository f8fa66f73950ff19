"""Says something to an agent and waits for its answer, for whoever has nowhere to follow a turn as it goes."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field

import anyio

from frontdesk.agents.host import AgentHost, Prompt
from frontdesk.errors import Conflict
from frontdesk.journal.model import Kind, Outcome
from frontdesk.journal.record import Record
from frontdesk.journal.service import Journal
from frontdesk.loop.events import Done, Event, Failed, Started, StopReason, TextChunk


@dataclass(slots=True)
class Answer:
    """What came of a turn: `trouble` says in words why it came to nothing."""

    conversation_id: str = ""
    stop: StopReason = StopReason.INTERRUPTED
    trouble: str | None = None
    parts: list[str] = field(default_factory=list[str])

    @property
    def text(self) -> str:
        return "".join(self.parts)

    def hear(self, event: Event) -> None:
        match event:
            case Started(conversation_id=where):
                self.conversation_id = where
            case TextChunk(text):
                self.parts.append(text)
            case Failed(message=words):
                self.trouble = words
            case Done(stop):
                self.stop = stop
            case _:
                return


async def ask(host: AgentHost, journal: Journal, surface: str, prompt: Prompt, seconds: float) -> Answer:
    """Have an agent take a turn, and wait for its end; one that takes longer than this is stopped."""
    answer = Answer()
    with Record(journal, surface, "turn", prompt.acting, Kind.TURN) as record:
        with anyio.move_on_after(seconds) as limit:
            async with aclosing(host.send(prompt)) as events:
                async for event in events:
                    answer.hear(event)
        if limit.cancelled_caught:
            raise Conflict(f"The agent had no answer after {seconds:.0f} s, and was stopped; ask for less at a time")
        if answer.stop.is_broken:
            record.outcome, record.reason = Outcome.FAILED, answer.stop
    return answer


async def recorded(host: AgentHost, journal: Journal, surface: str, prompt: Prompt) -> AsyncGenerator[Event]:
    """The events of a turn, of which the journal gets a row however it ends."""
    with Record(journal, surface, "turn", prompt.acting, Kind.TURN) as record:
        async with aclosing(host.send(prompt)) as events:
            async for event in events:
                if isinstance(event, Done) and event.stop.is_broken:
                    record.outcome, record.reason = Outcome.FAILED, event.stop
                yield event
