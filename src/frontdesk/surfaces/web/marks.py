"""How pages write times, durations, numbers and long texts; each escapes what it is given."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup, escape

STEPS = ((60, 1, "s"), (3600, 60, "min"), (86_400, 3600, "h"), (float("inf"), 86_400, "d"))
SHOWN = 200
NOTHING = "\u2013"
MANY = 2_000


def when(at: datetime | None, now: datetime | None = None) -> Markup:
    """A moment as one reads it, `3 min ago`, with the moment itself behind it."""
    if at is None:
        return Markup('<span class="faint">never</span>')
    at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    exact = at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        at.isoformat(), exact, apart(at, now or datetime.now(UTC))
    )


def apart(at: datetime, now: datetime) -> str:
    """How long ago or how long until, in the largest unit that is not nothing."""
    seconds = (at - now).total_seconds()
    most, unit, name = next(step for step in STEPS if abs(seconds) < step[0])
    del most
    count = round(abs(seconds) / unit)
    if count == 0:
        return "now"
    return f"in {count} {name}" if seconds > 0 else f"{count} {name} ago"


def duration(microseconds: float | None) -> str:
    if microseconds is None:
        return NOTHING
    if microseconds < 1_000:
        return f"{microseconds:.0f} µs"
    if microseconds < 1_000_000:
        return f"{microseconds / 1_000:.1f} ms"
    return f"{microseconds / 1_000_000:.1f} s"


def number(value: float | None) -> str:
    return NOTHING if value is None else f"{value:,}"


def short(text: object, most: int = SHOWN) -> str:
    """The beginning of a text, on one line."""
    said = " ".join(str(text).split())
    return said if len(said) <= most else f"{said[: most - 1]}…"


def whole(text: object, most: int = MANY) -> Markup:
    """A text as it was written; a long one is cut, with the rest one click away."""
    said = str(text)
    if len(said) <= most:
        return Markup('<div class="text" dir="auto">{}</div>').format(said)
    return Markup(
        '<div class="text" dir="auto">{}…</div><details><summary>all {} characters</summary>'
        '<div class="text" dir="auto">{}</div></details>'
    ).format(said[:most], f"{len(said):,}", said[: 50 * most])


def code(identifier: object, most: int = 44) -> Markup:
    """An id that can be copied; a longer one is cut, and copied whole."""
    said = str(identifier)
    return Markup('<code class="id" tabindex="0" data-copy="{}" title="Copy {}">{}</code>').format(
        said, said, short(said, most)
    )


def state(word: object) -> Markup:
    """A state as a badge; its colour comes from the word."""
    said = str(word)
    return Markup('<span class="badge {}">{}</span>').format(f"is-{_slug(said)}", said)


def as_json(value: object) -> Markup:
    """Anything as JSON to read."""
    return Markup("<pre>{}</pre>").format(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def _slug(text: str) -> str:
    return "".join(char if char.isascii() and char.isalnum() else "-" for char in text.lower())[:30]


FILTERS: Mapping[str, Callable[..., Any]] = {
    "when": when,
    "duration": duration,
    "number": number,
    "short": short,
    "whole": whole,
    "code": code,
    "state": state,
    "as_json": as_json,
    "esc": escape,
}
