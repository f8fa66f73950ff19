"""The use of tools over time: how often each was called, by whom, and how that went."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from frontdesk.journal.store import ToolCall
from frontdesk.surfaces.web.model import Asked, Shown
from frontdesk.surfaces.web.names import names_of
from frontdesk.surfaces.web.pages.tools.common import tool_at
from frontdesk.tools.house import CALLS
from frontdesk.tools.trend import SPANS, Bar, Span, bars, uses

HEIGHT = 100.0
STEP = 20
SHOWN = 25
USUAL = "day"
# Which bars have their time below them: a few hours, every midnight, every Monday.
NAMED: Mapping[str, Callable[[datetime], bool]] = {
    "day": lambda at: at.hour % 6 == 0,
    "week": lambda at: at.hour == 0,
    "month": lambda at: at.weekday() == 0,
}
# Beyond so much of the width, what is written below ends with its bar instead of beginning with it.
NEAR_END = 0.85


@dataclass(frozen=True, slots=True)
class Column:
    """A bar as it is drawn, from the bottom: what failed, and on top of it what went well."""

    bar: Bar
    x: int
    ok: float
    failed: float


@dataclass(frozen=True, slots=True)
class Tick:
    """A time below the bars: in percent of the width, where its bar begins, and where the words begin or end."""

    at: float
    words_at: float
    words: str

    @property
    def ends(self) -> bool:
        return self.words_at > self.at


@dataclass(frozen=True, slots=True)
class Chart:
    """`most` is what the highest bar stands for; `calls` what all of them do; of `ticks` the last comes first."""

    columns: Sequence[Column]
    ticks: Sequence[Tick]
    span: Span
    width: int
    most: int
    calls: int
    failed: int


def chart(calls: Sequence[ToolCall], over: str, now: datetime) -> Chart:
    """Calls as bars."""
    span = SPANS[over]
    found = bars(calls, span, now)
    most = max(bar.calls for bar in found)
    scale = HEIGHT / max(most, 1)
    columns = [
        Column(bar, number * STEP, round((bar.calls - bar.failed) * scale, 1), round(bar.failed * scale, 1))
        for number, bar in enumerate(found)
    ]
    failed = sum(bar.failed for bar in found)
    ticks = [_tick(bar.start, number / span.count, 1 / span.count) for number, bar in enumerate(found)]
    named = [tick for tick, bar in zip(ticks, found, strict=True) if NAMED[over](bar.start)]
    return Chart(columns, named[::-1], span, span.count * STEP, most, sum(bar.calls for bar in found), failed)


def _tick(at: datetime, begins: float, width: float) -> Tick:
    words_at = begins + width if begins > NEAR_END else begins
    return Tick(round(100 * begins, 2), round(100 * words_at, 2), f"{at:%H:%M}" if at.hour else f"{at.day} {at:%b}")


async def use(asked: Asked) -> Shown:
    """The latest calls of all tools."""
    over = asked.query.get("over", USUAL)
    over = over if over in SPANS else USUAL
    calls = await asked.app.tools.house.calls(asked.caller)
    start = SPANS[over].start(asked.now)
    within = [call for call in calls if call.at >= start]
    every = uses(within)
    found = every[:SHOWN]
    context = {
        "over": over,
        "spans": SPANS,
        "chart": chart(within, over, asked.now),
        "uses": found,
        "more": len(every) - len(found),
        "names": await names_of(asked.app, [one.agent_id for one in found]),
        # There were more calls than are looked at, so the bars before this one are not whole.
        "cut_at": calls[-1].at if len(calls) == CALLS else None,
        "tool_at": tool_at,
    }
    return Shown("tools/use.html", "Use of tools", context)
