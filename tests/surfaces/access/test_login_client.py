"""The login as the MCP SDK's own client goes through it, against a server on a socket."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
import pytest
import uvicorn
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
)
from pydantic import AnyUrl

from frontdesk.app import App, open_app
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.http.uvicorn_server import UvicornServer, open_listener
from frontdesk.interfaces.mcp.server import CORE_TOOLS
from frontdesk.interfaces.oauth import server_metadata
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.ready import Ready
from tests.support.serving import address_of
from tests.surfaces.access.lab import CALLBACK, CLIENT, MINE, SAFE, SAFE_CALLBACK, SAFE_SECRET, Form, with_issuer

pytestmark = pytest.mark.anyio
SECONDS = 30


@dataclass
class Storage:
    """What a client was given beforehand, and what it gets."""

    client: OAuthClientInformationFull
    tokens: list[OAuthToken] = field(default_factory=list[OAuthToken])

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens[-1] if self.tokens else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens.append(tokens)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        raise AssertionError(f"{client_info.client_id}: clients are known beforehand")


@dataclass
class Person:
    """Somebody before a browser, who allows whatever they are asked, with their key."""

    key: str
    asked: int = 0
    back: str = ""

    async def open(self, url: str) -> None:
        self.asked += 1
        async with httpx2.AsyncClient(base_url=url.partition("/oauth")[0]) as browser:
            form = Form((await browser.get(url)).text)
            said = {**form.fields, "credential": self.key, "decision": "allow"}
            self.back = (await browser.post(form.action, data=said)).headers["location"]

    async def came_back(self) -> AuthorizationCodeResult:
        said = {name: values[0] for name, values in parse_qs(urlsplit(self.back).query).items()}
        return AuthorizationCodeResult(code=said["code"], state=said["state"], iss=said["iss"])


@asynccontextmanager
async def served(data: Path, **values: object) -> AsyncGenerator[App]:
    """A desk with the tool `mine`, on a socket."""
    wanted = with_issuer(settings_with(FRONTDESK_DATA=data, FRONTDESK_PORT=0, **values))
    listener = open_listener(wanted)
    async with open_app(wanted.with_values(port=listener.getsockname()[1])) as app, anyio.create_task_group() as tasks:
        server = UvicornServer(
            uvicorn.Config(
                build_application(app, [*CORE_TOOLS, MINE]), lifespan="off", access_log=False, log_config=None
            )
        )
        tasks.start_soon(server.serve, [listener])
        yield app
        assert app.identity.oauth.config.issuer == address_of(listener)
        server.should_exit = True


def provider(server_url: str, storage: Storage, person: Person) -> OAuthClientProvider:
    wanted = OAuthClientMetadata(redirect_uris=storage.client.redirect_uris, client_name="t")
    return OAuthClientProvider(server_url, wanted, storage, person.open, person.came_back)


async def mine(auth: OAuthClientProvider, mode: str) -> object:
    """Whom the server takes a client for that logs people in so."""
    url = auth.context.server_url
    async with (
        httpx2.AsyncClient(auth=auth, timeout=SECONDS) as web,
        Client(streamable_http_client(url, http_client=web), mode=mode) as client,
    ):
        return (await client.call_tool("mine", {})).structured_content


@shows("LOGIN")
@pytest.mark.parametrize("guarded", [False, True])
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_sdks_client_logs_a_person_in(tmp_path: Path, ready: Ready, mode: str, *, guarded: bool) -> None:
    known = OAuthClientInformationFull(
        client_id=CLIENT, redirect_uris=[AnyUrl(CALLBACK)], token_endpoint_auth_method="none"
    )
    if guarded:
        known = OAuthClientInformationFull(
            client_id=SAFE,
            client_secret=SAFE_SECRET,
            redirect_uris=[AnyUrl(SAFE_CALLBACK)],
            token_endpoint_auth_method="client_secret_basic",
        )
    storage = Storage(known)
    with anyio.fail_after(SECONDS):
        async with served(ready.in_folder(tmp_path / "data"), FRONTDESK_REQUIRE_AUTH=guarded) as app:
            url = f"{app.identity.oauth.config.issuer}/mcp/memory"
            person = Person((await app.identity.create_key(name="", agent_id=None, user_id="ann"))[1])
            assert await mine(provider(url, storage, person), mode) == {"user_id": "ann"}
            assert await mine(provider(url, storage, person), mode) == {"user_id": "ann"}
            assert person.asked == 1
            [got] = storage.tokens
            assert got.scope is not None
            assert "tasks.read" in got.scope.split()
            assert (got.expires_in, "tools:admin" in got.scope) == (28800, False)

            later = provider(url, storage, person)
            await later._initialize()
            later.context.oauth_metadata = OAuthMetadata.model_validate(
                server_metadata(app.identity.oauth.config.issuer)
            )
            later.context.token_expiry_time = 1
            assert await mine(later, mode) == {"user_id": "ann"}
            assert (person.asked, storage.tokens[-1].expires_in) == (1, 3600), "the next one without a word"
