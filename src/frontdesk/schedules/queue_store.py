"""Reads and writes rows of schedules and runs, and the queue of each agent."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Executable,
    Row,
    Table,
    bindparam,
    case,
    literal_column,
    or_,
    select,
    update,
)

from frontdesk.db.notify import notify
from frontdesk.db.schema import RUN_IS_ACTIVE, lanes, occurrences, schedules
from frontdesk.db.statements import BatchUpdate, one_of, per_dialect
from frontdesk.identity.authority import Authority
from frontdesk.schedules.model import (
    AnswerForwarding,
    Misfire,
    Occurrence,
    Overlap,
    OwnerFilter,
    Schedule,
    ScheduleDefinition,
    SchedulePolicy,
    ScheduleState,
    Trigger,
    TriggerKind,
)
from frontdesk.schedules.wakeup import SOON_US, WAKEUP_CHANNEL

# What may run beside other things stands in a line of its own.
PARALLEL_SUFFIX = " beside"


class RowValues(Protocol):
    """A row of the table, or what becomes one."""

    def __getitem__(self, name: str, /) -> Any: ...  # noqa: ANN401 - a column's


def queue_of(agent_id: str, overlap: Overlap) -> str:
    return agent_id + PARALLEL_SUFFIX if overlap is Overlap.ALLOW else agent_id


def definition_columns(what: ScheduleDefinition) -> dict[str, Any]:
    """The columns that say what a schedule is."""
    trigger, policy, forward = what.trigger, what.policy, what.forward
    return {
        "agent_id": what.agent_id,
        "user_id": what.user_id,
        "lane": queue_of(what.agent_id, policy.overlap),
        "prompt": what.prompt,
        "kind": trigger.kind,
        "value": trigger.value,
        "zone": trigger.zone,
        "start_us": trigger.start_us,
        "end_us": trigger.end_us,
        "jitter_s": trigger.jitter_s,
        "max_repetitions": what.max_repetitions,
        "overlap": policy.overlap,
        "misfire": policy.misfire,
        "max_late_s": policy.max_late_s,
        "attempts": policy.attempts,
        "words": what.words,
        "webhook": forward.webhook,
        "timeline": forward.timeline,
        "conversation_id": what.conversation_id,
        "made_by": what.made_by,
        **what.authority.columns,
    }


def trigger_of(row: RowValues) -> Trigger:
    times = (row["start_us"], row["end_us"], row["jitter_s"])
    return Trigger(TriggerKind(row["kind"]), row["value"], row["zone"], *times)


def columns_after_last_fire(row: RowValues) -> dict[str, Any]:
    """What stands in a row whose last time is being run, as if it had been written when that began."""
    return {"intended_us": None, "fire_us": None, "fired": row["fired"] + 1, "last_us": row["began_us"]}


def schedule_of(row: RowValues) -> Schedule:
    """From a row that says when its last time was begun, if that is being run."""
    times = row if row["began_us"] is None else columns_after_last_fire(row)
    what = ScheduleDefinition(
        agent_id=row["agent_id"],
        prompt=row["prompt"],
        trigger=trigger_of(row),
        user_id=row["user_id"],
        policy=SchedulePolicy(Overlap(row["overlap"]), Misfire(row["misfire"]), row["max_late_s"], row["attempts"]),
        max_repetitions=row["max_repetitions"],
        words=row["words"],
        forward=AnswerForwarding(row["webhook"], row["timeline"]),
        conversation_id=row["conversation_id"],
        made_by=row["made_by"],
        authority=Authority.from_columns(row["credentials"], row["scopes"]),
    )
    return Schedule(
        id=row["id"],
        what=what,
        state=ScheduleState(row["state"]),
        intended_us=times["intended_us"],
        fire_us=times["fire_us"],
        fired=times["fired"],
        last_us=times["last_us"],
        created_us=row["created_us"],
        updated_us=row["updated_us"],
    )


def _build_lower_due(make: Any) -> Executable:  # noqa: ANN401 - the two dialects' inserts have no common type
    given = make(lanes)
    new, old = given.excluded.due_us, lanes.c.due_us
    sooner = case((or_(old.is_(None), new < old), new), else_=old)
    return given.on_conflict_do_update(index_elements=[lanes.c.name], set_={"due_us": sooner})


LOWER_DUE = per_dialect(_build_lower_due)


def lower_due(connection: Connection, due: Mapping[str, int | None], now_us: int) -> None:
    """Have these queues looked at by these times; they are locked until the transaction ends, also where it is None."""
    # In order, so that two who want the same queues do not wait for each other.
    rows = [{"name": name, "serial": not name.endswith(PARALLEL_SUFFIX), "due_us": due[name]} for name in sorted(due)]
    connection.execute(LOWER_DUE[connection.dialect.name], rows)
    soonest = min((at for at in due.values() if at is not None), default=None)
    if soonest is not None and soonest <= now_us + SOON_US:
        notify(connection, WAKEUP_CHANNEL, str(soonest))


def owned_by(table: Table, whose: OwnerFilter) -> list[ColumnElement[bool]]:
    """The rows of schedules or of occurrences that belong to them."""
    found: list[ColumnElement[bool]] = []
    if whose.agent_id is not None:
        found.append(table.c.agent_id == whose.agent_id)
    if whose.user_id is not None:
        theirs = table.c.user_id == whose.user_id
        found.append(or_(theirs, table.c.user_id.is_(None)) if whose.include_unowned else theirs)
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
# A schedule keeps its last time while that is run, and is written once, when it is over.
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
# Until then this is when the run of that time was begun.
LAST_FIRE_BEGAN_US = (
    select(occurrences.c.created_us)
    .where(
        occurrences.c.schedule_id == schedules.c.id, occurrences.c.intended_us == schedules.c.intended_us, RUN_IS_ACTIVE
    )
    .correlate(schedules)
    .scalar_subquery()
)


def end_schedules(connection: Connection, ids: Sequence[int], now_us: int) -> None:
    """Those of these that will not fire again are over."""
    if ids:
        connection.execute(END_SCHEDULES, {"ids": ids, "now": now_us})


def end_after_last_run(connection: Connection, runs: Sequence[Occurrence], now_us: int) -> None:
    """The schedules of these runs, which nothing follows, are over."""
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
    """An occurrence as it is stored, but for what was just changed."""
    now: dict[str, Any] = {
        "attempt": row.attempt,
        "fence": row.fence,
        "in_doubt": row.in_doubt,
        "started_us": row.started_us or 0,
        **changed,
    }
    # A schedule keeps its last time while that is run.
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
