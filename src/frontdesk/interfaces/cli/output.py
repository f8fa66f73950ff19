"""Formats what commands print, and defines the options that they share."""

import json
import re
import sys
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Annotated, Any, TypeVar, cast

from cyclopts import Parameter, validators

from frontdesk.errors import Invalid

T = TypeVar("T")
# Whole sequences are removed first, so that no parts of them remain. The pattern below removes what this one misses.
ESCAPE_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, cursor, erasing
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"  # titles, clipboard, links
    r"|\x1b[ -/]*[0-~]"
)
# Control characters except newline and tab, and those that change the direction of text.
CONTROL_CHARACTER = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")
HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
ELLIPSIS = "…"


def printable_text(text: str) -> str:
    """The text without terminal control sequences. Newlines and tabs stay."""
    readable = CONTROL_CHARACTER.sub("", ESCAPE_SEQUENCE.sub("", text.replace("\r\n", "\n")))
    return LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", readable)


def printable_line(text: str, length: int | None = None) -> str:
    """The text as one line, shortened to `length` if given."""
    joined = " ".join(printable_text(text).split())
    return joined if length is None or len(joined) <= length else joined[: length - 1] + ELLIPSIS


def reveal_hidden(value: object, indent: int | None = None) -> str:
    """A value as JSON with invisible characters escaped, so that people approve what they read."""
    text = json.dumps(value, ensure_ascii=False, indent=indent, default=str)
    return "".join(
        _escape(char) if unicodedata.category(char) in HIDDEN_CATEGORIES and char != "\n" else char for char in text
    )


def format_arguments(arguments: Mapping[str, Any], length: int) -> str:
    """A tool call's arguments on one line."""
    shown = ", ".join(
        f"{printable_line(name)}={_shorten(reveal_hidden(value), length)}" for name, value in arguments.items()
    )
    return _shorten(shown, 2 * length)


def _shorten(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + ELLIPSIS


def _escape(char: str) -> str:
    number = ord(char)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


DURATION_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
EMPTY_CELL = "-"


def parse_duration(text: str) -> timedelta:
    """`90d`, `12h`, `30m`, `45s`."""
    found = re.fullmatch(r"(\d{1,5})([smhd])", text)
    if found is None or int(found[1]) == 0:
        raise Invalid(f"'{text}' is not a length of time; write 45s, 30m, 12h or 90d")
    return timedelta(**{DURATION_UNITS[found[2]]: int(found[1])})


def format_time(at: datetime | None, *, seconds: bool = False) -> str:
    """A time in the format of all commands. `seconds`: with seconds."""
    return EMPTY_CELL if at is None else at.strftime("%Y-%m-%d %H:%M:%S UTC" if seconds else "%Y-%m-%d %H:%M UTC")


def dump_json(value: object) -> str:
    """A value as one line of JSON, with times as ISO 8601."""
    return json.dumps(value, default=lambda one: one.isoformat() if isinstance(one, datetime) else str(one))


def format_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table with aligned columns and without terminal control sequences."""
    lines = [tuple(head), *(tuple(map(printable_line, row)) for row in rows)]
    widths = [max(len(cells[index]) for cells in lines) for index in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip() for cells in lines
    )


FIGURE_WIDTH = 26


def print_figures(figures: Mapping[str, Any], *, as_json: bool) -> None:
    """Print one JSON object, or one line for each figure. Counts by name leave out zeros."""
    if as_json:
        print(dump_json(figures))
        return
    for name, value in figures.items():
        print(f"{name.replace('_', ' '):<{FIGURE_WIDTH}}{_format_figure(value)}".rstrip())


def _format_figure(value: object) -> str:
    match value:
        case None:
            return EMPTY_CELL
        case dict():
            counts = cast("Mapping[str, object]", value)
            said = {printable_line(str(name)).replace("_", " "): number for name, number in counts.items() if number}
            return ", ".join(f"{name} {_format_figure(number)}" for name, number in said.items()) or EMPTY_CELL
        case float():
            return f"{value:g}"
        case int() if not isinstance(value, bool):
            return f"{value:,}"
        case _:
            return printable_line(str(value))


def record_json(record: Any) -> str:  # noqa: ANN401 - any dataclass
    """A dataclass as one line of JSON."""
    return dump_json(asdict(record))


def print_record(record: object, text: str, *, as_json: bool) -> None:
    """Print one JSON object, or the text."""
    print(record_json(record) if as_json else text)


def print_list(
    items: Sequence[T],
    head: Sequence[str],
    row: Callable[[T], Sequence[str]],
    *,
    empty: str,
    as_json: bool,
    to_json: Callable[[T], str] = record_json,
) -> None:
    """Print one JSON object a line, or a table with a row for each, or the text `empty` if there are none."""
    if as_json:
        for item in items:
            print(to_json(item))
    else:
        print(format_table(head, [row(item) for item in items]) if items else empty)


def print_more(option: str) -> None:
    """Say that the list goes on, and the option that shows the rest."""
    print(f"There are more: {option}", file=sys.stderr)


# Options without help: the docstring of the command has it, or `Annotated[Flag, Parameter(help=…)]`.
JsonFlag = Annotated[bool, Parameter(name="--json", negative=(), show_default=False)]
Flag = Annotated[bool, Parameter(negative=(), show_default=False)]
Repeated = Annotated[tuple[str, ...], Parameter(negative=(), show_default=False)]
# A text may start with a hyphen, as lists do.
Text = Annotated[str, Parameter(allow_leading_hyphen=True, show_default=False)]
OptionalText = Annotated[str | None, Parameter(allow_leading_hyphen=True)]


def number_up_to(most: int, least: int = 1) -> Parameter:
    """A number from `least` to `most`."""
    return Parameter(validator=validators.Number(gte=least, lte=most))


# Options with the help that many commands share.
AsJson = Annotated[JsonFlag, Parameter(help="Print one JSON object.")]
AsJsonLines = Annotated[JsonFlag, Parameter(help="Print one JSON object a line.")]
# `Limit` is for commands without paging.
Limit = Annotated[int, number_up_to(100_000), Parameter(help="Show at most this many.")]
PageLimit = Annotated[int, number_up_to(1000), Parameter(help="Show at most this many.")]
Offset = Annotated[int, number_up_to(10_000_000, least=0), Parameter(help="Skip this many first.")]
AgentArgument = Annotated[str, Parameter(help="Its id or name.")]
