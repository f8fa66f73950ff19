"""What Frontdesk discovers at the platform: servers, the token for each, and what somebody has to do first."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from frontdesk.agent365.discovery import ServerDiscovery
from frontdesk.agent365.errors import DiscoveryFailed, InvalidArgument, PlatformUnreachable
from tests.requirements import shows
from tests.support.platform import LocalPlatform, local_platform

pytestmark = pytest.mark.anyio
SHARED = "ea9ffc3e-8a23-4a7d-836d-234d7c7565c1/.default"
SERVERS: list[dict[str, Any]] = [
    {"mcpServerName": "mail"},
    {"mcpServerName": "files", "audience": "API://Files", "scope": "Read"},
    {
        "mcpServerName": "crm",
        "connectivityStatus": "Pending",
        "missingConnectionsUrl": "https://connect.example/crm",
    },
    {"mcpServerName": "calendar", "connectivityStatus": "READY"},
]


class Tokens:
    """Fetches tokens of a platform; takes down for which scope."""

    def __init__(self, platform: LocalPlatform) -> None:
        self.platform = platform
        self.asked: list[tuple[str, bool]] = []
        self.stale = False

    async def __call__(self, scope: str, refused: str | None) -> str:
        self.asked.append((scope, refused is not None))
        return "x.y.z" if self.stale and refused is None else self.platform.token()


@pytest.fixture(scope="module")
def platform() -> Iterator[LocalPlatform]:
    with local_platform({"mcpServers": SERVERS}) as running:
        yield running


def environ(platform: LocalPlatform, **more: str) -> Mapping[str, str]:
    return {"PYTHON_ENVIRONMENT": "Production", "MCP_PLATFORM_ENDPOINT": platform.url, **more}


@shows("A365-TOKENS")
async def test_each_server_takes_the_token_of_its_audience(platform: LocalPlatform) -> None:
    tokens = Tokens(platform)
    found = await ServerDiscovery("app", None, tokens, environ(platform)).find()
    assert [(server.name, server.scope) for server in found.servers] == [
        ("mail", SHARED),
        ("files", "api://files/Read"),
        ("calendar", SHARED),
    ]
    assert all(server.fetched and server.bearer is None for server in found.servers)
    assert tokens.asked == [(SHARED, False)]


async def test_a_token_that_is_set_is_for_discovery_and_for_the_servers_that_share_its_audience(
    platform: LocalPlatform,
) -> None:
    token = platform.token()
    found = await ServerDiscovery("app", token, None, environ(platform)).find()
    assert [(server.name, server.bearer, server.fetched) for server in found.servers] == [
        ("mail", token, False),
        ("calendar", token, False),
    ]
    assert token not in repr(found)


@shows("A365-TOKENS")
async def test_where_tokens_are_fetched_the_one_that_is_set_asks_for_servers_and_calls_none(
    platform: LocalPlatform,
) -> None:
    tokens = Tokens(platform)
    discovery = ServerDiscovery("app", platform.token(), tokens, environ(platform))
    found = await discovery.find()
    assert [(server.bearer, server.fetched) for server in found.servers] == [(None, True)] * 3
    assert discovery.with_token("mail", "mail", "https://mail.example", SHARED) == replace(
        found.servers[0], url="https://mail.example"
    )
    assert tokens.asked == []


async def test_where_tokens_are_fetched_one_that_is_set_and_has_expired_is_in_nobodys_way(
    platform: LocalPlatform,
) -> None:
    tokens, expired = Tokens(platform), platform.token(exp=1)
    assert len((await ServerDiscovery("app", expired, tokens, environ(platform)).find()).servers) == 3
    assert tokens.asked == [(SHARED, True)]
    with pytest.raises(DiscoveryFailed, match="401"):
        await ServerDiscovery("app", expired, None, environ(platform)).find()


async def test_servers_that_cannot_be_used_are_left_out_and_told(platform: LocalPlatform) -> None:
    found = await ServerDiscovery("app", platform.token(), None, environ(platform)).find()
    assert [server.name for server in found.servers] == ["mail", "calendar"]
    waiting, wanting = found.notes
    assert "['crm'] are Pending: connect the accounts they need at https://connect.example/crm" in waiting
    assert "'files'" in wanting
    assert "FRONTDESK_PLATFORM_OAUTH" in wanting


async def test_a_token_that_the_platform_refuses_is_renewed_once(platform: LocalPlatform) -> None:
    tokens = Tokens(platform)
    tokens.stale = True
    assert (await ServerDiscovery("app", None, tokens, environ(platform)).find()).servers
    assert tokens.asked == [(SHARED, False), (SHARED, True)]
    platform.fault("discovery", status=403)
    try:
        with pytest.raises(DiscoveryFailed, match="403"):
            await ServerDiscovery("app", None, Tokens(platform), environ(platform)).find()
    finally:
        platform.mend()


async def test_what_is_missing_or_away_is_said(platform: LocalPlatform) -> None:
    with pytest.raises(InvalidArgument, match="FRONTDESK_PLATFORM_TOKEN or FRONTDESK_PLATFORM_OAUTH"):
        await ServerDiscovery("app", None, None, environ(platform)).find()
    nowhere = environ(platform, MCP_PLATFORM_ENDPOINT="http://127.0.0.1:1")
    with pytest.raises(PlatformUnreachable):
        await ServerDiscovery("app", "a.b.c", None, nowhere).find()


@shows("A365-TOKENS")
async def test_in_development_the_manifest_names_servers_and_variables_hold_their_tokens(tmp_path: Path) -> None:
    tmp_path.joinpath("ToolingManifest.json").write_text(json.dumps({"mcpServers": SERVERS}))
    said = {"BEARER_TOKEN": "Bearer shared", "BEARER_TOKEN_CALENDAR": "own"}
    found = await ServerDiscovery("app", None, None, said).find()
    assert {server.name: server.bearer for server in found.servers} == {
        "mail": "shared",
        "files": "shared",
        "calendar": "own",
    }
    assert found.notes[1] == "'files' has an audience of its own, and only BEARER_TOKEN is set; set BEARER_TOKEN_FILES"
    found = await ServerDiscovery("app", None, None, {}).find()
    assert [(server.bearer, server.fetched) for server in found.servers] == [(None, False)] * 3
