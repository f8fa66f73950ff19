"""Who may use which tools, and what agents were given."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.agents.host import NewAgent
from frontdesk.app import open_app
from frontdesk.db.engine import Database
from frontdesk.errors import Invalid, NotFound
from frontdesk.identity.model import Caller
from frontdesk.settings import Settings
from frontdesk.tools import access_store
from frontdesk.tools.access import AccessEffect, AccessRule, PermittedTools, full_pattern, rule_subjects
from frontdesk.tools.access_store import ToolAccess
from frontdesk.tools.agent_tools_store import ToolAttachment, ToolAttachmentStore
from tests.support.moody_letta import AGENT, open_moody_letta

pytestmark = pytest.mark.anyio
NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
ADA = Caller("1", "agent-1", "ada")
ALLOW, DENY = AccessEffect.ALLOW, AccessEffect.DENY


def permitted(*rules: tuple[AccessEffect, str]) -> PermittedTools:
    return PermittedTools(
        [AccessRule(str(number), "*", effect, pattern) for number, (effect, pattern) in enumerate(rules)]
    )


@pytest.mark.parametrize(
    ("rules", "allowed", "denied"),
    [
        ([], ["a::b"], []),
        ([(DENY, "mail::*")], ["shop::buy"], ["mail::send", "mail::"]),
        ([(ALLOW, "mail::*")], ["mail::send"], ["shop::buy", "email::send"]),
        ([(ALLOW, "mail::*"), (DENY, "*::send")], ["mail::read"], ["mail::send", "shop::buy"]),
        ([(ALLOW, "*::get_?")], ["a::get_x"], ["a::get_", "a::get_xy"]),
        ([(ALLOW, "a::[x].+")], ["a::[x].+"], ["a::x.+", "a::[x]++"]),
        ([(DENY, "*")], [], ["a::b", "a::b\nc"]),
    ],
)
def test_a_deny_wins_and_where_something_is_allowed_all_else_is_not(
    rules: list[tuple[AccessEffect, str]], allowed: list[str], denied: list[str]
) -> None:
    found = permitted(*rules)
    assert [tool for tool in allowed if not found.allows(tool)] == []
    assert [tool for tool in denied if found.allows(tool)] == []
    assert found.everything == (not rules)


PATTERNS = st.lists(
    st.tuples(st.sampled_from(AccessEffect), st.text(alphabet="ab:*?.", min_size=1, max_size=6)), max_size=5
)


@given(PATTERNS, st.text(alphabet="ab:.", max_size=6))
def test_one_more_deny_never_allows_more(rules: list[tuple[AccessEffect, str]], tool: str) -> None:
    usable = [(effect, pattern) for effect, pattern in rules if pattern.strip()]
    before = permitted(*usable).allows(tool)
    assert before or not permitted(*usable, (DENY, "a*")).allows(tool)


def test_rules_concern_the_agent_the_person_and_everybody() -> None:
    assert rule_subjects(ADA) == {"*", "agent:agent-1", "user:ada"}
    assert rule_subjects(Caller("1")) == {"*"}
    assert full_pattern("github") == "github::*"


@pytest.mark.parametrize(("subject", "pattern"), [("ada", "*"), ("agent:", "*"), ("user:ada", ""), ("*", "x" * 400)])
async def test_a_rule_that_makes_no_sense_is_refused(subject: str, pattern: str) -> None:
    with pytest.raises(Invalid):
        AccessRule("1", subject, ALLOW, pattern)


async def test_rules_are_kept_and_another_replica_sees_them(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access_store, "LOOK_SECONDS", 0.0)
    here, there = ToolAccess(database), ToolAccess(database)
    assert (await there.permitted_tools(ADA)).everything
    rule = await here.add("user:ada", DENY, "mail")
    assert (await here.add("user:ada", DENY, "mail")) == rule, "once is enough"
    await here.add("agent:another", ALLOW, "shop")
    for rights in (here, there):
        found = await rights.permitted_tools(ADA)
        assert (found.allows("mail::send"), found.allows("shop::buy")) == (False, True)
    await there.remove(rule.id)
    assert (await here.permitted_tools(ADA)).everything
    with pytest.raises(NotFound):
        await here.remove(rule.id)


async def test_a_look_at_rules_that_stay_costs_no_query(database: Database) -> None:
    rights = ToolAccess(database)
    first = await rights.permitted_tools(ADA)
    await database.engine.dispose()
    assert await rights.permitted_tools(ADA) is first
    await rights.add("user:ada", DENY, "mail")
    assert not (await rights.permitted_tools(ADA)).allows("mail::send"), "what was changed here holds at once"


async def test_what_an_agent_was_given_is_known_with_its_last_use(database: Database) -> None:
    holdings, later = ToolAttachmentStore(database), NOW + timedelta(hours=1)
    await holdings.record("agent-1", ["s::a", "s::b"], [], NOW)
    await holdings.record("agent-2", ["s::a"], [], NOW, "attach")
    await holdings.touch("agent-1", "s::a", later)
    await holdings.touch("agent-1", "s::not-given", later)
    await holdings.record("agent-1", ["s::a", "s::c"], ["s::b"], later)
    assert await holdings.attachments("agent-1") == {
        "s::a": ToolAttachment(later, later, "find_tools"),
        "s::c": ToolAttachment(later, None, "find_tools"),
    }
    await holdings.forget("agent-1")
    assert await holdings.attachments("agent-1") == {}
    assert list(await holdings.attachments("agent-2")) == ["s::a"]


async def test_an_agent_that_is_deleted_holds_nothing_on_either_host(settings: Settings) -> None:
    with open_moody_letta() as letta:
        for changed in (settings, settings.with_values(letta_base_url=letta.url)):
            async with open_app(changed) as app:
                agent = AGENT if changed.letta_base_url else (await app.host.create(NewAgent("Ada"))).id
                holdings = ToolAttachmentStore(app.database)
                for owner in (agent, "agent-other"):
                    await holdings.record(owner, ["s::a"], [], NOW)
                await app.tools.delete_agent(agent)
                assert await holdings.attachments(agent) == {}
                assert list(await holdings.attachments("agent-other")) == ["s::a"]
    assert "DELETE" in {request.method for request in letta.requests}
