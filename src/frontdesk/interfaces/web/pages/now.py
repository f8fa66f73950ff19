"""Shows the page Now, and streams its changes.

There is no background task. All listeners wake at the same moment; the first collects the data for all of them. A slow
listener gets only the latest state, so nothing queues up.
"""

from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote, urlencode
from weakref import WeakKeyDictionary

import anyio

from frontdesk.app import DATABASE_NOT_WRITABLE, App
from frontdesk.errors import FrontdeskError, Unavailable
from frontdesk.identity.model import Caller
from frontdesk.interfaces.web.agent_lookup import agent_names
from frontdesk.interfaces.web.model import ActionRoute, PageContent, PageRequest, PageRoute, StreamRoute
from frontdesk.interfaces.web.pages.now_report import (
    RATE_SPAN,
    RATE_STEP,
    HostStatus,
    InstallationStatus,
    RatePoint,
    WorkStatus,
    call_rate,
    find_problems,
    past_call_rates,
    recent_call_rate,
    status_figures,
    summary_sentence,
    worker_name,
)
from frontdesk.interfaces.web.rendering import TEMPLATES
from frontdesk.journal.model import EntryKind, EntryTiming, JournalEntry, Outcome
from frontdesk.journal.service import Journal
from frontdesk.llm.access import OFFLINE, ModelAccess
from frontdesk.schedules.model import from_us
from frontdesk.schedules.requests import ListSchedules
from frontdesk.tools.servers import ServerOrigin

HOUR = timedelta(hours=1)
HOST_TIMEOUT_SECONDS = 2
JOURNAL_ROWS = 15
# How many of the newest rows are searched for entries: most rows may be page views.
ROWS_SEARCHED = 2_000
SHOWN_FAILURES = 10
SHOWN_LATE = 5
SHOWN_HOLDERS = 50
# How many of the newest calls are read for the call rate of the last minute.
TIMINGS_READ = 300


async def check_host(app: App) -> HostStatus:
    """Whether the agents' host answers."""
    letta = app.settings.letta_base_url
    model = ModelAccess.from_settings(app.settings).default_model
    known = HostStatus("Letta", letta) if letta else HostStatus("Built in", f"model {model}", pretends=model == OFFLINE)
    try:
        with anyio.fail_after(HOST_TIMEOUT_SECONDS):
            found = await app.host.list(1)
    except TimeoutError:
        told = f"The agent host does not answer within {HOST_TIMEOUT_SECONDS} s; check that it runs, and LETTA_BASE_URL"
        return HostStatus(known.name, known.place, told)
    except FrontdeskError as error:
        return HostStatus(known.name, known.place, error.full_message)
    return HostStatus(known.name, known.place, agents=bool(found), pretends=known.pretends)


async def gather_status(app: App, caller: Caller, host: HostStatus, now: datetime) -> InstallationStatus:
    """The values of the page."""
    trouble = (await app.check_parts())["database"]
    can_read = trouble == "ok" or trouble.startswith(DATABASE_NOT_WRITABLE)
    if not can_read:
        return _without_database(app, host, now, trouble)
    try:
        found = await _gather_all(app, caller, host, now)
        return found if trouble == "ok" else replace(found, write_trouble=trouble)
    except Unavailable as error:
        return _without_database(app, host, now, error.full_message)


async def _gather_all(app: App, caller: Caller, host: HostStatus, now: datetime) -> InstallationStatus:
    known = _without_database(app, host, now, "")
    beats = await app.journal.timings(0, TIMINGS_READ)
    work = await _work_status(app, caller)
    failures = await app.journal.failures(now - HOUR, SHOWN_FAILURES)
    rows = await app.journal.latest(JOURNAL_ROWS, ROWS_SEARCHED)
    shown = {*(entry.agent_id for _, entry in (*failures.rows, *rows)), *(one.agent_id for one in work.late)}
    return InstallationStatus(
        now=now,
        database=known.database,
        host=host,
        servers=known.servers,
        search_trouble=known.search_trouble,
        asked_every=known.asked_every,
        work=work,
        failures=failures,
        rows=rows,
        names={} if host.trouble else await agent_names(app, shown),
        pace=recent_call_rate(beats, now, TIMINGS_READ),
        new=not (known.servers or host.agents or host.trouble) and not await _has_schedules(app, caller),
    )


async def _work_status(app: App, caller: Caller) -> WorkStatus:
    executing = app.schedules.executor
    here = await executing.state(caller)
    others = [one for one in await executing.holders(caller, SHOWN_HOLDERS) if one.owner != str(app.worker.owner)]
    return WorkStatus(here, others, await executing.overdue(caller, SHOWN_LATE) if here.oldest_overdue_us else ())


async def _has_schedules(app: App, caller: Caller) -> bool:
    return bool((await app.schedules.queries.list(caller, ListSchedules(include_cancelled=True, limit=1))).schedules)


def _without_database(app: App, host: HostStatus, now: datetime, trouble: str) -> InstallationStatus:
    """The status that this process knows without the database."""
    catalogue = app.tools.catalogue
    return InstallationStatus(
        now=now,
        database="PostgreSQL" if app.database.shared else "SQLite",
        host=host,
        servers=[state for state in catalogue.servers() if state.spec.origin is not ServerOrigin.HOST],
        search_trouble=catalogue.progress().trouble,
        asked_every=timedelta(minutes=app.settings.crawl_minutes),
        database_trouble=trouble,
    )


# The schedule's reason for runs that it gave up.
DEAD_OUTCOME = "dead"
PART_TEMPLATES: Mapping[str, str] = {
    "wrong": "now/wrong.html",
    "figures": "now/figures.html",
    "workers": "now/workers.html",
    "failed": "now/failed.html",
    "journal": "now/journal.html",
}


def part_contexts(facts: InstallationStatus) -> dict[str, dict[str, Any]]:
    """The data of each part of the page. A part whose data is unchanged is not rendered again."""
    found = find_problems(facts)
    return {
        "wrong": {"troubles": found, "sentence": summary_sentence(found), "new": facts.new},
        "figures": {"figures": status_figures(facts)},
        "workers": {**_workers_context(facts.work), "names": facts.names},
        "failed": {"failures": facts.failures, "failed": _entry_rows(facts.failures.rows), "names": facts.names},
        "journal": {"rows": _entry_rows(facts.rows), "names": facts.names},
    }


def entry_path(entry: JournalEntry) -> str:
    """The page with the details of a row, if there is one."""
    match entry.kind:
        case EntryKind.DELIVERY if entry.request_id:
            return f"/schedule/runs/{quote(entry.request_id, safe='')}"
        case EntryKind.TOOL:
            return f"/tools/tool/{quote(entry.action, safe='')}"
        case EntryKind.TURN if entry.agent_id:
            return f"/turns?{urlencode({'agent': entry.agent_id})}"
        case EntryKind.DENIAL:
            return "/access"
        case _:
            return ""


def explain_entry(entry: JournalEntry) -> str:
    """The reason of an outcome, as far as the journal has it. The journal never has the content of calls."""
    if entry.kind is EntryKind.DELIVERY and entry.reason == DEAD_OUTCOME:
        return "given up; its page says why"
    if entry.outcome is Outcome.FAILED and not entry.reason:
        return "answered with an error, or was cut off"
    return entry.reason or ""


def _entry_rows(rows: Sequence[tuple[int, JournalEntry]]) -> list[tuple[JournalEntry, str, str]]:
    return [(entry, entry_path(entry), explain_entry(entry)) for _, entry in rows]


def _workers_context(work: WorkStatus | None) -> dict[str, Any]:
    if work is None:
        return {"worker": None, "last_at": None, "others": (), "late": ()}
    return {
        "worker": work.here,
        "last_at": from_us(work.here.last_us) if work.here.last_us is not None else None,
        "others": [(worker_name(one.owner), one.runs, from_us(one.leased_until_us)) for one in work.others],
        "late": [(one.schedule_id, one.agent_id, from_us(one.fire_us)) for one in work.late],
    }


# How often a remote agent host is asked at most.
HOST_CHECK_SECONDS = 10
# After this time without listeners, the charts are read from the journal again.
STALE_SECONDS = 3 * RATE_STEP.total_seconds()
TIMINGS_AT_START = 3_000
# Rows of several replicas do not become visible in the order of their ids, so the last ones are read again.
TIMINGS_REREAD = 200


@dataclass(frozen=True, slots=True)
class RenderedPart:
    """A rendered part of the page, and the number of the update that changed it last."""

    since: int
    context: Mapping[str, Any]
    html: str


@dataclass(frozen=True, slots=True)
class StatusUpdate:
    """One update: its time by the event loop's clock, the rendered parts, and the points of the charts."""

    number: int
    at: float
    parts: Mapping[str, RenderedPart]
    points: Sequence[tuple[int, RatePoint]]

    def changes_since(self, number: int) -> dict[str, Any]:
        """The changes since an update, or everything if there was none."""
        points = [point.as_chart_row() for when, point in self.points if when > number]
        # Open pages update their relative times themselves; a new page needs parts with current times.
        drawn = {
            name: part.html if number else _render_html(name, part.context)
            for name, part in self.parts.items()
            if part.since > number
        }
        return {
            "parts": drawn,
            "points": points,
            "anew": len(points) == len(self.points),
        }


@dataclass(slots=True)
class StatusFeed:
    """Collects and shares the status of one installation."""

    latest: StatusUpdate | None = None
    lock: anyio.Lock = field(default_factory=anyio.Lock)
    points: deque[tuple[int, RatePoint]] = field(default_factory=lambda: deque(maxlen=RATE_SPAN // RATE_STEP))
    seen: frozenset[int] = frozenset()
    last_id: int = 0
    at: datetime | None = None
    checked_host: tuple[float, HostStatus] | None = None

    async def host(self, app: App) -> HostStatus:
        """The state of the agent host. A remote host is not asked at every update."""
        now = anyio.current_time()
        if (
            self.checked_host is not None
            and app.settings.letta_base_url
            and now - self.checked_host[0] < HOST_CHECK_SECONDS
        ):
            return self.checked_host[1]
        found = await check_host(app)
        self.checked_host = now, found
        return found

    async def facts(self, request: PageRequest) -> InstallationStatus:
        return await gather_status(request.app, request.caller, await self.host(request.app), datetime.now(UTC))

    async def next(self, request: PageRequest) -> StatusUpdate:
        """The current update, which one listener collects for all."""
        async with self.lock:
            told, step = self.latest, RATE_STEP.total_seconds()
            age = anyio.current_time() - told.at if told is not None else STALE_SECONDS
            if told is None or age >= step:
                # After a pause without listeners, the charts start again from the journal.
                told = self.latest = await self._update(request, anew=age >= STALE_SECONDS)
            return told

    async def _update(self, request: PageRequest, *, anew: bool) -> StatusUpdate:
        number = self.latest.number + 1 if self.latest is not None else 1
        facts = await self.facts(request)
        if facts.database_trouble:
            self.points.append((number, RatePoint(facts.now, None)))
        else:
            await self._add_points(request.app.journal, number, facts.now, anew=anew)
        before: Mapping[str, RenderedPart] = self.latest.parts if self.latest is not None else {}
        parts = {
            name: _render_part(name, context, before.get(name), number)
            for name, context in part_contexts(facts).items()
        }
        return StatusUpdate(number, anyio.current_time(), parts, tuple(self.points))

    async def _add_points(self, journal: Journal, number: int, now: datetime, *, anew: bool) -> None:
        """Add the points since the last update, or those of the last minutes."""
        beats = await journal.timings(0 if anew else max(0, self.last_id - TIMINGS_REREAD), TIMINGS_AT_START)
        if anew or self.at is None:
            self.points.clear()
            self.points.extend((number, point) for point in past_call_rates(beats, now, TIMINGS_AT_START))
        else:
            fresh = self._unseen(beats)
            self.points.append((number, RatePoint(now, call_rate(fresh, now - self.at))))
        self.seen, self.at = frozenset(beat.id for beat in beats), now
        self.last_id = max((beat.id for beat in beats), default=self.last_id)

    def _unseen(self, beats: Sequence[EntryTiming]) -> Sequence[EntryTiming]:
        oldest = min(self.seen, default=0)
        return [beat for beat in beats if beat.id not in self.seen and beat.id > oldest]


def _render_part(name: str, context: Mapping[str, Any], before: RenderedPart | None, number: int) -> RenderedPart:
    if before is not None and before.context == context:
        return before
    return RenderedPart(number, context, _render_html(name, context))


def _render_html(name: str, context: Mapping[str, Any]) -> str:
    return TEMPLATES.get_template(PART_TEMPLATES[name]).render(context)


_feeds: WeakKeyDictionary[Journal, StatusFeed] = WeakKeyDictionary()


def status_feed_of(app: App) -> StatusFeed:
    """The status feed of an app. It is dropped with the app."""
    return _feeds.setdefault(app.journal, StatusFeed())


async def stream_status(request: PageRequest) -> AsyncGenerator[Mapping[str, Any]]:
    """Yield the whole status, then changes, until the listener leaves."""
    pulse, number = status_feed_of(request.app), 0
    while True:
        told = await pulse.next(request)
        yield told.changes_since(number)
        number = told.number
        await anyio.sleep_until(told.at + RATE_STEP.total_seconds())


async def show_now(request: PageRequest) -> PageContent:
    facts = await status_feed_of(request.app).facts(request)
    parts = part_contexts(facts)
    context = {name: value for part in parts.values() for name, value in part.items()}
    return PageContent("now/now.html", "Now", context, 503 if facts.database_trouble else 200)


NOW: tuple[PageRoute | ActionRoute | StreamRoute, ...] = (
    PageRoute("/", show_now),
    StreamRoute("/live/now", stream_status),
)
