"""Markdown in which the words of others stay words: nothing in them ends a fence, a cell or a line of ours."""

import re
from collections.abc import Sequence

from frontdesk.loop.text import one_line, storable

SHORTEST_FENCE = 3
CELL = 200
LINE = 2000
TICKS = re.compile(r"`+")
# What would begin something within a line: code, emphasis, a link or picture, a tag, an entity, a cell.
INLINE = re.compile(r"[\\`*_\[\]<>&~|]")
# At the beginning of a line a heading, an item or a rule; the other signs for these are among those above.
LEADING = re.compile(r"\d{0,9}(?=[.)])|(?=[#+=-])")
# Neither code in a cell nor a code span takes these as they are everywhere.
NOT_IN_CODE = frozenset("`|\\")
# What no editor should obey: control characters, and those that make text run the other way than it reads.
UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def fenced(text: str) -> str:
    """A text as it is, in a block that it cannot end."""
    inside = _shown(text)
    longest = max((len(run) for run in TICKS.findall(inside)), default=0)
    fence = "`" * max(SHORTEST_FENCE, longest + 1)
    return f"{fence}\n{inside}\n{fence}"


def code(text: str, most: int = CELL) -> str:
    """A name or a command, within a line or a cell."""
    line = one_line(_shown(text), most)
    return words(line) if not line or NOT_IN_CODE.intersection(line) else f"`{line}`"


def words(text: str, most: int = LINE) -> str:
    """A text on one line, at its beginning or within, with nothing in it that means anything."""
    line = INLINE.sub(r"\\\g<0>", one_line(_shown(text), most))
    found = LEADING.match(line)
    return f"{found[0]}\\{line[found.end() :]}" if found else line


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells, each made by `code` or `words`."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _shown(text: str) -> str:
    """The text without what does not show."""
    return UNSEEN.sub("", storable(text).replace("\r\n", "\n").replace("\r", "\n"))
