"""The use of tools over time: how often each was called, by whom, and how that went."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from frontdesk.journal.store import ToolCall
from frontdesk.surfaces.web.model import Asked, Shown
from frontdesk.surfaces.web.pages.tools.common import tool_at
from frontdesk.tools.house import CALLS
from frontdesk.tools.trend import SPANS, Bar, Span, bars, uses

HEIGHT = 100.0
STEP = 20
SHOWN = 100
USUAL = "day"


@dataclass(frozen=True, slots=True)
class Column:
    """A bar as it is drawn, from the bottom: what failed, and on top of it what went well."""

    bar: Bar
    x: int
    ok: float
    failed: float


@dataclass(frozen=True, slots=True)
class Chart:
    """`most` is what the highest bar stands for; `calls` what all of them do."""

    columns: Sequence[Column]
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
    return Chart(columns, span, span.count * STEP, most, sum(bar.calls for bar in found), failed)


async def use(asked: Asked) -> Shown:
    """The latest calls of all tools."""
    over = asked.query.get("over", USUAL)
    over = over if over in SPANS else USUAL
    calls = await asked.app.tools.house.calls(asked.caller)
    start = SPANS[over].start(asked.now)
    within = [call for call in calls if call.at >= start]
    context = {
        "over": over,
        "spans": SPANS,
        "chart": chart(within, over, asked.now),
        "uses": uses(within)[:SHOWN],
        # There were more calls than are looked at, so the bars before this one are not whole.
        "cut_at": calls[-1].at if len(calls) == CALLS else None,
        "tool_at": tool_at,
    }
    return Shown("tools/use.html", "Use of tools", context)
