"""What a browser carries along to an issuer and back, as a cookie can hold it."""

import json
from dataclasses import asdict

from pydantic import TypeAdapter, ValidationError

from frontdesk.identity.oauth.upstream import Errand
from frontdesk.surfaces.web import cookies

SECONDS = 600
LONGEST = 3000
CARRIED = TypeAdapter(tuple[Errand, str])


def packed(errand: Errand, back: str) -> str:
    """The errand, and the page that somebody wanted to see; one with a long address is looked for again."""
    text = json.dumps([asdict(errand), back])
    return cookies.packed(text if len(text) <= LONGEST else json.dumps([asdict(errand), "/"]), LONGEST)


def unpacked(text: str | None) -> tuple[Errand, str] | None:
    found = cookies.unpacked(text, LONGEST)
    if found is None:
        return None
    try:
        return CARRIED.validate_json(found)
    except ValidationError:
        return None
