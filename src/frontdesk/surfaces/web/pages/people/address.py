"""Where a person's pages are: their id, however it is spelt, and what is looked at."""

from datetime import UTC
from urllib.parse import parse_qsl, quote, urlencode
from zoneinfo import ZoneInfo

from frontdesk.errors import Invalid
from frontdesk.identity.inbound import USER_ID_LENGTH, is_user_id
from frontdesk.memory.model import Item
from frontdesk.memory.moments import moment
from frontdesk.memory.timeline.wanted import Place

# Browsers take these for steps up, also when they are escaped.
STEPS = (".", "..")
BETWEEN = "~"
FIELDS = 20
FARTHEST = 1_000_000


def address(user: str, /, **query: object) -> str:
    """The page of a person; what is empty is left out."""
    said = {name: str(value) for name, value in query.items() if value not in (None, "", 0)}
    if user in STEPS:
        return f"/people/?{urlencode({'id': user, **said})}"
    path = f"/people/{quote(user, safe='')}"
    return f"{path}?{urlencode(said)}" if said else path


def back(user: str, said: str, /, **otherwise: object) -> str:
    """Where a form was sent from, in its own words; they cannot lead elsewhere."""
    query = parse_qsl(said, max_num_fields=FIELDS) if len(said) <= USER_ID_LENGTH * 10 else []
    return address(user, **(dict(query) or otherwise))


def checked(user: str) -> str:
    if not is_user_id(user):
        raise Invalid(f"A person's id has 1 to {USER_ID_LENGTH} printable characters, as the list of people shows them")
    return user


def place_of(said: str) -> Place | None:
    """From where a list goes on, as `after` wrote it."""
    if not said:
        return None
    at, _, item_id = said.rpartition(BETWEEN)
    return Place(moment(at, ZoneInfo("UTC"), "before"), item_id)


def after(item: Item) -> str:
    return f"{item.created_at.astimezone(UTC).isoformat()}{BETWEEN}{item.id}"


def offset_of(said: str) -> int:
    """How many of a list are left out."""
    if not said:
        return 0
    digits = said.lstrip("0") or "0"
    if not said.isascii() or not said.isdecimal() or len(digits) > len(str(FARTHEST)) or int(digits) > FARTHEST:
        raise Invalid(f"offset is a number up to {FARTHEST:,}; begin again with the first page")
    return int(digits)
