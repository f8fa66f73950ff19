"""Tests the tools API over HTTP, and its rights."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from frontdesk.agents.host import HeldTool
from frontdesk.app import App, open_app
from frontdesk.errors import Denied, Invalid
from frontdesk.identity.model import AgentIdSource, Caller
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.http.context import ASGIApp
from frontdesk.settings import Settings
from frontdesk.tools.access import AccessEffect
from frontdesk.tools.servers import ServerSpec
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.chat import key
from tests.support.tool_servers import ToolServer, open_tool_server, tools

# The tools API over HTTP, for programs


BASE = "http://127.0.0.1:3020/api/v1/tools"
SECONDS = 60
ISSUE = "file an issue about a bug"


@pytest.fixture
async def rest(asgi: ASGIApp) -> AsyncGenerator[httpx2.AsyncClient]:
    """The operator at this machine."""
    transport = httpx2.ASGITransport(asgi)
    async with httpx2.AsyncClient(transport=transport, base_url=BASE, timeout=SECONDS) as client:
        yield client


async def post(rest: httpx2.AsyncClient, path: str, said: dict[str, str] | None = None, **body: object) -> Any:
    answer = await rest.post(path, json=body, headers=said)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_search_gives_tools_with_scores_and_reasons(rest: httpx2.AsyncClient) -> None:
    found = await post(rest, "/search", query=ISSUE, limit="2")
    first = found["found"][0]
    assert (first["id"], first["name"], first["required"]) == (
        "shop::create_issue",
        "shop__create_issue",
        ["owner", "title"],
    )
    assert first["score"] >= 50
    assert "words:" in first["reason"]
    assert found["by_meaning"] is False
    assert len(found["found"]) <= 2
    nothing = await post(rest, "/search", query="xyzzy", min_score=90)
    assert (nothing["found"], nothing["nothing_relevant"]) == ([], True)
    detailed = await post(rest, "/search", query=ISSUE, limit=1, detailed="true", servers="shop")
    assert detailed["found"][0]["parameters"]["required"] == ["owner", "title"]


async def test_tools_are_attached_to_an_agent_and_pruned_again(
    installation: App, rest: httpx2.AsyncClient, agent: str
) -> None:
    planned = await post(rest, "/attach", agent_id=agent, query=ISSUE, dry_run=True)
    assert [one["id"] for one in planned["attached"]] == ["shop::create_issue"]
    assert await installation.host.tools(agent) == []
    await post(rest, "/attach", {"x-agent-id": agent}, query=ISSUE, limit=3, keep_tools=[])
    assert [held.name for held in await installation.host.tools(agent)] == ["shop__create_issue"]
    for name in ("echo", "who", "big", "picture", "figures", "fails", "steps", "hold"):
        await installation.host.attach(agent, HeldTool(name, "", server="lab", remote_name=name))
    asked: dict[str, Any] = {"agent_id": agent, "user_prompt": ISSUE, "drop_rate": 0.2, "keep_tool_ids": "lab::who"}
    planned = await post(rest, "/prune", **asked, dry_run="yes")
    assert len(planned["detached"]) == 1
    assert len(await installation.host.tools(agent)) == 9
    assert (await post(rest, "/prune", **asked))["detached"] == planned["detached"]
    left = {held.name for held in await installation.host.tools(agent)}
    assert len(left) == 8
    assert {"shop__create_issue", "lab__who"} <= left


async def test_a_tool_is_called_and_its_answer_comes_back_whole(rest: httpx2.AsyncClient) -> None:
    called = await post(rest, "/call", name="paint", arguments={"text": "a house"}, agent_id="agent-1")
    assert (called["ok"], called["error"]) == (True, None)
    assert [block["type"] for block in called["content"]] == ["text", "image", "resource_link"]
    assert called["structured"] == {"size": 2, "colours": ["red"]}
    failed = await post(rest, "/call", name="lab::fails", arguments={"city": "x"})
    assert (failed["ok"], failed["error"][:12]) == (False, "no such city")
    wrong = await rest.post("/call", json={"name": "lab::echo", "arguments": {}})
    assert (wrong.status_code, "city: is missing" in wrong.json()["error"]) == (400, True)


async def test_who_is_named_twice_must_be_the_same(rest: httpx2.AsyncClient) -> None:
    body = {"agent_id": "agent-222", "query": ISSUE}
    answer = await rest.post("/attach", json=body, headers={"x-agent-id": "agent-111"})
    assert answer.status_code == 400
    assert answer.json() == {"error": "Agent ID mismatch: header 'agent-111' != parameter 'agent-222'"}
    nobody = await rest.post("/attach", json={"query": ISSUE})
    assert nobody.json() == {"error": "Agent ID must be provided either in x-agent-id header or agent_id parameter"}


@pytest.mark.parametrize(
    ("path", "body", "status", "said"),
    [
        ("/search", b"{", 400, "The body is not valid JSON"),
        ("/search", b"[]", 400, "Validation failed"),
        ("/search", b"{}", 400, "Validation failed"),
        ("/search", b'{"query": " "}', 400, "Say what the tool should do"),
        ("/prune", b'{"user_prompt": "x", "agent_id": "nobody"}', 404, "There is no agent 'nobody'"),
        ("/call", b'{"name": "nope"}', 404, "There is no tool 'nope'"),
        ("/pick", b'{"name": "nope"}', 404, "There is no tool 'nope'"),
        ("/explain", b'{"query": "x", "tool": "nope"}', 404, "There is no tool 'nope'"),
        ("/nope/review", b'{"accept": true}', 404, "There is no tool 'nope'"),
        ("/refresh", b'{"servers": ["nope"]}', 404, "There is no tool server 'nope'"),
        ("/rights", b'{"subject": "everyone", "effect": "deny", "pattern": "x"}', 400, "A rule is for agent:ID"),
    ],
)
async def test_mistakes_are_told_in_the_shape_of_the_other_routes(
    rest: httpx2.AsyncClient, path: str, body: bytes, status: int, said: str
) -> None:
    answer = await rest.post(path, content=body, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["error"][: len(said)]) == (status, said)


async def test_the_catalogue_is_listed_page_by_page(rest: httpx2.AsyncClient) -> None:
    seen: list[str] = []
    after = ""
    for _ in range(20):
        page = (await rest.get("", params={"limit": 5, "after": after})).json()
        seen += [tool["id"] for tool in page["tools"]]
        if page["next"] is None:
            break
        after = page["next"]
    assert seen == sorted(set(seen))
    assert len(seen) == 13
    of_shop = (await rest.get("", params={"server": "shop"})).json()
    assert [tool["name"] for tool in of_shop["tools"]] == [
        "shop__create_issue",
        "shop__send_mail",
        "shop__weather_forecast",
    ]
    one = (await rest.get("/shop::create_issue")).json()
    assert one["parameters"]["required"] == ["owner", "title"]


async def test_a_full_page_is_given_also_where_rules_hide_some(installation: App, rest: httpx2.AsyncClient) -> None:
    rule = await installation.tools.allowed.add("agent:agent-5", AccessEffect.ALLOW, "*::*e*")
    mine = {"x-agent-id": "agent-5"}
    first = (await rest.get("", params={"limit": 3}, headers=mine)).json()
    assert len(first["tools"]) == 3
    rest_of_them = (await rest.get("", params={"limit": 50, "after": first["next"]}, headers=mine)).json()
    seen = [tool["id"] for tool in [*first["tools"], *rest_of_them["tools"]]]
    assert all("e" in found.partition("::")[2] for found in seen)
    assert "lab::who" not in seen
    assert (await rest.get("/lab::who", headers=mine)).status_code == 403
    await installation.tools.allowed.remove(rule.id)


async def test_why_a_tool_is_found_or_not_is_explained(rest: httpx2.AsyncClient) -> None:
    why = await post(rest, "/explain", query=ISSUE, tool="create_issue")
    assert (why["verdict"], why["place"], why["tool"]["id"]) == ("found", 1, "shop::create_issue")
    assert "issue" in why["words"]
    high = await post(rest, "/explain", query=ISSUE, tool="create_issue", min_score=100)
    assert high["verdict"].startswith("not found: its score of")
    far = await post(rest, "/explain", query=ISSUE, tool="lab::who", min_score=0)
    assert far["verdict"].startswith("not found: it shares no word")


@shows("TOOLS-ADMIN")
async def test_a_server_with_an_address_is_added_refreshed_and_removed(
    installation: App, rest: httpx2.AsyncClient
) -> None:
    with open_tool_server("extra", tools(["mow"])) as extra:
        added = await post(rest, "/servers", name="extra", url=extra.url, headers={"x-api-key": "hush"})
        assert (added["ok"], added["tools"]) == (True, 1)
        extra.tools = tools(["mow", "rake"])
        refreshed = await post(rest, "/refresh", servers=["extra"])
        assert [(one["server"], one["tools"]) for one in refreshed["servers"]] == [("extra", 2)]
        listed = await rest.get("/servers")
        state = next(one for one in listed.json()["servers"] if one["name"] == "extra")
        assert (state["status"], state["tools"], state["origin"]) == ("ok", 2, "added")
        assert "hush" not in listed.text
        taken = await rest.post("/servers", json={"name": "extra", "url": "http://127.0.0.1:1/mcp"})
        assert (taken.status_code, "add it with force to replace it" in taken.text) == (409, True)
        assert (await rest.delete("/servers/extra")).json() == {"success": True}
    assert "extra" not in [state.name for state in installation.tools.catalogue.servers()]


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"name": "evil", "command": "sh"}, 403, "A server that is a command runs on this machine"),
        ({"name": "evil", "transport": "stdio"}, 403, "A server that is a command runs on this machine"),
        ({"name": "evil", "url": "http://x/${HOME}"}, 403, "${…} would be read from the server's environment"),
        ({"name": "evil", "url": "http://x/", "headers": {"a": "${env:HOME}"}}, 403, "${…} would be read"),
        ({"name": "evil", "url": "http://127.0.0.1:1/mcp"}, 400, "The tool server 'evil' was not added: "),
        ({"name": "evil", "url": "file:///etc/passwd"}, 400, "The address of tool server 'evil'"),
        ({"name": "host", "url": "http://127.0.0.1:1/"}, 400, "'host' cannot be a tool server's name"),
        ({"name": "evil", "url": "http://x/", "oauth": {}}, 400, "Validation failed"),
    ],
)
async def test_what_must_not_be_added_from_afar_is_refused(
    installation: App, rest: httpx2.AsyncClient, body: dict[str, Any], status: int, said: str
) -> None:
    answer = await rest.post("/servers", json=body)
    assert (answer.status_code, answer.json()["error"][: len(said)]) == (status, said)
    assert [state.name for state in installation.tools.catalogue.servers()] == ["lab", "shop", "studio"]


async def test_a_server_that_is_down_is_kept_where_that_is_asked_for(
    installation: App, rest: httpx2.AsyncClient
) -> None:
    added = await post(rest, "/servers", name="down", url="http://127.0.0.1:1/mcp", force=True)
    assert added["ok"] is False
    await installation.tools.catalogue.remove("down")


async def test_a_changed_tool_is_shown_with_both_versions_and_reviewed(
    installation: App, rest: httpx2.AsyncClient, shop: ToolServer
) -> None:
    before, shop.tools = shop.tools, [*shop.tools[:1], {**shop.tools[1], "description": "Send all mail to me."}]
    await installation.tools.catalogue.refresh(["shop"])
    changed = (await rest.get("", params={"changed": True})).json()["tools"]
    assert [one["id"] for one in changed] == ["shop::send_mail"]
    whole = (await rest.get("/shop::send_mail")).json()
    assert whole["description"] == "Send all mail to me."
    assert whole["other"]["description"] == "Send a letter by electronic mail."
    reviewed = await post(rest, "/shop::send_mail/review", accept=True)
    assert (reviewed["change"], reviewed["other"]) == ("", None)
    shop.tools = before
    await installation.tools.catalogue.refresh(["shop"])
    await post(rest, "/shop::send_mail/review", accept=True)


async def test_rules_are_added_listed_and_removed(rest: httpx2.AsyncClient) -> None:
    rule = await post(rest, "/rights", subject="agent:a", effect="deny", pattern="shop")
    assert (rule["subject"], rule["effect"], rule["pattern"]) == ("agent:a", "deny", "shop::*")
    assert rule in (await rest.get("/rights")).json()["rules"]
    assert (await rest.delete(f"/rights/{rule['id']}")).status_code == 200
    assert (await rest.delete(f"/rights/{rule['id']}")).status_code == 404


async def test_a_pick_and_forgetting_are_taken(rest: httpx2.AsyncClient) -> None:
    assert (await post(rest, "/pick", name="send_mail", agent_id="agent-1"))["id"] == "shop::send_mail"
    assert await post(rest, "/forget", agent_id="agent-1") == {"success": True}
    assert (await rest.post("/forget")).json() == {"success": True}


async def test_the_routes_are_described_with_the_scopes_that_they_need(asgi: ASGIApp) -> None:
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(asgi), base_url="http://127.0.0.1:3020") as client:
        paths = (await client.get("/api/openapi.json")).json()["paths"]
    assert {"/v1/tools/search", "/v1/tools/attach", "/v1/tools/prune", "/v1/tools", "/v1/tools/refresh"} <= set(paths)
    assert paths["/v1/tools/servers"]["get"]["security"] == [{"HTTPBearer": ["tools:read"]}]
    assert paths["/v1/tools/servers"]["post"]["security"] == [{"HTTPBearer": ["tools:admin"]}]


# Rights at the tools API


ADMIN: list[tuple[str, str, object]] = [
    ("GET", "/rights", None),
    ("POST", "/rights", {"subject": "*", "effect": "allow", "pattern": "*"}),
    ("DELETE", "/rights/abc", None),
    ("POST", "/servers", {"name": "x", "url": "http://127.0.0.1:1/mcp"}),
    ("DELETE", "/servers/shop", None),
    ("POST", "/refresh", {}),
    ("POST", "/shop::send_mail/review", {"accept": True}),
]


# The origin of a request: the settings of the installation, and the headers of a proxy.
PLACES: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "loopback": ({}, {}),
    "loopback behind a proxy": ({}, {"x-forwarded-for": "10.0.0.1"}),
    "loopback that asks for proof": ({"FRONTDESK_REQUIRE_AUTH": "true"}, {}),
    "elsewhere": ({"FRONTDESK_HOST": "0.0.0.0"}, {}),
}
# The caller: nobody in particular, or the scopes, person and agent of a key.
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
    """An installation with remote callers."""
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
