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
    """Each method is one use case of one person, who is the caller's user and nobody else."""

    def __init__(self, store: ChatSessionStore, host: AgentHost, replies: ReplyService) -> None:
        self._store = store
        self._host = host
        self._replies = replies

    async def open(self, caller: Caller, agent_id: str) -> SessionView:
        """Begin a session, on a conversation of its own."""
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
        """A session of one's own, with what was said in it and what waits for approval."""
        session = await self._use_own_session(caller, rights.AGENTS_READ, session_id)
        agent = await self._agent(session.agent_id)
        said = await self._host.history(agent.id, session.conversation_id, user_id=session.user_id)
        return SessionView(session, agent, said, await self._pending(session))

    async def list_sessions(self, caller: Caller) -> Sequence[SessionView]:
        """One's own open sessions, the newest first; those with agents that are no more are left out."""
        user_id = _require_person(caller, rights.AGENTS_READ)
        sessions = await self._store.of_user(user_id, datetime.now(UTC), MAX_SESSIONS_LISTED)
        agents = {agent_id: await self._host.find(agent_id) for agent_id in {one.agent_id for one in sessions}}
        return [SessionView(one, agent) for one in sessions if (agent := agents[one.agent_id]) is not None]

    async def restore(self, caller: Caller, session_id: str, agent_id: str) -> bool:
        """Open a session of one's own again; whether it had run out."""
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
        """End a session and what is under way in it; the conversation stays with the agent."""
        session = await self._find_own_session(caller, rights.AGENTS_CHAT, session_id)
        with suppress(NotFound):
            await self._replies.stop(session)
        await self._store.delete(session.id)

    async def send_message(
        self, caller: Caller, session_id: str, text: str, token: SecretStr | None = None
    ) -> AcceptedMessage:
        """Have the agent reply to a message; the reply is told under the message's id."""
        # A session's id is too long to be guessed, so that it exists gives nothing away.
        session = await self._use_own_session(
            caller, rights.AGENTS_CHAT, session_id, Denied("This session is somebody else's; open one of your own")
        )
        pending = await self._pending(session)
        if pending:
            raise PendingApproval([request.call_id for request in pending])
        return await self._replies.begin(session, _make_prompt(caller, session, token, text=text))

    async def approve(
        self, caller: Caller, session_id: str, approvals: Sequence[Approval], token: SecretStr | None = None
    ) -> AcceptedMessage:
        """Give one's word on every tool call that waits for it, and have the agent go on."""
        session = await self._use_own_session(caller, rights.AGENTS_CHAT, session_id)
        pending = await self._pending(session)
        if not pending:
            raise Conflict("Nothing waits for approval in this session; send a message instead")
        asked = {request.call_id: request.arguments for request in pending}
        if sorted(word.call_id for word in approvals) != sorted(asked):
            raise Invalid(f"Approve or reject each of {', '.join(sorted(asked))}, and nothing else")
        return await self._replies.begin(session, _make_prompt(caller, session, token, approvals=approvals), asked)

    async def cancel(self, caller: Caller, session_id: str) -> bool:
        """Stop what is under way in a session, wherever it runs; whether there was anything."""
        return await self._replies.stop(await self._use_own_session(caller, rights.AGENTS_CHAT, session_id))

    async def listen(
        self, caller: Caller, session_id: str, place: StreamPosition | None
    ) -> AsyncGenerator[NumberedEvent]:
        """The replies of a session from a place on; to be closed by whoever asked."""
        session = await self._use_own_session(caller, rights.AGENTS_READ, session_id)
        return self._replies.follow(session.id, place)

    async def run(self) -> None:
        """Keep replies for as long as they are kept, sessions for as long as they may be had back."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._replies.run)
            await SESSION_PRUNING.run_every(PRUNE_SESSIONS_SECONDS, self._prune, at_once=True)

    async def close(self) -> None:
        """Take no more messages, interrupt the replies under way, and let streams tell how they ended."""
        await self._replies.close()

    async def _prune(self) -> None:
        await self._store.prune(datetime.now(UTC))

    async def _use_own_session(
        self, caller: Caller, scope: str, session_id: str, foreign: FrontdeskError | None = None
    ) -> ChatSession:
        """The caller's session, used now, with an agent that serves them."""
        session = await self._find_own_session(caller, scope, session_id, foreign)
        if await self._host.agent_for_person(session.agent_id, session.user_id) != session.agent_id:
            raise Conflict("This session is with an agent that is a template now; open a new one")
        return await self._store.use(session, datetime.now(UTC))

    async def _find_own_session(
        self, caller: Caller, scope: str, session_id: str, foreign: FrontdeskError | None = None
    ) -> ChatSession:
        """The caller's session; somebody else's is told by `foreign`, or as if it were not there."""
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
            "This credential speaks for an agent and for no person; use one that names a user "
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
