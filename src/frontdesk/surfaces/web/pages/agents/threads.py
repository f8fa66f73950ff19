"""Which of an agent's conversations is its own, and how those to choose from are called."""

from collections.abc import Sequence

from frontdesk.agents.host import Conversation
from frontdesk.surfaces.web.marks import short

OWN = ("", "Its own conversation")
YOURS = ("", "Your first conversation")


def own_of(newest: Sequence[Conversation], most: int) -> str | None:
    """The conversation that an agent has from the start: the oldest, and so the last; None where not all are here."""
    return newest[-1].id if newest and len(newest) < most else None


def choices(
    newest: Sequence[Conversation], most: int, where: str | None, user_id: str | None = None
) -> tuple[str, Sequence[tuple[str, str]]]:
    """The one that is shown, and those to choose from, with it among them.

    The first one of whoever looks stands first, as the one that is meant where none is named: for somebody who gave
    no name that is the agent's own.
    """
    own = own_of(newest, most) if user_id is None else None
    chosen = "" if where in (None, own) else where
    listed = [OWN if user_id is None else YOURS, *((one.id, _called(one)) for one in newest if one.id != own)]
    return chosen, listed if chosen in dict(listed) else [*listed, (chosen, short(chosen, 60))]


def _called(one: Conversation) -> str:
    whose = f", with {short(one.user_id, 40)}" if one.user_id else ""
    return f"{short(one.title, 60) or short(one.id, 24)}{whose}, begun {one.created_at:%Y-%m-%d %H:%M} UTC"
