"""How the command line reads lengths of time and prints tables."""

import re
from collections.abc import Sequence
from datetime import timedelta

from frontdesk.errors import ConfigurationError

UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def duration(text: str) -> timedelta:
    """`90d`, `12h`, `30m`, `45s`."""
    found = re.fullmatch(r"(\d{1,5})([smhd])", text)
    if found is None or int(found[1]) == 0:
        raise ConfigurationError(f"'{text}' is not a length of time; write 45s, 30m, 12h or 90d")
    return timedelta(**{UNITS[found[2]]: int(found[1])})


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as their widest cell."""
    lines = [tuple(head), *(tuple(row) for row in rows)]
    widths = [max(len(line[index]) for line in lines) for index in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )
