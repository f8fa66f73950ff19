"""The ends of attempts in the database, told by whoever still holds them: an expired holder changes nothing."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    BigInteger,
    Connection,
    bindparam,
    case,
    exists,
    func,
    insert,
    literal_column,
    select,
    true,
    update,
)

from frontdesk.db.each import UpdateEach
from frontdesk.db.lists import one_of
from frontdesk.db.schema import UNDER_WAY, WAITS_FOR_ITS_TIME, Moment, attempts, lanes, occurrences, schedules
from frontdesk.identity.model import Source
from frontdesk.journal.model import Kind, Outcome
from frontdesk.journal.store import appending
from frontdesk.schedule.due.model import Settled
from frontdesk.schedule.forwards.model import forward_of
from frontdesk.schedule.forwards.store import add_in
from frontdesk.schedule.model import Occurrence, Overlap, Standing, State, moment

CANCELLED = "The schedule was cancelled"
NOW = bindparam("now", type_=BigInteger)
RUNS = occurrences.c.standing == literal_column("'running'")
IS_OURS = occurrences.c.owner == bindparam("me")
# Made once: to build a statement takes longer than to run it, and each of these runs for every batch.
# PostgreSQL's alone, in the order of `sorted`, by which others lock lanes: a language has another one.
IN_ORDER = lanes.c.name.collate("C")
LOCK = select(lanes.c.name).where(one_of(lanes.c.name, "names")).order_by(IN_ORDER).with_for_update()
STILL_OURS = (
    select(occurrences.c.id, occurrences.c.fence)
    .where(one_of(occurrences.c.id, "ids"), IS_OURS, RUNS)
    .with_for_update()
)
HELD_BY_NONE = {"owner": None, "leased_until_us": None}
# What is still ours is locked by then, and found by its key and fence alone: PostgreSQL would look for those that run
# first, of which it expects one, and go through all rows that are given for each.
DELIVER = UpdateEach(
    occurrences,
    ["id", "fence"],
    ["answer"],
    {**HELD_BY_NONE, "standing": literal_column("'delivered'"), "ended_us": NOW, "reason": None},
)
FAIL = UpdateEach(
    occurrences,
    ["id", "fence"],
    ["standing", "attempt", "in_doubt", "available_us", "ended_us", "reason"],
    HELD_BY_NONE,
)
NO_MORE_TRIES = (
    update(occurrences)
    .where(
        one_of(occurrences.c.id, "ids"),
        exists().where(schedules.c.id == occurrences.c.schedule_id, schedules.c.state == State.CANCELLED.value),
    )
    .values(standing=Standing.CANCELLED.value, available_us=None, ended_us=NOW, reason=CANCELLED)
)
END = (
    update(schedules)
    .where(one_of(schedules.c.id, "ids"), schedules.c.state.in_((State.ACTIVE.value, State.PAUSED.value)))
    .where(schedules.c.intended_us.is_(None))
    .values(state=State.ENDED.value, updated_us=NOW)
)
# A schedule keeps its last time while that is run, and is written once, when it is over.
END_LAST = UpdateEach(
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
BEGAN_US = (
    select(occurrences.c.created_us)
    .where(occurrences.c.schedule_id == schedules.c.id, occurrences.c.intended_us == schedules.c.intended_us, UNDER_WAY)
    .correlate(schedules)
    .scalar_subquery()
)
NOTE_END = update(schedules).where(one_of(schedules.c.id, "ids")).values(last_ended_us=NOW)
WAITING_IN_LANE = (
    select(func.min(occurrences.c.available_us))
    .where(occurrences.c.lane == lanes.c.name, UNDER_WAY, occurrences.c.standing == literal_column("'waiting'"))
    .scalar_subquery()
)
FIRST_IN_LANE = (
    select(schedules.c.fire_us)
    .where(schedules.c.lane == lanes.c.name, WAITS_FOR_ITS_TIME)
    .order_by(schedules.c.fire_us, schedules.c.id)
    .limit(1)
    .scalar_subquery()
)
# What waits in a serial lane goes first. A lane beside has more than that to look at, and is looked at.
FREE = (
    update(lanes)
    .where(one_of(lanes.c.name, "names"))
    .values(due_us=case((lanes.c.serial == true(), func.coalesce(WAITING_IN_LANE, FIRST_IN_LANE)), else_=NOW))
)
NOTE_ATTEMPT = insert(attempts)
LONGEST_US = 2**31 - 1
TOOK_US = NOW - occurrences.c.started_us
WAS_DELIVERED = occurrences.c.standing == literal_column("'delivered'")
IN_JOURNAL = appending(
    {
        "at": bindparam("at", type_=Moment()),
        "kind": Kind.DELIVERY,
        "surface": "schedule",
        "action": "deliver",
        "outcome": case((WAS_DELIVERED, Outcome.OK.value), else_=Outcome.FAILED.value),
        "reason": case((WAS_DELIVERED, None), else_=occurrences.c.standing),
        "agent_id": occurrences.c.agent_id,
        "user_id": occurrences.c.user_id,
        "source": Source.SCHEDULE,
        "verified": False,
        "request_id": occurrences.c.id,
        "duration_us": case((TOOK_US < 0, 0), (TOOK_US > LONGEST_US, LONGEST_US), else_=TOOK_US),
    },
    one_of(occurrences.c.id, "ids"),
)


def settle(connection: Connection, owner: str, settled: Sequence[Settled], now_us: int) -> list[Settled]:
    """Record how attempts ended, with all that follows from it; those that were still the owner's to end."""
    names = sorted({one.occurrence.lane for one in settled})
    if connection.dialect.name == "postgresql":
        connection.execute(LOCK, {"names": names})
    ids = [one.occurrence.id for one in settled]
    ours = {row.id: row.fence for row in connection.execute(STILL_OURS, {"ids": ids, "me": owner}).all()}
    kept = [one for one in settled if ours.get(one.occurrence.id) == one.occurrence.fence]
    if not kept:
        return kept
    common = {"now": now_us}
    delivered = [one for one in kept if one.standing is Standing.DELIVERED]
    DELIVER.execute(connection, [(one.occurrence.id, one.occurrence.fence, one.answer) for one in delivered], common)
    if len(delivered) < len(kept):
        _fail(connection, [one for one in kept if one.standing is not Standing.DELIVERED], now_us)
    _end(connection, kept, now_us)
    _send_on(connection, delivered, now_us)
    told = {"ids": [one.occurrence.id for one in kept], "at": moment(now_us), "now": now_us}
    connection.execute(IN_JOURNAL, told)
    # Not the lanes of those that somebody else runs by now.
    connection.execute(FREE, {"names": sorted({one.occurrence.lane for one in kept}), "now": now_us})
    return kept


def end_schedules(connection: Connection, ids: Sequence[int], now_us: int) -> None:
    """Those of these that will not fire again are over."""
    if ids:
        connection.execute(END, {"ids": ids, "now": now_us})


def end_last(connection: Connection, runs: Sequence[Occurrence], now_us: int) -> None:
    """The schedules of these runs, which nothing follows, are over."""
    kept = [(one.schedule_id, one.intended_us, one.created_us) for one in runs]
    if END_LAST.execute(connection, kept, {"now": now_us}) < len(kept):
        end_schedules(connection, [one.schedule_id for one in runs], now_us)


def _fail(connection: Connection, failed: Sequence[Settled], now_us: int) -> None:
    FAIL.execute(connection, [_failure(one, now_us) for one in failed], {})
    if waiting := [one for one in failed if one.standing is Standing.WAITING]:
        connection.execute(NOTE_ATTEMPT, [_attempt(one, now_us) for one in waiting])
        connection.execute(NO_MORE_TRIES, {"ids": [one.occurrence.id for one in waiting], "now": now_us})


def _failure(one: Settled, now_us: int) -> tuple[Any, ...]:
    waits = one.standing is Standing.WAITING
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


def _end(connection: Connection, kept: Sequence[Settled], now_us: int) -> None:
    over = [one.occurrence for one in kept if one.standing is not Standing.WAITING]
    end_last(connection, [one for one in over if one.last], now_us)
    if noted := [one.schedule_id for one in over if one.overlap is Overlap.SKIP]:
        connection.execute(NOTE_END, {"ids": noted, "now": now_us})


def _send_on(connection: Connection, delivered: Sequence[Settled], now_us: int) -> None:
    found = [(one, one.occurrence.webhook) for one in delivered if one.occurrence.webhook is not None]
    add_in(connection, [forward_of(one.occurrence, url, one.answer, now_us) for one, url in found], now_us)


def _attempt(one: Settled, now_us: int) -> dict[str, Any]:
    return {
        "occurrence_id": one.occurrence.id,
        "number": one.occurrence.attempt,
        "started_us": one.occurrence.started_us,
        "ended_us": now_us,
        "error": one.error or "",
    }
