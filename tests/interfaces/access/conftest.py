"""Fixtures: a server with logins, its issuer and clients in process; built once a module, emptied for each test."""

import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
import pytest
from joserfc import jwt
from joserfc.jwk import OctKey
from pydantic import BaseModel, SecretStr
from typing_extensions import override

from frontdesk.app import App, open_app
from frontdesk.db.schema import api_keys, mcp_sessions, oauth_grants, oauth_requests, oauth_tokens
from frontdesk.identity.oauth_server import challenge_of
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.http.context import ASGIApp
from frontdesk.memory.model import PersonScope
from frontdesk.operations import BoundOperation, Call, McpPath, McpTool, NoArguments, Operation
from frontdesk.settings import Issuer, OAuthClient, Settings
from tests.conftest import settings_with
from tests.support.postgres import Ready

# A server with an issuer and clients, in process; and people with tokens, keys and browsers


BASE = "http://127.0.0.1:3020"
MEMORY_ENDPOINT = "/mcp/memory"
ISSUER = "https://id.example"
SECRET = "a-secret-of-the-issuer-that-is-long-enough"
CLIENT, CALLBACK = "notes-app", "http://localhost:3000/callback"
SAFE, SAFE_SECRET, SAFE_CALLBACK = "back-office", "s3cret of a client", "https://office.example/cb?from=desk"
VERIFIER = "v" * 64
CLIENTS: list[dict[str, Any]] = [
    {"client_id": CLIENT, "redirect_uris": [CALLBACK, "cursor://desk/cb"]},
    {
        "client_id": SAFE,
        "client_secret": SAFE_SECRET,
        "redirect_uris": [SAFE_CALLBACK],
        "scopes": ["tasks.read", "admin"],
    },
]


def token(sub: str = "ann", **claims: object) -> str:
    """A token of the issuer, for this server."""
    said = {"iss": ISSUER, "sub": sub, "aud": f"{BASE}/mcp", "exp": int(time.time()) + 600, **claims}
    return jwt.encode({"alg": "HS256"}, said, OctKey.import_key(SECRET), ["HS256"])


def with_issuer(settings: Settings) -> Settings:
    """These settings, with an issuer and two clients."""
    trusted = Issuer(issuer=ISSUER, hs256_secret=SecretStr(SECRET), algorithms=("HS256",))
    return settings.with_values(issuers=(trusted,), oauth_clients=tuple(map(OAuthClient.model_validate, CLIENTS)))


class ToolOfPerson(BaseModel):
    """The person whose records these are."""

    user_id: str


async def _mine(_app: App, call: Call, _request: NoArguments) -> ToolOfPerson:
    return ToolOfPerson(user_id=PersonScope.for_caller(call.caller).user_id)


# A tool that only an identified person may call.
MINE = Operation(
    name="mine",
    summary="Whose it is",
    request=NoArguments,
    run=_mine,
    mcp=McpTool(title="Mine", description="Whose it is.", path=McpPath.MEMORY, response=ToolOfPerson, for_agent=False),
)


def with_mine(app: App) -> list[BoundOperation]:
    """The app's operations and `mine`."""
    return [*app.operations(), app.bind(MINE, app)]


@dataclass(frozen=True, slots=True)
class Lab:
    """An app behind its authentication, and a browser that follows no redirects."""

    app: App
    asgi: ASGIApp
    web: httpx2.AsyncClient

    async def key(self, user: str | None = None, *scopes: str, agent: str | None = None) -> str:
        limits = frozenset(scopes) if scopes else None
        return (await self.app.identity.create_key(name="", agent_id=agent, user_id=user, scopes=limits))[1]

    async def mine(self, endpoint: str = MEMORY_ENDPOINT, **headers: str) -> httpx2.Response:
        """Call the tool that needs a person, as a client of the older era."""
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "mine"}}
        said = {"mcp-protocol-version": "2025-06-18", **{name.replace("_", "-"): headers[name] for name in headers}}
        return await self.web.post(endpoint, json=call, headers=said)

    async def whose(self, shown: str) -> str:
        """The person that a key or token identifies."""
        answer = await self.mine(authorization=f"Bearer {shown}")
        assert answer.status_code == 200, answer.text
        return answer.json()["result"]["structuredContent"]["user_id"]

    async def code(self, shown: str, **asked: str | None) -> str:
        """A code that a person's program got for a client."""
        answer = await self.issue(shown, **asked)
        assert answer.status_code == 200, answer.text
        back: str = answer.json()["redirect"]
        return dict(parse_qsl(urlsplit(back).query))["code"]

    async def issue(self, shown: str | None, **asked: str | None) -> httpx2.Response:
        body = wish(**asked)
        headers = {"authorization": f"Bearer {shown}"} if shown else {}
        return await self.web.post("/oauth/authorize/issue", json=body, headers=headers)

    async def trade(self, said: Mapping[str, str], auth: tuple[str, str] | None = None) -> httpx2.Response:
        """Request tokens with a form; `auth` is a client's id and secret."""
        shown = httpx2.BasicAuth(*auth) if auth else httpx2.USE_CLIENT_DEFAULT
        return await self.web.post("/oauth/token", data=said, auth=shown)


def wish(**asked: str | None) -> dict[str, str]:
    """A client's authorization request; a parameter that is None is left out."""
    usual: Mapping[str, str | None] = {
        "client_id": CLIENT,
        "redirect_uri": CALLBACK,
        "scope": "tasks.read memories.read tools:admin",
        "state": "xyz & co",
        "code_challenge": challenge_of(VERIFIER),
        "code_challenge_method": "S256",
    }
    return {name: value for name, value in {**usual, **asked}.items() if value is not None}


def by_code(code_got: str, **said: str) -> dict[str, str]:
    usual = {
        "grant_type": "authorization_code",
        "code": code_got,
        "redirect_uri": CALLBACK,
        "client_id": CLIENT,
        "code_verifier": VERIFIER,
    }
    return {**usual, **said}


def by_refresh(refresh_token: str, **said: str) -> dict[str, str]:
    return {"grant_type": "refresh_token", "refresh_token": refresh_token, "client_id": CLIENT, **said}


@asynccontextmanager
async def opened(settings: Settings) -> AsyncGenerator[Lab]:
    async with open_app(settings) as app:
        asgi = build_application(app, with_mine(app))
        async with browsing(asgi) as web:
            yield Lab(app, asgi, web)


def browsing(asgi: ASGIApp) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(asgi), base_url=BASE)


async def emptied(app: App) -> None:
    """A state as if nobody had used the server before."""
    async with app.database.transaction() as connection:
        for table in (api_keys, oauth_requests, oauth_tokens, oauth_grants, mcp_sessions):
            await connection.execute(table.delete())
    app.journal._waiting.clear()
    app.identity._keyring._recent.clear()
    app.identity.oauth.clear_cache()


class Form(HTMLParser):
    """The form of a page, as a browser sees it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.action = ""
        self.fields: dict[str, str] = {}
        self.tags: list[str] = []
        self.feed(page)

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        said = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.action = said["action"]
        if tag == "input":
            self.fields[said["name"]] = said.get("value", "")


# A server with logins: built once a module, and emptied for each test


@pytest.fixture(scope="module")
async def installation(tmp_path_factory: pytest.TempPathFactory, ready: Ready) -> AsyncGenerator[Lab]:
    data = ready.in_folder(tmp_path_factory.mktemp("access") / "data")
    async with opened(with_issuer(settings_with(FRONTDESK_DATA=data))) as found:
        yield found


@pytest.fixture
async def lab(installation: Lab) -> AsyncGenerator[Lab]:
    await emptied(installation.app)
    async with browsing(installation.asgi) as web:
        yield Lab(installation.app, installation.asgi, web)
