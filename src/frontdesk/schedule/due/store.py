"""What is due, as one worker sees it: it settles what has ended and claims what is due in one transaction."""

import time
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

import anyio
import structlog
from sqlalchemy import Connection, Row, bindparam, case, exists, func, literal_column, select, text, update

from frontdesk.db.each import UpdateEach
from frontdesk.db.engine import Database
from frontdesk.db.lists import one_of
from frontdesk.db.schema import UNDER_WAY, WAITS_FOR_ITS_TIME, occurrences, schedules
from frontdesk.schedule.due.again.store import RUNNING, occurrence_of
from frontdesk.schedule.due.claim.store import NEXT, claim
from frontdesk.schedule.due.decide import SLACK_US, View, lapsed
from frontdesk.schedule.due.fire.store import UNREADABLE
from frontdesk.schedule.due.model import Ask, Lease, Settled, Step
from frontdesk.schedule.due.settle.store import settle
from frontdesk.schedule.lanes.store import lower
from frontdesk.schedule.model import Occurrence, Trigger, TriggerKind, now_us
from frontdesk.schedule.retry import handed_back
from frontdesk.schedule.triggers.next import fire_at, set_back

log = structlog.get_logger("frontdesk.schedule")

# So many rows take a few milliseconds, for which everybody else in this process waits.
SMALL = 32
# So many ends take PostgreSQL long enough to claim meanwhile in a transaction of its own.
MANY = 16
# So many rules are reckoned anew in one transaction.
FEW = 500
# What is done in place leaves SQLite's log of changes to grow; what is done aside folds it back.
ASIDE = 64
# A plan made while these tables were small, or not counted yet, would read them whole for as long as it is kept; all
# that a step looks for, it finds by an index.
CLOCK = text(
    "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT), set_config('enable_seqscan', 'off', true),"
    " set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true)"
)
RENEW = (
    update(occurrences)
    .where(
        one_of(occurrences.c.id, "ids"),
        occurrences.c.owner == bindparam("the_owner"),
        occurrences.c.standing == literal_column("'running'"),
    )
    .values(leased_until_us=bindparam("until"))
)
MINE = select(occurrences.c.id).where(
    UNDER_WAY, occurrences.c.standing == literal_column("'running'"), occurrences.c.owner == bindparam("owner")
)
OTHERS = (
    select(
        occurrences.c.id,
        occurrences.c.owner,
        occurrences.c.started_us,
        occurrences.c.leased_until_us,
        occurrences.c.lane,
    )
    .where(UNDER_WAY, occurrences.c.standing == literal_column("'running'"))
    .where(occurrences.c.owner != bindparam("owner"))
)
# Tried at a time that has not come yet: the clock was set back since, and what was a wait of seconds is one of hours.
TRIED_LATER = (
    select(occurrences.c.id, occurrences.c.lane)
    .where(UNDER_WAY, occurrences.c.standing == literal_column("'waiting'"))
    .where(func.coalesce(occurrences.c.started_us, occurrences.c.created_us) > bindparam("soon"))
    .where(occurrences.c.available_us > bindparam("soon"))
)
AT_ONCE = (
    update(occurrences)
    .where(one_of(occurrences.c.id, "ids"), occurrences.c.standing == literal_column("'waiting'"))
    .values(available_us=bindparam("now"))
)
# The latest that anything was done to a schedule at a time that has not come yet.
touched_us = case(
    (func.coalesce(schedules.c.last_us, 0) > schedules.c.updated_us, schedules.c.last_us), else_=schedules.c.updated_us
)
WRONG_CLOCK = select(func.max(touched_us)).where(
    WAITS_FOR_ITS_TIME, schedules.c.fire_us > bindparam("soon"), touched_us > bindparam("soon")
)
RECURRING = (
    select(
        *(schedules.c[name] for name in ("id", "lane", "kind", "value", "zone", "start_us", "end_us", "jitter_s")),
        *(schedules.c[name] for name in ("intended_us", "created_us", "updated_us")),
    )
    .where(WAITS_FOR_ITS_TIME, schedules.c.fire_us > bindparam("now"), schedules.c.kind != literal_column("'once'"))
    # One that is being run for the last time keeps that time until it has ended.
    .where(
        ~exists().where(
            occurrences.c.schedule_id == schedules.c.id, occurrences.c.intended_us == schedules.c.intended_us
        )
    )
    .order_by(schedules.c.id)
)
NEXT_FEW = RECURRING.where(schedules.c.id > bindparam("after")).limit(FEW)
AGAIN = RECURRING.where(one_of(schedules.c.id, "ids"))
MOVE = UpdateEach(schedules, ["id"], ["start_us", "intended_us", "fire_us"], {})


class DueStore:
    """One for a worker: `owner` is its name. PostgreSQL's own clock says what is due, unless one is given."""

    def __init__(self, database: Database, owner: str, lease_us: int, clock: Callable[[], int] | None = None) -> None:
        self._database = database
        self._owner = owner
        self._lease_us = lease_us
        self._clock = clock
        self._steps = 0
        # How far the clock was ahead of one that nobody sets, at most; and whether what is stored was looked at yet.
        self._ahead_us: int | None = None
        self._looked = False
        # When the clock was set back, and which time it had reached before.
        self._set_back: tuple[int, int] | None = None
        self.held: set[str] = set()
        # Two transactions of one worker would want the same rows in different orders. A claim passes over what is
        # locked, and waits for nobody; but each must know what was claimed before, and so must whoever hands back.
        self._turn = anyio.Lock()
        self._claiming = anyio.Lock()

    async def step(self, settled: Sequence[Settled], ask: Ask) -> Step:
        """Record how attempts ended, and claim what is due for as many places as are asked for."""

        def work(connection: Connection) -> Step:
            now = self._now(connection)
            kept = settle(connection, self._owner, settled, now) if settled else []
            if ask.places <= 0:
                return Step(now, kept, [], None)
            view = self._view(ask, now)
            claimed = claim(connection, view)
            return Step(now, kept, claimed, connection.execute(NEXT).scalar())

        self._steps += 1
        small = len(settled) + ask.places <= SMALL and self._steps % ASIDE != 0
        async with self._turn, self._claiming:
            done = await self._database.whole(work, small=small)
            self.held.difference_update(one.occurrence.id for one in settled)
            self.held.update(one.id for one in done.claimed)
            return done

    def better_apart(self, ended: int, ask: Ask) -> bool:
        """Whether to `settle` and to `begin` at the same time, instead of one `step`.

        What is settled meanwhile frees lanes that the claim does not see: not for who claims no more after it.
        """
        return self._database.shared and ended >= MANY and ask.places > 0 and ask.due_by_us is None

    async def begin(self, ask: Ask) -> Step:
        """Claim, while others of this worker settle; there may be more to claim at once."""

        def work(connection: Connection) -> Step:
            now = self._now(connection)
            view = self._view(ask, now)
            return Step(now, [], claim(connection, view), now)

        async with self._claiming:
            done = await self._database.whole(work, small=False)
            self.held.update(one.id for one in done.claimed)
            return done

    async def claim(self, ask: Ask) -> Sequence[Occurrence]:
        return (await self.step((), ask)).claimed

    async def settle(self, settled: Sequence[Settled]) -> Sequence[Settled]:
        """Those whose end was still this worker's to tell."""

        def work(connection: Connection) -> list[Settled]:
            return settle(connection, self._owner, settled, self._now(connection))

        async with self._turn:
            kept = await self._database.whole(work, small=len(settled) <= SMALL)
            self.held.difference_update(one.occurrence.id for one in settled)
            return kept

    async def renew(self) -> frozenset[str]:
        """Keep what is held; what of it has been taken over by somebody else, and is held no longer."""

        def work(connection: Connection) -> set[str]:
            until = self._now(connection) + self._lease_us
            connection.execute(RENEW, {"ids": list(held), "the_owner": self._owner, "until": until})
            return set(connection.execute(MINE, {"owner": self._owner}).scalars())

        async with self._turn:
            # Not what is claimed meanwhile, which this may not see.
            held = frozenset(self.held)
            if not held:
                return held
            lost = held - await self._database.whole(work, small=len(held) <= SMALL)
            self.held -= lost
            return lost

    async def hand_back(self, ids: Collection[str] = ()) -> int:
        """Let others go on with these, and with what this worker has without knowing it; how many there were."""

        def work(connection: Connection) -> int:
            now = self._now(connection)
            rows = connection.execute(RUNNING.where(occurrences.c.owner == self._owner)).all()
            left = [occurrence_of(row) for row in rows if row.id in ids or row.id not in self.held]
            if left:
                settle(connection, self._owner, [handed_back(one, now - one.started_us) for one in left], now)
                lower(connection, {one.lane: now for one in left}, now)
            return len(left)

        async with self._turn, self._claiming:
            number = await self._database.whole(work, small=False)
            self.held.difference_update(ids)
            return number

    async def recover(
        self,
        knows_dead: Callable[[str], bool],
        look: Callable[[Sequence[Lease]], Collection[Lease]] = lambda leases: leases,
    ) -> frozenset[str]:
        """The owners that are surely gone; what they left running is due at once, and so is what is leased no longer.

        So is what a clock that was set back keeps waiting for a time that it had reached before. `look` is shown the
        leases of all others, and says which were left alone.
        """

        def work(connection: Connection) -> frozenset[str]:
            now = self._now(connection)
            rows = connection.execute(OTHERS, {"owner": self._owner}).all()
            found = {Lease(row.id, row.owner, row.leased_until_us): row for row in rows}
            dead = frozenset(owner for owner in {row.owner for row in rows} if knows_dead(owner))
            alone = look(list(found))
            over = {lease for lease in alone if lapsed(found[lease].started_us, lease.until_us, now, self._lease_us)}
            left = {row.lane for lease, row in found.items() if lease in over or row.owner in dead}
            waiting = connection.execute(TRIED_LATER, {"soon": now + SLACK_US}).all()
            if due := {*left, *(row.lane for row in waiting)}:
                lower(connection, dict.fromkeys(due, now), now)
            if waiting:
                connection.execute(AT_ONCE, {"ids": [row.id for row in waiting], "now": now})
            return dead

        async with self._turn:
            dead = await self._database.whole(work, small=True)
            await self._go_on_after_set_back()
            return dead

    async def _go_on_after_set_back(self) -> None:
        """Rules that recur go on by the new time, where a clock that was ahead had moved them to a later one."""

        def was_set_back(connection: Connection) -> bool:
            now = self._now(connection)
            before_us = self._ahead_us or 0
            self._ahead_us = now - _steady_us()
            reached = before_us + _steady_us() if self._ahead_us < before_us - SLACK_US else None
            if reached is None and not self._looked:
                # Where this process is new, what is stored tells whether the clock was ahead before.
                reached = connection.execute(WRONG_CLOCK, {"soon": now + SLACK_US}).scalar()
            self._looked = True
            if reached is not None:
                self._set_back = (now, reached)
            return reached is not None

        if not await self._database.whole(was_set_back, small=True):
            return
        after: int | None = 0
        while after is not None:
            after = await self._database.whole(partial(_move_back, clock=self._now, after=after), small=False)

    def _view(self, ask: Ask, now: int) -> View:
        since, reached = self._set_back or (0, 0)
        return View(ask, self._owner, set(self.held), now, self._lease_us, since if now <= reached else now)

    def _now(self, connection: Connection) -> int:
        if self._clock is not None:
            now = self._clock()
        else:
            now = connection.execute(CLOCK).scalar_one() if connection.dialect.name == "postgresql" else now_us()
        ahead_us = now - _steady_us()
        self._ahead_us = ahead_us if self._ahead_us is None else max(ahead_us, self._ahead_us)
        return now


def _steady_us() -> int:
    """A clock that nobody sets."""
    return time.monotonic_ns() // 1000


def _move_back(connection: Connection, clock: Callable[[Connection], int], after: int) -> int | None:
    """Reckon the next few rules anew; the id to go on after, None at the end."""
    now = clock(connection)
    rows = connection.execute(NEXT_FEW, {"now": now, "after": after}).all()
    found = [row for row in rows if _moved(row, now) is not None]
    if found:
        # Nobody fires them meanwhile: who holds a lane may change what stands in it.
        lower(connection, dict.fromkeys((row.lane for row in found), None), now)
        moved: list[tuple[int, int | None, int, int]] = []
        lanes: dict[str, int] = {}
        for row in connection.execute(AGAIN, {"now": now, "ids": [row.id for row in found]}).all():
            new = _moved(row, now)
            if new is not None:
                trigger, intended_us = new
                fire_us = fire_at(trigger, row.id, intended_us)
                moved.append((row.id, trigger.start_us, intended_us, fire_us))
                lanes[row.lane] = min(fire_us, lanes.get(row.lane, fire_us))
        MOVE.execute(connection, moved, {})
        if lanes:
            lower(connection, lanes, now)
        log.warning("clock_set_back", schedules=len(moved))
    return rows[-1].id if len(rows) == FEW else None


def _moved(row: Row[Any], now: int) -> tuple[Trigger, int] | None:
    trigger = Trigger(TriggerKind(row.kind), row.value, row.zone, row.start_us, row.end_us, row.jitter_s)
    try:
        return set_back(trigger, row.intended_us, now, (row.created_us, row.updated_us))
    except UNREADABLE:
        # It is told of when it fires.
        return None
