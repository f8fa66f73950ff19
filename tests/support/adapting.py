"""What tests of the adapters for other frameworks share: a manifest, a turn, who exchanges tokens, what is left."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from frontdesk.agent365.agent_identity import reset_application_name_cache
from frontdesk.agent365.environment import ENVIRONMENT_VARIABLES, MANIFEST_NAME
from tests.support.platform import LocalPlatform

FILES_AUDIENCE = "api://files-app"
HANDLER = "agentic"
# The servers take whatever stands in a token for the shared audience, so what differs is the application it names.
SHARED_APP, MAIL_APP, FILES_APP = "shared-app", "mail-app", "files-app"


def tool(name: str, template: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}
    return {"name": name, "description": f"Does {name}.", "inputSchema": schema, "responseTemplate": template}


def entry(name: str, *tools: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"mcpServerName": name, "tools": list(tools), **more}


MAIL = entry("Mail", tool("send_mail", "mail to {{to}}"))
FILES = entry("Files", tool("share_file", "file for {{to}}"), audience=FILES_AUDIENCE, scope="Files.Read")
MANIFEST = {"mcpServers": [MAIL, FILES]}


def turn(**activity: Any) -> SimpleNamespace:
    """A turn as hosts hand it in."""
    said: dict[str, Any] = {"id": "activity-1", "text": "hello", "conversation": SimpleNamespace(id="conversation-1")}
    return SimpleNamespace(activity=SimpleNamespace(**{**said, **activity}))


class Exchange:
    """Exchanges tokens as a host does, and remembers for which scopes; `gives` False: it has none to give."""

    def __init__(self, platform: LocalPlatform, gives: bool = True) -> None:
        self.asked: list[str] = []
        self._platform = platform
        self._gives = gives

    async def exchange_token(self, _context: object, scopes: list[str], auth_handler_id: str, /) -> object:
        assert auth_handler_id == HANDLER
        [scope] = scopes
        self.asked.append(scope)
        audience = scope.rpartition("/")[0]
        app = FILES_APP if audience == FILES_AUDIENCE else SHARED_APP
        return SimpleNamespace(token=self._platform.token(audience, appid=app) if self._gives else "")


class NoExchange:
    """Must not be asked."""

    async def exchange_token(self, _context: object, scopes: list[str], _handler: str, /) -> object:
        raise AssertionError(f"a token was exchanged for {scopes}")


def in_production(platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch) -> Exchange:
    """From now on servers are those that the platform lists."""
    _surroundings(platform, monkeypatch)
    monkeypatch.setenv("PYTHON_ENVIRONMENT", "Production")
    return Exchange(platform)


def in_development(platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch, folder: Path) -> NoExchange:
    """From now on servers are those of a manifest in this folder, with a token for each in its variable."""
    _surroundings(platform, monkeypatch)
    (folder / MANIFEST_NAME).write_text(platform.manifest.read_text())
    monkeypatch.chdir(folder)
    monkeypatch.setenv("BEARER_TOKEN_MAIL", f"Bearer {platform.token(appid=MAIL_APP)}")
    monkeypatch.setenv("BEARER_TOKEN_FILES", platform.token(FILES_AUDIENCE, appid=FILES_APP))
    return NoExchange()


def calls(platform: LocalPlatform) -> list[tuple[str, str, str | None, str, str | None]]:
    """Each call of a tool: (server, tool, x-ms-agentid, what became of its token, framework)."""
    found = [seen for seen in platform.requests() if seen["rpcMethod"] == "tools/call"]
    return [(seen["server"], seen["tool"], seen["agentId"], seen["token"], seen["orchestrator"]) for seen in found]


def history(platform: LocalPlatform) -> Sequence[tuple[str, str]]:
    """Who said what, of the only chat that was sent."""
    [chat] = platform.chats()
    return [(message["role"], message["content"]) for message in chat["chatHistory"]]


def own_tasks() -> set[asyncio.Task[Any]]:
    """The tasks that are under way, but for those that run the tests."""
    return {task for task in asyncio.all_tasks() if not _runs_tests(task)}


def own_connections(platform: LocalPlatform) -> int:
    """How many sockets of this process lead to the platform."""
    port = int(platform.url.rpartition(":")[2])
    return sum(bool(each.raddr) and each.raddr.port == port for each in psutil.Process().net_connections("tcp"))


def _runs_tests(task: asyncio.Task[Any]) -> bool:
    return getattr(task.get_coro(), "__qualname__", "").startswith("TestRunner.")


def _surroundings(platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ENVIRONMENT_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MCP_PLATFORM_ENDPOINT", platform.url)
    reset_application_name_cache()
