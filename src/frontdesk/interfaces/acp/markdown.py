"""Renders untrusted text as Markdown without any effect: it cannot end a fence, a cell or a line of ours."""

import re
from collections.abc import Sequence

from frontdesk.text import one_line, storable

SHORTEST_FENCE = 3
MAX_CELL_CHARACTERS = 200
MAX_LINE_CHARACTERS = 2000
BACKTICKS = re.compile(r"`+")
# Signs that begin something within a line: code, emphasis, a link or image, a tag, an entity, a cell.
INLINE_SIGNS = re.compile(r"[\\`*_\[\]<>&~|]")
# Signs that begin a heading, an item or a rule at the start of a line; the others are among those above.
LEADING_SIGNS = re.compile(r"\d{0,9}(?=[.)])|(?=[#+=-])")
# Signs that do not work in inline code everywhere, such as in a cell.
NOT_IN_CODE = frozenset("`|\\")
# Control characters, and characters that change the direction of text.
INVISIBLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def code_block(text: str) -> str:
    """A text as a code block that it cannot end, without invisible characters."""
    inside = _visible_text(text)
    fence = _fence(inside, SHORTEST_FENCE)
    return f"{fence}\n{inside}\n{fence}"


def fenced_block(text: str) -> str:
    """A text with all its characters as a code block that it cannot end."""
    fence = _fence(text, SHORTEST_FENCE)
    return f"{fence}\n{text.rstrip()}\n{fence}"


def code_span(text: str, most: int) -> str:
    """A text as inline code that it cannot end, cut to so many characters."""
    line = one_line(text, most)
    fence = _fence(line, 1)
    return f"{fence}{line}{fence}" if len(fence) == 1 else f"{fence} {line} {fence}"


def _fence(text: str, shortest: int) -> str:
    """Backticks, one more than the longest run of them in the text."""
    return "`" * max(shortest, max((len(run) for run in BACKTICKS.findall(text)), default=0) + 1)


def inline_code(text: str, most: int = MAX_CELL_CHARACTERS) -> str:
    """A name or a command as inline code, within a line or a cell."""
    line = one_line(_visible_text(text), most)
    return escape_line(line) if not line or NOT_IN_CODE.intersection(line) else f"`{line}`"


def escape_line(text: str, most: int = MAX_LINE_CHARACTERS) -> str:
    """A text on one line, with every sign of Markdown escaped."""
    line = INLINE_SIGNS.sub(r"\\\g<0>", one_line(_visible_text(text), most))
    found = LEADING_SIGNS.match(line)
    return f"{found[0]}\\{line[found.end() :]}" if found else line


def render_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; each cell comes from `inline_code` or `escape_line`."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _visible_text(text: str) -> str:
    """The text without invisible characters."""
    return INVISIBLE.sub("", storable(text).replace("\r\n", "\n").replace("\r", "\n"))
