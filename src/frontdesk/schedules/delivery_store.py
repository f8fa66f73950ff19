"""Runs a worker's transactions: settles ended runs, claims due ones, renews, releases and recovers leases."""

import time
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

import anyio
import structlog
from sqlalchemy import (
    Connection,
    Row,
    bindparam,
    case,
    exists,
    func,
    insert,
    literal_column,
    select,
    text,
    true,
    update,
)

from frontdesk.db.engine import Database
from frontdesk.db.schema import RUN_IS_ACTIVE, SCHEDULE_IS_WAITING, UtcDateTime, attempts, lanes, occurrences, schedules
from frontdesk.db.statements import BatchUpdate, one_of
from frontdesk.identity.model import AgentIdSource
from frontdesk.journal.model import EntryKind, Outcome
from frontdesk.journal.store import insert_from_select
from frontdesk.schedules.claim_store import (
    IS_RUNNING,
    NEXT_DUE_US,
    NOW,
    RUNNING_RUNS,
    SCHEDULE_CANCELLED,
    UNREADABLE_ERRORS,
    claim_runs,
    end_after_last_run,
    lower_due,
    occurrence_of,
)
from frontdesk.schedules.delivery_rules import (
    CLOCK_SLACK_US,
    ClaimContext,
    ClaimRequest,
    RunLease,
    SettledRun,
    StepResult,
    is_expired,
    release_attempt,
)
from frontdesk.schedules.model import (
    Occurrence,
    Overlap,
    RunStatus,
    ScheduleState,
    Trigger,
    TriggerKind,
    from_us,
    now_us,
)
from frontdesk.schedules.triggers import add_jitter, recompute_after_clock_set_back
from frontdesk.schedules.webhook_store import add_webhook_calls, build_webhook_call

IS_OWNED = occurrences.c.owner == bindparam("me")
# Statements are built once: building one takes longer than running it, and each runs for every batch.
# All transactions lock queues in the order of Python's `sorted`; PostgreSQL's other collations order names differently.
QUEUE_ORDER = lanes.c.name.collate("C")
LOCK_QUEUES = select(lanes.c.name).where(one_of(lanes.c.name, "names")).order_by(QUEUE_ORDER).with_for_update()
STILL_OWNED = (
    select(occurrences.c.id, occurrences.c.fence)
    .where(one_of(occurrences.c.id, "ids"), IS_OWNED, IS_RUNNING)
    .with_for_update()
)
NO_OWNER = {"owner": None, "leased_until_us": None}
# The rows are already locked, and found by key and fence alone. With a condition on running runs, of which it expects
# one, PostgreSQL would read those first, and go through all given rows for each.
MARK_DELIVERED = BatchUpdate(
    occurrences,
    ["id", "fence"],
    ["answer"],
    {**NO_OWNER, "standing": literal_column("'delivered'"), "ended_us": NOW, "reason": None},
)
MARK_FAILED = BatchUpdate(
    occurrences,
    ["id", "fence"],
    ["standing", "attempt", "in_doubt", "available_us", "ended_us", "reason"],
    NO_OWNER,
)
CANCEL_RETRIES = (
    update(occurrences)
    .where(
        one_of(occurrences.c.id, "ids"),
        exists().where(schedules.c.id == occurrences.c.schedule_id, schedules.c.state == ScheduleState.CANCELLED.value),
    )
    .values(standing=RunStatus.CANCELLED.value, available_us=None, ended_us=NOW, reason=SCHEDULE_CANCELLED)
)

RECORD_LAST_ENDED = update(schedules).where(one_of(schedules.c.id, "ids")).values(last_ended_us=NOW)
FIRST_WAITING_IN_QUEUE = (
    select(func.min(occurrences.c.available_us))
    .where(occurrences.c.lane == lanes.c.name, RUN_IS_ACTIVE, occurrences.c.standing == literal_column("'waiting'"))
    .scalar_subquery()
)
FIRST_FIRE_IN_QUEUE = (
    select(schedules.c.fire_us)
    .where(schedules.c.lane == lanes.c.name, SCHEDULE_IS_WAITING)
    .order_by(schedules.c.fire_us, schedules.c.id)
    .limit(1)
    .scalar_subquery()
)
# In a serial queue, a waiting retry goes first. A queue of overlapping runs has more to check, and is due now.
FREE_QUEUES = (
    update(lanes)
    .where(one_of(lanes.c.name, "names"))
    .values(
        due_us=case((lanes.c.serial == true(), func.coalesce(FIRST_WAITING_IN_QUEUE, FIRST_FIRE_IN_QUEUE)), else_=NOW)
    )
)
ADD_ATTEMPT = insert(attempts)
LONGEST_DURATION_US = 2**31 - 1
DURATION_US = NOW - occurrences.c.started_us
WAS_DELIVERED = occurrences.c.standing == literal_column("'delivered'")
APPEND_TO_JOURNAL = insert_from_select(
    {
        "at": bindparam("at", type_=UtcDateTime()),
        "kind": EntryKind.DELIVERY,
        "surface": "schedule",
        "action": "deliver",
        "outcome": case((WAS_DELIVERED, Outcome.OK.value), else_=Outcome.FAILED.value),
        "reason": case((WAS_DELIVERED, None), else_=occurrences.c.standing),
        "agent_id": occurrences.c.agent_id,
        "user_id": occurrences.c.user_id,
        "source": AgentIdSource.SCHEDULE,
        "verified": False,
        "request_id": occurrences.c.id,
        "duration_us": case(
            (DURATION_US < 0, 0), (DURATION_US > LONGEST_DURATION_US, LONGEST_DURATION_US), else_=DURATION_US
        ),
    },
    one_of(occurrences.c.id, "ids"),
)


def settle_runs(connection: Connection, owner: str, settled: Sequence[SettledRun], now_us: int) -> list[SettledRun]:
    """Record how attempts ended: answer or failure, journal, webhook calls, and when their queues are due next.

    Returns the attempts that the owner still held; another worker has taken over the others.
    """
    names = sorted({one.occurrence.lane for one in settled})
    if connection.dialect.name == "postgresql":
        connection.execute(LOCK_QUEUES, {"names": names})
    ids = [one.occurrence.id for one in settled]
    ours = {row.id: row.fence for row in connection.execute(STILL_OWNED, {"ids": ids, "me": owner}).all()}
    kept = [one for one in settled if ours.get(one.occurrence.id) == one.occurrence.fence]
    if not kept:
        return kept
    common = {"now": now_us}
    delivered = [one for one in kept if one.standing is RunStatus.DELIVERED]
    MARK_DELIVERED.execute(
        connection, [(one.occurrence.id, one.occurrence.fence, one.answer) for one in delivered], common
    )
    if len(delivered) < len(kept):
        _record_failures(connection, [one for one in kept if one.standing is not RunStatus.DELIVERED], now_us)
    _end_runs(connection, kept, now_us)
    calls = [
        build_webhook_call(one.occurrence, one.occurrence.webhook, one.answer, now_us)
        for one in delivered
        if one.occurrence.webhook is not None
    ]
    if calls:
        add_webhook_calls(connection, calls, now_us)
    journaled = {"ids": [one.occurrence.id for one in kept], "at": from_us(now_us), "now": now_us}
    connection.execute(APPEND_TO_JOURNAL, journaled)
    # Without the queues of runs that another worker has taken over.
    connection.execute(FREE_QUEUES, {"names": sorted({one.occurrence.lane for one in kept}), "now": now_us})
    return kept


def _record_failures(connection: Connection, failed: Sequence[SettledRun], now_us: int) -> None:
    MARK_FAILED.execute(connection, [_failure_columns(one, now_us) for one in failed], {})
    if waiting := [one for one in failed if one.standing is RunStatus.WAITING]:
        connection.execute(ADD_ATTEMPT, [_attempt_columns(one, now_us) for one in waiting])
        connection.execute(CANCEL_RETRIES, {"ids": [one.occurrence.id for one in waiting], "now": now_us})


def _failure_columns(one: SettledRun, now_us: int) -> tuple[Any, ...]:
    waits = one.standing is RunStatus.WAITING
    return (
        one.occurrence.id,
        one.occurrence.fence,
        one.standing.value,
        one.occurrence.attempt if one.counted else one.occurrence.attempt - 1,
        one.in_doubt,
        now_us + one.wait_us if waits else None,
        None if waits else now_us,
        one.error,
    )


def _end_runs(connection: Connection, kept: Sequence[SettledRun], now_us: int) -> None:
    over = [one.occurrence for one in kept if one.standing is not RunStatus.WAITING]
    end_after_last_run(connection, [one for one in over if one.last], now_us)
    if noted := [one.schedule_id for one in over if one.overlap is Overlap.SKIP]:
        connection.execute(RECORD_LAST_ENDED, {"ids": noted, "now": now_us})


def _attempt_columns(one: SettledRun, now_us: int) -> dict[str, Any]:
    return {
        "occurrence_id": one.occurrence.id,
        "number": one.occurrence.attempt,
        "started_us": one.occurrence.started_us,
        "ended_us": now_us,
        "error": one.error or "",
    }


log = structlog.get_logger("frontdesk.schedules")

# More rows than this take several milliseconds, during which the whole process would wait.
SMALL_BATCH = 32
# Settling this many takes PostgreSQL long enough that another transaction can claim meanwhile.
SPLIT_BATCH = 16
# The number of rules that are recomputed in one transaction.
RECOMPUTE_BATCH = 500
# Writes on the event loop let SQLite's write-ahead log grow; a write in a thread runs a checkpoint.
ASIDE_EVERY_STEPS = 64
# A plan that PostgreSQL made while these tables were small, or had no statistics, would continue to scan them; every
# read of a step has an index.
READ_CLOCK = text(
    "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT), set_config('enable_seqscan', 'off', true),"
    " set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true)"
)
RENEW_LEASES = (
    update(occurrences)
    .where(
        one_of(occurrences.c.id, "ids"),
        occurrences.c.owner == bindparam("the_owner"),
        occurrences.c.standing == literal_column("'running'"),
    )
    .values(leased_until_us=bindparam("until"))
)
OWN_RUNS = select(occurrences.c.id).where(
    RUN_IS_ACTIVE, occurrences.c.standing == literal_column("'running'"), occurrences.c.owner == bindparam("owner")
)
RUNS_OF_OTHERS = (
    select(
        occurrences.c.id,
        occurrences.c.owner,
        occurrences.c.started_us,
        occurrences.c.leased_until_us,
        occurrences.c.lane,
    )
    .where(RUN_IS_ACTIVE, occurrences.c.standing == literal_column("'running'"))
    .where(occurrences.c.owner != bindparam("owner"))
)
# Runs with an attempt in the future: the clock was set back since, and a wait of seconds became hours.
TRIED_LATER = (
    select(occurrences.c.id, occurrences.c.lane)
    .where(RUN_IS_ACTIVE, occurrences.c.standing == literal_column("'waiting'"))
    .where(func.coalesce(occurrences.c.started_us, occurrences.c.created_us) > bindparam("soon"))
    .where(occurrences.c.available_us > bindparam("soon"))
)
MAKE_AVAILABLE = (
    update(occurrences)
    .where(one_of(occurrences.c.id, "ids"), occurrences.c.standing == literal_column("'waiting'"))
    .values(available_us=bindparam("now"))
)
# The latest change of a schedule, if it is in the future.
CHANGED_US = case(
    (func.coalesce(schedules.c.last_us, 0) > schedules.c.updated_us, schedules.c.last_us), else_=schedules.c.updated_us
)
LATEST_FUTURE_CHANGE = select(func.max(CHANGED_US)).where(
    SCHEDULE_IS_WAITING, schedules.c.fire_us > bindparam("soon"), bindparam("soon") < CHANGED_US
)
RECURRING = (
    select(
        *(schedules.c[name] for name in ("id", "lane", "kind", "value", "zone", "start_us", "end_us", "jitter_s")),
        *(schedules.c[name] for name in ("intended_us", "created_us", "updated_us")),
    )
    .where(SCHEDULE_IS_WAITING, schedules.c.fire_us > bindparam("now"), schedules.c.kind != literal_column("'once'"))
    # A schedule in its last run keeps that time until the run has ended.
    .where(
        ~exists().where(
            occurrences.c.schedule_id == schedules.c.id, occurrences.c.intended_us == schedules.c.intended_us
        )
    )
    .order_by(schedules.c.id)
)
RECURRING_BATCH = RECURRING.where(schedules.c.id > bindparam("after")).limit(RECOMPUTE_BATCH)
RECURRING_BY_ID = RECURRING.where(one_of(schedules.c.id, "ids"))
MOVE_SCHEDULES = BatchUpdate(schedules, ["id"], ["start_us", "intended_us", "fire_us"], {})


class DeliveryStore:
    """The transactions of one worker, whose name is `owner`. Without a `clock`, PostgreSQL uses its own."""

    def __init__(self, database: Database, owner: str, lease_us: int, clock: Callable[[], int] | None = None) -> None:
        self._database = database
        self._owner = owner
        self._lease_us = lease_us
        self._clock = clock
        self._steps = 0
        # How far the clock was at most ahead of the monotonic clock; and whether stored times were checked.
        self._ahead_us: int | None = None
        self._looked = False
        # When the clock was set back, and the time that it had reached before.
        self._set_back: tuple[int, int] | None = None
        self.held_ids: set[str] = set()
        # Two settlements of one worker could lock the same rows in different orders. A claim skips locked rows and
        # waits for nobody, but a claim or a release must know what was claimed before.
        self._settle_lock = anyio.Lock()
        self._claim_lock = anyio.Lock()

    async def settle_and_claim(self, settled: Sequence[SettledRun], request: ClaimRequest) -> StepResult:
        """Record how attempts ended, and claim due runs, in one transaction."""

        def work(connection: Connection) -> StepResult:
            now = self._now(connection)
            kept = settle_runs(connection, self._owner, settled, now) if settled else []
            if request.places <= 0:
                return StepResult(now, kept, [], None)
            context = self._context(request, now)
            claimed = claim_runs(connection, context)
            return StepResult(now, kept, claimed, connection.execute(NEXT_DUE_US).scalar())

        self._steps += 1
        small = len(settled) + request.places <= SMALL_BATCH and self._steps % ASIDE_EVERY_STEPS != 0
        async with self._settle_lock, self._claim_lock:
            done = await self._database.write(work, small=small)
            self.held_ids.difference_update(one.occurrence.id for one in settled)
            self.held_ids.update(one.id for one in done.claimed)
            return done

    def should_split(self, ended: int, request: ClaimRequest) -> bool:
        """Whether to settle and to claim in two concurrent transactions.

        Such a claim does not see queues that are freed meanwhile, so this is not for a caller that claims only once.
        """
        return self._database.shared and ended >= SPLIT_BATCH and request.places > 0 and request.due_by_us is None

    async def claim_batch(self, request: ClaimRequest) -> StepResult:
        """Claim while this worker settles in another transaction; there may be more to claim immediately."""

        def work(connection: Connection) -> StepResult:
            now = self._now(connection)
            context = self._context(request, now)
            return StepResult(now, [], claim_runs(connection, context), now)

        async with self._claim_lock:
            done = await self._database.write(work, small=False)
            self.held_ids.update(one.id for one in done.claimed)
            return done

    async def claim(self, request: ClaimRequest) -> Sequence[Occurrence]:
        return (await self.settle_and_claim((), request)).claimed

    async def settle(self, settled: Sequence[SettledRun]) -> Sequence[SettledRun]:
        """Record how attempts ended; returns those that this worker still held."""

        def work(connection: Connection) -> list[SettledRun]:
            return settle_runs(connection, self._owner, settled, self._now(connection))

        async with self._settle_lock:
            kept = await self._database.write(work, small=len(settled) <= SMALL_BATCH)
            self.held_ids.difference_update(one.occurrence.id for one in settled)
            return kept

    async def renew(self) -> frozenset[str]:
        """Renew the leases; returns the runs that other workers have taken over."""

        def work(connection: Connection) -> set[str]:
            until = self._now(connection) + self._lease_us
            connection.execute(RENEW_LEASES, {"ids": list(held), "the_owner": self._owner, "until": until})
            return set(connection.execute(OWN_RUNS, {"owner": self._owner}).scalars())

        async with self._settle_lock:
            # Without runs that are claimed meanwhile, because this transaction may not see them.
            held = frozenset(self.held_ids)
            if not held:
                return held
            lost = held - await self._database.write(work, small=len(held) <= SMALL_BATCH)
            self.held_ids -= lost
            return lost

    async def release(self, ids: Collection[str] = ()) -> int:
        """Release these runs, and those that this worker claimed without knowing it; returns how many."""

        def work(connection: Connection) -> int:
            now = self._now(connection)
            rows = connection.execute(RUNNING_RUNS.where(occurrences.c.owner == self._owner)).all()
            left = [occurrence_of(row) for row in rows if row.id in ids or row.id not in self.held_ids]
            if left:
                settle_runs(connection, self._owner, [release_attempt(one, now - one.started_us) for one in left], now)
                lower_due(connection, {one.lane: now for one in left}, now)
            return len(left)

        async with self._settle_lock, self._claim_lock:
            number = await self._database.write(work, small=False)
            self.held_ids.difference_update(ids)
            return number

    async def recover(
        self,
        knows_dead: Callable[[str], bool],
        find_abandoned: Callable[[Sequence[RunLease]], Collection[RunLease]] = lambda leases: leases,
    ) -> frozenset[str]:
        """Make the runs of lost workers due immediately; returns the workers that no longer exist.

        It also does so with retries that wait too long because the clock was set back. `find_abandoned` gets the leases
        of all other workers, and returns those that nobody renews.
        """

        def work(connection: Connection) -> frozenset[str]:
            now = self._now(connection)
            rows = connection.execute(RUNS_OF_OTHERS, {"owner": self._owner}).all()
            found = {RunLease(row.id, row.owner, row.leased_until_us): row for row in rows}
            dead = frozenset(owner for owner in {row.owner for row in rows} if knows_dead(owner))
            abandoned = find_abandoned(list(found))
            over = {
                lease for lease in abandoned if is_expired(found[lease].started_us, lease.until_us, now, self._lease_us)
            }
            left = {row.lane for lease, row in found.items() if lease in over or row.owner in dead}
            waiting = connection.execute(TRIED_LATER, {"soon": now + CLOCK_SLACK_US}).all()
            if due := {*left, *(row.lane for row in waiting)}:
                lower_due(connection, dict.fromkeys(due, now), now)
            if waiting:
                connection.execute(MAKE_AVAILABLE, {"ids": [row.id for row in waiting], "now": now})
            return dead

        async with self._settle_lock:
            dead = await self._database.write(work, small=True)
            await self._recompute_after_clock_set_back()
            return dead

    async def _recompute_after_clock_set_back(self) -> None:
        """Recompute the next times of recurring schedules after the clock was set back."""

        def was_set_back(connection: Connection) -> bool:
            now = self._now(connection)
            before_us = self._ahead_us or 0
            self._ahead_us = now - _monotonic_us()
            reached = before_us + _monotonic_us() if self._ahead_us < before_us - CLOCK_SLACK_US else None
            if reached is None and not self._looked:
                # In a new process, stored times show whether the clock was ahead before.
                reached = connection.execute(LATEST_FUTURE_CHANGE, {"soon": now + CLOCK_SLACK_US}).scalar()
            self._looked = True
            if reached is not None:
                self._set_back = (now, reached)
            return reached is not None

        if not await self._database.write(was_set_back, small=True):
            return
        after: int | None = 0
        while after is not None:
            after = await self._database.write(partial(_recompute_schedules, clock=self._now, after=after), small=False)

    def _context(self, request: ClaimRequest, now: int) -> ClaimContext:
        since, reached = self._set_back or (0, 0)
        return ClaimContext(
            request, self._owner, set(self.held_ids), now, self._lease_us, since if now <= reached else now
        )

    def _now(self, connection: Connection) -> int:
        if self._clock is not None:
            now = self._clock()
        else:
            now = connection.execute(READ_CLOCK).scalar_one() if connection.dialect.name == "postgresql" else now_us()
        ahead_us = now - _monotonic_us()
        self._ahead_us = ahead_us if self._ahead_us is None else max(ahead_us, self._ahead_us)
        return now


def _monotonic_us() -> int:
    """A clock that is never set."""
    return time.monotonic_ns() // 1000


def _recompute_schedules(connection: Connection, clock: Callable[[Connection], int], after: int) -> int | None:
    """Recompute the next times of some schedules; returns the id to continue after, None at the end."""
    now = clock(connection)
    rows = connection.execute(RECURRING_BATCH, {"now": now, "after": after}).all()
    found = [row for row in rows if _recomputed(row, now) is not None]
    if found:
        # This locks their queues, so that none of them fires meanwhile.
        lower_due(connection, dict.fromkeys((row.lane for row in found), None), now)
        moved: list[tuple[int, int | None, int, int]] = []
        lanes: dict[str, int] = {}
        for row in connection.execute(RECURRING_BY_ID, {"now": now, "ids": [row.id for row in found]}).all():
            new = _recomputed(row, now)
            if new is not None:
                trigger, intended_us = new
                fire_us = add_jitter(trigger, row.id, intended_us)
                moved.append((row.id, trigger.start_us, intended_us, fire_us))
                lanes[row.lane] = min(fire_us, lanes.get(row.lane, fire_us))
        MOVE_SCHEDULES.execute(connection, moved, {})
        if lanes:
            lower_due(connection, lanes, now)
        log.warning("clock_set_back", schedules=len(moved))
    return rows[-1].id if len(rows) == RECOMPUTE_BATCH else None


def _recomputed(row: Row[Any], now: int) -> tuple[Trigger, int] | None:
    trigger = Trigger(TriggerKind(row.kind), row.value, row.zone, row.start_us, row.end_us, row.jitter_s)
    try:
        return recompute_after_clock_set_back(trigger, row.intended_us, now, (row.created_us, row.updated_us))
    except UNREADABLE_ERRORS:
        # The error is logged when the schedule fires.
        return None
