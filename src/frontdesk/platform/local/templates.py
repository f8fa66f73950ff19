"""Fills the placeholders of an answer with a call's arguments: as text, once, and never as anything that runs."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from frontdesk.platform.declared.templates import PLACEHOLDER

# A few placeholders could make much of one long argument.
MOST_CHARACTERS = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Filled:
    """An answer with its values in it; `missing` names the placeholders that nothing was given for."""

    text: str
    missing: tuple[str, ...] = ()


def fill(template: str, arguments: Mapping[str, Any]) -> Filled:
    """The template with each `{{name}}` replaced, whatever its case; what is in a value is not looked at again."""
    given = {name.strip().casefold(): value for name, value in arguments.items()}
    parts, missing, end, length = list[str](), dict[str, None](), 0, 0
    for found in PLACEHOLDER.finditer(template):
        name = found[1].strip()
        parts.append(template[end : found.start()])
        end = found.end()
        # Its own spelling first: two arguments may differ in case alone.
        if name in arguments or name.casefold() in given:
            parts.append(_text(arguments.get(name, given.get(name.casefold()))))
        else:
            missing[name] = None
        length += len(parts[-1])
        if length > MOST_CHARACTERS:
            break
    parts.append(template[end:])
    return Filled("".join(parts)[:MOST_CHARACTERS], tuple(missing))


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
