"""Makes what agents, models and tools say safe to print: a terminal obeys what it is shown."""

import json
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

# Whole sequences first, so that no debris of them is left to read; the ones below catch whatever this misses.
SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, cursor, erasing
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"  # titles, clipboard, links
    r"|\x1b[ -/]*[0-~]"
)
# Control characters but for newline and tab, and those that make text run the other way than it reads.
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")
HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
MORE = "…"


def plain(text: str) -> str:
    """The text with nothing in it that a terminal would obey; newlines and tabs stay."""
    readable = CONTROL.sub("", SEQUENCE.sub("", text.replace("\r\n", "\n")))
    return LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", readable)


def line(text: str, length: int | None = None) -> str:
    """The text as one line, shortened where a length is given."""
    joined = " ".join(plain(text).split())
    return joined if length is None or len(joined) <= length else joined[: length - 1] + MORE


def revealed(value: object, indent: int | None = None) -> str:
    """A value as JSON with everything written out that does not show: what is approved is then what was read."""
    text = json.dumps(value, ensure_ascii=False, indent=indent, default=str)
    return "".join(_escaped(char) if unicodedata.category(char) in HIDDEN and char != "\n" else char for char in text)


def arguments(given: Mapping[str, Any], length: int) -> str:
    """A tool call's arguments on one line."""
    shown = ", ".join(f"{line(name)}={_shortened(revealed(value), length)}" for name, value in given.items())
    return _shortened(shown, 2 * length)


def _shortened(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + MORE


def _escaped(char: str) -> str:
    number = ord(char)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
