"""Which of an agent's conversations is its own, and how those to choose from are called."""

from collections.abc import Sequence

from frontdesk.agents.host import Conversation
from frontdesk.surfaces.web.marks import short

OWN = ("", "Its own conversation")


def own_of(newest: Sequence[Conversation], most: int) -> str | None:
    """The conversation that an agent has from the start: the oldest, and so the last; None where not all are here."""
    return newest[-1].id if newest and len(newest) < most else None


def choices(newest: Sequence[Conversation], most: int, where: str | None) -> tuple[str, Sequence[tuple[str, str]]]:
    """The one that is shown, and those to choose from, with it among them.

    An agent's own stands first, as the one that is meant where none is named.
    """
    own = own_of(newest, most)
    chosen = "" if where in (None, own) else where
    listed = [OWN, *((one.id, _called(one)) for one in newest if one.id != own)]
    return chosen, listed if chosen in dict(listed) else [*listed, (chosen, short(chosen, 60))]


def _called(one: Conversation) -> str:
    return f"{short(one.title, 60) or short(one.id, 24)}, begun {one.created_at:%Y-%m-%d %H:%M} UTC"
