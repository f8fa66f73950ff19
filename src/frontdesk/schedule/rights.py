"""Who may see and change which schedules, and for which agents one may make them: pure, from the caller alone."""

from dataclasses import replace

from frontdesk.errors import Denied, MissingAgentId
from frontdesk.identity.model import Caller, Source
from frontdesk.identity.rights import SCHEDULES_ADMIN, SCHEDULES_READ, SCHEDULES_WRITE, require
from frontdesk.schedule.model import Whose

# Where an agent's id came from when the request itself named nobody.
UNNAMED = frozenset({Source.ENVIRONMENT, Source.SINGLE_AGENT})


def names_agent(caller: Caller) -> bool:
    """Whether the request itself, or its credential, says for which agent it is."""
    return caller.agent_id is not None and caller.source not in UNNAMED


def is_agent(caller: Caller) -> bool:
    """Whether it is the agent itself that calls, most likely in the midst of a turn, and nobody on its behalf.

    A program that runs an agent's prompts names the agent in the call's arguments.
    """
    return names_agent(caller) and caller.source is not Source.PARAMETER and not is_admin(caller)


def is_operator(caller: Caller) -> bool:
    """Whoever sits at this machine and names nobody."""
    return caller.local and caller.user_id is None and not names_agent(caller)


def is_admin(caller: Caller) -> bool:
    """The operator, or who was granted it by name."""
    return is_operator(caller) or (caller.scopes is not None and SCHEDULES_ADMIN in caller.scopes)


def may_read(caller: Caller) -> None:
    """Refuse a credential that is limited to other things."""
    if not is_admin(caller):
        require(caller, SCHEDULES_READ)


def may_write(caller: Caller) -> None:
    if not is_admin(caller):
        require(caller, SCHEDULES_WRITE)


def whose(caller: Caller) -> Whose:
    """Whose schedules the caller may see and change: everybody's only for an admin.

    With an agent and a user it is the agent's schedules that are this user's or nobody's. An agent that merely stood
    in does not hide a user's own from them.
    """
    if is_admin(caller):
        return Whose()
    if caller.user_id is not None:
        named = caller.agent_id if names_agent(caller) else None
        return Whose(named, caller.user_id, or_nobodys=named is not None)
    if caller.agent_id is not None:
        return Whose(caller.agent_id)
    raise MissingAgentId


def narrowed(caller: Caller, agent_id: str | None) -> Whose:
    """Of those that the caller may see, one agent's."""
    found = whose(caller)
    if agent_id is None:
        return found
    if found.agent_id not in (None, agent_id):
        raise Denied(f"You cannot see schedules of agent '{agent_id[:128]}': you speak for agent '{found.agent_id}'")
    return replace(found, agent_id=agent_id)


def sees(caller: Caller, agent_id: str, user_id: str | None) -> bool:
    """Whether the caller may see what belongs to these."""
    try:
        return whose(caller).covers(agent_id, user_id)
    except MissingAgentId:
        return False


def speaks_for(caller: Caller, agent_id: str) -> bool:
    """Whether the agent is the caller's own; who names none, and could have named any, may have this one."""
    return is_admin(caller) or caller.agent_id == agent_id or (caller.any_agent and not names_agent(caller))


def require_speaking_for(caller: Caller, agent_id: str) -> None:
    """Refuse to act for an agent that is not the caller's own."""
    if speaks_for(caller, agent_id):
        return
    own = f"you speak for agent '{caller.agent_id}'" if caller.agent_id else "you speak for no agent"
    raise Denied(f"You cannot schedule for agent '{agent_id}': {own}")


def require_admin(caller: Caller, what: str) -> None:
    """For what concerns everybody."""
    if not is_admin(caller):
        raise Denied(f"{what} is for the operator at this machine, or a key with the scope '{SCHEDULES_ADMIN}'")
