"""Finds the agent and the conversation of a schedule, and asks the agent host about them."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog

from frontdesk.agents.chat.store import ChatSessionStore
from frontdesk.agents.host import Agent, AgentHost
from frontdesk.errors import Denied, FrontdeskError, Invalid, NotFound, Unavailable
from frontdesk.identity import rights
from frontdesk.identity.inbound import check_agent_id
from frontdesk.identity.model import Caller
from frontdesk.schedules.access import (
    can_act_for,
    is_schedules_admin,
    require_acting_for,
    require_read,
    require_schedules_admin,
    require_write,
)
from frontdesk.schedules.model import ScheduleDefinition, now_us
from frontdesk.schedules.requests import HostTest, InferredAgent, ScopedDefaultAgent, UploadedHostTool
from frontdesk.schedules.store import DefaultAgentStore
from frontdesk.settings.model import clean_agent_id

MAX_CONVERSATIONS = 1000
TITLE_LENGTH = 80

# Whether a person has this conversation of an agent elsewhere: (user, agent, conversation).
KeepsConversation = Callable[[str, str, str], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class ConversationChooser:
    """Chooses the conversation of a schedule.

    A person's prompts stay in that person's own conversation, because anyone in a conversation can ask the agent about
    it.
    """

    host: AgentHost
    sessions: ChatSessionStore
    keeps_conversation: KeepsConversation

    async def choose(self, new: ScheduleDefinition, wanted: str | None) -> str | None:
        """The conversation for a schedule; None means the agent's first, which belongs to no person."""
        if wanted is not None:
            await self._check(new, wanted)
            return wanted
        return None if new.user_id is None else await self._own(new, new.user_id)

    async def _check(self, new: ScheduleDefinition, wanted: str) -> None:
        if new.user_id is None:
            known = {found.id for found in await self.host.conversations(new.agent_id, MAX_CONVERSATIONS, None)}
            # Only that person may see the conversation, not everybody who may see the agent's own.
            if await self.sessions.is_a_persons(new.agent_id, wanted):
                known.discard(wanted)
        else:
            agent_id = await self.host.agent_for_person(new.agent_id, new.user_id)
            sessions = await self.sessions.of_user(new.user_id, datetime.now(UTC), MAX_CONVERSATIONS)
            known = {session.conversation_id for session in sessions if session.agent_id == agent_id}
            if wanted not in known and await self.keeps_conversation(new.user_id, agent_id, wanted):
                return
        if wanted not in known:
            raise NotFound(f"Agent '{new.agent_id}' has no conversation '{wanted[:128]}' of yours")

    async def _own(self, new: ScheduleDefinition, user_id: str) -> str:
        try:
            return (await self.host.start_conversation(new.agent_id, user_id, new.prompt.strip()[:TITLE_LENGTH])).id
        except NotFound as error:
            raise Invalid(f"Agent validation failed: {error}") from error
        except Unavailable as error:
            raise Unavailable(
                f"Agent validation failed: {error}", public=f"Agent validation failed: {error.public_message}"
            ) from error


MAX_AGENTS = 1000
LONGEST_SOURCE = 1_000_000
NO_UPLOAD = "Upload failed"

log = structlog.get_logger("frontdesk.schedules")

# (source code, description) -> (id, name)
UploadTool = Callable[[str, str | None], Awaitable[tuple[str, str | None]]]


@dataclass(frozen=True, slots=True)
class ScheduleHost:
    """The agent host for schedules; `upload` is None if it takes no tools, `keyed` whether we have its key."""

    host: AgentHost
    address: str | None
    upload: UploadTool | None
    keyed: bool

    async def validate(self, agent_id: str) -> None:
        """Raise `Invalid` if the host does not know the agent."""
        try:
            found = await self.host.find(agent_id)
        except Unavailable as error:
            raise Unavailable(
                f"Agent validation failed: {error}", public=f"Agent validation failed: {error.public_message}"
            ) from error
        if found is None:
            raise Invalid(f"Agent validation failed: agent '{agent_id}' is not known to the agent host")

    async def agents(self, caller: Caller) -> Sequence[Agent]:
        """The agents for which the caller may schedule."""
        require_read(caller)
        if is_schedules_admin(caller) or (caller.any_agent and not rights.names_agent(caller)):
            return await self.host.list(MAX_AGENTS)
        found = await self.host.find(caller.agent_id) if caller.agent_id else None
        return [found] if found is not None else []

    async def test(self, caller: Caller) -> HostTest:
        """Send the host a request that it can always answer."""
        require_read(caller)
        await self.host.list(1)
        details = {"host": "letta", "base_url": self.address} if self.address else {"host": "built in"}
        return HostTest("Connected", details)

    async def upload_tool(
        self, caller: Caller, source_code: str, name: str | None = None, description: str | None = None
    ) -> UploadedHostTool:
        """Upload a tool made of Python source to the host, named after its function; `name` is for the log."""
        require_write(caller)
        log.info("tool_upload", name=name, request_id=caller.request_id)
        if not caller.keyless and not is_schedules_admin(caller):
            raise Denied("Uploading tools is for callers at this machine, or a key with the scope 'schedules:admin'")
        if not self.keyed:
            raise Invalid("Missing LETTA_API_KEY or LETTA_SERVER_PASSWORD")
        if self.upload is None:
            raise Invalid(
                f"{NO_UPLOAD}: the built-in agents take no uploaded tools; set LETTA_BASE_URL, or add an MCP server"
            )
        if not source_code.strip() or len(source_code) > LONGEST_SOURCE:
            raise Invalid(
                f"{NO_UPLOAD}: source_code must be one top-level Python function with a docstring and type hints"
            )
        try:
            return UploadedHostTool(*await self.upload(source_code, description))
        except Unavailable:
            raise
        except FrontdeskError as error:
            raise Invalid(f"{NO_UPLOAD}: {error.public_message}") from error


EVERYBODY_SCOPE = ""
LOCAL_SCOPE = "local"
SCOPE = re.compile(r"(user|key|agent):\S.{0,199}|local")
KEY_PREFIX = "key:"

# Raises an error if the host does not know the agent.
ValidateAgent = Callable[[str], Awaitable[None]]


class DefaultAgents:
    """Default agents by scope. Each caller has its own scope; only an admin sets the default of another scope."""

    def __init__(
        self,
        store: DefaultAgentStore,
        validate: ValidateAgent,
        environment: Mapping[str, bool],
        *,
        single_agent_fallback: bool,
    ) -> None:
        self._store = store
        self._validate = validate
        self._environment = environment
        self._single_agent_fallback = single_agent_fallback

    async def infer(self, caller: Caller) -> InferredAgent:
        require_read(caller)
        return await self._infer(caller)

    async def _infer(self, caller: Caller) -> InferredAgent:
        """The caller's agent; else a default that the caller may schedule for; else the fallback for all callers."""
        if rights.names_agent(caller):
            return self._inferred(caller.agent_id, caller.source)
        own = scope_of(caller)
        for scope, source in ((own, "scoped_default"), (EVERYBODY_SCOPE, "default")):
            found = None if scope is None else await self._store.get(scope)
            if found is not None and can_act_for(caller, found):
                return self._inferred(found, source, scope)
        variable = next((name for name, is_set in self._environment.items() if is_set), None)
        key = variable if caller.source == "environment" else None
        return self._inferred(caller.agent_id, caller.source, key)

    async def agent_for(self, caller: Caller, text: str | None) -> str:
        """The agent of a new schedule, if the caller may schedule for it."""
        named = clean_agent_id(text)
        if named is None:
            found = (await self._infer(caller)).agent_id
            if found is None:
                raise rights.missing_agent_error(caller)
        else:
            found = check_agent_id(named)
        require_acting_for(caller, found)
        return found

    async def set(self, caller: Caller, agent_id: str | None, scope: str | None = None) -> ScopedDefaultAgent:
        """Set the default of a scope, the caller's own unless given, or remove it with None."""
        require_write(caller)
        chosen = self._scope(caller, scope)
        if agent_id is not None:
            require_acting_for(caller, agent_id)
        return await self._put(chosen, agent_id)

    async def set_for_everybody(self, caller: Caller, agent_id: str | None) -> ScopedDefaultAgent:
        require_write(caller)
        if not is_schedules_admin(caller):
            raise Denied(
                "The default agent is everybody's, so it is for the operator at this machine or an admin key; "
                "promptyoself_set_scoped_default_agent sets one for you alone"
            )
        return await self._put(EVERYBODY_SCOPE, agent_id)

    async def get(self, caller: Caller, scope: str | None = None) -> ScopedDefaultAgent:
        require_read(caller)
        chosen = self._scope(caller, scope)
        return ScopedDefaultAgent(chosen, await self._store.get(chosen))

    async def _put(self, scope: str, agent_id: str | None) -> ScopedDefaultAgent:
        if agent_id is not None:
            await self._validate(check_agent_id(agent_id))
        await self._store.set(scope, agent_id, now_us())
        return ScopedDefaultAgent(scope, agent_id)

    def _scope(self, caller: Caller, scope: str | None) -> str:
        own = scope_of(caller)
        if scope is None or scope == own:
            if own is None:
                raise rights.missing_agent_error(caller)
            return own
        require_schedules_admin(caller, f"The scope '{scope[:60]}' is not yours: it")
        if not SCOPE.fullmatch(scope):
            raise Invalid("A scope is user:ID, key:ID, agent:ID or local")
        return scope

    def _inferred(self, agent_id: str | None, source: str, key: str | None = None) -> InferredAgent:
        return InferredAgent(agent_id, str(source), key, self._single_agent_fallback, self._environment)


def scope_of(caller: Caller) -> str | None:
    """The caller's own scope: of a person, a key, an agent, or of calls from this machine."""
    if caller.user_id is not None:
        return f"user:{caller.user_id}"
    if caller.credential_id is not None and caller.credential_id.startswith(KEY_PREFIX):
        # In a turn that other credentials limit too, their ids follow.
        return caller.credential_id.split()[0]
    if rights.names_agent(caller):
        return f"agent:{caller.agent_id}"
    return LOCAL_SCOPE if caller.keyless else None
