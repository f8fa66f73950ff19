"""Computes what Now reports: problems with advice, figures, and call rates. No I/O."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from frontdesk.interfaces.web.rendering import NO_VALUE, TIME_UNITS, format_duration, shorten
from frontdesk.journal.model import PAGES_SURFACE, EntryKind, EntryTiming, FailureSummary, JournalEntry, Outcome
from frontdesk.schedules.history_store import OverdueSchedule, RunHolder
from frontdesk.schedules.model import SECOND, from_us, to_us
from frontdesk.schedules.requests import ExecutorState
from frontdesk.tools.servers import ServerState

RATE_STEP = timedelta(seconds=2)
RATE_SPAN = timedelta(minutes=5)
MINUTE = timedelta(minutes=1)
CALL_KINDS = frozenset({EntryKind.CALL, EntryKind.DENIAL})
SLOW_SHARE = 0.95


@dataclass(frozen=True, slots=True)
class CallRate:
    """A call rate, its failures, and the durations of calls. None if there were no calls."""

    calls: float = 0.0
    failed: float = 0.0
    median_us: int | None = None
    slow_us: int | None = None


@dataclass(frozen=True, slots=True)
class RatePoint:
    """One point of the charts. None where nothing is known."""

    at: datetime
    pace: CallRate | None

    def as_chart_row(self) -> list[float | None]:
        """(seconds since the epoch, calls per second, failures per second, median and 95th percentile in ms)."""
        if self.pace is None:
            return [self.at.timestamp(), None, None, None, None]
        pace = self.pace
        return [
            self.at.timestamp(),
            pace.calls,
            pace.failed,
            _milliseconds(pace.median_us),
            _milliseconds(pace.slow_us),
        ]


def call_rate(beats: Sequence[EntryTiming], over: timedelta) -> CallRate:
    """The rate of the calls among these rows, which arrived within `over`.

    Turns and deliveries do not count, because they take long; neither do page views.
    """
    calls = [beat for beat in beats if beat.kind in CALL_KINDS and beat.surface != PAGES_SURFACE]
    took = sorted(beat.duration_us for beat in calls)
    failed = sum(beat.outcome is Outcome.FAILED for beat in calls)
    seconds = max(over.total_seconds(), 0.001)
    rates = round(len(took) / seconds, 2), round(failed / seconds, 2)
    return CallRate(*rates, _percentile(took, 0.5), _percentile(took, SLOW_SHARE))


def recent_call_rate(beats: Sequence[EntryTiming], now: datetime, limit: int) -> CallRate:
    """The rate of the last minute, or of the part of it that the newest `limit` rows cover."""
    since = _known_since(beats, now - MINUTE, limit)
    return call_rate([beat for beat in beats if beat.ended >= since], now - since)


def past_call_rates(beats: Sequence[EntryTiming], now: datetime, limit: int) -> list[RatePoint]:
    """The points of the last minutes, oldest first, from the newest `limit` rows."""
    count = RATE_SPAN // RATE_STEP
    start = now - RATE_SPAN
    since = _known_since(beats, start, limit)
    steps: list[list[EntryTiming]] = [[] for _ in range(count)]
    for beat in beats:
        number = (beat.ended - start) // RATE_STEP
        if 0 <= number < count:
            steps[number].append(beat)
    ends = [start + RATE_STEP * (number + 1) for number in range(count)]
    return [
        RatePoint(end, call_rate(step, RATE_STEP) if end - RATE_STEP >= since else None)
        for end, step in zip(ends, steps, strict=True)
    ]


def _known_since(beats: Sequence[EntryTiming], wanted: datetime, limit: int) -> datetime:
    """The time from which these rows are complete: their oldest time, unless there are no older rows."""
    if len(beats) < limit:
        return wanted
    return max(wanted, min(beat.ended for beat in beats))


def _percentile(ordered: Sequence[int], share: float) -> int | None:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else None


def _milliseconds(microseconds: int | None) -> float | None:
    return None if microseconds is None else round(microseconds / 1000, 3)


@dataclass(frozen=True, slots=True)
class HostStatus:
    """The agent host: its name, its place and its problem. `agents`: whether it has any, if known."""

    name: str
    place: str = ""
    trouble: str = ""
    agents: bool = True
    pretends: bool = False


@dataclass(frozen=True, slots=True)
class WorkStatus:
    """The state of the schedule: this process's worker, other active workers, and overdue prompts."""

    here: ExecutorState
    others: Sequence[RunHolder] = ()
    late: Sequence[OverdueSchedule] = ()


@dataclass(frozen=True, slots=True)
class InstallationStatus:
    """The collected status. If the database does not answer, only that is known."""

    now: datetime
    database: str
    host: HostStatus
    servers: Sequence[ServerState] = ()
    search_trouble: str = ""
    asked_every: timedelta = timedelta(minutes=15)
    database_trouble: str = ""
    write_trouble: str = ""
    work: WorkStatus | None = None
    failures: FailureSummary = field(default_factory=FailureSummary)
    rows: Sequence[tuple[int, JournalEntry]] = ()
    # Names of the shown agents, where known.
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    pace: CallRate = field(default_factory=CallRate)
    new: bool = False


@dataclass(frozen=True, slots=True)
class StatusProblem:
    """A problem, its solution, and a link. `kind` is `bad`, or `warn` for less urgent problems."""

    what: str
    do: str
    kind: str = "bad"
    link: str = ""
    to: str = ""
    command: str = ""


@dataclass(frozen=True, slots=True)
class StatusFigure:
    """A figure, and the page where one can act on it."""

    name: str
    value: str
    link: str = ""
    note: str = ""
    kind: str = ""
    # A time that is shown relative to now, after the note.
    at: datetime | None = None


LATE_US = 60 * SECOND
VERY_LATE_US = 600 * SECOND
# A server that missed this many rounds is reported as not refreshed.
MISSED_ROUNDS = 4
SHOWN_SERVERS = 5
SHOWN_ERROR_LENGTH = 300
DEAD_RUNS_PATH = "/schedule?show=runs&state=dead"
SERVERS_PATH = "/tools/servers"


def find_problems(facts: InstallationStatus) -> Sequence[StatusProblem]:
    found = [
        *_database_problems(facts),
        *_host_problems(facts),
        *_work_problems(facts),
        *_tool_problems(facts),
        *_call_problems(facts),
    ]
    return sorted(found, key=lambda trouble: trouble.kind != "bad")


def summary_sentence(found: Sequence[StatusProblem]) -> str:
    """The headline of the page."""
    match len(found):
        case 0:
            return "All is well."
        case 1:
            return "One problem needs attention."
        case number:
            return f"{number} problems need attention."


def long_duration(microseconds: float) -> str:
    """A duration in its largest unit: `12 min`."""
    seconds = microseconds / SECOND
    _, unit, name = next(step for step in TIME_UNITS if seconds < step[0])
    return f"{round(seconds / unit)} {name}"


def worker_name(owner: str) -> str:
    """A readable name of a worker: its machine and its process."""
    machine, _, rest = owner.partition("/")
    return f"{machine}, process {rest.rsplit(':', 2)[-2]}" if rest.count(":") > 1 else owner


def _database_problems(facts: InstallationStatus) -> Iterator[StatusProblem]:
    if facts.database_trouble:
        yield StatusProblem(
            f"The database does not answer: {shorten(facts.database_trouble, SHOWN_ERROR_LENGTH)}",
            "Check that it runs and can be reached (FRONTDESK_DATABASE_URL, FRONTDESK_DATA). "
            "Frontdesk continues by itself once it answers.",
        )
    if facts.write_trouble:
        yield StatusProblem(
            f"The database {shorten(facts.write_trouble, SHOWN_ERROR_LENGTH)}.",
            "Check that its disk has space and that it is not read-only. Until then nothing new is stored.",
        )


def _host_problems(facts: InstallationStatus) -> Iterator[StatusProblem]:
    if facts.host.trouble and not facts.database_trouble:
        told = shorten(facts.host.trouble, SHOWN_ERROR_LENGTH)
        yield StatusProblem(
            f"The agent host is not reachable: {told}", "Prompts wait until it is back.", link="/agents"
        )
    if facts.host.pretends and not facts.new:
        yield StatusProblem(
            "No language model is connected, so agents answer with a placeholder.",
            "Set ANTHROPIC_API_KEY or OPENAI_API_KEY and start Frontdesk again.",
            "warn",
            "/start",
            "How to connect one",
        )


def _work_problems(facts: InstallationStatus) -> Iterator[StatusProblem]:
    if facts.work is None:
        return
    here, now_us = facts.work.here, to_us(facts.now)
    if here.autostart and not here.running:
        yield StatusProblem(
            "The worker of this process does not run, so it delivers no prompts.",
            "Start Frontdesk again; the log says why it stopped.",
            link="/schedule",
            to="Schedule",
        )
    late_us = here.oldest_overdue_us or 0
    if late_us > LATE_US:
        yield _overdue_problem(facts.work, late_us)
    for one in facts.work.others:
        if one.leased_until_us < now_us:
            yield StatusProblem(
                f"Worker {worker_name(one.owner)} has {_plural(one.runs, 'run')} and has sent no sign of life for "
                f"{long_duration(now_us - one.leased_until_us)} longer than it should be.",
                "If it has ended, another worker takes them over; if it hangs, stop it.",
                "warn",
                "/schedule",
                "Schedule",
            )
    if here.dead:
        yield StatusProblem(
            f"{_plural(here.dead, 'prompt')} could not be delivered and "
            f"{'was' if here.dead == 1 else 'were'} given up.",
            f"See why, then have {'it' if here.dead == 1 else 'them'} tried again.",
            "warn",
            DEAD_RUNS_PATH,
            "Given up",
        )


def _overdue_problem(work: WorkStatus, late_us: int) -> StatusProblem:
    delivers = work.here.running or work.others
    do = (
        f"{'Its agent' if work.here.due == 1 else 'Their agents'} may be busy with earlier prompts; look at what runs."
        if delivers
        else "No worker is running: start one on the same database."
    )
    return StatusProblem(
        f"{_plural(work.here.due or 0, 'prompt')} overdue, the oldest by {long_duration(late_us)}.",
        do,
        "bad" if late_us > VERY_LATE_US or not delivers else "warn",
        f"/schedule/{work.late[0].schedule_id}" if work.late else "/schedule",
        f"Schedule {work.late[0].schedule_id}" if work.late else "Schedule",
        "" if delivers else "frontdesk worker",
    )


def _tool_problems(facts: InstallationStatus) -> Iterator[StatusProblem]:
    failed = [state for state in facts.servers if state.stale]
    for state in failed[:SHOWN_SERVERS]:
        yield StatusProblem(
            f"Tool server '{state.name}': {shorten(state.error or 'it does not answer', SHOWN_ERROR_LENGTH)}.",
            _stale_tools_advice(state),
            "warn",
            f"/tools/server/{state.name}",
            "Its page",
            f"frontdesk tools refresh {state.name}",
        )
    if len(failed) > SHOWN_SERVERS:
        more = _plural(len(failed) - SHOWN_SERVERS, "more tool server")
        yield StatusProblem(f"{more} did not answer.", "", "warn", SERVERS_PATH, "All tool servers")
    forgotten = [
        state for state in facts.servers if not state.stale and _is_overdue_crawl(state, facts.now, facts.asked_every)
    ]
    if forgotten:
        names = ", ".join(state.name for state in forgotten[:SHOWN_SERVERS])
        yield StatusProblem(
            f"{_plural(len(forgotten), 'tool server')} not refreshed for a long time: {shorten(names)}.",
            "What is known of its tools may be out of date; ask it again."
            if len(forgotten) == 1
            else "What is known of their tools may be out of date; ask them again.",
            "warn",
            SERVERS_PATH,
            "Tool servers",
            "frontdesk tools refresh",
        )
    if facts.search_trouble:
        yield StatusProblem(
            f"Tool search is incomplete: {shorten(facts.search_trouble, SHOWN_ERROR_LENGTH)}",
            "Until it recovers, tools are found by their words only.",
            "warn",
            "/tools",
            "Tools",
        )


def _call_problems(facts: InstallationStatus) -> Iterator[StatusProblem]:
    failures = facts.failures
    if failures.count:
        least = "At least " if failures.at_least else ""
        yield StatusProblem(
            f"{least}{_plural(failures.count, 'call')} failed in the last hour.",
            "The log has the details, by request id.",
            "warn",
            "#failed",
            "Which ones",
        )


def _stale_tools_advice(state: ServerState) -> str:
    if state.tools:
        return f"Its {_plural(state.tools, 'tool')} stay as last listed, and calls of them may fail. Ask it again:"
    return "Then ask it again:"


def _is_overdue_crawl(state: ServerState, now: datetime, every: timedelta) -> bool:
    return state.crawled_at is not None and now - state.crawled_at > every * MISSED_ROUNDS


def _plural(number: int, thing: str) -> str:
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def status_figures(facts: InstallationStatus) -> Sequence[StatusFigure]:
    return [
        *_work_figures(facts.work),
        _failed_figure(facts),
        _host_figure(facts),
        _servers_figure(facts),
        _database_figure(facts),
        *_call_figures(facts),
    ]


def _work_figures(work: WorkStatus | None) -> Iterator[StatusFigure]:
    if work is None:
        yield StatusFigure("Workers", NO_VALUE, "/schedule")
        return
    here = work.here
    seen = (1 if here.running else 0) + len(work.others)
    under_way = (here.in_flight or 0) + sum(one.runs for one in work.others)
    yield StatusFigure("Workers", f"{seen}", "#workers", f"{under_way:,} under way", "" if seen else "warn")
    late_us = here.oldest_overdue_us or 0
    kind = "bad" if late_us > VERY_LATE_US else "warn" if late_us > LATE_US else ""
    yield StatusFigure(
        "Oldest overdue", long_duration(late_us) if late_us else "none", "/schedule", f"{here.due or 0:,} due", kind
    )
    next_at = from_us(here.next_us) if here.next_us is not None else None
    yield StatusFigure(
        "Next prompt", "" if next_at else "none", "/schedule", f"{here.waiting or 0:,} tried again", at=next_at
    )
    yield StatusFigure("Given up", f"{here.dead or 0:,}", DEAD_RUNS_PATH, "prompts", "warn" if here.dead else "")


def _failed_figure(facts: InstallationStatus) -> StatusFigure:
    failures = facts.failures
    count = f"{failures.count:,}{'+' if failures.at_least else ''}"
    return StatusFigure("Failed", count, "#failed", "in the last hour", "warn" if failures.count else "")


def _host_figure(facts: InstallationStatus) -> StatusFigure:
    host = facts.host
    return StatusFigure(
        "Agent host", host.name, "/agents", "not reachable" if host.trouble else host.place, _figure_kind(host.trouble)
    )


def _servers_figure(facts: InstallationStatus) -> StatusFigure:
    servers = facts.servers
    failed = sum(state.stale for state in servers)
    tools = sum(state.tools for state in servers)
    value = f"{len(servers) - failed} of {len(servers)}" if failed else f"{len(servers)}"
    return StatusFigure(
        "Tool servers", value, SERVERS_PATH, "answer" if failed else f"{tools:,} tools", "warn" if failed else ""
    )


def _database_figure(facts: InstallationStatus) -> StatusFigure:
    trouble = facts.database_trouble or facts.write_trouble
    told = "does not answer" if facts.database_trouble else "cannot be written to" if trouble else "answers"
    return StatusFigure("Database", facts.database, "", told, _figure_kind(trouble))


def _call_figures(facts: InstallationStatus) -> Iterator[StatusFigure]:
    pace = facts.pace
    yield StatusFigure("Calls per second", f"{pace.calls:g}", "#journal", "in the last minute")
    slow = f"95 % within {format_duration(pace.slow_us)}" if pace.slow_us is not None else "no call in the last minute"
    yield StatusFigure("Latency", format_duration(pace.median_us), "#journal", slow)


def _figure_kind(trouble: str) -> str:
    return "bad" if trouble else ""
