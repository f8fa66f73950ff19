"""Schedules that fire: their occurrences are begun, and the schedules move on to their next time."""

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import structlog
from sqlalchemy import BigInteger, Connection, Executable, String, bindparam, cast, literal_column, select, update

from frontdesk.db.each import UpdateEach
from frontdesk.db.lists import one_of
from frontdesk.db.schema import occurrences, schedules
from frontdesk.db.upsert import per_dialect
from frontdesk.errors import Invalid
from frontdesk.identity.authority import Authority
from frontdesk.schedule.due.decide import SLACK_US, View
from frontdesk.schedule.due.head import Head
from frontdesk.schedule.due.settle.store import NOW, RUNS, end_schedules
from frontdesk.schedule.model import (
    SECOND,
    Misfire,
    Occurrence,
    Overlap,
    Policy,
    Standing,
    Trigger,
    TriggerKind,
    delivery_id,
    moment,
)
from frontdesk.schedule.triggers.misfire import Skipped, plan
from frontdesk.schedule.triggers.next import fire_at

# A rule that this machine cannot read, of a zone that it does not know, is looked at again after this time: soon, as
# another machine may read it.
REST_US = 60 * SECOND
# A rule, zone or choice that is not known here, or a time beyond the calendar.
UNREADABLE = (Invalid, ValueError, LookupError, ArithmeticError)

log = structlog.get_logger("frontdesk.schedule")

KINDS = {kind.value: kind for kind in TriggerKind}
THOUSAND = literal_column("1000", BigInteger)
NAME = cast(schedules.c.id, String) + literal_column("'-'", String) + cast(schedules.c.intended_us // THOUSAND, String)
# An occurrence of a schedule's next intended time, as it begins.
AT_ITS_TIME: dict[str, Any] = {
    "id": literal_column("'run-'", String) + NAME,
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
FROM_SCHEDULES = select(*AT_ITS_TIME.values()).where(one_of(schedules.c.id, "ids"))


def _begin(make: Any) -> Executable:  # noqa: ANN401 - the two dialects' inserts have no common type
    insert = make(occurrences).from_select(list(AT_ITS_TIME), FROM_SCHEDULES).on_conflict_do_nothing()
    return insert.execution_options(preserve_rowcount=True)


def _begin_late(make: Any) -> Executable:  # noqa: ANN401 - the same
    return make(occurrences).on_conflict_do_nothing().execution_options(preserve_rowcount=True)


BEGIN = per_dialect(_begin)
BEGIN_LATE = per_dialect(_begin_late)
BEGUN = select(occurrences.c.id).where(
    one_of(occurrences.c.id, "ids"), occurrences.c.owner == bindparam("me"), occurrences.c.created_us == NOW, RUNS
)
# Begun by a clock that was ahead, and over.
BEGUN_AHEAD = select(occurrences.c.id).where(
    one_of(occurrences.c.id, "ids"), occurrences.c.created_us > bindparam("soon"), occurrences.c.ended_us.is_not(None)
)
# Under this much later an occurrence comes again whose time was reached before by a clock that was ahead.
APART_US = 1000
TIMES_SET_BACK = 5
FIRED = {"fired": schedules.c.fired + literal_column("1"), "last_us": NOW}
GO_ON = UpdateEach(schedules, ["id"], ["intended_us", "fire_us"], FIRED)
LAST_FIRE = update(schedules).where(one_of(schedules.c.id, "ids")).values(intended_us=None, fire_us=None, **FIRED)
NOT_FIRED = update(schedules).where(one_of(schedules.c.id, "ids")).values(fired=schedules.c.fired - literal_column("1"))
PASS_OVER = UpdateEach(schedules, ["id"], ["intended_us", "fire_us"], {})


@lru_cache(maxsize=256)
def _policy(overlap: str, misfire: str, max_late_s: int | None, attempts: int) -> Policy:
    return Policy(Overlap(overlap), Misfire(misfire), max_late_s, attempts)


@dataclass(slots=True)
class Firing:
    """What is to be written for the schedules that fire together."""

    view: View
    claimed: list[Occurrence] = field(default_factory=list[Occurrence])
    heads: dict[int, Head] = field(default_factory=dict[int, Head])
    on_time: list[int] = field(default_factory=list[int])
    late: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    last: list[int] = field(default_factory=list[int])
    kept: list[int] = field(default_factory=list[int])
    go_on: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])
    pass_over: list[tuple[int, int | None, int | None]] = field(
        default_factory=list[tuple[int, int | None, int | None]]
    )

    def add(self, head: Head) -> None:
        """What a schedule is due for; one whose rule cannot be read here lets the others go on."""
        try:
            self._add(head)
        except UNREADABLE:
            log.exception("schedule_unreadable", schedule_id=head.id)
            self.pass_over.append((head.id, head.intended_us, self.view.now_us + REST_US))

    def _add(self, head: Head) -> None:
        """One run at most, and a record of those that were left out."""
        now_us = self.view.now_us
        trigger = Trigger(KINDS[head.kind], head.value, head.zone, head.start_us, head.end_us, head.jitter_s)
        policy = _policy(head.overlap, head.misfire, head.max_late_s, head.attempts)
        decided = plan(trigger, policy, head.intended_us, now_us, head.fired, head.max_repetitions, head.last_ended_us)
        next_us = decided.next_us
        fire_us = None if next_us is None else fire_at(trigger, head.id, next_us)
        if decided.skipped is not None:
            self.late.append(_left_out(head, decided.skipped, self.view))
        if decided.fire_us is None:
            self.pass_over.append((head.id, next_us, fire_us))
            return
        if decided.fire_us == head.intended_us:
            self.on_time.append(head.id)
        else:
            self.late.append(_row(head, decided.fire_us, self.view))
        if next_us is not None and fire_us is not None:
            self.go_on.append((head.id, next_us, fire_us))
        elif decided.fire_us == head.intended_us and policy.overlap is not Overlap.ALLOW:
            self.kept.append(head.id)
        else:
            self.last.append(head.id)
        self.claimed.append(_occurrence(head, decided.fire_us, next_us, policy.overlap, now_us))
        self.heads[head.id] = head

    def write(self, connection: Connection) -> list[Occurrence]:
        """What begins; what turns out to have been begun before is not begun again."""
        now_us, dialect = self.view.now_us, connection.dialect.name
        common = {"me": self.view.owner, "until": now_us + self.view.lease_us, "now": now_us}
        begun = 0
        if self.on_time:
            begun = connection.execute(BEGIN[dialect], {**common, "ids": self.on_time}).rowcount
        if self.late:
            begun += connection.execute(BEGIN_LATE[dialect], self.late).rowcount
        GO_ON.execute(connection, self.go_on, {"now": now_us})
        if self.last:
            connection.execute(LAST_FIRE, {"ids": self.last, "now": now_us})
        PASS_OVER.execute(connection, self.pass_over, {})
        end_schedules(connection, [number for number, next_us, _ in self.pass_over if next_us is None], now_us)
        if begun == len(self.on_time) + len(self.late):
            return self.claimed
        for _ in range(TIMES_SET_BACK):
            if not self._again_after_set_back(connection):
                break
        ours = self._ours(connection)
        self._undo(connection, {one.schedule_id for one in self.claimed if one.id not in ours})
        return [one for one in self.claimed if one.id in ours]

    def _ours(self, connection: Connection) -> set[str]:
        found = {"ids": [one.id for one in self.claimed], "me": self.view.owner, "now": self.view.now_us}
        return set(connection.execute(BEGUN, found).scalars())

    def _again_after_set_back(self, connection: Connection) -> bool:
        """What recurs and was begun at these times by a clock that was ahead comes again, a moment later."""
        ours = self._ours(connection)
        left = [one.id for one in self.claimed if one.id not in ours and one.recurring]
        soon = self.view.set_back_us + SLACK_US
        ahead = set(connection.execute(BEGUN_AHEAD, {"ids": left, "soon": soon}).scalars()) if left else set[str]()
        if not ahead:
            return False
        rows: list[dict[str, Any]] = []
        for at, one in enumerate(self.claimed):
            if one.id in ahead:
                later_us = one.intended_us + APART_US
                new_id = delivery_id(one.schedule_id, later_us)
                self.claimed[at] = replace(one, id=new_id, intended_us=later_us)
                rows.append(_row(self.heads[one.schedule_id], later_us, self.view))
        connection.execute(BEGIN_LATE[connection.dialect.name], rows)
        return True

    def _undo(self, connection: Connection, before: set[int]) -> None:
        """These had been begun before, and do not count again."""
        kept = before.intersection(self.kept)
        PASS_OVER.execute(connection, [(number, None, None) for number in sorted(kept)], {})
        if counted := sorted(before - kept):
            connection.execute(NOT_FIRED, {"ids": counted})
        end_schedules(connection, sorted(before), self.view.now_us)


def _occurrence(head: Head, intended_us: int, next_us: int | None, overlap: Overlap, now_us: int) -> Occurrence:
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
        authority=Authority.read(head.credentials, head.scopes),
    )


def _row(head: Head, intended_us: int, view: View) -> dict[str, Any]:
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
        "standing": Standing.RUNNING.value,
        "attempt": 1,
        "lost": 0,
        "in_doubt": False,
        "owner": view.owner,
        "fence": 1,
        "leased_until_us": view.now_us + view.lease_us,
        "created_us": view.now_us,
        "started_us": view.now_us,
        "ended_us": None,
        "reason": None,
    }


def _left_out(head: Head, skipped: Skipped, view: View) -> dict[str, Any]:
    """One record for all that were left out together, under the first of them."""
    reason = skipped.reason
    if skipped.count > 1:
        reason = f"{reason} ({skipped.count} of them, until {moment(skipped.last_us).isoformat()})"
    ended = {"standing": Standing.SKIPPED.value, "attempt": 0, "fence": 0, "owner": None, "leased_until_us": None}
    row = _row(head, skipped.first_us, view) | ended
    return row | {"started_us": None, "ended_us": view.now_us, "reason": reason}
