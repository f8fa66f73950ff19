"""Whoever runs the house acts for one person, as the command does with --user."""

from dataclasses import replace

from frontdesk.identity.model import Caller
from frontdesk.memory.scope import Scope
from frontdesk.surfaces.web.model import Asked
from frontdesk.surfaces.web.pages.people.address import checked


def scope_of(caller: Caller, user: str) -> Scope:
    return Scope.of(replace(caller, user_id=user))


def named(asked: Asked) -> tuple[str, Scope]:
    """The person that a form names, and the way to what is theirs."""
    user = checked(asked.form.get("user", ""))
    return user, scope_of(asked.caller, user)
