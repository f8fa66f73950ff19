"""Imports the schedules of a PromptYoSelf database; each is imported once."""

import hashlib
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import quote

from anyio import to_thread

from frontdesk.agents.host import AgentHost
from frontdesk.errors import Invalid, NotFound, Unavailable
from frontdesk.identity.model import Caller
from frontdesk.schedules.access import require_schedules_admin
from frontdesk.schedules.create import ScheduleLimits
from frontdesk.schedules.model import (
    SECOND,
    ScheduleDefinition,
    ScheduleState,
    Trigger,
    TriggerKind,
    from_us,
    now_us,
    to_us,
)
from frontdesk.schedules.requests import MAX_WHOLE_NUMBER, ImportResult
from frontdesk.schedules.store import ScheduleFilter, ScheduleStore
from frontdesk.schedules.triggers import cron_trigger, format_interval, next_fire_after, parse_interval, parse_iso_time
from frontdesk.settings.model import AGENT_ID_PATTERN, clean_agent_id

# The newer table comes first: a schedule in both tables is imported from it.
TABLES = ("unified_reminders", "schedules")
IMPORT_MARK = "import:"


@dataclass(frozen=True, slots=True)
class PromptYoSelfRow:
    """A row as it was read, not yet checked; None if the table has no such column."""

    table: str
    id: object
    agent_id: object = None
    prompt: object = None
    kind: object = None
    value: object = None
    next_run: object = None
    active: object = None
    status: object = None
    max_repetitions: object = None
    repetition_count: object = None
    last_run: object = None
    created_at: object = None

    @property
    def name(self) -> str:
        return f"{self.table} {self.id}"

    @property
    def identity(self) -> tuple[object, ...]:
        """The values that rows of both tables share if they are the same schedule."""
        return self.agent_id, self.prompt, self.kind, self.value

    @property
    def mark(self) -> str:
        """A value that stays the same on every import, for any path and after any number of runs."""
        content = repr((self.table, self.id, *self.identity, self.created_at))
        return f"{IMPORT_MARK}{hashlib.sha256(content.encode(errors='replace')).hexdigest()[:32]}"


# The columns for each of our fields; the first one that the table has is used.
COLUMNS: Mapping[str, Sequence[str]] = {
    "id": ("id",),
    "agent_id": ("agent_id",),
    "prompt": ("message", "prompt_text", "prompt"),
    "kind": ("schedule_type",),
    "value": ("schedule_value",),
    "next_run": ("next_run",),
    "active": ("active",),
    "status": ("status",),
    "max_repetitions": ("max_repetitions",),
    "repetition_count": ("repetition_count",),
    "last_run": ("last_run",),
    "created_at": ("created_at",),
}
REQUIRED_COLUMNS = ("id", "agent_id", "prompt", "kind", "value", "next_run")
WAIT_SECONDS = 5


def read_promptyoself(path: Path) -> Sequence[PromptYoSelfRow]:
    """Read all rows of the tables that hold schedules."""
    if not path.is_file():
        raise NotFound(f"There is no file {path}")
    try:
        with closing(_open_file(path)) as database:
            _check_file(database, path)
            known = {table: columns for table in TABLES if (columns := _known_columns(database, table))}
            if not known:
                raise Invalid(f"{path} has neither a table {' nor a table '.join(TABLES)}: it is not PromptYoSelf's")
            return [row for table, columns in known.items() for row in _read_rows(database, path, table, columns)]
    except sqlite3.Error as error:
        raise Invalid(f"{path} cannot be read: {error}; it is damaged, or no SQLite file") from error


def _open_file(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True, timeout=WAIT_SECONDS)


def _check_file(database: sqlite3.Connection, path: Path) -> None:
    (found,) = database.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise Invalid(f"{path} is damaged: {found}")


def _known_columns(database: sqlite3.Connection, table: str) -> Mapping[str, str]:
    """The columns of a table by our names for them; empty if there is no such table."""
    there = {str(row[1]) for row in database.execute(f"PRAGMA table_info({table})")}
    found = {ours: next((name for name in theirs if name in there), None) for ours, theirs in COLUMNS.items()}
    return {ours: name for ours, name in found.items() if name is not None} if there else {}


def _read_rows(
    database: sqlite3.Connection, path: Path, table: str, columns: Mapping[str, str]
) -> list[PromptYoSelfRow]:
    missing = [COLUMNS[name][0] for name in REQUIRED_COLUMNS if name not in columns]
    if missing:
        raise Invalid(f"{path} has a table {table} without {', '.join(missing)}: it is not PromptYoSelf's")
    # The names come from the lists above, never from the file.
    found = database.execute(f"SELECT {', '.join(columns.values())} FROM {table} ORDER BY id")  # noqa: S608
    return [PromptYoSelfRow(table, **dict(zip(columns, row, strict=True))) for row in found]


# Their executor may have been down during a move; a prompt that was due before this is not imported.
STILL_DUE_US = 24 * 3600 * SECOND
ACTIVE_STATUSES = frozenset({"", "active", "pending", "scheduled"})


@dataclass(frozen=True, slots=True)
class PlannedImport:
    """A schedule to add, its next intended time, and how often it has already run."""

    new: ScheduleDefinition
    intended_us: int
    fired: int = 0


@dataclass(slots=True)
class ImportPlan:
    """The schedules to add, and the rows to leave out with the reasons."""

    taken: list[PlannedImport] = field(default_factory=list[PlannedImport])
    left_out: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])


def plan_import(rows: Sequence[PromptYoSelfRow], limits: ScheduleLimits, now_us: int) -> ImportPlan:
    """Decide about each row; a schedule in both tables is imported once."""
    made = ImportPlan()
    newer = {row.identity for row in rows if row.table == TABLES[0]}
    for row in rows:
        try:
            if row.table != TABLES[0] and row.identity in newer:
                raise Invalid(f"it is in {TABLES[0]} too")
            made.taken.append(_plan_row(row, limits, now_us))
        except Invalid as error:
            made.left_out.append((row.name, str(error)))
    return made


def _plan_row(row: PromptYoSelfRow, limits: ScheduleLimits, now_us: int) -> PlannedImport:
    _check_active(row)
    agent_id, prompt = _row_agent(row), _row_prompt(row, limits)
    most, fired = _row_repetitions(row)
    trigger, intended = _row_trigger(row, now_us)
    limits.check_pace(trigger, None if most is None else most - fired)
    return PlannedImport(
        ScheduleDefinition(agent_id, prompt, trigger, max_repetitions=most, made_by=row.mark), intended, fired
    )


def _check_active(row: PromptYoSelfRow) -> None:
    status = str(row.status or "").strip().lower()
    if status not in ACTIVE_STATUSES:
        raise Invalid(f"its status is '{status[:40]}'")
    if row.active is not None and str(row.active).strip().lower() in ("0", "false", ""):
        raise Invalid("it is not active any more")


def _row_agent(row: PromptYoSelfRow) -> str:
    named = clean_agent_id(row.agent_id) if isinstance(row.agent_id, str) else None
    if named is None or not AGENT_ID_PATTERN.fullmatch(named):
        raise Invalid(f"'{str(row.agent_id)[:128]}' is not an agent id")
    return named


def _row_prompt(row: PromptYoSelfRow, limits: ScheduleLimits) -> str:
    if not isinstance(row.prompt, str) or not row.prompt.strip():
        raise Invalid("it has no text")
    limits.check_prompt(row.prompt)
    return row.prompt


def _row_repetitions(row: PromptYoSelfRow) -> tuple[int | None, int]:
    """How often it may run in total, and how often it has run."""
    most = _parse_whole(row.max_repetitions, "max_repetitions")
    count = max(0, _parse_whole(row.repetition_count, "repetition_count") or 0)
    if most is not None and not 1 <= most <= MAX_WHOLE_NUMBER:
        raise Invalid(f"its max_repetitions is {most}")
    if count > MAX_WHOLE_NUMBER or (most is not None and count >= most):
        raise Invalid(f"it has run {count} times of {most or MAX_WHOLE_NUMBER}")
    return most, count


def _parse_whole(value: object, name: str) -> int | None:
    try:
        return None if value is None else int(str(value))
    except ValueError as error:
        raise Invalid(f"its {name} is '{str(value)[:40]}', which is no number") from error


def _row_trigger(row: PromptYoSelfRow, now_us: int) -> tuple[Trigger, int]:
    kind, value = str(row.kind or "").strip().lower(), str(row.value if row.value is not None else "").strip()
    if kind == TriggerKind.ONCE:
        return _once_row_trigger(row, value, now_us)
    if kind == TriggerKind.CRON:
        trigger = cron_trigger(value)
    elif kind == TriggerKind.INTERVAL:
        length = parse_interval(value)
        start = _parse_stored_time(row.next_run)
        trigger = Trigger(TriggerKind.INTERVAL, format_interval(length), start_us=start or now_us + length * SECOND)
    else:
        raise Invalid(f"its kind is '{kind[:40]}', and there are once, cron and interval")
    intended = next_fire_after(trigger, now_us)
    if intended is None:
        raise Invalid("it would never run again")
    return trigger, intended


def _once_row_trigger(row: PromptYoSelfRow, value: str, now_us: int) -> tuple[Trigger, int]:
    # The value that the user wrote has the offset; `next_run` was computed without it.
    at = _parse_exact_time(value) or _parse_stored_time(row.next_run) or _parse_stored_time(value)
    if at is None:
        raise Invalid(f"'{value[:60]}' is no time")
    if at < now_us - STILL_DUE_US:
        raise Invalid(f"it was due at {from_us(at).isoformat()}, and never ran; make it anew if it still matters")
    return Trigger(TriggerKind.ONCE, from_us(at).isoformat()), at


def _parse_exact_time(text: str) -> int | None:
    """A time with an offset."""
    try:
        return to_us(parse_iso_time(text))
    except Invalid:
        return None


def _parse_stored_time(value: object) -> int | None:
    """A time as PromptYoSelf stores it: UTC if it has no offset."""
    if value is None or not str(value).strip():
        return None
    try:
        return to_us(parse_iso_time(str(value), "UTC"))
    except Invalid as error:
        raise Invalid(f"'{str(value)[:60]}' is no time") from error


@dataclass(frozen=True, slots=True)
class PromptYoSelfImporter:
    """Imports schedules, and marks each, so that a second import skips it even after it was cancelled or ended."""

    store: ScheduleStore
    limits: ScheduleLimits
    host: AgentHost

    async def import_file(self, caller: Caller, path: Path) -> ImportResult:
        """Read the whole file, decide about each row, and add all new schedules in one transaction."""
        require_schedules_admin(caller, "An import")
        rows = await to_thread.run_sync(partial(read_promptyoself, path))
        now = now_us()
        planned = plan_import(rows, self.limits, now)
        known = {taken.new.made_by for taken in planned.taken if await self._has(taken.new.made_by)}
        fresh = [taken for taken in planned.taken if taken.new.made_by not in known]
        news = [(taken.new, taken.intended_us) for taken in fresh]
        made = await self.store.add_many(news, now, [taken.fired for taken in fresh])
        warnings = await self._warnings(Counter(taken.new.agent_id for taken in fresh))
        return ImportResult(str(path), made, len(known), planned.left_out, warnings)

    async def _warnings(self, counts: Mapping[str, int]) -> Sequence[str]:
        """Warnings about agents that the host does not know: their runs would all fail."""
        try:
            gone = [agent_id for agent_id in counts if await self.host.find(agent_id) is None]
        except Unavailable as error:
            return [f"Whether the agents are there is not known: {error.public_message}"]
        return [
            f"Agent '{agent_id}', of {counts[agent_id]} of these, is not known to the agent host: its runs will fail; "
            "make the agent, or cancel them"
            for agent_id in gone
        ]

    async def _has(self, mark: str | None) -> bool:
        return await self.store.count(ScheduleFilter(states=tuple(ScheduleState), made_by=mark)) > 0
