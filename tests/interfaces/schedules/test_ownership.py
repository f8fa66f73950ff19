"""Tests which agent a schedule is for, which schedules a caller sees, and callers who name nobody."""

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import httpx2
import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import RequestParamsMeta

from frontdesk.app import App, open_app
from frontdesk.identity.model import AgentIdSource
from frontdesk.interfaces.app_runner import local_caller, record_change
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.mcp.tools import tool_name, tool_request
from frontdesk.interfaces.rest.openapi import openapi_document
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
from frontdesk.schedules.operations import SCHEDULE_OPERATIONS
from frontdesk.settings import Issuer, OAuthClient, Settings
from tests.interfaces.schedules.conftest import NEXT_YEAR, Asking, connected, created, made_key
from tests.requirements import shows
from tests.support.browsers import browsing
from tests.support.chat import key
from tests.support.desk import Desk, open_desk
from tests.support.wire import MODERN, call, send

# The agent of a schedule when the call names none


LATER = f"{NEXT_YEAR}-12-25T10:00:00Z"
FLAT = ("agent_id", "agentId", "letta_agent_id", "caller_agent_id")
SAID: list[dict[str, Any]] = [
    *({key: "agent-7"} for key in FLAT),
    *({"metadata": {key: "agent-7"}} for key in FLAT),
    *({"metadata": {"agent": {key: "agent-7"}}} for key in ("id", "agent_id", "agentId")),
    {"metadata": {"caller": {"id": "agent-7"}}},
    {"metadata": {"source_agent": {"agentId": "agent-7"}}},
]


async def diagnosed(ask: Asking, meta: dict[str, Any] | None = None, **arguments: Any) -> dict[str, Any]:
    said = cast("RequestParamsMeta", meta) if meta else None
    result = await ask.client.call_tool("promptyoself_inference_diagnostics", arguments, meta=said)
    assert result.structured_content is not None
    return result.structured_content


@shows("SCHEDULE-INFER")
@pytest.mark.parametrize("meta", SAID)
async def test_the_requests_metadata_names_the_agent_under_every_key(ask: Asking, meta: dict[str, Any]) -> None:
    told = await diagnosed(ask, meta)
    assert (told["status"], told["ctx_present"], told["inferred_agent_id"]) == ("ok", True, "agent-7")
    assert told["ctx_metadata_keys"] == list(meta.get("metadata", meta))
    assert told["inference_debug"]["source"] == "metadata"
    assert told["inference_debug"]["key"]


async def test_nothing_is_inferred_from_nothing(ask: Asking) -> None:
    told = await diagnosed(ask)
    assert told == {
        "status": "ok",
        "ctx_present": True,
        "ctx_metadata_keys": [],
        "env": dict.fromkeys(told["env"], False),
        "single_agent_fallback_enabled": False,
        "inferred_agent_id": None,
        "inference_debug": {"source": "none"},
    }
    assert set(told["env"]) >= {"PROMPTYOSELF_DEFAULT_AGENT_ID", "LETTA_AGENT_ID", "LETTA_DEFAULT_AGENT_ID"}


async def test_an_argument_and_a_header_are_told_as_what_they_are(desk: Desk, ask: Asking) -> None:
    told = await diagnosed(ask, agent_id="agent-8")
    assert (told["inferred_agent_id"], told["inference_debug"]["source"]) == ("agent-8", "parameter")
    async with connected(desk, agent="agent-9") as named:
        told = await diagnosed(named)
    assert (told["inferred_agent_id"], told["inference_debug"]["source"]) == ("agent-9", "header")


@contextmanager
def set_up(tmp_path_factory: pytest.TempPathFactory, **settings: str) -> Generator[Desk]:
    data = tmp_path_factory.mktemp("naming") / "data"
    with open_desk(data, FRONTDESK_WORKER="false", **settings) as desk:
        yield desk


@pytest.fixture(scope="module")
def by_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with set_up(tmp_path_factory, LETTA_AGENT_ID="agent-env") as desk:
        yield desk


@pytest.fixture(scope="module")
def lonely(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with set_up(tmp_path_factory, PROMPTYOSELF_USE_SINGLE_AGENT_FALLBACK="true") as desk:
        yield desk


@shows("SCHEDULE-INFER")
async def test_the_environment_names_the_agent(by_environment: Desk) -> None:
    async with connected(by_environment) as ask:
        told = await diagnosed(ask)
        assert (told["inferred_agent_id"], told["inference_debug"]) == (
            "agent-env",
            {"source": "env", "key": "LETTA_AGENT_ID"},
        )
        assert told["env"]["LETTA_AGENT_ID"] is True
        assert told["env"]["PROMPTYOSELF_DEFAULT_AGENT_ID"] is False
        made = await ask("schedule_time", prompt="x", time=LATER, skip_validation=True)
        listed = {one["id"]: one["agent_id"] for one in (await ask("list"))["schedules"]}
    assert listed[made["id"]] == "agent-env"


@shows("SCHEDULE-INFER")
async def test_the_only_agent_stands_in_while_it_is_the_only_one(lonely: Desk) -> None:
    only = await created(lonely, "Ada")
    async with connected(lonely) as ask:
        told = await diagnosed(ask)
        assert (told["single_agent_fallback_enabled"], told["inferred_agent_id"]) == (True, only)
        assert (await ask("schedule_time", prompt="x", time=LATER))["status"] == "success"
        await created(lonely, "Ben")
        assert await ask.error("schedule_time", prompt="x", time=LATER) == (
            "agent_id is required and could not be inferred"
        )


@shows("SCHEDULE-INFER")
async def test_ones_own_default_beats_the_environment_and_is_nobody_elses(by_environment: Desk) -> None:
    ann, bob = [await made_key(by_environment, user, agent="*") for user in ("ann", "bob")]
    agent = await created(by_environment, "Ada")
    async with connected(by_environment, proof=ann) as of_ann, connected(by_environment, proof=bob) as of_bob:
        assert (await of_ann("get_scoped_default_agent"))["agent_id"] is None
        told = await of_ann("set_scoped_default_agent", agent_id=agent)
        assert (told["status"], told["agent_id"]) == ("success", agent)
        assert (await of_ann("get_scoped_default_agent"))["agent_id"] == agent
        assert (await diagnosed(of_ann))["inferred_agent_id"] == agent
        assert (await diagnosed(of_ann))["inference_debug"]["source"] == "scoped_default"
        assert (await of_bob("get_scoped_default_agent"))["agent_id"] is None
        assert (await diagnosed(of_bob))["inferred_agent_id"] == "agent-env"
        await of_ann("schedule_time", prompt="x", time=LATER, skip_validation=True)
        assert [one["agent_id"] for one in (await of_ann("list"))["schedules"]] == [agent]
        await of_ann("set_scoped_default_agent", agent_id="")
        assert (await diagnosed(of_ann))["inferred_agent_id"] == "agent-env"


@shows("SCHEDULE-OWN")
async def test_everybodys_default_is_set_by_the_operator_alone(desk: Desk, agent: str, by_environment: Desk) -> None:
    # Once there are keys, a caller is not the operator just because it names nobody.
    proof = await made_key(by_environment, agent="agent-1")
    async with connected(by_environment, proof=proof) as of_agent, connected(desk, agent="agent-2") as named:
        for client in (of_agent, named):
            result = await refused(client, "set_default_agent", agent_id=agent)
            assert "operator" in result
    async with connected(desk) as operator:
        assert (await operator("set_default_agent", agent_id=agent))["agent_id"] == agent
        assert (await diagnosed(operator))["inferred_agent_id"] == agent
        assert (await operator("set_default_agent", agent_id=""))["agent_id"] is None
        assert (await diagnosed(operator))["inferred_agent_id"] is None


async def refused(ask: Asking, tool: str, **arguments: Any) -> str:
    """The message of the endpoint to a caller without the right."""
    with pytest.raises(MCPError) as error:
        await ask.client.call_tool(f"promptyoself_{tool}", arguments)
    assert error.value.code == -32011
    return str(error.value)


# Callers who name nobody: the operator on a machine without keys, and nobody at all elsewhere


SECRET = "the-words-of-ann"
ISSUER = Issuer(issuer="https://login.example.com", audience=("https://desk.example.com/mcp",))
CLIENT = OAuthClient(client_id="notes", redirect_uris=("http://localhost:3000/callback",))
# The configuration: settings, and whether somebody has made a key.
SET_UP: dict[str, tuple[dict[str, Any], bool]] = {
    "keys exist": ({}, True),
    "authentication is required": ({"require_auth": True}, False),
    "an issuer is trusted": ({"issuers": (ISSUER,)}, False),
    "a client logs people in": ({"oauth_clients": (CLIENT,)}, False),
    "keys exist, and an agent stands in": ({"default_agent_id": "agent-ada"}, True),
    "the header is not read": ({"enable_agent_id_header": False}, False),
}
NAMED = {"x-agent-id": "agent-evil"}
# The identity in these requests; `none` is how clients say that they are nobody.
NOBODY_SAID: dict[str, dict[str, str]] = {"keys exist": {"x-agent-id": "none"}, "the header is not read": NAMED}


@dataclass(frozen=True, slots=True)
class Victim:
    """A person's schedule with a waiting run, and all operations on them."""

    number: int
    run: str

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of all tools, except the agent."""
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
        """Every operation of the API on schedules, from its own description."""
        filled = [
            (method.upper(), path.replace("{schedule_id}", str(self.number)).replace("{delivery_id}", self.run))
            for path, methods in paths.items()
            if path.startswith("/v1/schedules")
            for method in methods
        ]
        return [*filled, *((method, f"{path}?agent_id=agent-ada") for method, path in filled if method == "GET")]


async def planned(app: App) -> Victim:
    """A schedule of Ann's with an agent, and a run of it that waits for a worker; no worker runs here."""
    now = now_us()
    what = ScheduleDefinition("agent-ada", SECRET, Trigger(TriggerKind.INTERVAL, "1h", start_us=now), "ann")
    new = await app.schedules.store.add(what, now + 3600 * SECOND, now)
    return Victim(new.id, await app.schedules.store.run_now(new.id, now))


async def attacked(app: App, victim: Victim, headers: dict[str, str]) -> str:
    """The answers to every operation on schedules, over MCP and over HTTP."""
    asgi = build_application(app)
    heard: list[str] = []
    for operation in SCHEDULE_OPERATIONS:
        if operation.mcp is None:
            continue
        known = tool_request(operation).model_fields
        given = {name: value for name, value in victim.arguments.items() if name in known}
        for arguments in [{}, given] if given else [given]:
            said, body = call(MODERN, tool_name(operation), arguments)
            heard.append((await send(asgi, said | headers, body)).body.decode())
    transport = httpx2.ASGITransport(asgi)
    base = "http://127.0.0.1:3020/api"
    async with httpx2.AsyncClient(transport=transport, base_url=base, headers=headers) as client:
        requests = victim.requests(openapi_document(SCHEDULE_OPERATIONS, "/api")["paths"])
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
        assert SECRET not in await attacked(app, victim, NOBODY_SAID.get(how, {}))
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


# Callers see, change and run only their own schedules; for them no other schedule exists


# Every tool that takes a schedule's number, and its answer for a missing one.
BY_NUMBER: list[tuple[str, dict[str, Any], str]] = [
    ("cancel", {}, "Schedule {} not found or already cancelled"),
    ("pause", {}, "Schedule {} not found"),
    ("resume", {}, "Schedule {} not found"),
    ("update", {"prompt": "evil"}, "Schedule {} not found"),
    ("run_now", {}, "Schedule {} not found"),
    ("history", {}, "Schedule {} not found"),
    ("preview", {}, "Schedule {} not found"),
]


async def plan_for_later(ask: Asking, prompt: str = "mine", **more: Any) -> int:
    return (await ask("schedule_time", prompt=prompt, time=LATER, skip_validation=True, **more))["id"]


async def seen(ask: Asking, **arguments: Any) -> set[int]:
    return {one["id"] for one in (await ask("list", limit=1000, **arguments))["schedules"]}


@shows("SCHEDULE-OWN")
@pytest.mark.parametrize(("tool", "arguments", "said"), BY_NUMBER)
async def test_another_agents_schedule_is_not_there(
    desk: Desk, tool: str, arguments: dict[str, Any], said: str
) -> None:
    async with connected(desk, agent="agent-a") as ask, connected(desk, agent="agent-b") as other:
        number = await plan_for_later(ask)
        assert await other.error(tool, schedule_id=number, **arguments) == said.format(number)
        assert await other.error(tool, schedule_id=number + 1_000_000, **arguments) == said.format(number + 1_000_000)
        assert number in await seen(ask)
        assert number not in await seen(other)


@pytest.fixture(scope="module")
def afar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A server with remote callers, where everybody must authenticate."""
    data = tmp_path_factory.mktemp("afar") / "data"
    with open_desk(data, FRONTDESK_REQUIRE_AUTH="true", FRONTDESK_WORKER="false") as desk:
        yield desk


@shows("SCHEDULE-OWN")
async def test_with_keys_one_sees_the_agents_and_of_these_no_other_persons(afar: Desk) -> None:
    agent = await created(afar, "Ada")
    ann, bob = [await made_key(afar, user, agent=agent) for user in ("ann", "bob")]
    bare, other = [await made_key(afar, agent=one) for one in (agent, "agent-2")]
    async with (
        connected(afar, proof=ann) as of_ann,
        connected(afar, proof=bob) as of_bob,
        connected(afar, proof=bare) as of_agent,
        connected(afar, proof=other) as of_other,
    ):
        anns, bobs, agents = await plan_for_later(of_ann), await plan_for_later(of_bob), await plan_for_later(of_agent)
        everyone = {anns, bobs, agents}
        assert await seen(of_ann) & everyone == {anns, agents}
        assert await seen(of_bob) & everyone == {bobs, agents}
        assert await seen(of_agent) & everyone == everyone
        assert await seen(of_other) & everyone == set()
        assert await of_bob.error("cancel", schedule_id=anns) == f"Schedule {anns} not found or already cancelled"
        assert (await of_ann("cancel", schedule_id=anns))["status"] == "success"


@shows("SCHEDULE-OWN")
async def test_an_admin_key_sees_everybodys_and_is_granted_by_name(afar: Desk) -> None:
    admin = await made_key(afar, "root", "schedules:admin", "schedules:read", "schedules:write")
    everything, own = await made_key(afar, "carol"), await made_key(afar, "dora", agent=await created(afar, "Cy"))
    async with (
        connected(afar, proof=own) as of_dora,
        connected(afar, proof=admin) as of_admin,
        connected(afar, proof=everything) as of_carol,
    ):
        number = await plan_for_later(of_dora)
        assert number in await seen(of_admin)
        assert number not in await seen(of_carol), "no scopes at all is not the scope for everybody's"
        assert (await of_admin("cancel", schedule_id=number))["cancelled_id"] == number


@shows("SCHEDULE-OWN")
@pytest.mark.parametrize(
    ("tool", "arguments", "scope"),
    [
        ("list", {}, "schedules:read"),
        ("history", {}, "schedules:read"),
        ("schedule_time", {"prompt": "x", "time": LATER}, "schedules:write"),
        ("cancel", {"schedule_id": 1}, "schedules:write"),
        ("execute", {}, "schedules:write"),
    ],
)
async def test_each_tool_asks_for_its_scope(afar: Desk, tool: str, arguments: dict[str, Any], scope: str) -> None:
    others = {"schedules:read", "schedules:write", "tools:read"} - {scope}
    async with connected(afar, proof=await made_key(afar, None, *others, agent="agent-1")) as ask:
        with pytest.raises(MCPError) as refused:
            await ask.client.call_tool(f"promptyoself_{tool}", arguments)
    assert refused.value.code == -32011
    assert scope in str(refused.value)


async def test_a_key_speaks_for_its_own_agent_alone(afar: Desk) -> None:
    async with connected(afar, proof=await made_key(afar, agent="agent-1")) as ask:
        with pytest.raises(MCPError, match="cannot speak for 'agent-2'"):
            await ask.client.call_tool("promptyoself_list", {"agent_id": "agent-2"})


async def test_a_platforms_key_plans_for_the_agent_it_names(afar: Desk) -> None:
    async with connected(afar, proof=await made_key(afar, agent="*")) as ask:
        number = await plan_for_later(ask, agent_id="agent-9")
        assert number in await seen(ask, agent_id="agent-9")
        assert number not in await seen(ask, agent_id="agent-8")
        assert await ask.error("list") == "agent_id is required and could not be inferred"
