"""Renders untrusted text as Markdown in which it keeps no meaning: no fence, cell or line of ours can be ended by
it.
"""

import re
from collections.abc import Sequence

from frontdesk.text import one_line, storable

SHORTEST_FENCE = 3
MAX_CELL_CHARACTERS = 200
MAX_LINE_CHARACTERS = 2000
BACKTICKS = re.compile(r"`+")
# What would begin something within a line: code, emphasis, a link or picture, a tag, an entity, a cell.
INLINE_SIGNS = re.compile(r"[\\`*_\[\]<>&~|]")
# At the beginning of a line a heading, an item or a rule; the other signs for these are among those above.
LEADING_SIGNS = re.compile(r"\d{0,9}(?=[.)])|(?=[#+=-])")
# Neither code in a cell nor a code span takes these as they are everywhere.
NOT_IN_CODE = frozenset("`|\\")
# What no editor should obey: control characters, and those that make text run the other way than it reads.
INVISIBLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def code_block(text: str) -> str:
    """A text as it is, in a block that it cannot end."""
    inside = _visible_text(text)
    longest = max((len(run) for run in BACKTICKS.findall(inside)), default=0)
    fence = "`" * max(SHORTEST_FENCE, longest + 1)
    return f"{fence}\n{inside}\n{fence}"


def inline_code(text: str, most: int = MAX_CELL_CHARACTERS) -> str:
    """A name or a command, within a line or a cell."""
    line = one_line(_visible_text(text), most)
    return escape_line(line) if not line or NOT_IN_CODE.intersection(line) else f"`{line}`"


def escape_line(text: str, most: int = MAX_LINE_CHARACTERS) -> str:
    """A text on one line, at its beginning or within, with nothing in it that means anything."""
    line = INLINE_SIGNS.sub(r"\\\g<0>", one_line(_visible_text(text), most))
    found = LEADING_SIGNS.match(line)
    return f"{found[0]}\\{line[found.end() :]}" if found else line


def render_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells, each made by `inline_code` or `escape_line`."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _visible_text(text: str) -> str:
    """The text without what does not show."""
    return INVISIBLE.sub("", storable(text).replace("\r\n", "\n").replace("\r", "\n"))
