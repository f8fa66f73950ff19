"""Decides who may see and change which schedules, from the caller alone."""

from dataclasses import replace

from frontdesk.errors import Denied, MissingAgentId
from frontdesk.identity import rights
from frontdesk.identity.keys import LOCAL_USER
from frontdesk.identity.model import AgentIdSource, Caller
from frontdesk.identity.rights import (
    SCHEDULES_ADMIN,
    SCHEDULES_READ,
    SCHEDULES_WRITE,
    missing_agent_error,
    names_agent,
    require_scope,
)
from frontdesk.schedules.model import OwnerFilter


def is_agent_calling(caller: Caller) -> bool:
    """Whether the agent itself calls, most likely in a turn, and not a program on its behalf.

    A program that runs an agent's prompts names the agent in the call's arguments.
    """
    return names_agent(caller) and caller.source is not AgentIdSource.PARAMETER and not is_schedules_admin(caller)


def is_schedules_admin(caller: Caller) -> bool:
    """Whether this is the operator, or a credential with the scope."""
    return rights.is_operator_or_granted(caller, SCHEDULES_ADMIN)


def require_read(caller: Caller) -> None:
    """Raise `Denied` if the credential lacks the scope."""
    if not is_schedules_admin(caller):
        require_scope(caller, SCHEDULES_READ)


def require_write(caller: Caller) -> None:
    if not is_schedules_admin(caller):
        require_scope(caller, SCHEDULES_WRITE)


def owner_filter(caller: Caller) -> OwnerFilter:
    """The owners whose schedules the caller may see and change; all owners for an admin.

    With an agent and a user, these are this user's schedules for the agent. If the request or its credential named the
    agent, they include the agent's schedules without a user. An agent that was only a default neither hides a user's
    schedules from them, nor gives a right to other users' schedules.
    """
    if is_schedules_admin(caller):
        return OwnerFilter()
    if caller.user_id is not None:
        named = caller.agent_id if names_agent(caller) else None
        return OwnerFilter(
            named, caller.user_id, include_unowned=named is not None and caller.source is not AgentIdSource.NONE
        )
    if caller.agent_id is not None and (names_agent(caller) or not caller.anonymous):
        return OwnerFilter(caller.agent_id)
    raise missing_agent_error(caller)


def owner_filter_for_turn(caller: Caller) -> OwnerFilter:
    """The owners whose schedules an agent sees and cancels in a turn: the person that the turn is for.

    Schedules without a user belong to calls from this machine, whose user is `local` in an editor.
    """
    person = caller.user_id or LOCAL_USER
    return OwnerFilter(caller.agent_id, person, include_unowned=person == LOCAL_USER)


def owner_filter_for_agent(caller: Caller, agent_id: str | None) -> OwnerFilter:
    """The schedules of one agent that the caller may see."""
    found = owner_filter(caller)
    if agent_id is None:
        return found
    if found.agent_id not in (None, agent_id):
        raise Denied(f"You cannot see schedules of agent '{agent_id[:128]}': you speak for agent '{found.agent_id}'")
    return replace(found, agent_id=agent_id)


def can_see(caller: Caller, agent_id: str, user_id: str | None) -> bool:
    """Whether the caller may see the schedules of this owner."""
    try:
        return owner_filter(caller).covers(agent_id, user_id)
    except MissingAgentId:
        return False


def can_act_for(caller: Caller, agent_id: str) -> bool:
    """Whether the caller may schedule for this agent: its own, or any if its credential is for all agents."""
    return is_schedules_admin(caller) or caller.agent_id == agent_id or (caller.any_agent and not names_agent(caller))


def require_acting_for(caller: Caller, agent_id: str) -> None:
    """Raise `Denied` if the agent is not the caller's own."""
    if can_act_for(caller, agent_id):
        return
    own = f"you speak for agent '{caller.agent_id}'" if caller.agent_id else "you speak for no agent"
    raise Denied(f"You cannot schedule for agent '{agent_id}': {own}")


def require_schedules_admin(caller: Caller, what: str) -> None:
    """Raise `Denied` if the caller may not see or change everybody's schedules."""
    rights.require_operator_or_granted(caller, SCHEDULES_ADMIN, what)
