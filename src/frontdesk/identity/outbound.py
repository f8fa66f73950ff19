"""Builds the headers that tell other servers who we are and for whom we call."""

import tomllib
import unicodedata
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import cast

from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from frontdesk.identity.model import Caller
from frontdesk.identity.tokens import MAX_TOKEN_LENGTH, unverified_claims

AGENT_HEADER = "x-ms-agentid"
# Only the trace: baggage contains text of the caller, which is not passed on.
TRACE_PROPAGATOR = TraceContextTextMapPropagator()
TOKEN_CLAIMS = ("xms_par_app_azp", "appid", "azp")
# Ids are GUIDs or names; longer values are not ids, and servers limit the size of headers.
MAX_ID_LENGTH = 256
TOKENS_REMEMBERED = 256
PLAIN_CHARACTERS = str.maketrans(
    {
        "\u2018": "'",
        "\u2019": "'",
        "\u201c": '"',
        "\u201d": '"',
        "\u2010": "-",
        "\u2011": "-",
        "\u2013": "-",
        "\u2014": "-",
        "\u2026": "...",
        "\u00a0": " ",
    }
)


def caller_headers(caller: Caller | None = None) -> dict[str, str]:
    """The headers for one outbound request. Unknown values are left out, never sent empty."""
    found = {
        "x-agent-id": caller.agent_id if caller else None,
        "x-request-id": caller.request_id if caller else None,
    }
    said = {name: header_value(value) for name, value in found.items() if value}
    TRACE_PROPAGATOR.inject(said)
    return {name: value for name, value in said.items() if value}


def platform_headers(
    caller: Caller | None = None,
    *,
    token: str | None = None,
    blueprint_id: str | None = None,
    application_name: str | None = None,
) -> dict[str, str]:
    """`caller_headers` with `x-ms-agentid`, for Agent 365's hosts and servers that are marked for it."""
    agent = header_value(platform_agent_id(token, blueprint_id, application_name) or "")
    return {AGENT_HEADER: agent, **caller_headers(caller)} if agent else caller_headers(caller)


def platform_agent_id(
    token: str | None, blueprint_id: str | None = None, application_name: str | None = None
) -> str | None:
    """The agent in `x-ms-agentid`: the turn's blueprint, else the token's claim, else the application."""
    return blueprint_id or agent_id_from_token(token) or application_name or project_name(Path.cwd()) or None


def agent_id_from_token(token: str | None, claims: tuple[str, ...] = TOKEN_CLAIMS) -> str:
    """The best agent id in a token's unverified claims. Empty if there is none that fits a header."""
    if not token or len(token) > MAX_TOKEN_LENGTH:
        return ""
    return _agent_id_of_unsigned(token.rpartition(".")[0], claims)


@lru_cache(TOKENS_REMEMBERED)
def _agent_id_of_unsigned(unsigned: str, claims: tuple[str, ...]) -> str:
    """Cached, because the same token is sent often. The cache keys have no signature, so they are not credentials."""
    return _first_id(unverified_claims(f"{unsigned}."), claims)


def _first_id(said: Mapping[str, object], claims: tuple[str, ...]) -> str:
    return next((found for name in claims if (found := id_text(said.get(name)))), "")


def id_text(value: object) -> str:
    """An id from outside, or an empty text if it is not a valid id."""
    # A subclass of str may override __str__; only its plain text is sent.
    text = str.__str__(value).strip() if isinstance(value, str) else ""
    return text if len(text) <= MAX_ID_LENGTH and text.isascii() and text.isprintable() else ""


@cache
def project_name(folder: Path) -> str | None:
    """`[project].name` of the folder's pyproject.toml, read once."""
    try:
        text = (folder / "pyproject.toml").read_text(encoding="utf-8-sig")
        project = tomllib.loads(text).get("project")
    except (OSError, ValueError, RecursionError):
        return None
    name = cast("dict[str, object]", project).get("name") if isinstance(project, dict) else None
    return name if isinstance(name, str) and name else None


def header_value(value: str) -> str:
    """The text as a header value: visible ASCII. Accents and curly quotes become plain, other characters spaces."""
    if not (value.isascii() and value.isprintable()):
        parts = unicodedata.normalize("NFD", value.translate(PLAIN_CHARACTERS))
        kept = "".join(char for char in parts if not unicodedata.combining(char))
        value = " ".join("".join(char if " " <= char <= "~" else " " for char in kept).split())
    return value.strip()[:MAX_ID_LENGTH].strip()
