"""Tests the platform's servers in the catalogue: found, called with their own tokens, kept up to date."""

import json
import time
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from structlog.testing import capture_logs

from frontdesk.app import App, open_app, running
from frontdesk.errors import Conflict
from frontdesk.identity.tokens import unverified_claims
from frontdesk.interfaces.http.application import build_application
from frontdesk.tools import catalogue as tools_catalogue
from frontdesk.tools import catalogue_store, server_registry
from frontdesk.tools.servers import ServerOrigin, ServerSpec, ServerStatus
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.agent365 import LocalPlatform, local_platform
from tests.support.desk import frontdesk_here, open_desk
from tests.support.issuer import open_issuer
from tests.support.serving import serve
from tests.support.tool_servers import open_tool_server, tool
from tests.support.upstreams import open_parrot
from tests.support.waiting import until
from tests.support.wire import ask

CLIENT = "99999999-8888-7777-6666-555555555555"
SHARED = "ea9ffc3e-8a23-4a7d-836d-234d7c7565c1/.default"
MCP = ("initialize", "notifications/initialized", "tools/list", "tools/call")


def entry(name: str, does: str, **more: object) -> dict[str, Any]:
    said = {"name": does, "description": f"Does {does} with a letter.", "responseTemplate": f"{name} did {does}."}
    return {"mcpServerName": name, "tools": [said], **more}


MAIL, CALENDAR = entry("mcp_Mail", "send_mail"), entry("mcp_Calendar", "book_room")
FILES = entry("mcp_Files", "read_file", audience="api://files", scope="Files.Read")
SIGNS = entry("mcp_Signs", "sign_file", audience="api://files", scope="Files.Read")


def listing(*entries: Mapping[str, Any]) -> dict[str, Any]:
    return {"mcpServers": list(entries)}


@pytest.fixture
def platform(monkeypatch: pytest.MonkeyPatch) -> Generator[LocalPlatform]:
    with local_platform(listing(MAIL, CALENDAR, FILES, SIGNS), tokens="signed") as found:
        monkeypatch.setenv("PYTHON_ENVIRONMENT", "Production")
        monkeypatch.setenv("MCP_PLATFORM_ENDPOINT", found.url)
        yield found


def oauth(platform: LocalPlatform, **more: str) -> dict[str, str]:
    token_url = f"{platform.url}/oauth2/v2.0/token"
    return {"token_url": token_url, "client_id": CLIENT, "client_secret": "hunter2", **more}


@asynccontextmanager
async def opened(data: Path, **settings: object) -> AsyncGenerator[App]:
    given = {"FRONTDESK_PLATFORM_APP_ID": "agent-7", "FRONTDESK_EMBEDDINGS": "off", **settings}
    async with open_app(settings_with(FRONTDESK_DATA=data, **given)) as app:
        yield app


async def told(app: App, name: str, key: str | None = None) -> str:
    return (await ask(build_application(app), "call_tool", {"name": name}, "agent-1", key=key)).text


def names(app: App) -> list[str]:
    return [state.name for state in app.tools.catalogue.servers()]


def scopes(platform: LocalPlatform) -> int:
    return sum(one["path"].endswith("/token") for one in platform.requests())


@shows("A365-CATALOGUE")
@shows("A365-AGENTID")
async def test_an_installation_finds_the_platforms_tools_calls_them_and_names_its_agent_with_every_request(
    platform: LocalPlatform, tmp_path: Path
) -> None:
    settings = {
        "FRONTDESK_PLATFORM_APP_ID": "agent-7",
        "FRONTDESK_PLATFORM_OAUTH": json.dumps(oauth(platform)),
        "FRONTDESK_EMBEDDINGS": "off",
    }
    with open_desk(tmp_path / "data", **settings) as desk:
        base = f"{desk.url}/api/v1/tools"

        def found() -> list[str]:
            hits = httpx2.post(f"{base}/search", json={"query": "send_mail with a letter"}).json()["found"]
            return [hit["id"] for hit in hits]

        await until(lambda: "mcp-Mail::send_mail" in found())
        answer = httpx2.post(f"{base}/call", json={"name": "mcp-Mail::send_mail", "arguments": {}})
        assert "mcp_Mail did send_mail." in answer.text
        assert "hunter2" not in desk.logged()
    seen = platform.requests()
    shown = [one for one in seen if not one["path"].endswith("/token")]
    assert {one["agentId"] for one in shown} == {CLIENT}
    assert {one["agentFrom"] for one in shown} == {"token appid"}
    assert {one["token"] for one in shown} == {"ok"}
    assert {one["rpcMethod"] for one in shown if one["server"] == "mcp_Mail" and one["method"] == "POST"} == set(MCP)
    assert [one["path"] for one in shown if one["server"] is None] == ["/agents/v2/agent-7/mcpServers"]


@shows("A365-TOKENS")
async def test_each_server_gets_the_token_of_its_scope_and_each_scope_is_asked_for_once(
    platform: LocalPlatform, tmp_path: Path
) -> None:
    with capture_logs() as logged:
        async with opened(tmp_path / "data", FRONTDESK_PLATFORM_OAUTH=oauth(platform)) as app:
            assert platform.requests() == [], "nobody is asked before there is a reason to"
            await app.tools.catalogue.declare()
            await app.tools.catalogue.refresh()
            assert names(app) == ["mcp-Calendar", "mcp-Files", "mcp-Mail", "mcp-Signs"]
            assert {state.status for state in app.tools.catalogue.servers()} == {ServerStatus.OK}
            assert {state.spec.origin for state in app.tools.catalogue.servers()} == {ServerOrigin.PLATFORM}
            for name in ("mcp-Mail::send_mail", "mcp-Calendar::book_room", "mcp-Files::read_file"):
                assert "did" in await told(app, name)
            assert scopes(platform) == 2, "the shared one, which discovery uses too, and that of api://files"
            shown = [one for one in platform.requests() if not one["path"].endswith("/token")]
            assert {one["token"] for one in shown} == {"ok"}
    assert "eyJ" not in str(logged)
    assert "hunter2" not in str(logged)
    stored = b"".join(part.read_bytes() for part in (tmp_path / "data").iterdir())
    assert b"eyJ" not in stored
    assert b"hunter2" not in stored


@dataclass(slots=True)
class Mailroom:
    """A tool server that returns the audience of a call's token, and records every token that it gets."""

    url: str = ""
    people: list[str] = field(default_factory=list[str])
    shown: set[str] = field(default_factory=set[str])

    async def post(self, request: Request) -> Response:
        frame = await request.json()
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        self.shown |= {value.removeprefix("Bearer ") for value in request.headers.values()}
        if "id" not in frame:
            return Response(status_code=202)
        who = str(unverified_claims(token).get("sub"))
        if frame["method"] == "tools/call":
            self.people.append(who)
        about: Mapping[str, Any] = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "m"}}
        results: Mapping[str, Any] = {
            "initialize": about,
            "tools/list": {"tools": [{"name": "who", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": f"for {who}"}]},
        }
        return JSONResponse({"jsonrpc": "2.0", "id": frame["id"], "result": results[frame["method"]]})


@contextmanager
def open_mailroom() -> Generator[Mailroom]:
    mailroom = Mailroom()
    with serve(Starlette(routes=[Route("/mcp", mailroom.post, methods=["POST"])])) as address:
        mailroom.url = f"{address}/mcp"
        yield mailroom


@shows("A365-TOKENS")
@pytest.mark.parametrize("lifetime", [3600, -3600])
async def test_a_server_that_shares_the_platforms_audience_is_called_for_a_person_even_where_a_token_is_set(
    platform: LocalPlatform, tmp_path: Path, lifetime: int
) -> None:
    audience = "http://127.0.0.1:3020/mcp/tools"
    with open_mailroom() as mailroom, open_issuer() as issuer:
        platform.write(listing({"mcpServerName": "room", "url": mailroom.url}))
        token = platform.token(exp=int(time.time()) + lifetime)
        async with opened(
            tmp_path / "data",
            FRONTDESK_PLATFORM_TOKEN=token,
            FRONTDESK_PLATFORM_OAUTH=oauth(platform, grant="on_behalf_of"),
            FRONTDESK_ISSUERS=[{"issuer": issuer.url, "jwks_url": issuer.jwks_url, "audience": audience}],
        ) as app:
            await app.tools.catalogue.declare()
            await app.tools.catalogue.refresh()
            assert "acts for a person" in await told(app, "room::who")
            assert await told(app, "room::who", key=issuer.token(sub="ada", aud=audience)) == "for ada"
        assert mailroom.people == ["ada"]
        assert token not in mailroom.shown


@shows("A365-TOKENS")
@shows("A365-CATALOGUE")
async def test_a_persons_call_goes_on_behalf_of_that_person_and_never_with_anothers_token(
    platform: LocalPlatform, tmp_path: Path
) -> None:
    audience = "http://127.0.0.1:3020/mcp/tools"
    async with AsyncExitStack() as stack:
        mailroom, issuer = stack.enter_context(open_mailroom()), stack.enter_context(open_issuer())
        platform.write(
            listing({"mcpServerName": "room", "url": mailroom.url, "audience": "api://room", "scope": "R.All"})
        )
        app = await stack.enter_async_context(
            opened(
                tmp_path / "data",
                FRONTDESK_PLATFORM_OAUTH=oauth(platform, grant="on_behalf_of"),
                FRONTDESK_ISSUERS=[{"issuer": issuer.url, "jwks_url": issuer.jwks_url, "audience": audience}],
            )
        )
        await app.tools.catalogue.declare()
        await app.tools.catalogue.refresh()
        assert "acts for a person" in await told(app, "room::who")
        people = {name: issuer.token(sub=name, aud=audience) for name in ("ada", "ben")}
        for _ in range(3):
            for name, token in people.items():
                assert await told(app, "room::who", key=token) == f"for {name}"
        assert mailroom.people == ["ada", "ben"] * 3
        assert not mailroom.shown & set(people.values()), "nor is a person's own token shown to the server"
        assert scopes(platform) == 4, "discovery, listing, and one for each person"


@pytest.mark.parametrize("development", [False, True])
async def test_a_server_that_echoes_our_token_gets_it_neither_to_agents_nor_into_a_record(
    platform: LocalPlatform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, development: bool
) -> None:
    token = platform.token()
    named = {"FRONTDESK_PLATFORM_TOKEN": token}
    with open_parrot() as parrot, capture_logs() as logged:
        listed = listing({"mcpServerName": "parrot", "url": parrot.url})
        platform.write(listed)
        if development:
            named = {}
            monkeypatch.setenv("PYTHON_ENVIRONMENT", "Development")
            monkeypatch.setenv("BEARER_TOKEN", token)
            tmp_path.joinpath("ToolingManifest.json").write_text(json.dumps(listed))
        async with opened(tmp_path / "data", **named) as app:
            await app.tools.catalogue.declare()
            await app.tools.catalogue.refresh()
            answers = [await told(app, f"parrot::{name}") for name in ("fails", "is_refused")]
            assert all("Bearer [token]" in answer for answer in answers)
            parrot.lists = False
            [step] = await app.tools.catalogue.refresh()
            [state] = app.tools.catalogue.servers()
            assert "Bearer [token]" in state.error
            assert "Bearer [token]" in str([one for one in logged if one["event"] == "server_not_crawled"])
    assert not any(part in f"{answers}{step}{state}{logged}" for part in token.split("."))


@shows("A365-CATALOGUE")
async def test_the_catalogue_follows_the_platform_when_it_changes_goes_away_and_comes_back(
    platform: LocalPlatform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tools_catalogue, "CRAWL_ROUND_SECONDS", 0.02)
    data, settings = tmp_path / "data", {"FRONTDESK_PLATFORM_OAUTH": oauth(platform), "FRONTDESK_CRAWL_MINUTES": 1e-4}
    platform.write(listing(MAIL))
    with capture_logs() as logged:
        async with opened(data, **settings) as app, running(app):
            catalogue = app.tools.catalogue
            await until(lambda: names(app) == ["mcp-Mail"] and catalogue.servers()[0].status is ServerStatus.OK)
            platform.write(listing(MAIL, FILES))
            await until(lambda: names(app) == ["mcp-Files", "mcp-Mail"])
            platform.fault("discovery", status=500)
            await until(lambda: "it answers HTTP 500" in catalogue.progress().trouble)
            assert names(app) == ["mcp-Files", "mcp-Mail"]
            assert "did" in await told(app, "mcp-Mail::send_mail")
            platform.write(listing(FILES))
            platform.mend()
            await until(lambda: names(app) == ["mcp-Files"] and not catalogue.progress().trouble)
            assert "did" not in await told(app, "mcp-Mail::send_mail")
    away = [one for one in logged if one["event"] == "platform_not_asked"]
    assert len(away) == 1, "what stays wrong is said once"


@shows("A365-CATALOGUE")
async def test_what_the_platform_named_before_is_kept_and_called_while_it_is_away_at_the_start(
    platform: LocalPlatform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_registry, "PLATFORM_RETRY", server_registry.timedelta())
    data, settings = tmp_path / "data", {"FRONTDESK_PLATFORM_OAUTH": oauth(platform)}
    async with opened(data, **settings) as app:
        await app.tools.catalogue.declare()
        await app.tools.catalogue.refresh()
    platform.fault("discovery", close=True)
    async with opened(data, **settings) as app:
        await app.tools.catalogue.load()
        assert "did" in await told(app, "mcp-Files::read_file"), "as a command does, which asks nobody first"
        await app.tools.catalogue.declare()
        assert "does not list its servers" in app.tools.catalogue.progress().trouble
        assert len(names(app)) == 4
        await app.tools.catalogue.refresh()
        assert {state.status for state in app.tools.catalogue.servers()} == {ServerStatus.OK}
        platform.mend()
        platform.write(listing(MAIL))
        await app.tools.catalogue.declare()
        assert names(app) == ["mcp-Mail"]
    async with opened(data, FRONTDESK_PLATFORM_APP_ID=None) as app:
        await app.tools.catalogue.declare()
        assert names(app) == [], "a house that asks it no more has none of its servers"


async def test_what_others_call_their_servers_takes_nobodys_place(
    platform: LocalPlatform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_SECRET", "s3cret")
    said = ("ours", "added", "host", "a b", "a_b", "邮件", "${A_SECRET}")
    platform.write(listing(*(entry(name, "x") for name in said)))
    with open_tool_server("ours", [tool("mine", schema={"type": "object"})]) as ours:
        async with opened(
            tmp_path / "data",
            FRONTDESK_PLATFORM_OAUTH=oauth(platform),
            FRONTDESK_MCP_SERVERS=[{"name": "ours", "url": ours.url}],
        ) as app:
            await app.tools.catalogue.add(ServerSpec("added", url=ours.url))
            await app.tools.catalogue.declare()
            steps = {step.server: step.tools for step in await app.tools.catalogue.refresh()}
            assert len(steps) == len(said)
            origins = {state.name: state.spec.origin for state in app.tools.catalogue.servers()}
            assert (origins.pop("ours"), origins.pop("added")) == (ServerOrigin.SETTINGS, ServerOrigin.ADDED)
            assert set(origins.values()) == {ServerOrigin.PLATFORM}
            assert sum(name.startswith("a-b-") for name in origins) == 2
            assert [name.startswith("host-") for name in origins if "host" in name] == [True]
            assert [await told(app, f"{name}::mine") for name in ("ours", "added")] == ["ours: mine"] * 2
            with pytest.raises(Conflict, match="platform"):
                await app.tools.catalogue.remove("A-SECRET")
            await app.tools.catalogue.remove("added")
    assert "s3cret" not in str(platform.requests())


async def test_replicas_on_one_database_each_ask_with_tokens_of_their_own(
    settings: Any, platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue_store, "LAPSE", server_registry.timedelta())
    given = settings.model_copy(update={"platform_app_id": "agent-7", "embeddings": "off"})
    ours = settings_with(FRONTDESK_PLATFORM_OAUTH=oauth(platform)).platform_oauth
    token = settings_with(FRONTDESK_PLATFORM_TOKEN=platform.token()).platform_token
    async with (
        open_app(given.model_copy(update={"platform_oauth": ours})) as one,
        open_app(given.model_copy(update={"platform_oauth": ours, "platform_token": token})) as other,
    ):
        for app in (one, other):
            await app.tools.catalogue.declare()
        await one.tools.catalogue.refresh()
        await other.tools.catalogue.load()
        for app in (one, other):
            assert len(names(app)) == 4
            assert "did" in await told(app, "mcp-Mail::send_mail")
            assert "did" in await told(app, "mcp-Signs::sign_file")


NOT_READY: Mapping[str, str] = {"connectivityStatus": "Pending", "missingConnectionsUrl": "https://connect.example/1"}


async def test_what_cannot_be_used_is_left_out_and_told_by_the_catalogue(
    platform: LocalPlatform, tmp_path: Path
) -> None:
    platform.write(listing(MAIL, FILES, entry("mcp_Crm", "sell", **NOT_READY)))
    async with opened(tmp_path / "data", FRONTDESK_PLATFORM_TOKEN=platform.token()) as app:
        await app.tools.catalogue.declare()
        assert names(app) == ["mcp-Mail"]
        trouble = app.tools.catalogue.progress().trouble
        assert all(word in trouble for word in ("'mcp_Files'", "FRONTDESK_PLATFORM_OAUTH", "https://connect.example/1"))


def test_what_cannot_be_used_is_told_by_the_doctor(platform: LocalPlatform, tmp_path: Path) -> None:
    platform.write(listing(MAIL, FILES, entry("mcp_Crm", "sell", **NOT_READY)))
    token = platform.token()
    done = frontdesk_here(
        "doctor", data=tmp_path / "data", FRONTDESK_PLATFORM_APP_ID="agent-7", FRONTDESK_PLATFORM_TOKEN=token
    )
    assert done.returncode == 1
    assert "wrong: There is no token for the audience of 'mcp_Files'; set FRONTDESK_PLATFORM_OAUTH" in done.stdout
    assert "https://connect.example/1" in done.stdout
    assert token not in done.stdout + done.stderr


def test_doctor_says_which_of_two_tokens_counts(platform: LocalPlatform, tmp_path: Path) -> None:
    settings = {"FRONTDESK_PLATFORM_APP_ID": "agent-7", "FRONTDESK_PLATFORM_OAUTH": json.dumps(oauth(platform))}
    done = frontdesk_here("doctor", data=tmp_path / "data", **settings)
    both = frontdesk_here("doctor", data=tmp_path / "data", FRONTDESK_PLATFORM_TOKEN=platform.token(), **settings)
    note = "note: FRONTDESK_PLATFORM_TOKEN and FRONTDESK_PLATFORM_OAUTH are both set: the token only asks"
    assert (note in done.stdout, note in both.stdout) == (False, True)
    assert both.returncode == 0, both.stdout


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"FRONTDESK_PLATFORM_TOKEN": "x"}, ["wrong: FRONTDESK_PLATFORM_TOKEN", "FRONTDESK_PLATFORM_APP_ID"]),
        ({"FRONTDESK_PLATFORM_APP_ID": "a"}, ["wrong: Agent 365", "FRONTDESK_PLATFORM_OAUTH"]),
        ({"FRONTDESK_PLATFORM_APP_ID": "a", "FRONTDESK_PLATFORM_TOKEN": "hunter2"}, ["wrong: Agent 365", "HTTP 401"]),
        ({"FRONTDESK_PLATFORM_APP_ID": "a", "PYTHON_ENVIRONMENT": ""}, ["note: Servers of Agent 365", "All is well."]),
    ],
)
def test_doctor_says_what_is_wrong_with_the_platform(
    platform: LocalPlatform, tmp_path: Path, settings: Mapping[str, str], said: Sequence[str]
) -> None:
    done = frontdesk_here("doctor", data=tmp_path / "data", **settings)
    assert all(words in done.stdout for words in said), done.stdout
    assert "hunter2" not in done.stdout + done.stderr


@shows("A365-TOKENS")
async def test_in_development_servers_come_from_the_manifest_and_tokens_from_variables(
    platform: LocalPlatform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHON_ENVIRONMENT", "Development")
    monkeypatch.setenv("BEARER_TOKEN", platform.token(appid="shared"))
    monkeypatch.setenv("BEARER_TOKEN_MCP_FILES", f"bearer {platform.token('api://files', appid='own')}")
    tmp_path.joinpath("ToolingManifest.json").write_text(json.dumps(listing(MAIL, FILES)))
    async with opened(tmp_path / "data") as app:
        await app.tools.catalogue.declare()
        await app.tools.catalogue.refresh()
        assert {state.status for state in app.tools.catalogue.servers()} == {ServerStatus.OK}
    shown = {(one["server"], one["agentId"]) for one in platform.requests()}
    assert shown == {("mcp_Mail", "shared"), ("mcp_Files", "own")}
