"""Whom a prompt is for when nobody says, and who may change that."""

import pytest

from frontdesk.errors import Denied, Invalid, InvalidAgentId
from frontdesk.identity.inbound import IdentityPolicy, resolve_caller
from frontdesk.identity.model import AgentIdSource, Caller, Credential, Signals
from frontdesk.schedules.requests import NewSchedule
from tests.requirements import shows
from tests.stores.schedule_service.conftest import Installation, agent, person
from tests.support.scheduling import OPERATOR

pytestmark = pytest.mark.anyio


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
