"""Who asked for what: the last requests, with how each named its agent, and never a token or a message."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from frontdesk.identity.outbound import TOKEN_CLAIMS
from frontdesk.platform.constants import Constants
from frontdesk.platform.local.checking import Claims, claims_of

# What is said of the token of a request that has none.
NONE = "none"
MOST_REQUESTS = 1000
MOST_HEADERS = 60
MOST_CHARACTERS = 1000
# Under any other name there may be a token or, where a client repeats those of a call, an argument.
SHOWN = frozenset(
    {
        "accept",
        "accept-encoding",
        "accept-language",
        "connection",
        "content-length",
        "content-type",
        "host",
        "mcp-method",
        "mcp-name",
        "mcp-protocol-version",
        "mcp-session-id",
        "origin",
        "traceparent",
        "transfer-encoding",
        "user-agent",
        "x-agent-id",
        "x-request-id",
        Constants.Headers.AGENT_ID,
        Constants.Headers.CHANNEL_ID,
        Constants.Headers.CORRELATION_ID,
        Constants.Headers.SUBCHANNEL_ID,
    }
)
NOT_SHOWN = "(not shown)"
# Somebody may put a token where none belongs.
JWT = re.compile(r"eyJ[\w-]+\.[\w.-]+")
ORCHESTRATOR = re.compile(r"\([^;()]*; Python [^;()]*; ([^()]*)\)")


@dataclass(frozen=True, slots=True)
class Seen:
    """One request as it is remembered. `status` None: it got no answer. `token` is what its check said."""

    time: str
    method: str
    path: str
    status: int | None
    ms: float
    agent_id: str | None = None
    agent_from: str = "not sent"
    correlation_id: str | None = None
    channel_id: str | None = None
    subchannel_id: str | None = None
    user_agent: str | None = None
    orchestrator: str | None = None
    server: str | None = None
    rpc_method: str | None = None
    tool: str | None = None
    token: str = NONE
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


def agent_from(agent_id: str | None, claims: Claims) -> str:
    """Where an agent's id was taken from, as far as the request shows it."""
    if not agent_id:
        return "not sent"
    for name in TOKEN_CLAIMS:
        if name in claims and str(claims[name]) == agent_id:
            return f"token {name}"
    return "turn context" if _is_guid(agent_id) else "application name"


def orchestrator_of(user_agent: str | None) -> str | None:
    """The framework that a User-Agent names, where it is the SDK's kind of User-Agent."""
    found = ORCHESTRATOR.search(user_agent or "")
    return found[1].strip() if found else None


def agent_id_of(headers: Mapping[str, str]) -> str | None:
    return shortened(headers.get(Constants.Headers.AGENT_ID))


def caller_of(headers: Mapping[str, str]) -> str:
    """The agent that calls, as far as it can be told: by its own word, else by its token's, else nobody's."""
    claims = claims_of(headers.get("authorization"))
    claimed = next((str(claims[name]) for name in TOKEN_CLAIMS if claims.get(name)), "")
    return agent_id_of(headers) or claimed[:MOST_CHARACTERS]


def shown(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers as sent; of those that may hold a secret or an argument the names alone."""
    kept = list(headers.items())[:MOST_HEADERS]
    return {_told(name): _told(value) if name in SHOWN else NOT_SHOWN for name, value in kept}


def shortened(text: str | None) -> str | None:
    return None if text is None else _told(text)


def _told(text: str) -> str:
    # First the tokens: of one that is cut off, a part could be left.
    return JWT.sub("[token]", text)[:MOST_CHARACTERS]


def _is_guid(text: str) -> bool:
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False
