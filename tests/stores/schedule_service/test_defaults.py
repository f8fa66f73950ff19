"""Whom a prompt is for when nobody says, and who may change that."""

import pytest

from frontdesk.errors import Denied, Invalid, InvalidAgentId
from frontdesk.identity.inbound import IdentityPolicy, resolve_caller
from frontdesk.identity.model import AgentIdSource, Caller, Credential, Signals
from frontdesk.schedules.requests import NewSchedule
from tests.requirements import shows
from tests.stores.schedule_service.conftest import House, agent, person
from tests.support.scheduling import OPERATOR

pytestmark = pytest.mark.anyio


def key_for_any_agent(name: str) -> Caller:
    return resolve_caller(Signals("1", credential=Credential(f"key:{name}", "*")), IdentityPolicy(proof_required=True))


async def test_the_agent_is_looked_for_in_order(house: House) -> None:
    schedules = house.schedules
    environment = Caller("1", "agent-env", source=AgentIdSource.ENVIRONMENT, local=True, any_agent=True)
    assert (await schedules.defaults.infer(environment)).agent_id == "agent-env"
    await schedules.defaults.set_for_everybody(OPERATOR, house.bob)
    found = await schedules.defaults.infer(environment)
    assert (found.agent_id, found.source) == (house.bob, "default")
    await schedules.defaults.set(OPERATOR, house.ada)
    found = await schedules.defaults.infer(environment)
    assert (found.agent_id, found.source, found.key) == (house.ada, "scoped_default", "local")
    named = await schedules.defaults.infer(agent(house.bob))
    assert (named.agent_id, named.source) == (house.bob, "header")
    added = await schedules.add(environment, NewSchedule("Hi", every="5m"))
    assert added.schedule.what.agent_id == house.ada


@shows("SCHEDULE-OWN")
async def test_nobody_but_an_admin_changes_everybodys_default_or_anothers(house: House) -> None:
    schedules = house.schedules
    for caller in (agent(house.ada), agent(house.ada, "ann"), person("ann"), key_for_any_agent("one")):
        with pytest.raises(Denied, match="everybody's"):
            await schedules.defaults.set_for_everybody(caller, house.ada)
        for scope in ("user:ben", "key:two", f"agent:{house.bob}", "local"):
            with pytest.raises(Denied, match="not yours"):
                await schedules.defaults.set(caller, house.ada, scope)
            with pytest.raises(Denied, match="not yours"):
                await schedules.defaults.get(caller, scope)
    assert (await schedules.defaults.infer(OPERATOR)).agent_id is None
    await schedules.defaults.set(OPERATOR, house.bob, "user:ben")
    assert (await schedules.defaults.get(person("ben"))).agent_id == house.bob


async def test_each_key_has_a_default_of_its_own(house: House) -> None:
    one, two = key_for_any_agent("one"), key_for_any_agent("two")
    assert (await house.schedules.defaults.set(one, house.ada)).scope == "key:one"
    assert (await house.schedules.defaults.infer(one)).agent_id == house.ada
    assert (await house.schedules.defaults.infer(two)).agent_id is None
    await house.schedules.defaults.set(one, None)
    assert (await house.schedules.defaults.get(one)).agent_id is None


@shows("SCHEDULE-OWN")
async def test_a_default_lends_nobody_an_agent_that_they_could_not_name(house: House) -> None:
    await house.schedules.defaults.set_for_everybody(OPERATOR, house.bob)
    await house.schedules.defaults.set(OPERATOR, house.bob, "user:ann")
    found = await house.schedules.defaults.infer(person("ann"))
    assert (found.agent_id, found.source) == (None, "none")
    with pytest.raises(Denied):
        await house.schedules.defaults.set(person("ann"), house.bob)


async def test_a_default_is_an_agent_that_there_is(house: House) -> None:
    with pytest.raises(Invalid, match="Agent validation failed"):
        await house.schedules.defaults.set_for_everybody(OPERATOR, "agent-x")
    with pytest.raises(InvalidAgentId):
        await house.schedules.defaults.set(OPERATOR, "no agent")
    with pytest.raises(Invalid, match="A scope is"):
        await house.schedules.defaults.set(OPERATOR, house.ada, "everything")
    await house.schedules.defaults.set_for_everybody(OPERATOR, house.ada)
    await house.schedules.defaults.set_for_everybody(OPERATOR, None)
    assert (await house.schedules.defaults.infer(OPERATOR)).agent_id is None
