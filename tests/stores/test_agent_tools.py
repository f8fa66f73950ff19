"""Tests which agents may use which tools, which tools they were given, and the lock for changes of them."""

from datetime import UTC, datetime, timedelta

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.agents.host import NewAgent
from frontdesk.app import open_app
from frontdesk.db.engine import Database
from frontdesk.db.schema import tool_turns
from frontdesk.errors import Busy, Invalid, NotFound
from frontdesk.identity.model import Caller
from frontdesk.settings import Settings
from frontdesk.tools import access_store
from frontdesk.tools.access import AccessEffect, AccessRule, PermittedTools, full_pattern, rule_subjects
from frontdesk.tools.access_store import ToolAccess
from frontdesk.tools.agent_tools_store import (
    LOCK_LEASE,
    AgentToolsLock,
    AgentToolsLockStore,
    ToolAttachment,
    ToolAttachmentStore,
)
from tests.support.letta import AGENT, open_moody_letta
from tests.support.waiting import age, set_clock_ahead

# Which agents may use which tools, and which tools they were given


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


# One change of an agent's tools at a time, on both databases, and no change waits for ever


async def test_a_lease_is_one_owners_until_it_is_left_or_lapses(database: Database) -> None:
    store = AgentToolsLockStore(database)
    assert await store.acquire("agent-1", "ann", LOCK_LEASE)
    assert not await store.acquire("agent-1", "bob", LOCK_LEASE)
    assert await store.acquire("agent-2", "bob", LOCK_LEASE), "another agent is another matter"
    await store.release("agent-1", "bob")
    assert not await store.acquire("agent-1", "bob", LOCK_LEASE), "nobody leaves for another"
    await store.release("agent-1", "ann")
    assert await store.acquire("agent-1", "bob", LOCK_LEASE)
    await age(database, tool_turns.c.leased_until, LOCK_LEASE + timedelta(seconds=1))
    assert await store.acquire("agent-1", "ann", LOCK_LEASE), "the dead keep nobody out"


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
async def test_a_replica_whose_clock_is_ahead_keeps_out_while_another_is_inside(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = AgentToolsLockStore(database)
    assert await store.acquire("agent-1", "ann", LOCK_LEASE)
    set_clock_ahead(monkeypatch)
    assert not await store.acquire("agent-1", "bob", LOCK_LEASE)


async def test_nobody_is_inside_together_whichever_process_they_come_from(database: Database) -> None:
    gates = [AgentToolsLock(AgentToolsLockStore(database)) for _ in range(2)]
    inside = most = entered = 0

    async def enter(gate: AgentToolsLock) -> None:
        nonlocal inside, most, entered
        async with gate("agent-1"):
            inside, entered = inside + 1, entered + 1
            most = max(most, inside)
            await anyio.lowlevel.checkpoint()
            inside -= 1

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(enter, gates[number % 2])
    assert (most, entered) == (1, 20)


async def test_who_waits_too_long_is_told_so(database: Database) -> None:
    store = AgentToolsLockStore(database)
    hasty = AgentToolsLock(store, wait=0.05)

    async def enter(agent: str) -> None:
        with pytest.raises(Busy, match=agent):
            await hasty(agent).__aenter__()

    async with AgentToolsLock(store)("agent-1"), hasty("agent-2"), anyio.create_task_group() as tasks:
        tasks.start_soon(enter, "agent-1")
        tasks.start_soon(enter, "agent-2")
    async with hasty("agent-1"), hasty("agent-2"):
        assert len(hasty._locks) == 2
    assert len(hasty._locks) == 0, "nothing is left of an agent that nobody waits for"


async def test_who_fails_inside_lets_the_next_in(database: Database) -> None:
    gate = AgentToolsLock(AgentToolsLockStore(database), wait=10)

    async def fail() -> None:
        async with gate("agent-1"):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    async with gate("agent-1"):
        pass
