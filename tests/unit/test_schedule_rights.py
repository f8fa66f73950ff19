"""Whose schedules a caller may see, and for which agents it may make them: every kind of caller, every owner."""

import pytest

from frontdesk.errors import Denied, MissingAgentId, MissingScope
from frontdesk.identity import rights
from frontdesk.identity.model import AgentIdSource, Caller
from frontdesk.identity.rights import SCHEDULES_ADMIN, TOOLS_CALL
from frontdesk.schedules.access import (
    can_act_for,
    can_see,
    is_schedules_admin,
    owner_filter,
    require_acting_for,
    require_read,
    require_write,
)
from frontdesk.schedules.agents import scope_of
from tests.requirements import shows
from tests.support.scheduling import ADA, ANN, BOB, OPERATOR, OWNERS, visitors

EVERYONE = list(visitors())


@shows("SCHEDULE-OWN")
def test_every_kind_of_caller_sees_its_own_and_nothing_else() -> None:
    assert len(EVERYONE) > 300
    for visitor, caller in EVERYONE:
        for owner in OWNERS:
            assert can_see(caller, *owner) == visitor.may_see(owner), (visitor, owner)


@shows("SCHEDULE-OWN")
def test_nobody_but_an_admin_is_ever_given_everybodys() -> None:
    for visitor, caller in EVERYONE:
        try:
            whose = owner_filter(caller)
        except MissingAgentId:
            assert caller.agent_id is None
            assert caller.user_id is None
            continue
        if whose.agent_id is None and whose.user_id is None:
            assert all(visitor.may_see(owner) for owner in OWNERS)


def test_a_caller_that_names_an_agent_speaks_for_no_other() -> None:
    for visitor, caller in EVERYONE:
        admin = all(visitor.may_see(owner) for owner in OWNERS)
        if admin or not rights.names_agent(caller):
            continue
        other = BOB if caller.agent_id == ADA else ADA
        assert can_act_for(caller, str(caller.agent_id))
        with pytest.raises(Denied, match=other):
            require_acting_for(caller, other)


def test_a_proven_person_without_an_agent_speaks_for_none_beyond_this_machine() -> None:
    for visitor, caller in EVERYONE:
        shown = visitor.shows
        if shown is None or shown.agent_id is not None or visitor.names or is_schedules_admin(caller):
            continue
        free = visitor.trusted and not visitor.forwarded
        assert can_act_for(caller, BOB) is free


def test_a_caller_at_this_machine_is_the_operator_until_it_names_somebody() -> None:
    assert is_schedules_admin(OPERATOR)
    assert is_schedules_admin(Caller("1", ADA, source=AgentIdSource.ENVIRONMENT, local=True))
    assert not is_schedules_admin(Caller("1", ADA, source=AgentIdSource.HEADER, local=True))
    assert not is_schedules_admin(Caller("1", user_id=ANN, local=True))
    assert not is_schedules_admin(Caller("1"))


def test_a_scope_is_asked_for_by_name_and_admin_covers_the_others() -> None:
    limited = Caller("1", ADA, verified=True, scopes=frozenset({TOOLS_CALL}))
    with pytest.raises(MissingScope, match="schedules:read"):
        require_read(limited)
    with pytest.raises(MissingScope, match="schedules:write"):
        require_write(limited)
    admin = Caller("1", ADA, verified=True, scopes=frozenset({SCHEDULES_ADMIN}))
    require_read(admin)
    require_write(admin)


def test_no_two_callers_of_different_people_keys_or_agents_share_a_scope() -> None:
    scopes: dict[str, tuple[object, ...]] = {}
    for _, caller in EVERYONE:
        scope = scope_of(caller)
        if scope is None:
            continue
        who = (caller.user_id,) if caller.user_id else (caller.credential_id or caller.agent_id,)
        if scope == "local":
            assert caller.local
            who = ("local",)
        assert scopes.setdefault(scope, who) == who


def test_in_a_turn_that_others_bound_the_scope_is_that_of_the_agents_own_key() -> None:
    assert scope_of(Caller("1", ADA, verified=True, credential_id="key:of-ada key:of-ann")) == "key:of-ada"


def test_a_token_that_many_hold_is_nobodys_scope() -> None:
    for local in (False, True):
        assert scope_of(Caller("1", verified=True, local=local, credential_id="token:https://issuer")) is None
