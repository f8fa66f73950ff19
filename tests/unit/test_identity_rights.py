"""Who runs what: every kind of caller, from this machine and from elsewhere, with and without a credential."""

from frontdesk.identity import rights
from frontdesk.identity.rights import SCHEDULES_ADMIN
from tests.requirements import shows
from tests.support.scheduling import visitors

EVERYONE = list(visitors())


@shows("TOOLS-ADMIN")
def test_the_operator_is_an_unlimited_caller_from_this_machine_or_one_with_the_scope_by_name() -> None:
    assert len(EVERYONE) > 300
    for visitor, caller in EVERYONE:
        scopes = visitor.shows.scopes if visitor.shows else None
        granted = scopes is not None and SCHEDULES_ADMIN in scopes
        at_home = visitor.trusted and not visitor.forwarded
        assert rights.is_local_or_granted(caller, SCHEDULES_ADMIN) is (granted or (at_home and scopes is None)), visitor


def test_a_key_makes_nobody_the_operator_and_the_operator_may_change_the_installation() -> None:
    for visitor, caller in EVERYONE:
        if rights.is_operator(caller):
            assert (visitor.shows, visitor.names) == (None, None)
            assert visitor.trusted
            assert not visitor.forwarded
        if rights.is_operator_or_granted(caller, SCHEDULES_ADMIN):
            assert rights.is_local_or_granted(caller, SCHEDULES_ADMIN)


def test_a_caller_without_a_key_is_told_from_one_who_shows_it_here() -> None:
    for visitor, caller in EVERYONE:
        assert caller.local is (visitor.trusted and not visitor.forwarded)
        assert caller.keyless is (caller.local and visitor.shows is None)
