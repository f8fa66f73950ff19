"""Which agent a prompt is for when nobody says: the caller's own, a default of theirs, or the house's."""

import re
from collections.abc import Awaitable, Callable, Mapping

from frontdesk.errors import Denied, Invalid
from frontdesk.identity.inbound import checked
from frontdesk.identity.model import Caller
from frontdesk.schedule import rights
from frontdesk.schedule.asked import Inferred, ScopedDefault
from frontdesk.schedule.defaults.store import DefaultStore
from frontdesk.schedule.model import now_us
from frontdesk.settings import agent_id_in

EVERYBODY = ""
LOCAL = "local"
SCOPE = re.compile(r"(user|key|agent):\S.{0,199}|local")
KEY = "key:"

# Raises for an agent that the host does not know.
Validate = Callable[[str], Awaitable[None]]


class Defaults:
    """Each caller has a scope of its own, and changes no other: only an admin sets anybody else's."""

    def __init__(
        self, store: DefaultStore, validate: Validate, environment: Mapping[str, bool], *, single_agent_fallback: bool
    ) -> None:
        self._store = store
        self._validate = validate
        self._environment = environment
        self._single_agent_fallback = single_agent_fallback

    async def infer(self, caller: Caller) -> Inferred:
        rights.may_read(caller)
        return await self._infer(caller)

    async def _infer(self, caller: Caller) -> Inferred:
        """The caller's agent; else a default that the caller could have named; else what stands in for nobody."""
        if rights.names_agent(caller):
            return self._inferred(caller.agent_id, caller.source)
        own = scope_of(caller)
        for scope, source in ((own, "scoped_default"), (EVERYBODY, "default")):
            found = None if scope is None else await self._store.get(scope)
            if found is not None and rights.speaks_for(caller, found):
                return self._inferred(found, source, scope)
        variable = next((name for name, is_set in self._environment.items() if is_set), None)
        key = variable if caller.source == "environment" else None
        return self._inferred(caller.agent_id, caller.source, key)

    async def agent(self, caller: Caller, given: str | None) -> str:
        """The agent a schedule is for, if the caller may make it one."""
        named = agent_id_in(given)
        if named is None:
            found = (await self._infer(caller)).agent_id
            if found is None:
                raise rights.no_agent(caller)
        else:
            found = checked(named)
        rights.require_speaking_for(caller, found)
        return found

    async def set(self, caller: Caller, agent_id: str | None, scope: str | None = None) -> ScopedDefault:
        """Set a default, or take it away with None; without a `scope` it is the caller's own."""
        rights.may_write(caller)
        chosen = self._scope(caller, scope)
        if agent_id is not None:
            rights.require_speaking_for(caller, agent_id)
        return await self._put(chosen, agent_id)

    async def set_for_everybody(self, caller: Caller, agent_id: str | None) -> ScopedDefault:
        rights.may_write(caller)
        if not rights.is_admin(caller):
            raise Denied(
                "The default agent is everybody's, so it is for the operator at this machine or an admin key; "
                "promptyoself_set_scoped_default_agent sets one for you alone"
            )
        return await self._put(EVERYBODY, agent_id)

    async def get(self, caller: Caller, scope: str | None = None) -> ScopedDefault:
        rights.may_read(caller)
        chosen = self._scope(caller, scope)
        return ScopedDefault(chosen, await self._store.get(chosen))

    async def _put(self, scope: str, agent_id: str | None) -> ScopedDefault:
        if agent_id is not None:
            await self._validate(checked(agent_id))
        await self._store.set(scope, agent_id, now_us())
        return ScopedDefault(scope, agent_id)

    def _scope(self, caller: Caller, scope: str | None) -> str:
        own = scope_of(caller)
        if scope is None or scope == own:
            if own is None:
                raise rights.no_agent(caller)
            return own
        rights.require_admin(caller, f"The scope '{scope[:60]}' is not yours: it")
        if not SCOPE.fullmatch(scope):
            raise Invalid("A scope is user:ID, key:ID, agent:ID or local")
        return scope

    def _inferred(self, agent_id: str | None, source: str, key: str | None = None) -> Inferred:
        return Inferred(agent_id, str(source), key, self._single_agent_fallback, self._environment)


def scope_of(caller: Caller) -> str | None:
    """The scope that is the caller's own: a person's, a key's, an agent's, or that of whoever sits at this machine."""
    if caller.user_id is not None:
        return f"user:{caller.user_id}"
    if caller.credential_id is not None and caller.credential_id.startswith(KEY):
        # In a turn that others bound, theirs stand behind it.
        return caller.credential_id.split()[0]
    if rights.names_agent(caller):
        return f"agent:{caller.agent_id}"
    return LOCAL if caller.keyless else None
