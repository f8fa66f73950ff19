"""Queues journal entries without waiting, writes them in batches, and reads them; records one call as an entry."""

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING, Self

import anyio
import structlog

from frontdesk.background import BackgroundJob
from frontdesk.errors import (
    Conflict,
    Denied,
    FrontdeskError,
    IdentityError,
    Invalid,
    NotFound,
    RateLimited,
    Unauthenticated,
    Unavailable,
    Unstorable,
)
from frontdesk.identity import rights
from frontdesk.identity.inbound import trace_refusal
from frontdesk.identity.model import AgentIdSource, Caller, ClaimedIds, RefusalTrace, Signals
from frontdesk.journal.model import EntryKind, EntryTiming, FailureSummary, JournalEntry, Outcome
from frontdesk.journal.store import (
    AgentIdByParameter,
    AgentIdUse,
    JournalQuery,
    JournalStore,
    ToolCallRecord,
    ToolUse,
    ToolUseQuery,
)

if TYPE_CHECKING:
    from frontdesk.journal.metrics import Metrics

FLUSH_SECONDS = 0.25
# A batch of this size is written within a few milliseconds, while other writers wait.
BATCH_SIZE = 100
# About 20 MB at most: no entry is lost when the database is unavailable for a minute under load.
QUEUE_SIZE = 50_000
PRUNE_SECONDS = 3600.0
DRAIN_SECONDS = 5
MAX_CALL_TIME = timedelta(hours=1)

log = structlog.get_logger("frontdesk.journal")
JOURNAL_JOB = BackgroundJob(log, "journal_waits", "journal_failed")


class Journal:
    """The journal of one process. `record` only appends to a queue; `run` writes in the background."""

    def __init__(self, store: JournalStore, open_metrics: Callable[[], "Metrics"], keep: timedelta) -> None:
        self._store = store
        self._open_metrics = open_metrics
        self._keep = keep
        self._waiting: deque[JournalEntry] = deque()
        self._counted = 0
        self._full = False
        self._writing = anyio.Lock()
        self._forgotten: dict[str, datetime] = {}

    def record(self, entry: JournalEntry) -> None:
        """Queue an entry. When the queue is full, the entry is dropped and counted, and one error is logged."""
        if len(self._waiting) >= QUEUE_SIZE:
            self._metrics.count_lost()
            if not self._full:
                log.error("journal_full", kept=QUEUE_SIZE)
            self._full = True
            return
        self._full = False
        if self._forgotten and entry.user_id in self._forgotten:
            entry = self._without_person(entry, self._forgotten[entry.user_id])
        self._waiting.append(entry)

    async def run(self) -> None:
        """Write until cancelled, then write the rest of the queue."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(JOURNAL_JOB.run_every, PRUNE_SECONDS, self.prune, at_once=True))
            await JOURNAL_JOB.flush_every(FLUSH_SECONDS, self._write, DRAIN_SECONDS)

    async def flush(self) -> None:
        """Write the whole queue. Entries leave the queue only when they are stored."""
        async with self._writing:
            while self._waiting:
                self._count()
                batch = list(islice(self._waiting, BATCH_SIZE))
                # Without the shield, a batch whose commit is cancelled by a stop would be written twice.
                with anyio.move_on_after(DRAIN_SECONDS, shield=True) as limit:
                    await self._append(batch)
                    for _ in batch:
                        self._waiting.popleft()
                    self._counted -= len(batch)
                if limit.cancelled_caught:
                    raise Unavailable("the database takes too long to write")

    async def _write(self) -> None:
        await JOURNAL_JOB.attempt(self.flush, waiting=len(self._waiting))

    async def read(self, query: JournalQuery) -> Sequence[tuple[int, JournalEntry]]:
        return await self._store.read(query)

    async def timings(self, after_id: int, limit: int) -> Sequence[EntryTiming]:
        """The timings of the newest entries after this one, newest first."""
        return await self._store.timings(after_id, limit)

    async def latest(self, limit: int, within: int) -> Sequence[tuple[int, JournalEntry]]:
        """The newest entries without page views, among the `within` newest rows, newest first."""
        return await self._store.latest(limit, within)

    async def failures(self, since: datetime, limit: int) -> FailureSummary:
        """The number of requests that failed since then, and the newest of them."""
        return await self._store.failures(since, limit)

    async def tool_use(self, query: ToolUseQuery) -> Sequence[ToolUse]:
        """The agents that use each tool, how often and how well."""
        return await self._store.tool_use(query)

    async def agent_id_uses(self, agents: Sequence[str], most: int) -> Mapping[str, Sequence[AgentIdUse]]:
        """The ways in which each of these agents was identified in its `most` newest rows."""
        return await self._store.agent_id_uses(agents, most)

    async def tool_calls(self, tool: str | None, limit: int, within: int) -> Sequence[ToolCallRecord]:
        """The newest calls of one tool or of all tools, among the `within` newest rows, newest first."""
        return await self._store.tool_calls(tool, limit, within)

    async def denials(self, before_id: int | None, limit: int) -> Sequence[tuple[int, JournalEntry]]:
        """Denied calls and calls with invalid agent ids, newest first, or only those older than `before_id`."""
        return await self._store.denials(before_id, limit)

    async def agent_ids_by_parameter(self, within: int, limit: int) -> Sequence[AgentIdByParameter]:
        """Agents whose ids came as a parameter, among the `within` newest rows, most frequent first."""
        return await self._store.agent_ids_by_parameter(within, limit)

    async def entries_of_person(self, user_id: str) -> Sequence[JournalEntry]:
        """All entries of a person, oldest first."""
        await self.flush()
        return await self._store.entries_of_person(user_id)

    async def delete_person(self, user_id: str) -> int:
        """Delete all entries of a person, queued ones included. Returns the number of deleted entries.

        Calls that are still running, such as the call that requests this, are recorded without the person's name.
        """
        now = datetime.now(UTC)
        recent = {who: at for who, at in self._forgotten.items() if now - at < MAX_CALL_TIME}
        self._forgotten = {**recent, user_id: now}
        await self.flush()
        return await self._store.delete_person(user_id)

    @staticmethod
    def _without_person(entry: JournalEntry, forgotten_at: datetime) -> JournalEntry:
        return replace(entry, user_id=None) if entry.at <= forgotten_at else entry

    async def prune(self) -> None:
        """Delete entries that are older than the configured number of days."""
        await self._store.prune(datetime.now(UTC) - self._keep)

    @cached_property
    def _metrics(self) -> "Metrics":
        return self._open_metrics()

    def render_metrics(self) -> bytes:
        """The current metrics in Prometheus' text format."""
        self._count()
        return self._metrics.render()

    def _count(self) -> None:
        self._metrics.count(islice(self._waiting, self._counted, None))
        self._counted = len(self._waiting)

    async def _append(self, batch: Sequence[JournalEntry]) -> None:
        """Store a batch. An entry that cannot be stored does not prevent the others from being stored."""
        try:
            await self._store.append(batch)
        except Unstorable:
            if len(batch) == 1:
                self._metrics.count_lost()
                log.exception("journal_entry_unstorable", action=batch[0].action, request_id=batch[0].request_id)
                return
            middle = len(batch) // 2
            await self._append(batch[:middle])
            await self._append(batch[middle:])


MAX_ACTION_LENGTH = 200
NO_CLAIMS = ClaimedIds()
DENIED_OUTCOMES = frozenset({Outcome.DENIED, Outcome.LIMITED})


def outcome_of_error(error: BaseException) -> Outcome:
    """The outcome of a call that raised this error."""
    match error:
        case Denied() | Unauthenticated():
            return Outcome.DENIED
        case RateLimited():
            return Outcome.LIMITED
        case NotFound() | Invalid() | Conflict() | IdentityError() | Unstorable():
            return Outcome.REFUSED
        case _:
            return Outcome.FAILED


@dataclass(slots=True)
class CallRecord:
    """The entry of one call, filled in during the call and written at its end. Without an outcome it counts as failed.

    As a context manager it is always written; without an error and without another outcome, the outcome is `ok`.
    """

    journal: Journal
    surface: str
    action: str
    caller: Caller
    kind: EntryKind = EntryKind.CALL
    outcome: Outcome | None = None
    reason: str | None = None
    claimed: ClaimedIds | None = None
    # The signals of the request, once they are known: a call that passed authentication may still be refused.
    signals: Signals | None = None
    started: int = field(default_factory=time.perf_counter_ns)
    at: datetime = field(default_factory=partial(datetime.now, UTC))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, Exception):
            self.fail(error)
        elif error is None and self.outcome is None:
            self.outcome = Outcome.OK
        self.write()

    def fail(self, error: Exception) -> None:
        self.outcome, self.reason = outcome_of_error(error), type(error).__name__
        if isinstance(error, FrontdeskError) and isinstance(error.trace, RefusalTrace):
            self.add_trace(error.trace)
        elif self.signals is not None and (self.outcome in DENIED_OUTCOMES or isinstance(error, IdentityError)):
            self.add_trace(trace_refusal(self.signals))

    def add_trace(self, trace: RefusalTrace) -> None:
        """Record the claims of a refused request. A caller that was already identified is kept."""
        self.claimed = trace.claimed
        if self.caller.agent_id is None:
            known = trace.caller if self.caller.user_id is None else self.caller
            self.caller = replace(known, source=trace.claimed.source) if known.agent_id is None else known

    def write(self) -> None:
        caller, outcome = self.caller, self.outcome or Outcome.FAILED
        # A denied or rate-limited call is recorded as a denial.
        denied = self.kind is EntryKind.CALL and outcome in DENIED_OUTCOMES
        self.journal.record(
            JournalEntry(
                self.at,
                EntryKind.DENIAL if denied else self.kind,
                self.surface,
                self.action[:MAX_ACTION_LENGTH],
                outcome,
                (time.perf_counter_ns() - self.started) // 1000,
                self.reason,
                caller.agent_id,
                caller.user_id,
                AgentIdSource.OPERATOR if rights.is_operator(caller) else caller.source,
                caller.verified,
                caller.request_id,
                None if self.claimed == NO_CLAIMS else self.claimed,
            )
        )
