"""What a case is: a call, what surrounds it, how the platform behaves, and the fixes that it must show."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.referees.platform.relay import Answer, Relayed

# In an environment this stands for the address of the platform, which is known when there is one.
PLATFORM = "{platform}"
PRODUCTION: Mapping[str, str] = {"PYTHON_ENVIRONMENT": "Production", "MCP_PLATFORM_ENDPOINT": PLATFORM}
DEVELOPMENT: Mapping[str, str] = {"MCP_PLATFORM_ENDPOINT": PLATFORM}
MANIFEST = "ToolingManifest.json"
SECONDS = 30.0
NONE: frozenset[str] = frozenset()


class Refusal(Exception):
    """What somebody's own exchange of tokens raises."""


@dataclass(frozen=True, slots=True)
class Exchanging:
    """Exchanges tokens: `gives` is the result itself, what it raises, or a function from the scope to the token."""

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
    """A call of `send_chat_history`; messages are made of these fields by each side's own model."""

    turn: object
    messages: Sequence[Mapping[str, Any]] | None = ()
    orchestrator: str | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One call, made by the SDK and by us.

    `retries` is what ours is told: None is its default, and the SDK has none. `sends` are headers that ours must send.
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
