"""Who may use which tools, at every interface."""

from collections.abc import AsyncGenerator

import pytest

from frontdesk.agents.host import NewAgent
from frontdesk.app import App
from frontdesk.interfaces.http.context import ASGIApp
from frontdesk.tools.access import AccessEffect
from tests.requirements import shows
from tests.support.asking import ask, asked
from tests.support.chat import key

pytestmark = pytest.mark.anyio
MAIL = {"query": "send a letter by mail"}


@pytest.fixture
async def barred(installation: App) -> AsyncGenerator[str]:
    """An agent that may not use the shop's mail."""
    agent = (await installation.host.create(NewAgent("Barred"))).id
    rule = await installation.tools.allowed.add(f"agent:{agent}", AccessEffect.DENY, "shop::send_*")
    yield agent
    await installation.tools.allowed.remove(rule.id)


@pytest.fixture
async def confined(installation: App) -> AsyncGenerator[str]:
    """An agent that may use the lab alone."""
    agent = (await installation.host.create(NewAgent("Confined"))).id
    rule = await installation.tools.allowed.add(f"agent:{agent}", AccessEffect.ALLOW, "lab")
    yield agent
    await installation.tools.allowed.remove(rule.id)


@shows("TOOLS-RIGHTS")
async def test_two_agents_with_different_rights_find_different_tools(asgi: ASGIApp, agent: str, barred: str) -> None:
    free, kept = await ask(asgi, "find_tools", MAIL, agent), await ask(asgi, "find_tools", MAIL, barred)
    assert [one["id"] for one in free.structured["found"]] == ["shop::send_mail"]
    assert kept.structured["found"] == []
    assert "send_mail" not in kept.text
    named = await ask(asgi, "find_tools", {"query": "shop::send_mail"}, barred)
    assert "shop::send_mail" not in [one["id"] for one in named.structured["found"]]


async def test_a_tool_that_is_kept_from_an_agent_cannot_be_called_by_it(asgi: ASGIApp, agent: str, barred: str) -> None:
    for name in ("shop::send_mail", "shop__send_mail", "send_mail"):
        call = {"name": name, "arguments": {"text": "hi"}}
        assert (await ask(asgi, "call_tool", call, agent)).ok
        code, message = (await asked(asgi, "call_tool", call, barred)).error
        assert (code, message.startswith(f"You may not use the tool '{name}'")) == (-32011, True)


async def test_an_agent_hears_only_of_servers_that_it_may_use(asgi: ASGIApp, confined: str, barred: str) -> None:
    nothing = {"query": "send a letter by mail", "min_score": 100}
    assert (await ask(asgi, "find_tools", nothing, confined)).structured["servers"] == ["lab"]
    assert (await ask(asgi, "find_tools", nothing, barred)).structured["servers"] == ["lab", "shop", "studio"]


async def test_a_rule_for_a_person_holds_for_every_agent_that_works_for_them(
    installation: App, asgi: ASGIApp, agent: str
) -> None:
    rule = await installation.tools.allowed.add("user:ann", AccessEffect.DENY, "shop")
    of_ann, of_bob = await key(installation, "ann", agent=agent), await key(installation, "bob", agent=agent)
    assert (await ask(asgi, "find_tools", MAIL, key=of_ann)).structured["found"] == []
    assert (await ask(asgi, "find_tools", MAIL, key=of_bob)).structured["found"] != []
    await installation.tools.allowed.remove(rule.id)
    assert (await ask(asgi, "find_tools", MAIL, key=of_ann)).structured["found"] != []


@pytest.mark.parametrize(("tool", "needed"), [("find_tools", "tools:attach"), ("call_tool", "tools:call")])
async def test_a_credential_with_scopes_needs_the_one_for_it(
    installation: App, asgi: ASGIApp, agent: str, tool: str, needed: str
) -> None:
    arguments = MAIL if tool == "find_tools" else {"name": "shop::send_mail", "arguments": {"text": "hi"}}
    short = await key(installation, None, "tools:read", agent=agent)
    refused = await asked(asgi, tool, arguments, key=short)
    assert (refused.status, refused.error[0]) == (403, -32011)
    assert f'scope="{needed}"' in refused.headers["www-authenticate"]
    enough = await key(installation, None, needed, agent=agent)
    assert (await ask(asgi, tool, arguments, key=enough)).ok
