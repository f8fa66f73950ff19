"""Prepares schedules, runs and the timeline chart for templates. No I/O."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlsplit

from frontdesk import zones
from frontdesk.errors import Invalid
from frontdesk.interfaces.web.agent_lookup import AgentChoices
from frontdesk.schedules.descriptions import describe_rule
from frontdesk.schedules.model import SECOND, Attempt, RunRecord, RunStatus, Schedule, ScheduleState, from_us
from frontdesk.schedules.overview_store import FiresAroundNow
from frontdesk.schedules.requests import RuleDescription, RulePreview
from frontdesk.schedules.webhook_store import WEBHOOK_DEAD


@dataclass(frozen=True, slots=True)
class ZonedTime:
    """A time. `local` is None if the zone is UTC or unknown here."""

    at: datetime
    utc: str
    zone: str
    local: str | None = None


def zoned_time(microseconds: int, zone: str = "UTC") -> ZonedTime:
    at = from_us(microseconds)
    return ZonedTime(
        at, f"{_format_clock(at.astimezone(UTC))} UTC", zone, None if zone == "UTC" else _format_local(at, zone)
    )


def zoned_time_or_none(microseconds: int | None, zone: str = "UTC") -> ZonedTime | None:
    return None if microseconds is None else zoned_time(microseconds, zone)


def _format_local(at: datetime, zone: str) -> str | None:
    try:
        return f"{_format_clock(at.astimezone(zones.zone_of_name(zone)))} {zone}"
    except Invalid:
        return None


def _format_clock(at: datetime) -> str:
    return at.strftime("%a %d %b %Y %H:%M:%S" if at.second else "%a %d %b %Y %H:%M")


HOUR = 3600 * SECOND
# (name in the address, label, time to each side)
SPANS = (("1h", "1 hour", HOUR), ("6h", "6 hours", 6 * HOUR), ("1d", "1 day", 24 * HOUR), ("7d", "7 days", 168 * HOUR))
DEFAULT_SPAN = "1d"
BARS_EACH_SIDE = 36
BAR_WIDTH = 16
CHART_WIDTH = 2 * BARS_EACH_SIDE * BAR_WIDTH
# Bars above the base line are successful and upcoming runs, bars below it are runs that were given up.
HEIGHT_ABOVE, HEIGHT_BELOW = 80, 40
LEAST_BAR_HEIGHT = 5
UPCOMING_KIND, OMITTED_KIND = "coming", "left-out"
UPCOMING_LABEL = "upcoming"
STATUS_NAMES = {RunStatus.DELIVERED: "delivered", RunStatus.DEAD: "given up"}


@dataclass(frozen=True, slots=True)
class TimelineBar:
    """A rectangle of the chart, with its text on hover."""

    x: int
    y: int
    height: int
    kind: str
    title: str


@dataclass(frozen=True, slots=True)
class TimelineChart:
    """The chart, and its description in words."""

    bars: Sequence[TimelineBar]
    labels: Sequence[str]
    summary: str
    more: bool
    width: int = CHART_WIDTH
    height: int = HEIGHT_ABOVE + HEIGHT_BELOW
    base: int = HEIGHT_ABOVE
    now: int = CHART_WIDTH // 2
    bar: int = BAR_WIDTH - 2


def find_span(name: str | None) -> tuple[str, str, int]:
    """The span with this name, or the default."""
    return next((one for one in SPANS if one[0] == name), next(one for one in SPANS if one[0] == DEFAULT_SPAN))


def draw_timeline(around: FiresAroundNow, now_us: int, name: str, span_us: int) -> TimelineChart:
    """A chart of runs before and after now, each side as wide as the span."""
    counts = Counter(_assign_stretches(around, now_us, span_us))
    highest = max((sum(_stretch_counts(counts, at, below=False)) for at, _ in counts), default=1)
    deepest = max((sum(_stretch_counts(counts, at, below=True)) for at, _ in counts), default=1)
    bars: list[TimelineBar] = []
    for at in sorted({at for at, _ in counts}):
        top = HEIGHT_ABOVE
        for kind in (RunStatus.DELIVERED, UPCOMING_KIND, OMITTED_KIND):
            if number := counts[at, kind]:
                height = max(LEAST_BAR_HEIGHT, (HEIGHT_ABOVE - 4) * number // max(highest, 1))
                top = max(0, top - height)
                bars.append(
                    TimelineBar(at * BAR_WIDTH + 1, top, height, kind, _bar_title(at, kind, number, now_us, span_us))
                )
        if number := counts[at, RunStatus.DEAD]:
            height = max(LEAST_BAR_HEIGHT, (HEIGHT_BELOW - 4) * number // max(deepest, 1))
            bars.append(
                TimelineBar(
                    at * BAR_WIDTH + 1,
                    HEIGHT_ABOVE,
                    height,
                    RunStatus.DEAD,
                    _bar_title(at, RunStatus.DEAD, number, now_us, span_us),
                )
            )
    return TimelineChart(bars, _axis_labels(now_us, span_us), _describe_timeline(around, name), around.more)


def _assign_stretches(around: FiresAroundNow, now_us: int, span_us: int) -> Iterable[tuple[int, str]]:
    """For each run, the interval it falls into and its kind."""
    stretch = span_us / BARS_EACH_SIDE
    last = 2 * BARS_EACH_SIDE - 1
    for at in around.ahead:
        # Overdue runs are shown right after now.
        yield min(last, BARS_EACH_SIDE + max(0, int((at - now_us) / stretch))), UPCOMING_KIND
    for at, standing in around.behind:
        kind = standing if standing in STATUS_NAMES else OMITTED_KIND
        yield min(BARS_EACH_SIDE - 1, max(0, BARS_EACH_SIDE - 1 - int((now_us - at) / stretch))), kind


def _stretch_counts(counts: Counter[tuple[int, str]], at: int, *, below: bool) -> Iterable[int]:
    return (number for (place, kind), number in counts.items() if place == at and (kind == RunStatus.DEAD) is below)


def _bar_title(at: int, kind: str, number: int, now_us: int, span_us: int) -> str:
    begin = now_us + (at - BARS_EACH_SIDE) * span_us // BARS_EACH_SIDE
    end = begin + span_us // BARS_EACH_SIDE
    said = {UPCOMING_KIND: UPCOMING_LABEL, OMITTED_KIND: "left out or cancelled", **STATUS_NAMES}[kind]
    return f"{from_us(begin):%a %d %b %H:%M} to {from_us(end):%H:%M} UTC: {number} {said}"


def _axis_labels(now_us: int, span_us: int) -> list[str]:
    shape = "%a %d %b" if span_us > 48 * HOUR else "%a %H:%M"
    left, right = (
        [from_us(now_us + sign * span_us // 2 * far).strftime(shape) for far in fars]
        for sign, fars in ((-1, (2, 1)), (1, (1, 2)))
    )
    return [*left, "now", *right]


def _describe_timeline(around: FiresAroundNow, name: str) -> str:
    """The chart in words, for screen readers."""
    ended = Counter(standing for _, standing in around.behind)
    others = sum(ended.values()) - ended[RunStatus.DELIVERED] - ended[RunStatus.DEAD]
    parts = [f"{ended[one]} {said}" for one, said in STATUS_NAMES.items()]
    parts += [f"{others} left out or cancelled"] if others else []
    length = name.removeprefix("1 ")
    return f"In the last {length}: {', '.join(parts)}. In the next {length}: {len(around.ahead)} {UPCOMING_LABEL}."


FINISHED_STATES = frozenset({ScheduleState.CANCELLED, ScheduleState.ENDED})


@dataclass(frozen=True, slots=True)
class ScheduleRow:
    """A schedule in a list, and at the top of its own page."""

    id: int
    agent_id: str
    agent: str
    prompt: str
    rule: str
    plain: str
    words: str | None
    zone: str
    state: ScheduleState
    next: ZonedTime | None
    last: ZonedTime | None
    fired: int
    most: int | None

    @property
    def is_over(self) -> bool:
        return self.state in FINISHED_STATES

    @classmethod
    def of(cls, schedule: Schedule, agents: AgentChoices) -> "ScheduleRow":
        what = schedule.what
        trigger = what.trigger
        rule = RuleDescription.of(trigger, None).facts["rule"] or trigger.value
        return cls(
            id=schedule.id,
            agent_id=what.agent_id,
            agent=agents.name_of(what.agent_id),
            prompt=what.prompt,
            rule=rule,
            plain=describe_rule(rule),
            words=what.words,
            zone=trigger.zone,
            state=schedule.state,
            next=zoned_time_or_none(schedule.fire_us, trigger.zone) if schedule.state is ScheduleState.ACTIVE else None,
            last=zoned_time_or_none(schedule.last_us, trigger.zone),
            fired=schedule.fired,
            most=what.max_repetitions,
        )


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """One attempt at a run, with its error if it failed."""

    number: int
    at: datetime
    took_us: int | None
    error: str

    @classmethod
    def of(cls, attempt: Attempt) -> "AttemptRow":
        took = None if attempt.ended_us is None else attempt.ended_us - attempt.started_us
        return cls(attempt.number, zoned_time(attempt.started_us).at, took, attempt.error or "")


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run as the page shows it."""

    id: str
    schedule_id: int
    agent_id: str
    agent: str
    due: ZonedTime
    ended: ZonedTime | None
    standing: RunStatus
    attempt: int
    took_us: int | None
    reason: str
    answer: str
    manual: bool
    tries: Sequence[AttemptRow]
    forwarded: str

    @property
    def is_dead(self) -> bool:
        return self.standing is RunStatus.DEAD

    @classmethod
    def of(cls, past: RunRecord, agents: AgentChoices, zone: str = "UTC") -> "RunRow":
        took = None if past.started_us is None or past.ended_us is None else past.ended_us - past.started_us
        return cls(
            id=past.id,
            schedule_id=past.schedule_id,
            agent_id=past.agent_id,
            agent=agents.name_of(past.agent_id),
            due=zoned_time(past.intended_us, zone),
            ended=zoned_time_or_none(past.ended_us, zone),
            standing=past.standing,
            attempt=past.attempt,
            took_us=took,
            reason=past.reason or "",
            answer=past.answer or "",
            manual=past.manual,
            tries=[AttemptRow.of(one) for one in past.earlier],
            forwarded=_describe_forwarding(past),
        )


def webhook_host(webhook: str | None) -> str:
    """The host that answers are sent to. The rest of the address may contain a secret."""
    return "" if webhook is None else urlsplit(webhook).hostname or ""


def describe_schedule(schedule: Schedule) -> str:
    """When the schedule fires, in plain words, and the next time."""
    trigger = schedule.what.trigger
    words, at = (
        describe_rule(RuleDescription.of(trigger, None).facts["rule"] or ""),
        zoned_time_or_none(schedule.intended_us, trigger.zone),
    )
    return f"{words}; it does not fire again" if at is None else f"{words}, next {at.local or at.utc}"


def preview_times(preview: RulePreview) -> list[ZonedTime]:
    return [zoned_time(at, preview.zone) for at in preview.times]


def _describe_forwarding(past: RunRecord) -> str:
    """The state of the delivery of an answer to the webhook."""
    found = past.forwarded
    if found is None:
        return ""
    said = f"answer {'given up' if found.state == WEBHOOK_DEAD else found.state} after {found.attempt} tries"
    return f"{said}: {found.error}" if found.error else said
