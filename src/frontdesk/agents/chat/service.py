"""Offers chat to interfaces: sessions, messages, approvals, streams and cancelling, each for one person."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from datetime import UTC, datetime

import anyio
import structlog
from pydantic import SecretStr

from frontdesk.agents.chat.feed import NumberedEvent, StreamPosition
from frontdesk.agents.chat.model import (
    RESTORABLE,
    SESSION_ID,
    AcceptedMessage,
    ChatSession,
    SessionView,
    new_session_id,
)
from frontdesk.agents.chat.replies import ReplyService
from frontdesk.agents.chat.store import ChatSessionStore
from frontdesk.agents.host import Agent, AgentHost, Approval, Prompt
from frontdesk.background import BackgroundJob
from frontdesk.errors import Conflict, Denied, FrontdeskError, Invalid, NotFound, PendingApproval
from frontdesk.identity import rights
from frontdesk.identity.model import Caller
from frontdesk.llm.events import ApprovalRequest
from frontdesk.settings.model import AGENT_ID_PATTERN

MAX_SESSIONS_LISTED = 100
PRUNE_SESSIONS_SECONDS = 3600

log = structlog.get_logger("frontdesk.chat")
SESSION_PRUNING = BackgroundJob(log, "chat_sessions_not_pruned", "chat_sessions_not_pruned")


class ChatService:
    """The use cases of chat; each works for one person, the caller's user."""

    def __init__(self, store: ChatSessionStore, host: AgentHost, replies: ReplyService) -> None:
        self._store = store
        self._host = host
        self._replies = replies

    async def open(self, caller: Caller, agent_id: str) -> SessionView:
        """Open a session on a new conversation."""
        user_id = _require_person(caller, rights.AGENTS_CHAT)
        agent = await self._agent(agent_id)
        if (mine := await self._host.agent_for_person(agent.id, user_id)) != agent.id:
            agent = await self._agent(mine)
        conversation = await self._host.start_conversation(agent.id, user_id)
        now = datetime.now(UTC)
        session = ChatSession(new_session_id(), user_id, agent.id, conversation.id, now, now).used_at(now)
        await self._store.add(session)
        return SessionView(session, agent)

    async def view(self, caller: Caller, session_id: str) -> SessionView:
        """A session of the caller, with its history and the calls that wait for approval."""
        session = await self._use_own_session(caller, rights.AGENTS_READ, session_id)
        agent = await self._agent(session.agent_id)
        said = await self._host.history(agent.id, session.conversation_id, user_id=session.user_id)
        return SessionView(session, agent, said, await self._pending(session))

    async def list_sessions(self, caller: Caller) -> Sequence[SessionView]:
        """The caller's open sessions, the newest first, without those whose agents were deleted."""
        user_id = _require_person(caller, rights.AGENTS_READ)
        sessions = await self._store.of_user(user_id, datetime.now(UTC), MAX_SESSIONS_LISTED)
        agents = {agent_id: await self._host.find(agent_id) for agent_id in {one.agent_id for one in sessions}}
        return [SessionView(one, agent) for one in sessions if (agent := agents[one.agent_id]) is not None]

    async def restore(self, caller: Caller, session_id: str, agent_id: str) -> bool:
        """Reopen a session of the caller; returns whether it had expired."""
        user_id = _require_person(caller, rights.AGENTS_CHAT)
        now = datetime.now(UTC)
        session = await self._find(session_id)
        if session is None or session.user_id != user_id or not now < session.expires_at + RESTORABLE:
            raise _session_not_found()
        if session.agent_id not in (agent_id, await self._host.agent_for_person(agent_id, user_id)):
            raise Invalid(f"This session is with agent '{session.agent_id}'; open another one for this agent")
        await self._agent(agent_id)
        await self._store.use(session, now)
        return not session.is_open(now)

    async def delete(self, caller: Caller, session_id: str) -> None:
        """Delete a session and stop its replies; the conversation stays with the agent."""
        session = await self._find_own_session(caller, rights.AGENTS_CHAT, session_id)
        with suppress(NotFound):
            await self._replies.stop(session)
        await self._store.delete(session.id)

    async def send_message(
        self, caller: Caller, session_id: str, text: str, token: SecretStr | None = None
    ) -> AcceptedMessage:
        """Send a message to the agent; its reply is streamed under the message's id."""
        # A session's id cannot be guessed, so the error may say that the session exists.
        session = await self._use_own_session(
            caller,
            rights.AGENTS_CHAT,
            session_id,
            Denied("This session belongs to another person; open one of your own"),
        )
        pending = await self._pending(session)
        if pending:
            raise PendingApproval([request.call_id for request in pending])
        return await self._replies.begin(session, _make_prompt(caller, session, token, text=text))

    async def approve(
        self, caller: Caller, session_id: str, approvals: Sequence[Approval], token: SecretStr | None = None
    ) -> AcceptedMessage:
        """Approve or reject every waiting tool call, and let the agent continue."""
        session = await self._use_own_session(caller, rights.AGENTS_CHAT, session_id)
        pending = await self._pending(session)
        if not pending:
            raise Conflict("Nothing waits for approval in this session; send a message instead")
        asked = {request.call_id: request.arguments for request in pending}
        if sorted(word.call_id for word in approvals) != sorted(asked):
            raise Invalid(f"Approve or reject each of {', '.join(sorted(asked))}, and nothing else")
        return await self._replies.begin(session, _make_prompt(caller, session, token, approvals=approvals), asked)

    async def cancel(self, caller: Caller, session_id: str) -> bool:
        """Stop the replies of a session on any replica; returns False if there were none."""
        return await self._replies.stop(await self._use_own_session(caller, rights.AGENTS_CHAT, session_id))

    async def listen(
        self, caller: Caller, session_id: str, place: StreamPosition | None
    ) -> AsyncGenerator[NumberedEvent]:
        """Stream the replies of a session from a position; the caller closes the stream."""
        session = await self._use_own_session(caller, rights.AGENTS_READ, session_id)
        return self._replies.follow(session.id, place)

    async def run(self) -> None:
        """Until cancelled, delete replies and sessions whose time is over."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._replies.run)
            await SESSION_PRUNING.run_every(PRUNE_SESSIONS_SECONDS, self._prune, at_once=True)

    async def close(self) -> None:
        """Accept no more messages, and interrupt the running replies; their last events are still streamed."""
        await self._replies.close()

    async def _prune(self) -> None:
        await self._store.prune(datetime.now(UTC))

    async def _use_own_session(
        self, caller: Caller, scope: str, session_id: str, foreign: FrontdeskError | None = None
    ) -> ChatSession:
        """The caller's session, marked as used now; raises `Conflict` if its agent no longer serves the caller."""
        session = await self._find_own_session(caller, scope, session_id, foreign)
        if await self._host.agent_for_person(session.agent_id, session.user_id) != session.agent_id:
            raise Conflict("This session is with an agent that is a template now; open a new one")
        return await self._store.use(session, datetime.now(UTC))

    async def _find_own_session(
        self, caller: Caller, scope: str, session_id: str, foreign: FrontdeskError | None = None
    ) -> ChatSession:
        """The caller's session; for another person's session it raises `foreign`, or `NotFound`."""
        user_id = _require_person(caller, scope)
        session = await self._find(session_id)
        if session is None or not session.is_open(datetime.now(UTC)):
            raise _session_not_found()
        if session.user_id != user_id:
            raise foreign or _session_not_found()
        return session

    async def _pending(self, session: ChatSession) -> Sequence[ApprovalRequest]:
        return await self._host.pending(session.agent_id, session.conversation_id, session.user_id)

    async def _find(self, session_id: str) -> ChatSession | None:
        return await self._store.get(session_id) if SESSION_ID.fullmatch(session_id) else None

    async def _agent(self, agent_id: str) -> Agent:
        agent = await self._host.find(agent_id) if AGENT_ID_PATTERN.fullmatch(agent_id) else None
        if agent is None:
            raise NotFound("Agent not found")
        return agent


def _require_person(caller: Caller, scope: str) -> str:
    rights.require_scope(caller, scope)
    if caller.user_id is None:
        raise Denied(
            "This credential is for an agent and not for a person; use one that names a user "
            "(frontdesk keys create --user USER)"
        )
    return caller.user_id


def _session_not_found() -> NotFound:
    return NotFound("Session not found")


def _make_prompt(
    caller: Caller,
    session: ChatSession,
    token: SecretStr | None,
    *,
    text: str | None = None,
    approvals: Sequence[Approval] = (),
) -> Prompt:
    return Prompt(
        agent_id=session.agent_id,
        caller=caller,
        text=text,
        approvals=approvals,
        conversation_id=session.conversation_id,
        user_token=token,
    )
