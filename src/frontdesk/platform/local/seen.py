"""Who asked for what: the last requests, with how each named its agent, and never a token or a message."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from frontdesk.platform.constants import Constants
from frontdesk.platform.local.checking import Claims, claims_of

# What is said of the token of a request that has none.
NONE = "none"
MOST_REQUESTS = 1000
MOST_HEADERS = 60
MOST_CHARACTERS = 1000
# In the order in which an agent's id is taken from a token.
AGENT_CLAIMS = ("xms_par_app_azp", "appid", "azp")
SECRET = frozenset({"authorization", "proxy-authorization", "cookie", "x-api-key"})
# A client repeats arguments of a call in these.
ARGUMENT = "mcp-param-"
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
    for name in AGENT_CLAIMS:
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
    claimed = next((str(claims[name]) for name in AGENT_CLAIMS if claims.get(name)), "")
    return agent_id_of(headers) or claimed[:MOST_CHARACTERS]


def shown(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers as sent, but for those that hold a secret or an argument."""
    kept = [(name, value) for name, value in headers.items() if name not in SECRET and not name.startswith(ARGUMENT)]
    return {name[:MOST_CHARACTERS]: value[:MOST_CHARACTERS] for name, value in kept[:MOST_HEADERS]}


def shortened(text: str | None) -> str | None:
    return None if text is None else text[:MOST_CHARACTERS]


def _is_guid(text: str) -> bool:
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False
