"""How the command line reads lengths of time, and prints times, tables and JSON."""

import json
import re
from collections.abc import Sequence
from datetime import datetime, timedelta

from frontdesk.errors import Invalid
from frontdesk.surfaces.cli.plain import line

UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
ABSENT = "-"


def duration(text: str) -> timedelta:
    """`90d`, `12h`, `30m`, `45s`."""
    found = re.fullmatch(r"(\d{1,5})([smhd])", text)
    if found is None or int(found[1]) == 0:
        raise Invalid(f"'{text}' is not a length of time; write 45s, 30m, 12h or 90d")
    return timedelta(**{UNITS[found[2]]: int(found[1])})


def moment(at: datetime | None, *, seconds: bool = False) -> str:
    """A time as every command writes it; `seconds` where many things happen in one minute."""
    return ABSENT if at is None else at.strftime("%Y-%m-%d %H:%M:%S UTC" if seconds else "%Y-%m-%d %H:%M UTC")


def dumped(value: object) -> str:
    """A value as one line of JSON, times as ISO 8601."""
    return json.dumps(value, default=lambda one: one.isoformat() if isinstance(one, datetime) else str(one))


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as their widest cell; nothing in a cell can drive the terminal."""
    lines = [tuple(head), *(tuple(map(line, row)) for row in rows)]
    widths = [max(len(cells[index]) for cells in lines) for index in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip() for cells in lines
    )
