"""One conversation with a Letta agent, over the wire: send, look at what waits, stop, read back."""

from collections.abc import Sequence
from dataclasses import dataclass

import anyio
from letta_client import AsyncStream, omit
from letta_client.types import MessageCreateParam
from letta_client.types.agents import (
    ApprovalCreateParam,
    ApprovalRequestMessage,
    ApprovalReturnParam,
    LettaStreamingResponse,
    Message,
    ToolCallMessage,
    ToolReturnParam,
)
from letta_client.types.agents.message_create_params import ClientTool

from frontdesk.agents.host import Block
from frontdesk.agents.letta.history import answer_to, in_order
from frontdesk.agents.letta.memory import block_of
from frontdesk.agents.letta.server import Server
from frontdesk.agents.letta.words import arguments_of, calls_of, requests_of
from frontdesk.errors import NotFound
from frontdesk.loop.events import ApprovalRequest, ToolCall
from frontdesk.loop.tools import Tool

# Letta's name for the conversation that every agent has from the start.
DEFAULT = "default"
RUNS = 100
LOOKED_THROUGH = 500
# A run that has only just been asked for may not be listed yet.
LOOKS = (0.0, 0.2, 0.4, 0.8)

Answer = ApprovalReturnParam | ToolReturnParam
Input = MessageCreateParam | ApprovalCreateParam


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
        self, messages: Sequence[Input], tools: Sequence[Tool], max_steps: int
    ) -> AsyncStream[LettaStreamingResponse]:
        """Begin a run; its messages follow as they come to be."""
        offered = [_offered(tool) for tool in tools] or omit
        if self.conversation_id is None:
            return await self.server.streaming.agents.messages.create(
                self.agent_id,
                messages=messages,
                client_tools=offered,
                max_steps=max_steps,
                streaming=True,
                stream_tokens=True,
                include_pings=True,
            )
        return await self.server.streaming.conversations.messages.create(
            self.conversation_id,
            messages=messages,
            client_tools=offered,
            max_steps=max_steps,
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

    async def memory(self) -> tuple[str | None, list[Block]]:
        """The agent's model and its memory blocks, which all its conversations share."""
        with self.server.asking(self.about):
            state = await self.server.client.agents.retrieve(self.agent_id, include=["agent.blocks"])
        return state.model, [block_of(block) for block in state.blocks or ()]

    async def recent(self, limit: int) -> list[Message]:
        """The newest messages, the oldest of them first."""
        client = self.server.client
        # One page, the newest first: paging on in this order would stop after it anyway.
        with self.server.asking(self.about):
            if self.conversation_id is None:
                page = await client.agents.messages.list(
                    self.agent_id, conversation_id=DEFAULT, order="desc", limit=limit
                )
                return in_order(page.items, newest_first=False)
            await self._check_owner(self.conversation_id)
            page = await client.conversations.messages.list(self.conversation_id, order="desc", limit=limit)
        return in_order(page.items, newest_first=True)

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

    async def _check_owner(self, conversation_id: str) -> None:
        if await self.server.owner(conversation_id) != self.agent_id:
            raise NotFound(f"The Letta server has no {self.about}")


def spoken(text: str, otid: str | None) -> MessageCreateParam:
    said: MessageCreateParam = {"role": "user", "content": text}
    return said if otid is None else {**said, "otid": otid}


def approval(answers: Sequence[Answer]) -> ApprovalCreateParam:
    return {"type": "approval", "approvals": answers}


def denial(call_id: str, reason: str) -> ApprovalReturnParam:
    return {"type": "approval", "tool_call_id": call_id, "approve": False, "reason": reason}


def _offered(tool: Tool) -> ClientTool:
    return {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
