"""The use of tools over time: calls summed up by the hour or day, and by agent and tool."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from frontdesk.journal.store import ToolCall, ToolUse


@dataclass(frozen=True, slots=True)
class Span:
    """So many steps of one length, up to now."""

    name: str
    step: timedelta
    count: int

    def start(self, now: datetime) -> datetime:
        """The first step's; steps begin on the hour or at midnight UTC, so that a bar stays what it was."""
        last = now - timedelta(seconds=now.timestamp() % self.step.total_seconds())
        return last - (self.count - 1) * self.step


SPANS = {
    "day": Span("24 hours", timedelta(hours=1), 24),
    "week": Span("7 days", timedelta(hours=6), 28),
    "month": Span("30 days", timedelta(days=1), 30),
}


@dataclass(frozen=True, slots=True)
class Bar:
    """What was called in one step."""

    start: datetime
    calls: int = 0
    failed: int = 0


def bars(calls: Sequence[ToolCall], span: Span, now: datetime) -> Sequence[Bar]:
    """One for each step, also where nothing was called."""
    start = span.start(now)
    counted = [[0, 0] for _ in range(span.count)]
    for call in calls:
        step = int((call.at - start) / span.step) if call.at >= start else -1
        if 0 <= step < span.count:
            counted[step][0] += 1
            counted[step][1] += not call.ok
    return [Bar(start + number * span.step, *found) for number, found in enumerate(counted)]


def uses(calls: Sequence[ToolCall]) -> Sequence[ToolUse]:
    """One for each agent and tool, the most used first; `calls` has the newest first."""
    grouped: dict[tuple[str | None, str], list[ToolCall]] = {}
    for call in calls:
        grouped.setdefault((call.agent_id, call.tool), []).append(call)
    found = [_use(agent_id, tool, some) for (agent_id, tool), some in grouped.items()]
    return sorted(found, key=lambda use: (-use.calls, use.tool, use.agent_id or ""))


def _use(agent_id: str | None, tool: str, calls: Sequence[ToolCall]) -> ToolUse:
    mean = sum(call.duration_us for call in calls) // len(calls)
    return ToolUse(agent_id, tool, len(calls), sum(not call.ok for call in calls), mean, calls[0].at)
