"""Sends to one Letta conversation, reads it back, cancels its runs, and waits until its agent is idle."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import chain, repeat

import anyio
from letta_client import AsyncStream, BadRequestError, omit
from letta_client.types import Conversation as LettaConversation
from letta_client.types.agents import ApprovalRequestMessage, LettaStreamingResponse, Message, Run, ToolCallMessage

from frontdesk.agents.host import Conversation, MemoryBlock
from frontdesk.agents.letta.convert import (
    LettaInput,
    approval_message,
    arguments_of,
    block_of,
    calls_of,
    client_tool,
    denial_answer,
    find_answer,
    oldest_first,
    requests_of,
)
from frontdesk.agents.letta.server import LettaServer
from frontdesk.errors import Busy, Invalid, NotFound
from frontdesk.llm.events import ApprovalRequest, ToolCall
from frontdesk.llm.tools import Tool

IDLE_WAIT_SECONDS = 300
IDLE_PAUSES = (0.2, 0.2, 0.3, 0.5, 1.0)
RUNS = 100
# A server that crashed leaves its runs marked as running for ever.
STALE_AFTER = timedelta(minutes=15)


async def wait_until_idle(server: LettaServer, agent_id: str, looks: Sequence[float] = (0.0,)) -> str | None:
    """Wait until the agent's running work ends; returns its conversation, None for the agent's first one.

    Runs that begin during the wait are ignored, because they could follow each other for ever. `looks` are pauses
    before each look; several of them also find a run that was requested only just now.
    """
    under_way = await _find_active_runs(server, agent_id, looks)
    if not under_way:
        return None
    waited_for = {run.id for run in under_way}
    try:
        with anyio.fail_after(IDLE_WAIT_SECONDS):
            for pause in chain(IDLE_PAUSES, repeat(IDLE_PAUSES[-1])):
                if not waited_for & {run.id for run in await _list_active_runs(server, agent_id)}:
                    break
                await anyio.sleep(pause)
    except TimeoutError as error:
        raise Busy(
            f"Agent '{agent_id}' has been at work for {IDLE_WAIT_SECONDS} s; cancel that or try later"
        ) from error
    return under_way[-1].conversation_id


async def _find_active_runs(server: LettaServer, agent_id: str, looks: Sequence[float]) -> list[Run]:
    for pause in looks:
        await anyio.sleep(pause)
        if under_way := await _list_active_runs(server, agent_id):
            return under_way
    return []


async def _list_active_runs(server: LettaServer, agent_id: str) -> list[Run]:
    with server.translating_errors(f"agent '{agent_id}'"):
        page = await server.client.runs.list(agent_id=agent_id, active=True, order="asc", limit=RUNS)
    return [run for run in page.items if not _is_stale(run)]


def _is_stale(run: Run) -> bool:
    if run.created_at is None:
        return False
    made = run.created_at if run.created_at.tzinfo else run.created_at.replace(tzinfo=UTC)
    return datetime.now(UTC) - made > STALE_AFTER


# Letta's name for the conversation that every agent has from the start.
DEFAULT_CONVERSATION = "default"

SEARCHED_MESSAGES = 500
MESSAGE_PAGE = 1000
TOO_LITTLE = "failed to reduce the number of messages"
# A run that was requested only just now may not be listed yet.
NEW_RUN_PAUSES = (0.0, 0.2, 0.4, 0.8)


@dataclass(frozen=True, slots=True)
class AgentSetup:
    """The agent's model, its context window in tokens (0 where unknown), and its memory."""

    model: str | None
    window: int
    blocks: Sequence[MemoryBlock]


@dataclass(frozen=True, slots=True)
class ConversationClient:
    """Uses one conversation; `conversation_id` None is the agent's own first one."""

    server: LettaServer
    agent_id: str
    conversation_id: str | None = None

    @property
    def name(self) -> str:
        return self.conversation_id or DEFAULT_CONVERSATION

    @property
    def about(self) -> str:
        if self.conversation_id is None:
            return f"agent '{self.agent_id}'"
        return f"conversation '{self.conversation_id}' of agent '{self.agent_id}'"

    async def open(
        self, messages: Sequence[LettaInput], tools: Sequence[Tool], max_steps: int, model: str | None = None
    ) -> AsyncStream[LettaStreamingResponse]:
        """Begin a run, with `model` instead of the agent's if given; returns the stream of its messages."""
        offered = [client_tool(tool) for tool in tools] or omit
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
        """The calls that wait for approval; raises `NotFound` if the agent or conversation is missing."""
        client = self.server.client
        with self.server.translating_errors(self.about):
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
        """The calls of Letta's own tools that run as soon as the waiting calls beside them are answered."""
        return [
            ToolCall(call.tool_call_id or "", call.name or "", arguments_of(call.arguments or ""))
            for message in await self.recent(2)
            if isinstance(message, ToolCallMessage)
            for call in calls_of(message)
        ]

    async def agent_setup(self) -> AgentSetup:
        """The agent's model and its memory blocks, which all its conversations share."""
        with self.server.translating_errors(self.about):
            state = await self.server.client.agents.retrieve(self.agent_id, include=["agent.blocks"])
        window = state.llm_config.context_window if getattr(state, "llm_config", None) else 0
        return AgentSetup(state.model, window, [block_of(block) for block in state.blocks or ()])

    async def recent(self, limit: int) -> list[Message]:
        """The newest messages, the oldest of them first."""
        found = await self._page(min(limit, MESSAGE_PAGE), None)
        known = {message.id for message in found}
        page = found if limit > MESSAGE_PAGE else []
        while page and len(known) < limit:
            page = [one for one in await self._page(MESSAGE_PAGE, found[0].id) if one.id not in known]
            known |= {message.id for message in page}
            found = [*page, *found]
        return found

    async def _page(self, limit: int, before: str | None) -> list[Message]:
        """So many messages, the newest or those before a given one. The client itself stops after the first page."""
        client = self.server.client
        with self.server.translating_errors(self.about):
            if self.conversation_id is None:
                page = await client.agents.messages.list(
                    self.agent_id,
                    conversation_id=DEFAULT_CONVERSATION,
                    order="desc",
                    limit=limit,
                    before=before or omit,
                )
                return oldest_first(page.items, newest_first=False)
            await self._check_owner(self.conversation_id)
            page = await client.conversations.messages.list(
                self.conversation_id, order="desc", limit=limit, before=before or omit
            )
        return oldest_first(page.items, newest_first=True)

    async def compact(self) -> str | None:
        """Have the conversation summed up; returns None where Letta finds it too short."""
        with self.server.translating_errors(self.about):
            try:
                # A model writes the summary, which takes time.
                answer = await self.server.streaming.conversations.messages.compact(self.name, agent_id=self.agent_id)
            except BadRequestError as error:
                if TOO_LITTLE in str(error.body):
                    return None
                raise
        return answer.summary

    async def fork(self) -> Conversation:
        """Copy the conversation; nothing waits for approval in the copy."""
        if self.conversation_id is None:
            # Letta 0.16 moves the messages into the copy.
            raise Invalid("Letta cannot copy an agent's first conversation; copy one that was begun after it")
        with self.server.translating_errors(self.about):
            await self._check_owner(self.conversation_id)
            copy = conversation_of(await self.server.client.conversations.fork(self.conversation_id))
        self.server.remember(copy.id, self.agent_id)
        await replace(self, conversation_id=copy.id).deny_pending("The conversation was copied")
        return copy

    async def forget(self) -> None:
        """Delete the conversation, if it exists and is not the agent's first."""
        if self.conversation_id is None:
            return
        with suppress(NotFound), self.server.translating_errors(self.about):
            await self._check_owner(self.conversation_id)
            await self.server.client.conversations.delete(self.conversation_id)
        self.server.drop(self.conversation_id)

    async def answer_to(self, otid: str) -> str | None:
        """The agent's answer to the message with this `otid`; None if it never got the message."""
        return find_answer(await self.recent(SEARCHED_MESSAGES), otid)

    async def deny_pending(self, reason: str) -> bool:
        """Reject all waiting calls without an answer of the agent; returns whether any waited."""
        pending = await self.pending()
        if not pending:
            return False
        answers = approval_message([denial_answer(request.call_id, reason) for request in pending])
        with self.server.translating_errors(self.about):
            # The one step takes in the answers, so no step is left for the model.
            async with await self.open([answers], (), max_steps=1) as stream:
                async for _ in stream:
                    continue
        return True

    async def stop(self, runs: list[str]) -> None:
        with self.server.translating_errors(self.about):
            await self.server.client.agents.messages.cancel(self.agent_id, run_ids=runs)

    async def stop_active_runs(self, looks: Sequence[float] = NEW_RUN_PAUSES[:1]) -> bool:
        """Stop every run of this conversation, also those begun elsewhere; returns whether there were any."""
        for wait in looks:
            await anyio.sleep(wait)
            if runs := await self.active():
                await self.stop(runs)
                return True
        return False

    async def active(self) -> list[str]:
        with self.server.translating_errors(self.about):
            runs = await self.server.client.runs.list(agent_id=self.agent_id, active=True, order="asc", limit=RUNS)
        return [run.id for run in runs.items if (run.conversation_id or DEFAULT_CONVERSATION) == self.name]

    async def runs_between(self, began: datetime, ended: datetime | None) -> set[str]:
        """Those of the newest runs that began in a period, or since a time."""
        with self.server.translating_errors(self.about):
            runs = await self.server.client.runs.list(agent_id=self.agent_id, order="desc", limit=RUNS)
        ours = [run for run in runs.items if (run.conversation_id or DEFAULT_CONVERSATION) == self.name]
        last = ended or datetime.now(UTC)
        return {run.id for run in ours if run.created_at is not None and began <= run.created_at <= last}

    async def _check_owner(self, conversation_id: str) -> None:
        if await self.server.owner(conversation_id) != self.agent_id:
            raise NotFound(f"The Letta server has no {self.about}")


def conversation_of(given: LettaConversation) -> Conversation:
    return Conversation(given.id, given.agent_id, given.created_at or datetime.now(UTC), given.summary or "")
