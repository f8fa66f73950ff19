"""The zone that a phrase ends in: `UTC`, `Europe/Berlin`, `Berlin time`, `in New York`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache

from frontdesk import zones
from frontdesk.errors import Invalid

PATH = re.compile(r"(?P<before>.*?)[\s,(]+(?:in\s+)?(?P<name>[a-z_]+/[a-z_+\-/0-9]+)(?:\s+time)?\)?", re.IGNORECASE)
UNIVERSAL = re.compile(r"(?P<before>.*?)[\s,(]+(?:in\s+)?(?:utc|gmt|zulu)(?:\s+time)?\)?", re.IGNORECASE)
OWN = re.compile(r"(?P<before>.*?)[\s,(]+(?:my\s+|local\s+)time\)?", re.IGNORECASE)
LETTERS = re.compile(
    r"(?P<before>.*?)\b(?P<name>[ecmp][sd]t|akst|hst|[wce]es?t|bst|ist|jst|kst|msk|a[ec]st|[ecmp]t|sgt|hkt|nz[sd]t)(?:\s+time)?\)?",
    re.IGNORECASE,
)
LONGEST_CITY = 4
# Parts of countries, which alone could be anywhere.
NO_CITIES = frozenset({"north", "east", "south", "west", "general", "continental", "universal", "zulu"})
WRITE = 'Write the city, as in "Berlin time", or the zone, as in "Europe/Berlin"'


@dataclass(frozen=True, slots=True)
class Placed:
    """A phrase without its zone, and that zone; `wrong` when it ends in one that is none."""

    phrase: str
    zone: str
    wrong: Invalid | None = None


def split(text: str, zone: str) -> Placed:
    """Take the zone off a phrase; the one given holds where it names none."""
    if found := PATH.fullmatch(text):
        name = zones.names().get(found["name"].casefold())
        return Placed(found["before"], name or zone, None if name else zones.unknown(found["name"]))
    if found := UNIVERSAL.fullmatch(text):
        return Placed(found["before"], "UTC")
    if found := OWN.fullmatch(text):
        return Placed(found["before"], zone)
    if found := LETTERS.fullmatch(text):
        wrong = Invalid(f'"{found["name"]}" does not name one zone the whole year round. {WRITE}')
        return Placed(found["before"], zone, wrong)
    return _city(text, zone)


def _city(text: str, zone: str) -> Placed:
    words = re.sub(r"[,()]", " ", text).split()
    said_time = [word.casefold() for word in words[-1:]] == ["time"]
    if said_time:
        words.pop()
    for length in range(min(LONGEST_CITY, len(words)), 0, -1):
        before, name = words[:-length], "_".join(words[-length:]).casefold()
        said_in = [word.casefold() for word in before[-1:]] == ["in"]
        if (said_time or said_in) and name in cities():
            return _in_city(" ".join(before[:-1] if said_in else before), name, zone)
    if said_time:
        return Placed(" ".join(words[:-1]), zone, unknown(" ".join(words[-1:])))
    return Placed(text, zone)


def unknown(place: str) -> Invalid:
    near = get_close_matches(place.casefold().replace(" ", "_"), cities(), 1, zones.NEAR)
    meant = f'Did you mean "{near[0].replace("_", " ").title()} time"? ' if near else ""
    return Invalid(f'No time zone is named after "{place}". {meant}{WRITE}')


@cache
def cities() -> Mapping[str, tuple[str, ...]]:
    """Zones by the last part of their names, in small letters; countries too, where one is a zone."""
    found: dict[str, tuple[str, ...]] = {}
    for name in sorted(zones.names().values(), key=lambda name: ("/" not in name, name)):
        area, _, city = name.rpartition("/")
        key = city.casefold()
        if len(city) <= 3 or key in NO_CITIES or area == "Etc" or (not area and (key in found or not city.istitle())):
            continue
        found[key] = (*found.get(key, ()), name)
    return found


def _in_city(phrase: str, city: str, zone: str) -> Placed:
    """Several zones of that name must be one and the same, under an old name and a new one."""
    found = cities()[city]
    areas = {name.split("/")[0] for name in found}
    if len(areas) == 1 or areas == {"Asia", "Europe"}:
        return Placed(phrase, max(found, key=lambda name: (name.startswith("Europe/"), name.count("/"))))
    return Placed(phrase, zone, Invalid(f'"{city}" may be {" or ".join(found)}. Write which'))
