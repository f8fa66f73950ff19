"""Stores the queue of each agent: when it is due, and how a worker claims runs from it.

A claim starts runs of due schedules, restarts runs that wait for a retry, and takes over runs of lost workers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

import structlog
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Executable,
    Row,
    Select,
    String,
    Table,
    bindparam,
    case,
    cast,
    exists,
    insert,
    literal_column,
    or_,
    select,
    true,
    update,
)

from frontdesk.db.notify import notify
from frontdesk.db.schema import RUN_IS_ACTIVE, SCHEDULE_IS_WAITING, attempts, lanes, occurrences, schedules
from frontdesk.db.statements import BatchUpdate, one_of, per_dialect
from frontdesk.errors import Invalid
from frontdesk.identity.authority import Authority
from frontdesk.schedules.delivery_rules import (
    CLOCK_SLACK_US,
    ActiveRun,
    ClaimContext,
    QueueAction,
    SkippedFires,
    decide_queue,
    plan_fire,
)
from frontdesk.schedules.model import (
    SECOND,
    Misfire,
    Occurrence,
    Overlap,
    OwnerFilter,
    RunStatus,
    SchedulePolicy,
    ScheduleState,
    Trigger,
    TriggerKind,
    delivery_id,
    from_us,
)
from frontdesk.schedules.triggers import add_jitter
from frontdesk.schedules.wakeup import SOON_US, WAKEUP_CHANNEL

# Runs that may overlap wait in a queue of their own.
PARALLEL_SUFFIX = " beside"


def queue_of(agent_id: str, overlap: Overlap) -> str:
    return agent_id + PARALLEL_SUFFIX if overlap is Overlap.ALLOW else agent_id


def _build_lower_due(make: Any) -> Executable:  # noqa: ANN401 - the two dialects' inserts have no common type
    given = make(lanes)
    new, old = given.excluded.due_us, lanes.c.due_us
    sooner = case((or_(old.is_(None), new < old), new), else_=old)
    return given.on_conflict_do_update(index_elements=[lanes.c.name], set_={"due_us": sooner})


LOWER_DUE = per_dialect(_build_lower_due)


def lower_due(connection: Connection, due: Mapping[str, int | None], now_us: int) -> None:
    """Make these queues due by these times, if given, and lock them until the transaction ends."""
    # In sorted order, so that two transactions that lock the same queues cannot deadlock.
    rows = [{"name": name, "serial": not name.endswith(PARALLEL_SUFFIX), "due_us": due[name]} for name in sorted(due)]
    connection.execute(LOWER_DUE[connection.dialect.name], rows)
    soonest = min((at for at in due.values() if at is not None), default=None)
    if soonest is not None and soonest <= now_us + SOON_US:
        notify(connection, WAKEUP_CHANNEL, str(soonest))


def owned_by(table: Table, owner: OwnerFilter) -> list[ColumnElement[bool]]:
    """The conditions for schedules or runs that belong to these owners."""
    found: list[ColumnElement[bool]] = []
    if owner.agent_id is not None:
        found.append(table.c.agent_id == owner.agent_id)
    if owner.user_id is not None:
        theirs = table.c.user_id == owner.user_id
        found.append(or_(theirs, table.c.user_id.is_(None)) if owner.include_unowned else theirs)
    return found


SCHEDULE_CANCELLED = "The schedule was cancelled"
NOW = bindparam("now", type_=BigInteger)
IS_RUNNING = occurrences.c.standing == literal_column("'running'")

END_SCHEDULES = (
    update(schedules)
    .where(
        one_of(schedules.c.id, "ids"), schedules.c.state.in_((ScheduleState.ACTIVE.value, ScheduleState.PAUSED.value))
    )
    .where(schedules.c.intended_us.is_(None))
    .values(state=ScheduleState.ENDED.value, updated_us=NOW)
)
# A schedule keeps its last time during that run; when the run is over, this writes the end.
END_AFTER_LAST_RUN = BatchUpdate(
    schedules,
    ["id", "intended_us"],
    ["last_us"],
    {
        "intended_us": None,
        "fire_us": None,
        "fired": schedules.c.fired + literal_column("1"),
        "state": literal_column("'ended'"),
        "updated_us": NOW,
    },
)


def end_schedules(connection: Connection, ids: Sequence[int], now_us: int) -> None:
    """End the schedules among these that will not fire again."""
    if ids:
        connection.execute(END_SCHEDULES, {"ids": ids, "now": now_us})


def end_after_last_run(connection: Connection, runs: Sequence[Occurrence], now_us: int) -> None:
    """End the schedules of these runs, which were their last."""
    kept = [(one.schedule_id, one.intended_us, one.created_us) for one in runs]
    if END_AFTER_LAST_RUN.execute(connection, kept, {"now": now_us}) < len(kept):
        end_schedules(connection, [one.schedule_id for one in runs], now_us)


ACTIVE_RUNS = (
    select(
        occurrences,
        schedules.c.prompt,
        schedules.c.attempts,
        schedules.c.conversation_id,
        schedules.c.webhook,
        schedules.c.kind,
        schedules.c.overlap,
        schedules.c.state,
        schedules.c.credentials,
        schedules.c.scopes,
        schedules.c.intended_us.label("next_us"),
    )
    .join(schedules, schedules.c.id == occurrences.c.schedule_id)
    .where(RUN_IS_ACTIVE)
)
RUNNING_RUNS = ACTIVE_RUNS.where(IS_RUNNING)


def occurrence_of(row: Row[Any], **changed: Any) -> Occurrence:  # noqa: ANN401 - fields of `Occurrence`
    """A run from its row, with the changed fields."""
    now: dict[str, Any] = {
        "attempt": row.attempt,
        "fence": row.fence,
        "in_doubt": row.in_doubt,
        "started_us": row.started_us or 0,
        **changed,
    }
    # A schedule keeps its last time during that run.
    next_us = None if row.next_us == row.intended_us else row.next_us
    return Occurrence(
        id=row.id,
        schedule_id=row.schedule_id,
        agent_id=row.agent_id,
        user_id=row.user_id,
        prompt=row.prompt,
        intended_us=row.intended_us,
        number=row.number,
        attempts=row.attempts,
        conversation_id=row.conversation_id,
        webhook=row.webhook,
        last=next_us is None,
        manual=row.manual,
        recurring=row.kind != "once",
        overlap=Overlap(row.overlap),
        next_us=next_us,
        due_us=row.available_us or row.intended_us,
        created_us=row.created_us,
        lane=row.lane,
        authority=Authority.from_columns(row.credentials, row.scopes),
        **now,
    )


class DueSchedule(NamedTuple):
    """The first schedule of a queue. It is a tuple, because thousands a second are made directly from rows."""

    id: int
    lane: str
    agent_id: str
    user_id: str | None
    prompt: str
    kind: str
    value: str
    zone: str
    start_us: int | None
    end_us: int | None
    jitter_s: int
    max_repetitions: int | None
    overlap: str
    misfire: str
    max_late_s: int | None
    attempts: int
    webhook: str | None
    conversation_id: str | None
    intended_us: int
    fire_us: int
    fired: int
    last_ended_us: int | None
    credentials: str | None
    scopes: str | None


# A rule that this machine cannot read, for example in an unknown zone, is tried again after this time. It is short,
# because another machine may be able to read it.
UNREADABLE_PAUSE_US = 60 * SECOND
# An unknown rule, zone or choice, or a time beyond the calendar.
UNREADABLE_ERRORS = (Invalid, ValueError, LookupError, ArithmeticError)

log = structlog.get_logger("frontdesk.schedules")

KINDS_BY_VALUE = {kind.value: kind for kind in TriggerKind}
THOUSAND = literal_column("1000", BigInteger)
DELIVERY_ID_SUFFIX = (
    cast(schedules.c.id, String) + literal_column("'-'", String) + cast(schedules.c.intended_us // THOUSAND, String)
)
# The values of the run of a schedule's next intended time, when it starts.
RUN_ON_TIME: dict[str, Any] = {
    "id": literal_column("'run-'", String) + DELIVERY_ID_SUFFIX,
    "schedule_id": schedules.c.id,
    "agent_id": schedules.c.agent_id,
    "user_id": schedules.c.user_id,
    "lane": schedules.c.lane,
    "serial": schedules.c.overlap != literal_column("'allow'"),
    "intended_us": schedules.c.intended_us,
    "number": schedules.c.fired + literal_column("1"),
    "manual": literal_column("false"),
    "standing": literal_column("'running'"),
    "attempt": literal_column("1"),
    "lost": literal_column("0"),
    "in_doubt": literal_column("false"),
    "owner": bindparam("me", type_=String),
    "fence": literal_column("1"),
    "leased_until_us": bindparam("until", type_=BigInteger),
    "created_us": NOW,
    "started_us": NOW,
}
RUNS_FROM_SCHEDULES = select(*RUN_ON_TIME.values()).where(one_of(schedules.c.id, "ids"))


def _build_start_on_time(make: Any) -> Executable:  # noqa: ANN401 - the two dialects' inserts have no common type
    insert = make(occurrences).from_select(list(RUN_ON_TIME), RUNS_FROM_SCHEDULES).on_conflict_do_nothing()
    return insert.execution_options(preserve_rowcount=True)


def _build_start_late(make: Any) -> Executable:  # noqa: ANN401 - the same
    return make(occurrences).on_conflict_do_nothing().execution_options(preserve_rowcount=True)


START_ON_TIME = per_dialect(_build_start_on_time)
START_LATE = per_dialect(_build_start_late)
STARTED_NOW = select(occurrences.c.id).where(
    one_of(occurrences.c.id, "ids"), occurrences.c.owner == bindparam("me"), occurrences.c.created_us == NOW, IS_RUNNING
)
# Runs that a clock that was ahead started, and that are over.
STARTED_BY_FAST_CLOCK = select(occurrences.c.id).where(
    one_of(occurrences.c.id, "ids"), occurrences.c.created_us > bindparam("soon"), occurrences.c.ended_us.is_not(None)
)
# If a clock that was ahead already started the run of this time, it starts again this much later.
SET_BACK_SHIFT_US = 1000
MAX_SET_BACKS = 5
FIRED_COLUMNS = {"fired": schedules.c.fired + literal_column("1"), "last_us": NOW}
MOVE_TO_NEXT_FIRE = BatchUpdate(schedules, ["id"], ["intended_us", "fire_us"], FIRED_COLUMNS)
CLEAR_NEXT_FIRE = (
    update(schedules).where(one_of(schedules.c.id, "ids")).values(intended_us=None, fire_us=None, **FIRED_COLUMNS)
)
UNDO_FIRED = (
    update(schedules).where(one_of(schedules.c.id, "ids")).values(fired=schedules.c.fired - literal_column("1"))
)
SKIP_TO_NEXT_FIRE = BatchUpdate(schedules, ["id"], ["intended_us", "fire_us"], {})


@lru_cache(maxsize=256)
def _cached_policy(overlap: str, misfire: str, max_late_s: int | None, attempts: int) -> SchedulePolicy:
    return SchedulePolicy(Overlap(overlap), Misfire(misfire), max_late_s, attempts)


@dataclass(slots=True)
class FireBatch:
    """What to write for the schedules that fire in one transaction."""

    context: ClaimContext
    claimed: list[Occurrence] = field(default_factory=list[Occurrence])
    heads: dict[int, DueSchedule] = field(default_factory=dict[int, DueSchedule])
    on_time: list[int] = field(default_factory=list[int])
    late: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    last: list[int] = field(default_factory=list[int])
    kept: list[int] = field(default_factory=list[int])
    go_on: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])
    pass_over: list[tuple[int, int | None, int | None]] = field(
        default_factory=list[tuple[int, int | None, int | None]]
    )

    def add(self, head: DueSchedule) -> None:
        """Add a due schedule; a rule that cannot be read here does not stop the others."""
        try:
            self._add(head)
        except UNREADABLE_ERRORS:
            log.exception("schedule_unreadable", schedule_id=head.id)
            self.pass_over.append((head.id, head.intended_us, self.context.now_us + UNREADABLE_PAUSE_US))

    def _add(self, head: DueSchedule) -> None:
        """Add at most one run, and one record for all skipped fires."""
        now_us = self.context.now_us
        trigger = Trigger(KINDS_BY_VALUE[head.kind], head.value, head.zone, head.start_us, head.end_us, head.jitter_s)
        policy = _cached_policy(head.overlap, head.misfire, head.max_late_s, head.attempts)
        decided = plan_fire(
            trigger, policy, head.intended_us, now_us, head.fired, head.max_repetitions, head.last_ended_us
        )
        next_us = decided.next_us
        fire_us = None if next_us is None else add_jitter(trigger, head.id, next_us)
        if decided.skipped is not None:
            self.late.append(_skipped_row(head, decided.skipped, self.context))
        if decided.fire_us is None:
            self.pass_over.append((head.id, next_us, fire_us))
            return
        if decided.fire_us == head.intended_us:
            self.on_time.append(head.id)
        else:
            self.late.append(_run_row(head, decided.fire_us, self.context))
        if next_us is not None and fire_us is not None:
            self.go_on.append((head.id, next_us, fire_us))
        elif decided.fire_us == head.intended_us and policy.overlap is not Overlap.ALLOW:
            self.kept.append(head.id)
        else:
            self.last.append(head.id)
        self.claimed.append(_new_occurrence(head, decided.fire_us, next_us, policy.overlap, now_us))
        self.heads[head.id] = head

    def write(self, connection: Connection) -> list[Occurrence]:
        """Write what was added; returns the runs that start, without those that had started before."""
        now_us, dialect = self.context.now_us, connection.dialect.name
        common = {"me": self.context.owner, "until": now_us + self.context.lease_us, "now": now_us}
        begun = 0
        if self.on_time:
            begun = connection.execute(START_ON_TIME[dialect], {**common, "ids": self.on_time}).rowcount
        if self.late:
            begun += connection.execute(START_LATE[dialect], self.late).rowcount
        MOVE_TO_NEXT_FIRE.execute(connection, self.go_on, {"now": now_us})
        if self.last:
            connection.execute(CLEAR_NEXT_FIRE, {"ids": self.last, "now": now_us})
        SKIP_TO_NEXT_FIRE.execute(connection, self.pass_over, {})
        end_schedules(connection, [number for number, next_us, _ in self.pass_over if next_us is None], now_us)
        if begun == len(self.on_time) + len(self.late):
            return self.claimed
        for _ in range(MAX_SET_BACKS):
            if not self._again_after_set_back(connection):
                break
        ours = self._ours(connection)
        self._undo(connection, {one.schedule_id for one in self.claimed if one.id not in ours})
        return [one for one in self.claimed if one.id in ours]

    def _ours(self, connection: Connection) -> set[str]:
        found = {"ids": [one.id for one in self.claimed], "me": self.context.owner, "now": self.context.now_us}
        return set(connection.execute(STARTED_NOW, found).scalars())

    def _again_after_set_back(self, connection: Connection) -> bool:
        """Start recurring runs a moment later if a clock that was ahead had already started them at these times."""
        ours = self._ours(connection)
        left = [one.id for one in self.claimed if one.id not in ours and one.recurring]
        soon = self.context.set_back_us + CLOCK_SLACK_US
        ahead = (
            set(connection.execute(STARTED_BY_FAST_CLOCK, {"ids": left, "soon": soon}).scalars())
            if left
            else set[str]()
        )
        if not ahead:
            return False
        rows: list[dict[str, Any]] = []
        for at, one in enumerate(self.claimed):
            if one.id in ahead:
                later_us = one.intended_us + SET_BACK_SHIFT_US
                new_id = delivery_id(one.schedule_id, later_us)
                self.claimed[at] = replace(one, id=new_id, intended_us=later_us)
                rows.append(_run_row(self.heads[one.schedule_id], later_us, self.context))
        connection.execute(START_LATE[connection.dialect.name], rows)
        return True

    def _undo(self, connection: Connection, before: set[int]) -> None:
        """Undo the count for schedules that had already fired at these times."""
        kept = before.intersection(self.kept)
        SKIP_TO_NEXT_FIRE.execute(connection, [(number, None, None) for number in sorted(kept)], {})
        if counted := sorted(before - kept):
            connection.execute(UNDO_FIRED, {"ids": counted})
        end_schedules(connection, sorted(before), self.context.now_us)


def _new_occurrence(
    head: DueSchedule, intended_us: int, next_us: int | None, overlap: Overlap, now_us: int
) -> Occurrence:
    return Occurrence(
        delivery_id(head.id, intended_us),
        head.id,
        head.agent_id,
        head.user_id,
        head.prompt,
        intended_us,
        head.fired + 1,
        1,
        1,
        head.attempts,
        head.conversation_id,
        head.webhook,
        last=next_us is None,
        recurring=head.kind != "once",
        overlap=overlap,
        next_us=next_us,
        due_us=head.fire_us,
        created_us=now_us,
        started_us=now_us,
        lane=head.lane,
        authority=Authority.from_columns(head.credentials, head.scopes),
    )


def _run_row(head: DueSchedule, intended_us: int, context: ClaimContext) -> dict[str, Any]:
    return {
        "id": delivery_id(head.id, intended_us),
        "schedule_id": head.id,
        "agent_id": head.agent_id,
        "user_id": head.user_id,
        "lane": head.lane,
        "serial": head.overlap != Overlap.ALLOW.value,
        "intended_us": intended_us,
        "number": head.fired + 1,
        "manual": False,
        "standing": RunStatus.RUNNING.value,
        "attempt": 1,
        "lost": 0,
        "in_doubt": False,
        "owner": context.owner,
        "fence": 1,
        "leased_until_us": context.now_us + context.lease_us,
        "created_us": context.now_us,
        "started_us": context.now_us,
        "ended_us": None,
        "reason": None,
    }


def _skipped_row(head: DueSchedule, skipped: SkippedFires, context: ClaimContext) -> dict[str, Any]:
    """One record for all fires that were skipped together, with the time of the first."""
    reason = skipped.reason
    if skipped.count > 1:
        reason = f"{reason} ({skipped.count} of them, until {from_us(skipped.last_us).isoformat()})"
    ended = {"standing": RunStatus.SKIPPED.value, "attempt": 0, "fence": 0, "owner": None, "leased_until_us": None}
    row = _run_row(head, skipped.first_us, context) | ended
    return row | {"started_us": None, "ended_us": context.now_us, "reason": reason}


WORKER_LOST = "The worker was lost"
WORKER_LOST_TOO_OFTEN = "The worker was lost each time this was tried"

START_AGAIN = BatchUpdate(
    occurrences,
    ["id", "fence"],
    ["attempt", "lost", "in_doubt"],
    {
        "standing": literal_column("'running'"),
        "owner": bindparam("me"),
        "fence": occurrences.c.fence + literal_column("1"),
        "leased_until_us": bindparam("until"),
        "started_us": NOW,
        "available_us": None,
    },
)
GIVE_UP_RUNS = (
    update(occurrences)
    .where(occurrences.c.id == bindparam("the_id"), occurrences.c.fence == bindparam("the_fence"))
    .values(
        standing=bindparam("standing"),
        reason=bindparam("reason"),
        ended_us=NOW,
        owner=None,
        leased_until_us=None,
        available_us=None,
    )
)
ADD_LOST_ATTEMPT = insert(attempts)


@dataclass(slots=True)
class RetryBatch:
    """The writes for runs that had started before: those that start again, and those that are given up."""

    context: ClaimContext
    claimed: list[Occurrence] = field(default_factory=list[Occurrence])
    again: list[tuple[str, int, int, int, bool]] = field(default_factory=list[tuple[str, int, int, int, bool]])
    lost: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    given_up: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    over: list[Occurrence] = field(default_factory=list[Occurrence])

    def add(self, action: QueueAction, row: Row[Any]) -> None:
        if action in (QueueAction.DROP, QueueAction.BURY):
            self._give_up(action, row)
            return
        taken = action is QueueAction.TAKE_OVER
        attempt = row.attempt if taken else row.attempt + 1
        in_doubt = bool(row.in_doubt or taken)
        self.again.append((row.id, row.fence, attempt, row.lost + taken, in_doubt))
        if taken:
            self.lost.append(_lost_attempt_row(row, self.context.now_us))
        begun = {"attempt": attempt, "in_doubt": in_doubt, "started_us": self.context.now_us}
        self.claimed.append(occurrence_of(row, fence=row.fence + 1, **begun))

    def write(self, connection: Connection) -> list[Occurrence]:
        now_us = self.context.now_us
        common = {"me": self.context.owner, "until": now_us + self.context.lease_us, "now": now_us}
        START_AGAIN.execute(connection, self.again, common)
        if self.lost:
            connection.execute(ADD_LOST_ATTEMPT, self.lost)
        if self.given_up:
            connection.execute(GIVE_UP_RUNS, self.given_up)
        end_after_last_run(connection, self.over, now_us)
        return self.claimed

    def _give_up(self, action: QueueAction, row: Row[Any]) -> None:
        standing, reason = (
            (RunStatus.CANCELLED, SCHEDULE_CANCELLED)
            if action is QueueAction.DROP
            else (RunStatus.DEAD, WORKER_LOST_TOO_OFTEN)
        )
        place = {"the_id": row.id, "the_fence": row.fence, "now": self.context.now_us}
        self.given_up.append({**place, "standing": standing.value, "reason": reason})
        run = occurrence_of(row)
        if run.last:
            self.over.append(run)


def active_run_of(row: Row[Any]) -> ActiveRun:
    running = row.standing == RunStatus.RUNNING
    return ActiveRun(
        row.id,
        RunStatus.RUNNING if running else RunStatus.WAITING,
        row.intended_us,
        row.owner,
        row.started_us or 0,
        (row.leased_until_us if running else row.available_us) or 0,
        row.lost,
        row.state == ScheduleState.CANCELLED,
    )


def _lost_attempt_row(row: Row[Any], now_us: int) -> dict[str, Any]:
    attempt = {"number": row.attempt, "started_us": row.started_us, "ended_us": now_us, "error": WORKER_LOST}
    return {"occurrence_id": row.id, **attempt}


# A queue that has nothing to run leaves its place for another queue, so claiming takes several rounds.
CLAIM_ROUNDS = 4
DUE_QUEUES = (
    select(lanes.c.name, lanes.c.serial)
    .where(lanes.c.due_us.is_not(None), lanes.c.due_us <= bindparam("now"))
    .order_by(lanes.c.due_us)
    .limit(bindparam("places"))
    .with_for_update(skip_locked=True)
)
NEXT_DUE_US = select(lanes.c.due_us).where(lanes.c.due_us.is_not(None)).order_by(lanes.c.due_us).limit(1)
FIRST_SCHEDULE = schedules.alias("first")
FIRST_SCHEDULE_ID = (
    select(FIRST_SCHEDULE.c.id)
    .where(
        FIRST_SCHEDULE.c.lane == lanes.c.name,
        FIRST_SCHEDULE.c.state == literal_column("'active'"),
        FIRST_SCHEDULE.c.fire_us.is_not(None),
    )
    .order_by(FIRST_SCHEDULE.c.fire_us, FIRST_SCHEDULE.c.id)
    .limit(1)
    .correlate(lanes)
    .scalar_subquery()
)
FIRST_SCHEDULES = (
    select(*(schedules.c[name] for name in DueSchedule._fields))
    .select_from(lanes)
    .join(schedules, schedules.c.id == FIRST_SCHEDULE_ID)
    .where(one_of(lanes.c.name, "names"))
)
QUEUE_IS_BUSY = exists().where(occurrences.c.lane == lanes.c.name, RUN_IS_ACTIVE)
FIRST_OF_FREE_QUEUES = FIRST_SCHEDULES.where(lanes.c.serial == true(), ~QUEUE_IS_BUSY)
RUNS_IN_QUEUES = ACTIVE_RUNS.where(one_of(occurrences.c.lane, "names"))
SET_QUEUE_DUE = BatchUpdate(lanes, ["name"], ["due_us"], {})
HOLD_QUEUES = update(lanes).where(one_of(lanes.c.name, "names")).values(due_us=bindparam("until"))


def claim_runs(connection: Connection, context: ClaimContext) -> list[Occurrence]:
    """Claim due runs, up to the number of free places of the worker.

    Due queues are locked, oldest first, and each gives at most one run. Queues that other workers have locked are
    skipped.
    """
    claimed: list[Occurrence] = []
    due = _due_queues(context.request.whose)
    due_by = context.now_us if context.request.due_by_us is None else min(context.now_us, context.request.due_by_us)
    for _ in range(CLAIM_ROUNDS):
        places = context.request.places - len(claimed)
        if places <= 0:
            break
        found = connection.execute(due, {"now": due_by, "places": places}).all()
        if not found:
            break
        begun = _claim_from_queues(connection, context, {row.name: row.serial for row in found})
        context.held.update(one.id for one in begun)
        claimed += begun
    return claimed


def _due_queues(owner: OwnerFilter) -> Select[Any, Any]:
    if owner.agent_id is None and owner.user_id is None:
        return DUE_QUEUES
    waits = exists().where(schedules.c.lane == lanes.c.name, SCHEDULE_IS_WAITING, *owned_by(schedules, owner))
    underway = exists().where(occurrences.c.lane == lanes.c.name, RUN_IS_ACTIVE, *owned_by(occurrences, owner))
    return DUE_QUEUES.where(or_(waits, underway))


def _claim_from_queues(connection: Connection, context: ClaimContext, found: dict[str, bool]) -> list[Occurrence]:
    """Do one thing in each queue, so that at most one run holds it."""
    firing, repeating = FireBatch(context), RetryBatch(context)
    rest: list[tuple[str, int | None]] = []
    seen: set[str] = set()
    for head in map(DueSchedule._make, connection.execute(FIRST_OF_FREE_QUEUES, {"names": list(found)}).all()):
        if head.fire_us <= context.now_us:
            seen.add(head.lane)
            if _is_wanted(context, head):
                firing.add(head)
    if len(seen) < len(found):
        left = {name: serial for name, serial in found.items() if name not in seen}
        rest = _decide_queues(connection, left, firing, repeating)
    claimed = firing.write(connection) + repeating.write(connection)
    SET_QUEUE_DUE.execute(connection, rest, {})
    if held := [one.lane for one in claimed if one.overlap is not Overlap.ALLOW]:
        connection.execute(HOLD_QUEUES, {"names": held, "until": context.now_us + context.lease_us})
    return claimed


def _decide_queues(
    connection: Connection, found: dict[str, bool], firing: FireBatch, repeating: RetryBatch
) -> list[tuple[str, int | None]]:
    """Decide about the queues that have an active run, or that are due later than expected."""
    context, names = firing.context, {"names": list(found)}
    rows: dict[str, list[Row[Any]]] = {}
    for row in connection.execute(RUNS_IN_QUEUES, names):
        rows.setdefault(row.lane, []).append(row)
    heads = {head.lane: head for head in map(DueSchedule._make, connection.execute(FIRST_SCHEDULES, names).all())}
    rest: list[tuple[str, int | None]] = []
    for name, serial in found.items():
        here, head = rows.get(name, []), heads.get(name)
        fire_us = None if head is None else head.fire_us
        decision = decide_queue(context, [active_run_of(row) for row in here], fire_us, serial=serial)
        if decision.action is QueueAction.REST:
            rest.append((name, decision.due_us))
        elif decision.action is QueueAction.FIRE:
            if head is not None and _is_wanted(context, head):
                firing.add(head)
        else:
            repeating_row = next(row for row in here if row.id == decision.id)
            if _is_wanted(context, repeating_row):
                repeating.add(decision.action, repeating_row)
    return rest


def _is_wanted(context: ClaimContext, row: Row[Any] | DueSchedule) -> bool:
    return context.request.whose.covers(row.agent_id, row.user_id)
