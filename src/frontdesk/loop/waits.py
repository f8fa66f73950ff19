"""Reads how long another server asks us to wait before we try again."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def seconds_asked(retry_after: str | None) -> float | None:
    """What a Retry-After header says, a number of seconds or a date; None where it says nothing that can be read."""
    said = (retry_after or "").strip()
    if said.isascii() and said.isdigit():
        return float(said)
    try:
        until = parsedate_to_datetime(said)
    except ValueError:
        return None
    aware = until if until.tzinfo else until.replace(tzinfo=UTC)
    return max((aware - datetime.now(UTC)).total_seconds(), 0.0)
