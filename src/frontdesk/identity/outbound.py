"""What we say of ourselves and of our caller on every request that leaves: one function, used by every client."""

import tomllib
from functools import cache
from pathlib import Path
from typing import cast

from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from frontdesk.identity.model import Caller
from frontdesk.identity.tokens import unverified_claims

AGENT_HEADER = "x-ms-agentid"
# The trace alone: baggage is a caller's text, and not ours to hand on.
TRACE = TraceContextTextMapPropagator()
TOKEN_CLAIMS = ("xms_par_app_azp", "appid", "azp")


def headers(
    caller: Caller | None = None,
    *,
    token: str | None = None,
    blueprint_id: str | None = None,
    application_name: str | None = None,
) -> dict[str, str]:
    """The headers for one outbound request; what is not known is left out, never sent empty."""
    found = {
        AGENT_HEADER: platform_agent_id(token, blueprint_id, application_name),
        "x-agent-id": caller.agent_id if caller else None,
        "x-request-id": caller.request_id if caller else None,
    }
    said = {name: _header_value(value) for name, value in found.items() if value}
    TRACE.inject(said)
    return {name: value for name, value in said.items() if value}


def platform_agent_id(
    token: str | None, blueprint_id: str | None = None, application_name: str | None = None
) -> str | None:
    """Who `x-ms-agentid` names: the turn's blueprint, else the token's claim, else the application."""
    return blueprint_id or agent_id_from_token(token) or application_name or project_name(Path.cwd()) or None


def agent_id_from_token(token: str | None) -> str:
    """The best agent id in a token's claims, unproven; empty when there is none."""
    if not token:
        return ""
    claims = unverified_claims(token)
    found = (claims.get(name) for name in TOKEN_CLAIMS)
    return next((value for value in found if isinstance(value, str) and value), "")


@cache
def project_name(folder: Path) -> str | None:
    """`[project].name` of the folder's pyproject.toml; read once."""
    try:
        with (folder / "pyproject.toml").open("rb") as file:
            project = tomllib.load(file).get("project")
    except (OSError, ValueError):
        return None
    name = cast("dict[str, object]", project).get("name") if isinstance(project, dict) else None
    return name if isinstance(name, str) and name else None


def _header_value(value: str) -> str:
    # A header holds visible ASCII; an application's name may not.
    if value.isascii() and value.isprintable():
        return value.strip()
    return "".join(char if " " <= char <= "~" else " " for char in value).strip()
