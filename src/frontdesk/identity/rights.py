"""Lists the scopes and decides what a caller may do. No I/O."""

from frontdesk.errors import Denied, MissingAgentId, MissingScope, Unauthenticated
from frontdesk.identity.keys import LOCAL_USER
from frontdesk.identity.model import AgentIdSource, Caller

ACTIVITIES_READ = "activities.read"
ACTIVITIES_WRITE = "activities.write"
AGENTS_CHAT = "agents:chat"
AGENTS_READ = "agents:read"
AI_TASKS_READ = "ai_tasks.read"
AI_TASKS_WRITE = "ai_tasks.write"
CATEGORIES_READ = "categories.read"
CATEGORIES_WRITE = "categories.write"
HEALTH_READ = "health:read"
INSTALLATION_ADMIN = "house:admin"
IDENTITY_READ = "identity:read"
MEMORIES_READ = "memories.read"
MEMORIES_WRITE = "memories.write"
MEMORY_ADMIN = "admin"
METRICS_READ = "metrics:read"
SCHEDULES_ADMIN = "schedules:admin"
SCHEDULES_READ = "schedules:read"
SCHEDULES_WRITE = "schedules:write"
TASKS_READ = "tasks.read"
TASKS_TIME = "tasks.time"
TASKS_WRITE = "tasks.write"
TIMELINE_READ = "timeline.read"
TIMELINE_WRITE = "timeline.write"
TOOLS_ADMIN = "tools:admin"
TOOLS_ATTACH = "tools:attach"
TOOLS_CALL = "tools:call"
TOOLS_READ = "tools:read"

# Scopes for a person's own records. The names are those of existing client apps.
MEMORY_SCOPES = {
    ACTIVITIES_READ: "read one's own activities",
    ACTIVITIES_WRITE: "make and change them",
    AI_TASKS_READ: "read the work queue of one's agents",
    AI_TASKS_WRITE: "put work into it, take it, and say how it went",
    CATEGORIES_READ: "read one's own categories",
    CATEGORIES_WRITE: "make and change them",
    MEMORIES_READ: "read and search one's own memories",
    MEMORIES_WRITE: "make, change and delete them",
    MEMORY_ADMIN: "everything of one's own, export and erasure included",
    TASKS_READ: "read one's own tasks",
    TASKS_TIME: "read and track one's time",
    TASKS_WRITE: "make and change one's own tasks",
    TIMELINE_READ: "read and search one's own timeline",
    TIMELINE_WRITE: "put items on it",
}
SCOPES = {
    AGENTS_CHAT: "talk with agents: open sessions, send messages, approve, cancel",
    AGENTS_READ: "read one's own sessions with agents, and their streams",
    HEALTH_READ: "read the health tool, which names the database and the agent server",
    INSTALLATION_ADMIN: "see everything on the pages, and do there whatever can be done",
    IDENTITY_READ: "ask who one is (whoami)",
    METRICS_READ: "read /metrics",
    SCHEDULES_ADMIN: "see, change and run everybody's schedules, and set everybody's default agent",
    SCHEDULES_READ: "read the schedules of one's agent or user, and what became of them",
    SCHEDULES_WRITE: "make, change, run and cancel them",
    TOOLS_ADMIN: "add and remove tool servers, review changed tools, say who may use which",
    TOOLS_ATTACH: "find tools for an agent and change what it holds",
    TOOLS_CALL: "call tools",
    TOOLS_READ: "search and list tools",
    **MEMORY_SCOPES,
}

# The default scopes of people's own keys, and those that a login client may request by default.
DEFAULT_KEY_SCOPES = (TASKS_READ, TASKS_WRITE, MEMORIES_READ, MEMORIES_WRITE)
LOGIN_SCOPES = frozenset({IDENTITY_READ, *MEMORY_SCOPES}) - {MEMORY_ADMIN}

# The scopes that metadata lists. Scopes that allow everything are left out: clients must name them.
ADVERTISED_SCOPES = tuple(scope for scope in SCOPES if scope not in (INSTALLATION_ADMIN, MEMORY_ADMIN))

# The scopes that calls of each capability need. Scopes for administrators are left out: clients must name them.
AGENT_SCOPES = (AGENTS_CHAT, AGENTS_READ)
CORE_SCOPES = (IDENTITY_READ, HEALTH_READ)
PERSON_SCOPES = tuple(scope for scope in MEMORY_SCOPES if scope != MEMORY_ADMIN)
SCHEDULE_SCOPES = (SCHEDULES_READ, SCHEDULES_WRITE)
TOOL_SCOPES = (TOOLS_READ, TOOLS_ATTACH, TOOLS_CALL)

# Sources of an agent's id when the request itself named no agent.
FALLBACK_SOURCES = frozenset({AgentIdSource.ENVIRONMENT, AgentIdSource.SINGLE_AGENT})


def allows_scope(scopes: frozenset[str] | None, scope: str) -> bool:
    """Whether the scopes include this one. None allows everything; `admin` allows every scope of personal records."""
    return scopes is None or scope in scopes or (MEMORY_ADMIN in scopes and scope in MEMORY_SCOPES)


# Scopes that a turn never has, because they concern other agents and people.
OTHERS_SCOPES = frozenset({SCHEDULES_ADMIN, TOOLS_ADMIN})
# The scopes of administrators on the pages.
ALL_SCOPES = frozenset(SCOPES)


def without_others_scopes(scopes: frozenset[str] | None) -> frozenset[str] | None:
    """The scopes that remain for an agent during a turn."""
    return None if scopes is None else scopes - OTHERS_SCOPES


def may_grant_scope(scopes: frozenset[str] | None, scope: str) -> bool:
    """Whether a holder of these scopes may grant this one. `house:admin` can only be granted if held by name."""
    return allows_scope(scopes, scope) and (scope != INSTALLATION_ADMIN or scopes is not None)


def intersect_scopes(one: frozenset[str] | None, other: frozenset[str] | None) -> frozenset[str] | None:
    """The scopes that both credentials allow."""
    if one is None or other is None:
        return other if one is None else one
    return frozenset(scope for scope in one | other if allows_scope(one, scope) and allows_scope(other, scope))


# Scopes that include others of their capability when something is called, although not when a key is made.
INCLUDED_SCOPES = {SCHEDULES_READ: SCHEDULES_ADMIN, SCHEDULES_WRITE: SCHEDULES_ADMIN}


def may_call(scopes: frozenset[str] | None, scope: str) -> bool:
    """Whether a caller with these scopes may call what needs this one."""
    return allows_scope(scopes, scope) or (scopes is not None and INCLUDED_SCOPES.get(scope) in scopes)


def require_scope(caller: Caller, scope: str) -> None:
    """Raise an error if the caller's credential has scopes, but not this one."""
    if caller.scopes is not None and scope not in caller.scopes:
        raise MissingScope(scope)


NO_PERSON = (
    "This credential speaks for no person, and so has no tasks or memories; use one that was made for a person "
    "(frontdesk keys create --user USER)"
)


def require_person(caller: Caller) -> str:
    """The id of the person who calls. A caller who is no person has no records."""
    if caller.user_id is None:
        raise Unauthenticated("Authentication required") if caller.credential_id is None else Denied(NO_PERSON)
    return caller.user_id


LOGIN_NEEDED = "Managing keys needs a login: send a token, not a key"


def require_login(caller: Caller) -> str:
    """The id of the person who logged in. A caller with limited scopes may not create a key with more."""
    if caller.user_id is None or not caller.by_token:
        raise Unauthenticated(LOGIN_NEEDED if caller.credential_id else "Authentication required")
    if not allows_scope(caller.scopes, MEMORY_ADMIN):
        raise MissingScope(MEMORY_ADMIN)
    return caller.user_id


def names_agent(caller: Caller) -> bool:
    """Whether the request itself or its credential names an agent."""
    return caller.agent_id is not None and caller.source not in FALLBACK_SOURCES


def is_operator(caller: Caller) -> bool:
    """Whether this is the operator: a local caller without credential and name (see `Caller.anonymous`)."""
    return caller.keyless and caller.user_id is None and not names_agent(caller)


def runs_installation(caller: Caller) -> bool:
    """Whether the caller may manage everybody's agents: the operator under any name, or a caller with the scope.

    Without a credential, the person at this machine is called `local`. Prompts that they scheduled without a person
    count as theirs.
    """
    if is_operator(caller) or _is_granted(caller, INSTALLATION_ADMIN):
        return True
    shown = caller.credential_id if caller.verified or caller.credential_id != LOCAL_USER else None
    if shown is not None or caller.scopes is not None or caller.anonymous:
        return False
    return caller.user_id == LOCAL_USER or (caller.user_id is None and caller.source is AgentIdSource.SCHEDULE)


def missing_agent_error(caller: Caller) -> MissingAgentId:
    """The error for a caller that must name an agent."""
    return MissingAgentId(unread_header=caller.unread_header)


def is_operator_or_granted(caller: Caller, scope: str) -> bool:
    """For records of agents and people: whether the caller is the operator, or has the scope by name."""
    return is_operator(caller) or _is_granted(caller, scope)


def require_operator_or_granted(caller: Caller, scope: str, what: str) -> None:
    """For records of everybody: allow only the operator and callers with the scope. `what` names the records."""
    if not is_operator_or_granted(caller, scope):
        raise Denied(f"{what} is for the operator at this machine, or a key with the scope '{scope}'")


def is_local_or_granted(caller: Caller, scope: str) -> bool:
    """For shared records: whether the caller has the scope by name, or is local and not limited by scopes.

    On this machine, naming an agent or sending a key removes no rights.
    """
    return _is_granted(caller, scope) or (caller.local and caller.scopes is None)


def require_local_or_granted(caller: Caller, scope: str) -> None:
    if not is_local_or_granted(caller, scope):
        raise MissingScope(scope)


def _is_granted(caller: Caller, scope: str) -> bool:
    return caller.scopes is not None and scope in caller.scopes
