"""Tests which schedules a caller sees and changes, and the agent of a prompt when the caller names none."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import pytest

from frontdesk.errors import Denied, FrontdeskError, Invalid, InvalidAgentId, MissingAgentId, NotFound
from frontdesk.identity import rights
from frontdesk.identity.inbound import IdentityPolicy, resolve_caller
from frontdesk.identity.model import AgentIdSource, Caller, Credential, Signals
from frontdesk.schedules.access import is_schedules_admin
from frontdesk.schedules.model import Schedule, ScheduleState, now_us
from frontdesk.schedules.requests import ListRuns, ListSchedules, NewSchedule, ScheduleChange
from frontdesk.schedules.service import ScheduleService
from tests.requirements import shows
from tests.stores.schedules.conftest import Installation, agent, person, program
from tests.support.scheduling import OPERATOR, OWNERS, Owner, visitors

# Through every method of the service: for a caller, another's schedules do not exist, and they stay unchanged


NOWHERE = 999_999
Kind = tuple[object, ...]

READS: Sequence[Callable[[ScheduleService, Caller, int], Awaitable[object]]] = (
    lambda schedules, caller, number: schedules.queries.get(caller, number),
    lambda schedules, caller, number: schedules.queries.preview(caller, number),
    lambda schedules, caller, number: schedules.queries.history(caller, ListRuns(schedule_id=number)),
)
CHANGES: Sequence[Callable[[ScheduleService, Caller, int], Awaitable[object]]] = (
    lambda schedules, caller, number: schedules.pause(caller, number),
    lambda schedules, caller, number: schedules.resume(caller, number),
    lambda schedules, caller, number: schedules.update(caller, number, ScheduleChange(prompt="Mine now")),
    lambda schedules, caller, number: schedules.run_now(caller, number),
    lambda schedules, caller, number: schedules.cancel(caller, number),
)


async def one_of_each(installation: Installation) -> dict[Owner, Schedule]:
    return {owner: await installation.put(*owner) for owner in OWNERS}


def kind(caller: Caller) -> Kind:
    """Callers of one kind differ only in their credential; tests without a database show that it has no effect."""
    if is_schedules_admin(caller):
        return ("admin",)
    return caller.agent_id, caller.user_id, rights.names_agent(caller)


async def refusal(work: Awaitable[object]) -> str | None:
    """The kind of error and its text, if the call was refused."""
    try:
        await work
    except FrontdeskError as error:
        return f"{type(error).__name__}: {error}"
    return None


@shows("SCHEDULE-OWN")
async def test_what_is_anothers_cannot_be_told_from_what_is_not_there(installation: Installation) -> None:
    made = await one_of_each(installation)
    runs = {owner: await installation.schedules.store.run_now(one.id, now_us()) for owner, one in made.items()}
    seen: set[Kind] = set()
    for visitor, caller in visitors():
        if kind(caller) in seen:
            continue
        seen.add(kind(caller))
        mine = {made[owner].id for owner in OWNERS if visitor.may_see(owner)}
        assert await listed(installation.schedules, caller) == mine, visitor
        assert await told_of(installation.schedules, caller) == {runs[o] for o in OWNERS if visitor.may_see(o)}, visitor
        missing = [await refusal(work(installation.schedules, caller, NOWHERE)) for work in (*READS, *CHANGES)]
        assert all(str(words).startswith(f"NotFound: Schedule {NOWHERE} not found") for words in missing)
        for owner, one in made.items():
            words = [str(told).replace(str(NOWHERE), str(one.id)) for told in missing]
            if visitor.may_see(owner):
                assert [await refusal(read(installation.schedules, caller, one.id)) for read in READS] == [None] * len(
                    READS
                )
                continue
            told = [await refusal(work(installation.schedules, caller, one.id)) for work in (*READS, *CHANGES)]
            assert told == words, (visitor, owner)
            with pytest.raises(NotFound, match=f"There is no run '{runs[owner]}'"):
                await installation.schedules.redrive(caller, runs[owner])
    assert len(seen) == 13
    for one in made.values():
        after = await installation.schedules.store.get(one.id)
        assert after is not None
        assert (after.state, after.what.prompt) == (ScheduleState.ACTIVE, "Ping")


async def listed(schedules: ScheduleService, caller: Caller) -> set[int]:
    """With every filter: none of them shows more than the list itself."""
    try:
        page = await schedules.queries.list(caller, ListSchedules(include_cancelled=True))
    except MissingAgentId:
        return set()
    found = {one.id for one in page.schedules}
    for agent_id, _ in OWNERS:
        narrowed: set[int] = set()
        # Another's agent is refused as such, whether it has schedules or not.
        with suppress(Denied):
            narrowed = {
                one.id for one in (await schedules.queries.list(caller, ListSchedules(agent_id=agent_id))).schedules
            }
        assert narrowed == {one.id for one in page.schedules if one.what.agent_id == agent_id}
    return found


async def told_of(schedules: ScheduleService, caller: Caller) -> set[str]:
    try:
        found = {past.id for past in (await schedules.queries.history(caller)).runs}
    except MissingAgentId:
        return set()
    for agent_id, _ in OWNERS:
        with suppress(Denied):
            some = (await schedules.queries.history(caller, ListRuns(agent_id=agent_id))).runs
            assert {past.id for past in some} <= found
    return found


@shows("SCHEDULE-OWN")
async def test_executing_runs_and_tells_of_ones_own_alone(installation: Installation) -> None:
    late = now_us() - 60_000_000
    hers = await installation.put(installation.ada, "ann", due_us=late)
    for owner in (
        (installation.ada, "ben"),
        (installation.ada, None),
        (installation.bob, "ben"),
        (installation.bob, None),
    ):
        await installation.put(*owner, due_us=late + 1_000_000)
    done = await installation.schedules.executor.run_due(person("ann"))
    assert [one.id for one in done] == [hers.id]
    assert {past.user_id for past in (await installation.schedules.queries.history(OPERATOR)).runs} == {"ann"}


async def test_executing_leaves_other_agents_be(installation: Installation) -> None:
    made = {
        agent_id: await installation.put(agent_id, due_us=now_us() - 1_000_000)
        for agent_id in (installation.ada, installation.bob)
    }
    done = await installation.schedules.executor.run_due(program(installation.ada))
    assert [one.id for one in done] == [made[installation.ada].id]
    assert {past.agent_id for past in (await installation.schedules.queries.history(OPERATOR)).runs} == {
        installation.ada
    }


async def test_to_ask_for_another_agents_is_refused_whether_it_has_any_or_not(installation: Installation) -> None:
    for other in (installation.bob, "agent-nobody-knows"):
        with pytest.raises(Denied, match=f"cannot see schedules of agent '{other}'"):
            await installation.schedules.queries.list(agent(installation.ada), ListSchedules(agent_id=other))
        with pytest.raises(Denied, match=f"cannot see schedules of agent '{other}'"):
            await installation.schedules.queries.history(agent(installation.ada), ListRuns(agent_id=other))
    assert (
        await installation.schedules.queries.list(person("ann"), ListSchedules(agent_id=installation.bob))
    ).schedules == []


# The agent of a prompt when the caller names none, and who may change that


def key_for_any_agent(name: str) -> Caller:
    return resolve_caller(Signals("1", credential=Credential(f"key:{name}", "*")), IdentityPolicy(proof_required=True))


async def test_the_agent_is_looked_for_in_order(installation: Installation) -> None:
    schedules = installation.schedules
    environment = Caller("1", "agent-env", source=AgentIdSource.ENVIRONMENT, local=True, any_agent=True)
    assert (await schedules.defaults.infer(environment)).agent_id == "agent-env"
    await schedules.defaults.set_for_everybody(OPERATOR, installation.bob)
    found = await schedules.defaults.infer(environment)
    assert (found.agent_id, found.source) == (installation.bob, "default")
    await schedules.defaults.set(OPERATOR, installation.ada)
    found = await schedules.defaults.infer(environment)
    assert (found.agent_id, found.source, found.key) == (installation.ada, "scoped_default", "local")
    named = await schedules.defaults.infer(agent(installation.bob))
    assert (named.agent_id, named.source) == (installation.bob, "header")
    added = await schedules.add(environment, NewSchedule("Hi", every="5m"))
    assert added.schedule.what.agent_id == installation.ada


@shows("SCHEDULE-OWN")
async def test_nobody_but_an_admin_changes_everybodys_default_or_anothers(installation: Installation) -> None:
    schedules = installation.schedules
    for caller in (agent(installation.ada), agent(installation.ada, "ann"), person("ann"), key_for_any_agent("one")):
        with pytest.raises(Denied, match="everybody's"):
            await schedules.defaults.set_for_everybody(caller, installation.ada)
        for scope in ("user:ben", "key:two", f"agent:{installation.bob}", "local"):
            with pytest.raises(Denied, match="not yours"):
                await schedules.defaults.set(caller, installation.ada, scope)
            with pytest.raises(Denied, match="not yours"):
                await schedules.defaults.get(caller, scope)
    assert (await schedules.defaults.infer(OPERATOR)).agent_id is None
    await schedules.defaults.set(OPERATOR, installation.bob, "user:ben")
    assert (await schedules.defaults.get(person("ben"))).agent_id == installation.bob


async def test_each_key_has_a_default_of_its_own(installation: Installation) -> None:
    one, two = key_for_any_agent("one"), key_for_any_agent("two")
    assert (await installation.schedules.defaults.set(one, installation.ada)).scope == "key:one"
    assert (await installation.schedules.defaults.infer(one)).agent_id == installation.ada
    assert (await installation.schedules.defaults.infer(two)).agent_id is None
    await installation.schedules.defaults.set(one, None)
    assert (await installation.schedules.defaults.get(one)).agent_id is None


@shows("SCHEDULE-OWN")
async def test_a_default_lends_nobody_an_agent_that_they_could_not_name(installation: Installation) -> None:
    await installation.schedules.defaults.set_for_everybody(OPERATOR, installation.bob)
    await installation.schedules.defaults.set(OPERATOR, installation.bob, "user:ann")
    found = await installation.schedules.defaults.infer(person("ann"))
    assert (found.agent_id, found.source) == (None, "none")
    with pytest.raises(Denied):
        await installation.schedules.defaults.set(person("ann"), installation.bob)


async def test_a_default_is_an_agent_that_there_is(installation: Installation) -> None:
    with pytest.raises(Invalid, match="Agent validation failed"):
        await installation.schedules.defaults.set_for_everybody(OPERATOR, "agent-x")
    with pytest.raises(InvalidAgentId):
        await installation.schedules.defaults.set(OPERATOR, "no agent")
    with pytest.raises(Invalid, match="A scope is"):
        await installation.schedules.defaults.set(OPERATOR, installation.ada, "everything")
    await installation.schedules.defaults.set_for_everybody(OPERATOR, installation.ada)
    await installation.schedules.defaults.set_for_everybody(OPERATOR, None)
    assert (await installation.schedules.defaults.infer(OPERATOR)).agent_id is None
