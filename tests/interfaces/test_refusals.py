"""Tests the traces of refusals: the row has the claimed identity and its source, metrics count it, Access shows it."""

import json
from collections.abc import AsyncGenerator, Mapping, MutableMapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest

from frontdesk.agents.host import NewAgent
from frontdesk.agents.letta.handed_store import HANDED_TOOLS_PATH as HELD_PATH
from frontdesk.agents.letta.handed_store import HandedTool
from frontdesk.app import App, open_app
from frontdesk.identity.model import AgentIdSource, ClaimedIds
from frontdesk.interfaces.acp.websocket import ACP_PATH, WebSocketEndpoint
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.http.context import ASGIApp
from frontdesk.journal.model import JournalEntry
from frontdesk.journal.store import JournalQuery
from frontdesk.settings import Rate, Settings
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.browsers import browsing, text_of
from tests.support.desk import frontdesk_here
from tests.support.postgres import Ready
from tests.support.wire import ERAS, MODERN, Era, call, send

pytestmark = shows("KEPT-06")
HOSTILE = "no\nid\x1b[31m\u202e<b>" + "x" * 5_000
HOURLY = Rate(limit=1, seconds=3600)
AS_JSON = {"content-type": "application/json"}


@asynccontextmanager
async def opened(settings: Settings, **values: object) -> AsyncGenerator[tuple[App, ASGIApp]]:
    async with open_app(settings.with_values(**values)) as app:
        yield app, build_application(app)


async def key_for(app: App, agent: str | None, user: str | None, *scopes: str) -> tuple[dict[str, str], str]:
    limits = frozenset(scopes) or None
    made, text = await app.identity.create_key(name="", agent_id=agent, user_id=user, scopes=limits)
    return {"authorization": f"Bearer {text}"}, f"{agent} (key:{made.id})" if agent else f"key:{made.id}"


async def rows(app: App) -> list[JournalEntry]:
    await app.journal.flush()
    return [entry for _, entry in await app.journal.read(JournalQuery())]


async def newest(app: App) -> JournalEntry:
    return (await rows(app))[-1]


@pytest.mark.parametrize("meta", [{}, {"progressToken": 1}], ids=["straight", "by the SDK"])
async def test_whatever_a_tool_call_claimed_is_in_its_row(settings: Settings, meta: Mapping[str, object]) -> None:
    async with opened(settings, strict_agent_id_validation=True, rate_agent=HOURLY) as (app, asgi):
        known = (await app.host.create(NewAgent("Clerk"))).id
        bound, shown = await key_for(app, known, "ann")

        async def asks(parameter: object = None, **said: str) -> JournalEntry:
            arguments = {} if parameter is None else {"agent_id": parameter}
            headers, body = call(MODERN, arguments=arguments, meta=meta)
            given = {name.replace("_", "-"): value for name, value in said.items()}
            await send(asgi, headers | given, body)
            return await newest(app)

        mismatch = await asks("agent-2", x_agent_id="agent-1")
        assert (mismatch.reason, mismatch.source, mismatch.agent_id) == ("AgentIdMismatch", AgentIdSource.HEADER, None)
        assert mismatch.claimed == ClaimedIds(header="agent-1", parameter="agent-2")

        invalid = await asks("not an id")
        assert (invalid.reason, invalid.source) == ("InvalidAgentId", AgentIdSource.PARAMETER)
        assert invalid.claimed == ClaimedIds(parameter="not an id")

        no_text = await asks({"a": [1, 2]})
        assert no_text.claimed == ClaimedIds(parameter="{'a': [1, 2]}")

        unknown = await asks(x_agent_id="agent-nobody")
        assert (unknown.reason, unknown.source) == ("UnknownAgent", AgentIdSource.HEADER)
        assert unknown.claimed == ClaimedIds(header="agent-nobody")

        denied = await asks(x_agent_id="agent-2", **bound)
        assert (denied.reason, denied.source, denied.user_id) == ("Denied", AgentIdSource.HEADER, "ann")
        assert denied.claimed == ClaimedIds(header="agent-2", credential=shown)

        assert (await asks(known)).reason is None
        limited = await asks(known)
        assert (limited.reason, limited.agent_id, limited.source) == ("RateLimited", known, AgentIdSource.PARAMETER)
        assert limited.claimed == ClaimedIds(parameter=known)

        told = app.journal.render_metrics().decode()
    for reason, source in (
        ("AgentIdMismatch", "header"),
        ("InvalidAgentId", "parameter"),
        ("UnknownAgent", "header"),
        ("Denied", "header"),
        ("RateLimited", "parameter"),
    ):
        assert f'frontdesk_refusals_total{{reason="{reason}",source="{source}"}}' in told
    assert "agent-nobody" not in told, "what a caller says never becomes a label"


async def test_what_was_claimed_is_one_line_and_cut(settings: Settings) -> None:
    async with opened(settings) as (app, asgi):
        headers, body = call(MODERN, arguments={"agent_id": HOSTILE}, meta={"agentId": "y" * 3_000})
        bound, shown = await key_for(app, "agent-1", "ann")
        await send(asgi, headers | bound | {"x-agent-id": "z" * 1_000}, body)
        row = await newest(app)
    assert row.reason == "AgentIdMismatch"
    assert row.claimed is not None
    assert row.claimed.credential == shown
    assert row.claimed.parameter is not None
    assert row.claimed.parameter.startswith("no\\nid\\x1b[31m\\u202e<b>xx")
    for claim in (row.claimed.header, row.claimed.parameter, row.claimed.metadata):
        assert claim is not None
        assert claim.isprintable()
        assert claim.endswith("…")
        assert len(claim) <= 128


@pytest.mark.parametrize("era", ERAS)
async def test_who_is_known_and_may_not_is_told_with_the_key_that_was_shown(settings: Settings, era: Era) -> None:
    async with opened(settings) as (app, asgi):
        for agent in (None, "agent-1"):
            narrow, shown = await key_for(app, agent, "ann", "agents:chat")
            headers, body = call(era, "search_memories", {"search": "x"})
            assert (await send(asgi, headers | narrow, body, path="/mcp/memory")).status == 403
            row = await newest(app)
            assert (row.reason, row.agent_id, row.user_id) == ("MissingScope", agent, "ann")
            assert (row.source, row.claimed) == (AgentIdSource.CREDENTIAL, ClaimedIds(credential=shown))
        told = app.journal.render_metrics().decode()
        assert 'frontdesk_refusals_total{reason="MissingScope",source="credential"} 2.0' in told
        async with browsing(asgi) as web:
            assert "It was refused before it was identified" not in text_of(await web.get("/access"))


async def test_the_http_api_tells_who_is_known_and_may_not_with_the_key_that_was_shown(settings: Settings) -> None:
    async with opened(settings) as (app, asgi):
        narrow, of_ann = await key_for(app, None, "ann", "agents:chat")
        bound, of_agent = await key_for(app, "agent-1", None)
        for path, said, shown, reason in (
            ("/api/memories", narrow, of_ann, "MissingScope"),
            ("/api/user/api-keys", narrow, of_ann, "Unauthenticated"),
            ("/api/agents/sessions", bound, of_agent, "Denied"),
        ):
            assert (await send(asgi, said, b"", path=path, method="GET")).status in (401, 403)
            row = await newest(app)
            assert (row.reason, row.agent_id, row.source) == (reason, None, AgentIdSource.CREDENTIAL)
            assert row.claimed == ClaimedIds(credential=shown)


async def test_a_key_that_holds_no_more_is_told_by_its_id_and_never_by_its_secret(settings: Settings) -> None:
    async with opened(settings, require_auth=True) as (app, asgi):
        key, text = await app.identity.create_key(name="", agent_id=None, user_id="ann")
        await app.identity.revoke_key(key.id)
        shown = {"authorization": f"Bearer {text}"}
        headers, body = call(MODERN)
        await send(asgi, headers | shown, body)
        await send(asgi, headers | {"x-user-auth-token": text}, body, path="/mcp/memory")
        async with browsing(asgi) as web:
            await web.post("/sign-in", {"credential": text}, 401)
        assert await open_websocket(WebSocketEndpoint(app).asgi(), shown) == 401
        found = await rows(app)
    assert [(row.reason, row.source) for row in found] == [("Unauthenticated", AgentIdSource.CREDENTIAL)] * 4
    assert {row.claimed for row in found} == {ClaimedIds(credential=f"key:{key.id}")}


async def test_what_is_written_out_and_not_cut_is_told_whole(settings: Settings) -> None:
    async with opened(settings) as (app, asgi):
        headers, body = call(MODERN, arguments={"agent_id": "two\nlines"})
        await send(asgi, headers, body)
        assert (await newest(app)).claimed == ClaimedIds(parameter="two\\nlines")


@pytest.mark.parametrize("path", ["/api/v1/tools/search", "/api/v1/schedules"])
async def test_the_http_api_keeps_what_was_claimed(settings: Settings, path: str) -> None:
    async with opened(settings) as (app, asgi):
        bound, shown = await key_for(app, "agent-1", None)
        said = AS_JSON | bound | {"x-agent-id": "agent-9"}
        assert (await send(asgi, said, b"{}", path=path)).status == 403
        row = await newest(app)
        assert (row.surface, row.reason, row.source) == ("rest", "Denied", AgentIdSource.HEADER)
        assert row.claimed == ClaimedIds(header="agent-9", credential=shown)


async def test_a_person_who_is_held_to_a_rate_is_named(settings: Settings) -> None:
    async with opened(settings, rate_user=HOURLY) as (app, asgi):
        for path in ("/api/agents/sessions", "/api/tasks"):
            mine, shown = await key_for(app, None, f"ann{path}")
            await send(asgi, mine, b"", path=path, method="GET")
            assert (await send(asgi, mine, b"", path=path, method="GET")).status == 429
            row = await newest(app)
            assert (row.reason, row.user_id, row.source) == ("RateLimited", f"ann{path}", AgentIdSource.CREDENTIAL)
            assert row.claimed == ClaimedIds(credential=shown)


async def test_whoever_is_turned_away_before_the_call_is_read_is_told_by_the_header(settings: Settings) -> None:
    async with opened(settings) as (app, asgi):
        headers, body = call(MODERN, arguments={"agent_id": "agent-2"})
        claims = {"x-agent-id": "agent-1"}
        await send(asgi, headers | claims | {"authorization": "Bearer wrong"}, body)
        await send(asgi, headers | claims | {"host": "evil.example"}, body)
        found = [(row.reason, row.source, row.claimed) for row in await rows(app)]
    assert found == [
        ("Unauthenticated", AgentIdSource.HEADER, ClaimedIds(header="agent-1")),
        ("misdirected", AgentIdSource.HEADER, ClaimedIds(header="agent-1")),
    ]


async def test_pages_and_metrics_keep_whose_key_may_not_look(settings: Settings) -> None:
    async with opened(settings, require_auth=True) as (app, asgi):
        weak, shown = await key_for(app, None, "ann", "tasks.read")
        assert (await send(asgi, weak, b"", path="/access", method="GET")).status == 403
        assert (await send(asgi, weak, b"", path="/metrics", method="GET")).status == 403
        found = [(row.reason, row.user_id, row.claimed) for row in await rows(app)]
    assert found == [
        ("Denied", "ann", ClaimedIds(credential=shown)),
        ("MissingScope", "ann", ClaimedIds(credential=shown)),
    ]


async def test_a_tool_that_was_handed_to_a_letta_agent_keeps_who_claimed_to_be_it(settings: Settings) -> None:
    async with opened(settings, letta_base_url="http://127.0.0.1:1", require_auth=True) as (app, asgi):
        await app.handed.put([HandedTool("sea__tides", "sea", "tides", "", {"type": "object"})], datetime.now(UTC))
        bound, shown = await key_for(app, "agent-1", None)
        headers, body = call(MODERN, "sea__tides")
        await send(asgi, headers | bound | {"x-agent-id": "agent-2"}, body, path=HELD_PATH)
        row = await newest(app)
    assert (row.action, row.reason) == ("held_tool", "Denied")
    assert row.claimed == ClaimedIds(header="agent-2", credential=shown)


async def test_an_editor_that_is_turned_away_leaves_a_row(settings: Settings) -> None:
    async with opened(settings) as (app, _):
        of_an_agent, shown = await key_for(app, "agent-1", None)
        for said in ({}, of_an_agent):
            assert await open_websocket(WebSocketEndpoint(app).asgi(), said | {"x-agent-id": "agent-2"}) in (401, 403)
        found = [(row.surface, row.reason, row.claimed) for row in await rows(app)]
    assert found == [
        ("acp", "Unauthenticated", ClaimedIds(header="agent-2")),
        ("acp", "Denied", ClaimedIds(header="agent-2", credential=shown)),
    ]


async def open_websocket(asgi: ASGIApp, headers: Mapping[str, str]) -> int:
    """The status of the answer to a WebSocket handshake with these headers."""
    raw = [(name.encode(), value.encode()) for name, value in {"host": "127.0.0.1:3020", **headers}.items()]
    scope: dict[str, Any] = {
        "type": "websocket",
        "path": ACP_PATH,
        "headers": raw,
        "query_string": b"",
        "subprotocols": [],
        "extensions": {"websocket.http.response": {}},
    }
    answers: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "websocket.connect"}

    async def keep(message: MutableMapping[str, Any]) -> None:
        answers.append(message)

    await asgi(scope, receive, keep)
    return answers[0]["status"]


async def test_access_shows_what_was_claimed(settings: Settings) -> None:
    async with opened(settings) as (app, asgi):
        headers, body = call(MODERN, arguments={"agent_id": "agent-2 <b>"})
        await send(asgi, headers | {"x-agent-id": "agent-1"}, body)
        await app.journal.flush()
        async with browsing(asgi) as web:
            for path in ("/access", "/access/denied"):
                page = await web.get(path)
                assert "agent-2 <b>" not in page
                for said in ("AgentIdMismatch", "by header agent-1", "by parameter agent-2 <b>"):
                    assert said in text_of(page), path


def test_the_command_shows_what_was_claimed(tmp_path: Path, ready: Ready) -> None:
    data = ready.in_folder(tmp_path / "data")

    async def mismatch() -> None:
        async with opened(settings_with(FRONTDESK_DATA=data)) as (_, asgi):
            headers, body = call(MODERN, arguments={"agent_id": "agent-2"})
            await send(asgi, headers | {"x-agent-id": "agent-1"}, body)

    anyio.run(mismatch)
    assert "AgentIdMismatch  claimed: header agent-1, parameter agent-2" in frontdesk_here("journal", data=data).stdout
    told = json.loads(frontdesk_here("journal", "--json", data=data).stdout)
    assert (told["reason"], told["claimed"]["header"], told["claimed"]["parameter"]) == (
        "AgentIdMismatch",
        "agent-1",
        "agent-2",
    )
