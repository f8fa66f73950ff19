"""Defines a case, and makes cases and their tokens."""

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from tests.agent365_sdk.relay import Answer, Relayed

# A case: a call, its surroundings, the platform's behaviour, and the fixes that it must show


# In an environment this stands for the address of the platform, which is known only at run time.
PLATFORM = "{platform}"
PRODUCTION: Mapping[str, str] = {"PYTHON_ENVIRONMENT": "Production", "MCP_PLATFORM_ENDPOINT": PLATFORM}
DEVELOPMENT: Mapping[str, str] = {"MCP_PLATFORM_ENDPOINT": PLATFORM}
MANIFEST = "ToolingManifest.json"
SECONDS = 30.0
NONE: frozenset[str] = frozenset()


class Refusal(Exception):
    """The error of a host's own token exchange."""


@dataclass(frozen=True, slots=True)
class Exchanging:
    """Exchanges tokens: `gives` is the result, the error to raise, or a function from the scope to the token."""

    gives: Any


@dataclass(frozen=True, slots=True)
class Listing:
    """A call of `list_tool_servers`."""

    app_id: Any = "app"
    token: Any = "discovery"
    orchestrator: str | None = None
    turn: object = None
    exchanging: Exchanging | None = None
    handler: str | None = None


@dataclass(frozen=True, slots=True)
class Chat:
    """A call of `send_chat_history`; each side makes messages from these fields with its own model."""

    turn: object
    messages: Sequence[Mapping[str, Any]] | None = ()
    orchestrator: str | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One call, made by the SDK and by our client.

    `retries` is for our client: None is its default, and the SDK has none. `sends` are headers that ours must send.
    """

    name: str
    call: Listing | Chat = Listing()
    fixes: frozenset[str] = NONE
    environment: Mapping[str, str] = field(default_factory=lambda: PRODUCTION)
    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    answers: tuple[Answer, ...] = (Relayed(),)
    retries: int | None = 0
    seconds: float = SECONDS
    sends: Mapping[str, str | None] = field(default_factory=dict[str, str | None])


# Makers of cases: each value carries the fixes that it shows, so that a product of values carries them too


TYPED = frozenset({"typed-errors"})


@dataclass(frozen=True, slots=True)
class Option:
    """One value of a dimension, and the fixes that it shows whenever it has an effect."""

    name: str
    value: Any
    fixes: frozenset[str] = NONE


def same(values: Mapping[str, Any]) -> tuple[Option, ...]:
    """Options that show no difference."""
    return tuple(Option(name, value) for name, value in values.items())


def showing(fixes: str | Iterable[str], values: Mapping[str, Any]) -> tuple[Option, ...]:
    """Options that all show these fixes."""
    shown = frozenset({fixes} if isinstance(fixes, str) else fixes)
    return tuple(Option(name, value, shown) for name, value in values.items())


def turn(**activity: Any) -> SimpleNamespace:
    """A turn by its attributes, as a host other than the SDK's own would build it."""
    return SimpleNamespace(activity=SimpleNamespace(**activity))


def manifest(*entries: object) -> bytes:
    return json.dumps({"mcpServers": entries}).encode()


# Tokens as an issuer or an impostor would make them; nothing here checks signatures


def token(claims: object, header: object = None, signature: bytes = b"signature") -> str:
    """A JWT with these claims."""
    head = {"alg": "RS256", "typ": "JWT"} if header is None else header
    return ".".join(coded(part) for part in (json.dumps(head).encode(), json.dumps(claims).encode(), signature))


def with_claims(text: str, header: Mapping[str, object] | None = None) -> str:
    """A JWT whose claims are this text, JSON or not."""
    return ".".join(coded(part) for part in (json.dumps(header or {"alg": "RS256"}).encode(), text.encode(), b"sig"))


def coded(part: bytes) -> str:
    return base64.urlsafe_b64encode(part).rstrip(b"=").decode()
