"""One conversation with a Letta agent, over the wire: send, look at what waits, stop, read back."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import anyio
from letta_client import AsyncStream, BadRequestError, omit
from letta_client.types import Conversation as LettaConversation
from letta_client.types.agents import (
    ApprovalRequestMessage,
    LettaStreamingResponse,
    Message,
    ToolCallMessage,
)

from frontdesk.agents.host import Block, Conversation
from frontdesk.agents.letta.history import answer_to, in_order
from frontdesk.agents.letta.inputs import Input, approval, denial, offered_tool
from frontdesk.agents.letta.memory import block_of
from frontdesk.agents.letta.server import Server
from frontdesk.agents.letta.words import arguments_of, calls_of, requests_of
from frontdesk.errors import Invalid, NotFound
from frontdesk.loop.events import ApprovalRequest, ToolCall
from frontdesk.loop.tools import Tool

# Letta's name for the conversation that every agent has from the start.
DEFAULT = "default"
RUNS = 100
LOOKED_THROUGH = 500
PAGE = 1000
TOO_LITTLE = "failed to reduce the number of messages"
# A run that has only just been asked for may not be listed yet.
LOOKS = (0.0, 0.2, 0.4, 0.8)


@dataclass(frozen=True, slots=True)
class Mind:
    """What an agent thinks with, how many tokens that takes in (0 where unknown), and its memory."""

    model: str | None
    window: int
    blocks: Sequence[Block]


@dataclass(frozen=True, slots=True)
class Thread:
    """`conversation_id` None is the agent's own first conversation."""

    server: Server
    agent_id: str
    conversation_id: str | None = None

    @property
    def name(self) -> str:
        return self.conversation_id or DEFAULT

    @property
    def about(self) -> str:
        if self.conversation_id is None:
            return f"agent '{self.agent_id}'"
        return f"conversation '{self.conversation_id}' of agent '{self.agent_id}'"

    async def open(
        self, messages: Sequence[Input], tools: Sequence[Tool], max_steps: int, model: str | None = None
    ) -> AsyncStream[LettaStreamingResponse]:
        """Begin a run, with another model than the agent's where one is named; its messages follow as they come."""
        offered = [offered_tool(tool) for tool in tools] or omit
        if self.conversation_id is None:
            return await self.server.streaming.agents.messages.create(
                self.agent_id,
                messages=messages,
                client_tools=offered,
                max_steps=max_steps,
                override_model=model or omit,
                streaming=True,
                stream_tokens=True,
                include_pings=True,
            )
        return await self.server.streaming.conversations.messages.create(
            self.conversation_id,
            messages=messages,
            client_tools=offered,
            max_steps=max_steps,
            override_model=model or omit,
            streaming=True,
            stream_tokens=True,
            include_pings=True,
        )

    async def pending(self) -> list[ApprovalRequest]:
        """What waits for approval; `NotFound` where there is no such agent or conversation."""
        client = self.server.client
        with self.server.asking(self.about):
            if self.conversation_id is None:
                state = await client.agents.retrieve(self.agent_id, include=["agent.pending_approval"])
                return requests_of(state.pending_approval) if state.pending_approval else []
            await self._check_owner(self.conversation_id)
            newest = await client.conversations.messages.list(self.conversation_id, order="desc", limit=1)
        return [
            request
            for message in newest.items
            if isinstance(message, ApprovalRequestMessage)
            for request in requests_of(message)
        ]

    async def held_back(self) -> list[ToolCall]:
        """The calls of Letta's own tools that run as soon as what waits beside them is answered."""
        return [
            ToolCall(call.tool_call_id or "", call.name or "", arguments_of(call.arguments or ""))
            for message in await self.recent(2)
            if isinstance(message, ToolCallMessage)
            for call in calls_of(message)
        ]

    async def mind(self) -> Mind:
        """The agent's model and its memory blocks, which all its conversations share."""
        with self.server.asking(self.about):
            state = await self.server.client.agents.retrieve(self.agent_id, include=["agent.blocks"])
        window = state.llm_config.context_window if getattr(state, "llm_config", None) else 0
        return Mind(state.model, window, [block_of(block) for block in state.blocks or ()])

    async def recent(self, limit: int) -> list[Message]:
        """The newest messages, the oldest of them first."""
        found = await self._page(min(limit, PAGE), None)
        known = {message.id for message in found}
        page = found if limit > PAGE else []
        while page and len(known) < limit:
            page = [one for one in await self._page(PAGE, found[0].id) if one.id not in known]
            known |= {message.id for message in page}
            found = [*page, *found]
        return found

    async def _page(self, limit: int, before: str | None) -> list[Message]:
        """So many messages, the newest or those before one. The client would stop after the first page."""
        client = self.server.client
        with self.server.asking(self.about):
            if self.conversation_id is None:
                page = await client.agents.messages.list(
                    self.agent_id, conversation_id=DEFAULT, order="desc", limit=limit, before=before or omit
                )
                return in_order(page.items, newest_first=False)
            await self._check_owner(self.conversation_id)
            page = await client.conversations.messages.list(
                self.conversation_id, order="desc", limit=limit, before=before or omit
            )
        return in_order(page.items, newest_first=True)

    async def compact(self) -> str | None:
        """Have what was said summed up; None where Letta finds too little of it."""
        with self.server.asking(self.about):
            try:
                # A model sums it up, and that takes its time.
                answer = await self.server.streaming.conversations.messages.compact(self.name, agent_id=self.agent_id)
            except BadRequestError as error:
                if TOO_LITTLE in str(error.body):
                    return None
                raise
        return answer.summary

    async def fork(self) -> Conversation:
        """A copy of the conversation, in which nothing waits for approval."""
        if self.conversation_id is None:
            # Letta 0.16 moves what was said into the copy.
            raise Invalid("Letta cannot copy an agent's first conversation; copy one that was begun after it")
        with self.server.asking(self.about):
            await self._check_owner(self.conversation_id)
            copy = conversation_of(await self.server.client.conversations.fork(self.conversation_id))
        self.server.remember(copy.id, self.agent_id)
        await replace(self, conversation_id=copy.id).deny_pending("The conversation was copied")
        return copy

    async def forget(self) -> None:
        """Delete the conversation; nothing where there is none, or where it is the agent's first."""
        if self.conversation_id is None:
            return
        with suppress(NotFound), self.server.asking(self.about):
            await self._check_owner(self.conversation_id)
            await self.server.client.conversations.delete(self.conversation_id)
        self.server.drop(self.conversation_id)

    async def answer_to(self, otid: str) -> str | None:
        """What the agent said to words that were sent under this name; None where it never got them."""
        return answer_to(await self.recent(LOOKED_THROUGH), otid)

    async def deny_pending(self, reason: str) -> bool:
        """Reject all that waits, and have the agent say nothing to it; whether anything did."""
        pending = await self.pending()
        if not pending:
            return False
        answers = approval([denial(request.call_id, reason) for request in pending])
        with self.server.asking(self.about):
            # The one step takes in the answers, and there is none left for the model.
            async with await self.open([answers], (), max_steps=1) as stream:
                async for _ in stream:
                    continue
        return True

    async def stop(self, runs: list[str]) -> None:
        with self.server.asking(self.about):
            await self.server.client.agents.messages.cancel(self.agent_id, run_ids=runs)

    async def stop_what_runs(self, looks: Sequence[float] = LOOKS[:1]) -> bool:
        """Stop every run of this conversation, ours or not; whether there was any."""
        for wait in looks:
            await anyio.sleep(wait)
            if runs := await self.active():
                await self.stop(runs)
                return True
        return False

    async def active(self) -> list[str]:
        with self.server.asking(self.about):
            runs = await self.server.client.runs.list(agent_id=self.agent_id, active=True, order="asc", limit=RUNS)
        return [run.id for run in runs.items if (run.conversation_id or DEFAULT) == self.name]

    async def runs_between(self, began: datetime, ended: datetime | None) -> set[str]:
        """Those of the newest runs that began in a time, or since."""
        with self.server.asking(self.about):
            runs = await self.server.client.runs.list(agent_id=self.agent_id, order="desc", limit=RUNS)
        ours = [run for run in runs.items if (run.conversation_id or DEFAULT) == self.name]
        last = ended or datetime.now(UTC)
        return {run.id for run in ours if run.created_at is not None and began <= run.created_at <= last}

    async def _check_owner(self, conversation_id: str) -> None:
        if await self.server.owner(conversation_id) != self.agent_id:
            raise NotFound(f"The Letta server has no {self.about}")


def conversation_of(given: LettaConversation) -> Conversation:
    return Conversation(given.id, given.agent_id, given.created_at or datetime.now(UTC), given.summary or "")
