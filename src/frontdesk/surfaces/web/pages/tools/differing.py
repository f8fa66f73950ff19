"""How two versions of a tool differ, piece by piece, for somebody who is to approve one; pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from frontdesk.loop.text import json_object
from frontdesk.surfaces.cli.plain import revealed
from frontdesk.tools.model import CatalogueTool, Standing

WORD = re.compile(r"\S+\s*|\s+")
# Beyond, comparing takes too long: lines are compared then, and of those only so many.
MOST_WORDS = 1_500
MOST_LINES = 4_000
# What is the same on both sides is shown around what is not.
AROUND = 200


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text: `same` on both sides, `gone`, or `new`."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Difference:
    """What changed of one side of a tool."""

    title: str
    pieces: Sequence[Piece]


def differences(tool: CatalogueTool, other: Mapping[str, Any]) -> Sequence[Difference]:
    """From the approved version to the new one; `other` is the one of them that does not count now."""
    counting = (tool.description, tool.parameters, tool.annotations)
    resting = (str(other.get("description", "")), _read(other.get("parameters")), _read(other.get("annotations")))
    before, after = (counting, resting) if tool.standing is Standing.HELD else (resting, counting)
    pairs = zip(("Description", "Schema", "Annotations"), before, after, strict=True)
    return [Difference(title, pieces(_text(old), _text(new))) for title, old, new in pairs if old != new]


def pieces(before: str, after: str) -> Sequence[Piece]:
    """What leads from one text to the other."""
    old, new = _tokens(before, after)
    found: list[Piece] = []
    for kind, start, end, from_, to in SequenceMatcher(None, old, new, autojunk=True).get_opcodes():
        if kind == "equal":
            found.append(Piece("same", _around("".join(old[start:end]))))
            continue
        if end > start:
            found.append(Piece("gone", "".join(old[start:end])))
        if to > from_:
            found.append(Piece("new", "".join(new[from_:to])))
    return found


def _tokens(before: str, after: str) -> tuple[list[str], list[str]]:
    old, new = WORD.findall(before), WORD.findall(after)
    if len(old) + len(new) <= MOST_WORDS:
        return old, new
    return before.splitlines(keepends=True)[:MOST_LINES], after.splitlines(keepends=True)[:MOST_LINES]


def _around(text: str) -> str:
    return text if len(text) <= 3 * AROUND else f"{text[:AROUND]} … {text[-AROUND:]}"


def _text(value: object) -> str:
    """What is approved is what was read: characters that do not show are written out."""
    if isinstance(value, str):
        return "\n".join(revealed(line)[1:-1] for line in value.split("\n"))
    return revealed(value, 2)


def _read(stored: object) -> object:
    return json_object(stored) if isinstance(stored, str) else stored
