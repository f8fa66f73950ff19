"""Scopes and the one check on them: a credential that carries scopes may do what they say and nothing else."""

from frontdesk.errors import MissingScope
from frontdesk.identity.model import Caller

AGENTS_CHAT = "agents:chat"
AGENTS_READ = "agents:read"
HEALTH_READ = "health:read"
IDENTITY_READ = "identity:read"
METRICS_READ = "metrics:read"
SCHEDULES_ADMIN = "schedules:admin"
SCHEDULES_READ = "schedules:read"
SCHEDULES_WRITE = "schedules:write"
TOOLS_ADMIN = "tools:admin"
TOOLS_ATTACH = "tools:attach"
TOOLS_CALL = "tools:call"
TOOLS_READ = "tools:read"

SCOPES = {
    AGENTS_CHAT: "talk with agents: open sessions, send messages, approve, cancel",
    AGENTS_READ: "read one's own sessions with agents, and their streams",
    HEALTH_READ: "read the health tool, which names the database and the agent server",
    IDENTITY_READ: "ask who one is (whoami)",
    METRICS_READ: "read /metrics",
    SCHEDULES_ADMIN: "see, change and run everybody's schedules, and set everybody's default agent",
    SCHEDULES_READ: "read the schedules of one's agent or user, and what became of them",
    SCHEDULES_WRITE: "make, change, run and cancel them",
    TOOLS_ADMIN: "add and remove tool servers, review changed tools, say who may use which",
    TOOLS_ATTACH: "find tools for an agent and change what it holds",
    TOOLS_CALL: "call tools",
    TOOLS_READ: "search and list tools",
}


def require(caller: Caller, scope: str) -> None:
    """Refuse a caller whose credential carries scopes but not this one."""
    if caller.scopes is not None and scope not in caller.scopes:
        raise MissingScope(scope)


def require_granted(caller: Caller, scope: str) -> None:
    """For what only an operator should see: the scope must be there by name."""
    if caller.scopes is None or scope not in caller.scopes:
        raise MissingScope(scope)
