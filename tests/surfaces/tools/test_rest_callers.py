"""Who may do what at the tools API."""

from collections.abc import AsyncGenerator
from dataclasses import replace

import httpx2
import pytest

from frontdesk.app import App, open_app
from frontdesk.errors import Denied, Invalid
from frontdesk.identity.model import AgentIdSource, Caller
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.http.context import ASGIApp
from frontdesk.settings import Settings
from frontdesk.tools.servers import ServerSpec
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.chat import key
from tests.support.tool_servers import ToolServer

pytestmark = pytest.mark.anyio
SECONDS = 60
ADMIN: list[tuple[str, str, object]] = [
    ("GET", "/rights", None),
    ("POST", "/rights", {"subject": "*", "effect": "allow", "pattern": "*"}),
    ("DELETE", "/rights/abc", None),
    ("POST", "/servers", {"name": "x", "url": "http://127.0.0.1:1/mcp"}),
    ("DELETE", "/servers/shop", None),
    ("POST", "/refresh", {}),
    ("POST", "/shop::send_mail/review", {"accept": True}),
]


# Where a request comes in: what the installation is set to, and what a proxy adds.
PLACES: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "loopback": ({}, {}),
    "loopback behind a proxy": ({}, {"x-forwarded-for": "10.0.0.1"}),
    "loopback that asks for proof": ({"FRONTDESK_REQUIRE_AUTH": "true"}, {}),
    "elsewhere": ({"FRONTDESK_HOST": "0.0.0.0"}, {}),
}
# Who comes: nobody in particular, or the scopes, person and agent of a key.
CROWD: list[tuple[tuple[str, ...], str | None, str | None] | None] = [
    None,
    ((), "ann", None),
    ((), None, "agent-1"),
    ((), "ann", "*"),
    (("tools:read", "tools:attach"), "ann", None),
    (("tools:admin", "tools:read", "metrics:read"), "ann", None),
]


@pytest.fixture(scope="module")
async def exposed(tmp_path_factory: pytest.TempPathFactory, shop: ToolServer) -> AsyncGenerator[App]:
    """An installation that is reached from elsewhere."""
    data = tmp_path_factory.mktemp("exposed") / "data"
    async with open_app(
        settings_with(FRONTDESK_DATA=data, FRONTDESK_HOST="0.0.0.0", FRONTDESK_EMBEDDINGS="off")
    ) as app:
        await app.tools.catalogue.add(ServerSpec("shop", url=shop.url))
        yield app


@pytest.fixture(scope="module")
def afar(exposed: App) -> ASGIApp:
    return build_application(exposed)


async def ask(
    asgi: ASGIApp, method: str, path: str, body: object = None, key: str | None = None, **headers: str
) -> httpx2.Response:
    said = headers | ({"authorization": f"Bearer {key}"} if key else {})
    base = "http://127.0.0.1:3020/api/v1/tools"
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(asgi), base_url=base, timeout=SECONDS) as client:
        return await client.request(method, path, json=body, headers=said)


@pytest.mark.parametrize(("method", "path", "body"), [("GET", "", None), ("POST", "/search", {"query": "x"}), *ADMIN])
async def test_beyond_this_machine_nobody_gets_in_without_a_credential(
    afar: ASGIApp, asgi: ASGIApp, method: str, path: str, body: object
) -> None:
    assert (await ask(afar, method, path, body)).status_code == 401
    proxied = await ask(asgi, method, path, body, **{"x-forwarded-for": "10.0.0.1"})
    assert proxied.status_code == 401


@shows("TOOLS-ADMIN")
@pytest.mark.parametrize(("method", "path", "body"), ADMIN)
async def test_the_installation_is_changed_only_by_callers_with_the_scope_by_name(
    exposed: App, afar: ASGIApp, method: str, path: str, body: object
) -> None:
    for scopes in ((), ("tools:read", "tools:attach", "tools:call")):
        refused = await ask(afar, method, path, body, await key(exposed, "ann", *scopes))
        assert refused.status_code == 403
        assert refused.json()["required_scopes"] == ["tools:admin"]


async def test_who_was_granted_it_may(exposed: App, afar: ASGIApp) -> None:
    granted = await key(exposed, "ann", "tools:admin")
    assert (await ask(afar, "GET", "/rights", None, granted)).json() == {"rules": []}
    assert (await ask(afar, "POST", "/refresh", {}, granted)).json()["servers"][0]["ok"] is True
    denied = await ask(afar, "POST", "/servers", {"name": "x", "command": "sh"}, granted)
    assert denied.status_code == 403


@pytest.mark.parametrize(
    ("path", "body", "scope"),
    [
        ("/search", {"query": "mail"}, "tools:read"),
        ("/attach", {"query": "mail", "agent_id": "agent-1"}, "tools:attach"),
        ("/call", {"name": "shop::send_mail", "arguments": {"text": "hi"}}, "tools:call"),
    ],
)
async def test_each_route_asks_for_its_own_scope(
    exposed: App, afar: ASGIApp, path: str, body: object, scope: str
) -> None:
    others = {"tools:read", "tools:attach", "tools:call", "tools:admin"} - {scope}
    refused = await ask(afar, "POST", path, body, await key(exposed, None, *others, agent="agent-1"))
    assert (refused.status_code, refused.json()["required_scopes"]) == (403, [scope])
    assert (await ask(afar, "POST", path, body, await key(exposed, None, scope, agent="agent-1"))).status_code == 200


async def test_a_key_speaks_for_its_own_agent_alone(exposed: App, afar: ASGIApp) -> None:
    of_one = await key(exposed, None, agent="agent-1")
    other = await ask(afar, "POST", "/attach", {"query": "mail", "agent_id": "agent-2"}, of_one)
    assert other.status_code == 403
    person = await ask(afar, "POST", "/attach", {"query": "mail", "agent_id": "agent-2"}, await key(exposed, "ann"))
    assert person.status_code == 403


async def test_everybody_sees_their_own_usage_and_only_an_admin_that_of_others(exposed: App, afar: ASGIApp) -> None:
    call = {"name": "shop::send_mail", "arguments": {"text": "hi"}}
    keys = {agent: await key(exposed, None, agent=agent) for agent in ("agent-8", "agent-9")}
    for of_agent in keys.values():
        assert (await ask(afar, "POST", "/call", call, of_agent)).json()["ok"]
    await exposed.journal.flush()

    async def seen(shown: str, path: str = "/usage?agent_id=agent-9") -> set[str | None]:
        return {use["agent_id"] for use in (await ask(afar, "GET", path, None, shown)).json()["uses"]}

    assert await seen(keys["agent-8"]) == {"agent-8"}
    assert await seen(await key(exposed, "ann", "tools:read")) == set()
    assert await seen(await key(exposed, None, agent="*")) == set()
    granted = await key(exposed, "ann", "tools:admin", "tools:read")
    assert await seen(granted) == {"agent-9"}
    assert await seen(granted, "/usage") >= {"agent-8", "agent-9"}


@shows("TOOLS-ADMIN")
@pytest.mark.parametrize("place", PLACES)
async def test_who_is_the_operator_from_where(settings: Settings, place: str) -> None:
    changes, proxied = PLACES[place]
    at_home = place == "loopback"
    async with open_app(settings_with(FRONTDESK_DATA=settings.data, FRONTDESK_EMBEDDINGS="off", **changes)) as app:
        asgi = build_application(app)
        for who in CROWD:
            scopes, user, agent = who or ((), None, None)
            shown = await key(app, user, *scopes, agent=agent) if who else None
            named = {"x-agent-id": "agent-1"} if agent or (at_home and not who) else {}
            for headers in (proxied, proxied | named):
                may = 200 if "tools:admin" in scopes or (at_home and not scopes) else 403 if who else 401
                for method, path, body in (
                    ("GET", "/rights", None),
                    ("POST", "/rights", {"subject": "*", "effect": "allow", "pattern": "*"}),
                    ("POST", "/refresh", {}),
                    ("GET", "http://127.0.0.1:3020/metrics", None),
                ):
                    answer = await ask(asgi, method, path, body, shown, **headers)
                    assert answer.status_code == may, (place, who, headers, path)


async def test_a_key_that_is_shown_at_this_machine_makes_no_tools_for_the_agent_host(installation: App) -> None:
    keyless = Caller("1", "agent-1", source=AgentIdSource.HEADER, local=True)
    with pytest.raises(Invalid, match="Missing LETTA_API_KEY"):
        await installation.schedules.host.upload_tool(keyless, "def sing(): ...")
    with pytest.raises(Denied, match="schedules:admin"):
        await installation.schedules.host.upload_tool(replace(keyless, credential_id="key:1"), "def sing(): ...")
