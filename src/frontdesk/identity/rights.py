"""Lists the scopes and decides what a caller may do; pure."""

from frontdesk.errors import Denied, MissingAgentId, MissingScope
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

# Of a person's own records; the names are those that their apps know.
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

# What people's own keys may do, and what a client may ask them for, unless something else was said.
DEFAULT_KEY_SCOPES = (TASKS_READ, TASKS_WRITE, MEMORIES_READ, MEMORIES_WRITE)
LOGIN_SCOPES = frozenset({IDENTITY_READ, *MEMORY_SCOPES}) - {MEMORY_ADMIN}

# What a client is told that it may ask for: one that stands for everything is asked for by name, or not at all.
ADVERTISED_SCOPES = tuple(scope for scope in SCOPES if scope not in (INSTALLATION_ADMIN, MEMORY_ADMIN))

# What the calls of each capability need; the operator's scopes are granted by name only.
AGENT_SCOPES = (AGENTS_CHAT, AGENTS_READ)
CORE_SCOPES = (IDENTITY_READ, HEALTH_READ)
PERSON_SCOPES = tuple(scope for scope in MEMORY_SCOPES if scope != MEMORY_ADMIN)
SCHEDULE_SCOPES = (SCHEDULES_READ, SCHEDULES_WRITE)
TOOL_SCOPES = (TOOLS_READ, TOOLS_ATTACH, TOOLS_CALL)

# Where an agent's id came from when the request itself named nobody.
FALLBACK_SOURCES = frozenset({AgentIdSource.ENVIRONMENT, AgentIdSource.SINGLE_AGENT})


def allows_scope(scopes: frozenset[str] | None, scope: str) -> bool:
    """Whether scopes include one; None is everything, and `admin` all that is the person's own."""
    return scopes is None or scope in scopes or (MEMORY_ADMIN in scopes and scope in MEMORY_SCOPES)


# What a turn never has: an agent looks after what is its own and its person's, and after nobody else's.
OTHERS_SCOPES = frozenset({SCHEDULES_ADMIN, TOOLS_ADMIN})
# What the pages let those do who may run the installation.
ALL_SCOPES = frozenset(SCOPES)


def without_others_scopes(scopes: frozenset[str] | None) -> frozenset[str] | None:
    """What is left of scopes for an agent at work."""
    return None if scopes is None else scopes - OTHERS_SCOPES


def may_grant_scope(scopes: frozenset[str] | None, scope: str) -> bool:
    """Whether a caller with these scopes may pass one on; the operator's scope counts only by name."""
    return allows_scope(scopes, scope) and (scope != INSTALLATION_ADMIN or scopes is not None)


def intersect_scopes(one: frozenset[str] | None, other: frozenset[str] | None) -> frozenset[str] | None:
    """What two credentials allow together."""
    if one is None or other is None:
        return other if one is None else one
    return frozenset(scope for scope in one | other if allows_scope(one, scope) and allows_scope(other, scope))


def require_scope(caller: Caller, scope: str) -> None:
    """Refuse a caller whose credential carries scopes but not this one."""
    if caller.scopes is not None and scope not in caller.scopes:
        raise MissingScope(scope)


def names_agent(caller: Caller) -> bool:
    """Whether the request itself, or its credential, says for which agent it is."""
    return caller.agent_id is not None and caller.source not in FALLBACK_SOURCES


def is_operator(caller: Caller) -> bool:
    """A caller on this machine without a credential and without a name, where none is required (`Caller.anonymous`)."""
    return caller.keyless and caller.user_id is None and not names_agent(caller)


def runs_installation(caller: Caller) -> bool:
    """Whoever may look after everybody's agents: the operator, by whichever name, or who was granted it.

    The person at this machine is called `local` where they show nothing. A prompt that they scheduled for nobody is
    theirs too.
    """
    if is_operator(caller) or _is_granted(caller, INSTALLATION_ADMIN):
        return True
    shown = caller.credential_id if caller.verified or caller.credential_id != LOCAL_USER else None
    if shown is not None or caller.scopes is not None or caller.anonymous:
        return False
    return caller.user_id == LOCAL_USER or (caller.user_id is None and caller.source is AgentIdSource.SCHEDULE)


def missing_agent_error(caller: Caller) -> MissingAgentId:
    """What a caller is told that would have to name an agent."""
    return MissingAgentId(unread_header=caller.unread_header)


def is_operator_or_granted(caller: Caller, scope: str) -> bool:
    """Of what belongs to agents and people: the operator, or who was granted it by name."""
    return is_operator(caller) or _is_granted(caller, scope)


def require_operator_or_granted(caller: Caller, scope: str, what: str) -> None:
    """For what concerns everybody's."""
    if not is_operator_or_granted(caller, scope):
        raise Denied(f"{what} is for the operator at this machine, or a key with the scope '{scope}'")


def is_local_or_granted(caller: Caller, scope: str) -> bool:
    """Of what belongs to nobody: who was granted it by name, and at this machine whoever is not limited by scopes.

    There a name or a key takes nothing away: what they could do without it, they can do with it.
    """
    return _is_granted(caller, scope) or (caller.local and caller.scopes is None)


def require_local_or_granted(caller: Caller, scope: str) -> None:
    if not is_local_or_granted(caller, scope):
        raise MissingScope(scope)


def _is_granted(caller: Caller, scope: str) -> bool:
    return caller.scopes is not None and scope in caller.scopes
