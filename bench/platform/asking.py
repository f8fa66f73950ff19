"""The clients that are compared: ours, ours without the agent's id, and the platform's SDK."""

import base64
import json
import os
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from types import SimpleNamespace

from microsoft_agents_a365.tooling.services import McpToolServerConfigurationService as TheirService
from typing_extensions import override

from frontdesk.agent365 import McpToolServerConfigurationService

APP_ID = "6f2a6b5e-3c1d-4f7b-9a50-1f1d3a0c9e11"
BLUEPRINT = "3d9f7c1e-8a3b-4a52-b0de-5f2f0f6a7c44"


class Way(StrEnum):
    """The client."""

    WITH = "with the id"
    WITHOUT = "without it"
    AGAIN = "without it, once more"
    KEPT = "with connections kept"
    SDK = "the SDK"


class Source(StrEnum):
    """The source of the id."""

    TURN = "turn"
    CLAIM = "token"
    PROJECT = "project"


@dataclass(frozen=True, slots=True)
class DiscoveryCall:
    """One request: its token and its turn."""

    token: str
    turn: object


Ask = Callable[[DiscoveryCall], Awaitable[int]]


class Silent(McpToolServerConfigurationService):
    """Our client without the one header: it neither looks for the id nor sends it."""

    @override
    def _resolve_agent_id_for_header(self, auth_token: str | None, turn_context: object = None) -> str | None:
        return None


def asked(source: Source) -> DiscoveryCall:
    claims = {"aud": "x", "exp": 4_000_000_000, **({"appid": APP_ID} if source is Source.CLAIM else {})}
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in ({}, claims)]
    sender = SimpleNamespace(agentic_app_blueprint_id=BLUEPRINT)
    turn = SimpleNamespace(activity=SimpleNamespace(from_=sender, id=None)) if source is Source.TURN else None
    return DiscoveryCall(".".join([*parts, "c2ln"]), turn)


def ours(service: McpToolServerConfigurationService) -> Ask:
    async def ask(request: DiscoveryCall) -> int:
        return len(await service.list_tool_servers(APP_ID, request.token, turn_context=request.turn))

    return ask


def theirs() -> Ask:
    service = TheirService()

    async def ask(request: DiscoveryCall) -> int:
        # Its parameter has the type of the host's own class; the attributes that it reads are the same.
        found = await service.list_tool_servers(
            APP_ID,
            request.token,
            turn_context=request.turn,  # pyright: ignore[reportArgumentType] - as above
        )
        return len(found)

    return ask


@contextmanager
def environment(port: int) -> Generator[Mapping[str, str]]:
    """The environment variables that both clients read, restored afterwards."""
    wanted = {"PYTHON_ENVIRONMENT": "Production", "MCP_PLATFORM_ENDPOINT": f"http://127.0.0.1:{port}"}
    before = {name: os.environ.get(name) for name in (*wanted, "AGENT365_APPLICATION_NAME")}
    os.environ.update(wanted)
    os.environ.pop("AGENT365_APPLICATION_NAME", None)
    try:
        yield wanted
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
