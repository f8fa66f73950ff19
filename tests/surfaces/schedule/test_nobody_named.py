"""Whoever names nobody: the operator on a machine where nobody has to prove anything, and elsewhere nobody at all."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from frontdesk.app import App, open_app
from frontdesk.identity.model import AgentIdSource
from frontdesk.interfaces.app_runner import local_caller, record_change
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.mcp.schedule_tools import SCHEDULE_TOOLS
from frontdesk.interfaces.rest.schedules import add_schedule_routes
from frontdesk.schedules.history_store import HistoryQuery
from frontdesk.schedules.model import (
    SECOND,
    OwnerFilter,
    RunStatus,
    ScheduleDefinition,
    ScheduleState,
    Trigger,
    TriggerKind,
    now_us,
)
from frontdesk.settings import Issuer, OAuthClient, Settings
from tests.requirements import shows
from tests.support.chat import key
from tests.support.pages import browsing
from tests.support.wire import MODERN, call, send
from tests.surfaces.schedule.conftest import NEXT_YEAR

pytestmark = pytest.mark.anyio
SECRET = "the-words-of-ann"
LATER = f"{NEXT_YEAR}-12-25T10:00:00Z"
ISSUER = Issuer(issuer="https://login.example.com", audience=("https://desk.example.com/mcp",))
CLIENT = OAuthClient(client_id="notes", redirect_uris=("http://localhost:3000/callback",))
# What is set up: settings, and whether somebody has made a key.
SET_UP: dict[str, tuple[dict[str, Any], bool]] = {
    "keys exist": ({}, True),
    "authentication is required": ({"require_auth": True}, False),
    "an issuer is trusted": ({"issuers": (ISSUER,)}, False),
    "a client logs people in": ({"oauth_clients": (CLIENT,)}, False),
    "keys exist, and an agent stands in": ({"default_agent_id": "agent-ada"}, True),
    "the header is not read": ({"enable_agent_id_header": False}, False),
}
NAMED = {"x-agent-id": "agent-evil"}
# What these requests say of their caller; `none` is how clients say that they are nobody.
SAID: dict[str, dict[str, str]] = {"keys exist": {"x-agent-id": "none"}, "the header is not read": NAMED}


@dataclass(frozen=True, slots=True)
class Victim:
    """A schedule of somebody's with a run that waits, and all that can be done to them."""

    number: int
    run: str

    @property
    def arguments(self) -> dict[str, Any]:
        """Everything that any of the tools takes, but no agent."""
        return {
            "schedule_id": self.number,
            "prompt": "evil",
            "time": LATER,
            "cron": "0 9 * * *",
            "every": "1h",
            "max_repetitions": 1,
            "include_cancelled": True,
            "source_code": "def evil() -> str: ...",
            "name": "evil",
            "scope": "local",
        }

    def requests(self, paths: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str]]:
        """Every operation of the API on schedules, as it describes itself."""
        filled = [
            (method.upper(), path.replace("{schedule_id}", str(self.number)).replace("{delivery_id}", self.run))
            for path, methods in paths.items()
            if path.startswith("/v1/schedules")
            for method in methods
        ]
        return [*filled, *((method, f"{path}?agent_id=agent-ada") for method, path in filled if method == "GET")]


async def planned(app: App) -> Victim:
    """A schedule of Ann's with an agent, and a run of it that waits for a worker; none works here."""
    now = now_us()
    what = ScheduleDefinition("agent-ada", SECRET, Trigger(TriggerKind.INTERVAL, "1h", start_us=now), "ann")
    new = await app.schedules.store.add(what, now + 3600 * SECOND, now)
    return Victim(new.id, await app.schedules.store.run_now(new.id, now))


def paths_of(app: App) -> Mapping[str, Mapping[str, Any]]:
    """The API on schedules as it describes itself."""
    api = FastAPI()
    add_schedule_routes(api, app, "/api")
    return api.openapi()["paths"]


async def attacked(app: App, victim: Victim, headers: dict[str, str]) -> str:
    """Everything that was answered to every operation on schedules, over MCP and over HTTP."""
    asgi = build_application(app)
    heard: list[str] = []
    for spec in SCHEDULE_TOOLS:
        known = spec.arguments.model_fields
        given = {name: value for name, value in victim.arguments.items() if name in known}
        for arguments in [{}, given] if given else [given]:
            said, body = call(MODERN, spec.name, arguments)
            heard.append((await send(asgi, said | headers, body)).body.decode())
    transport = httpx2.ASGITransport(asgi)
    base = "http://127.0.0.1:3020/api"
    async with httpx2.AsyncClient(transport=transport, base_url=base, headers=headers) as client:
        requests = victim.requests(paths_of(app))
        assert len(requests) > 12
        for method, path in requests:
            body = {"when": "every day at 9", "prompt": "evil"} if method in ("POST", "PATCH") else None
            heard.append((await client.request(method, path, json=body)).text)
    return "\n".join(heard)


async def untouched(app: App, victim: Victim) -> bool:
    found = await app.schedules.store.get(victim.number)
    runs = await app.schedules.queries.past.history(HistoryQuery(OwnerFilter(), victim.number, limit=10))
    assert found is not None
    alive = (found.state, found.what.prompt) == (ScheduleState.ACTIVE, SECRET)
    return alive and [(one.id, one.standing) for one in runs] == [(victim.run, RunStatus.WAITING)]


@shows("KEPT-05")
@pytest.mark.parametrize("how", SET_UP)
async def test_where_credentials_count_who_names_nobody_reaches_no_schedule_of_others(
    settings: Settings, how: str
) -> None:
    values, keyed = SET_UP[how]
    async with open_app(settings.with_values(**values)) as app:
        victim = await planned(app)
        if keyed:
            await key(app, "ben")
        assert SECRET not in await attacked(app, victim, SAID.get(how, {}))
        assert await untouched(app, victim)
        assert (await app.schedules.queries.get(local_caller(), victim.number)).what.prompt == SECRET
        assert (await app.schedules.cancel(local_caller(), victim.number)).state is ScheduleState.CANCELLED


@shows("KEPT-05")
async def test_an_agents_key_does_not_become_the_operators_by_dropping_its_name(settings: Settings) -> None:
    async with open_app(settings) as app:
        victim = await planned(app)
        bound = await key(app, "ann", agent="agent-evil")
        for headers in (
            {"authorization": f"Bearer {bound}", "x-agent-id": "none"},
            {"x-user-auth-token": bound},
            {"authorization": f"Bearer {await key(app, None, agent='*')}", "x-user-auth-token": bound},
        ):
            assert SECRET not in await attacked(app, victim, headers)
            assert await untouched(app, victim)


@shows("KEPT-05")
async def test_an_agents_key_does_not_become_the_operators_on_the_pages(settings: Settings) -> None:
    async with open_app(settings) as app:
        victim, asgi = await planned(app), build_application(app)
        bound = await key(app, None, agent="agent-evil")
        async with browsing(asgi, authorization=f"Bearer {bound}") as web:
            assert SECRET not in await web.get("/schedule", 403)
            assert SECRET not in await web.get(f"/schedule/{victim.number}", 403)
            await web.post(f"/schedule/{victim.number}/cancel", {}, 403)
        assert await untouched(app, victim)
        async with browsing(asgi, authorization=f"Bearer {await key(app, 'ann')}") as web:
            assert SECRET in await web.get("/schedule"), "a person's key takes nothing away at this machine"


@shows("KEPT-05")
async def test_on_a_machine_where_nobody_proves_anything_who_names_nobody_is_the_operator(app: App) -> None:
    victim, asgi = await planned(app), build_application(app)
    said, body = call(MODERN, "promptyoself_list", {})
    assert SECRET in (await send(asgi, said, body)).body.decode()
    said, body = call(MODERN, "promptyoself_cancel", {"schedule_id": victim.number})
    assert (await send(asgi, said, body)).structured["cancelled_id"] == victim.number
    record_change(app, "schedule list").write()
    await app.journal.flush()
    rows = {entry.action: entry.source for _, entry in await app.journal.latest(10, 10)}
    assert rows["promptyoself_cancel"] == rows["schedule list"] == AgentIdSource.OPERATOR


async def test_a_key_of_the_first_start_leaves_everything_as_simple_as_it_is(app: App) -> None:
    victim, asgi = await planned(app), build_application(app)
    await app.identity.first_key()
    said, body = call(MODERN, "promptyoself_cancel", {"schedule_id": victim.number})
    assert (await send(asgi, said, body)).structured["cancelled_id"] == victim.number


async def test_who_names_an_agent_in_a_header_that_is_not_read_is_told_so(app: App) -> None:
    async with open_app(app.settings.with_values(enable_agent_id_header=False)) as deaf:
        said, body = call(MODERN, "whoami")
        answer = await send(build_application(deaf), said | NAMED, body)
        assert answer.error[1].endswith("the header was sent, and is not read here (ENABLE_AGENT_ID_HEADER=false)")
