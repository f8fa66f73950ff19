"""What is due, as one worker sees it: it settles what has ended and claims what is due in one transaction."""

from collections.abc import Callable, Collection, Sequence

import anyio
from sqlalchemy import Connection, bindparam, func, literal_column, select, text, update

from frontdesk.db.engine import Database
from frontdesk.db.lists import one_of
from frontdesk.db.schema import UNDER_WAY, occurrences
from frontdesk.schedule.due.again.store import RUNNING, occurrence_of
from frontdesk.schedule.due.claim.store import NEXT, claim
from frontdesk.schedule.due.decide import SLACK_US, View, lapsed
from frontdesk.schedule.due.model import Ask, Lease, Settled, Step
from frontdesk.schedule.due.settle.store import settle
from frontdesk.schedule.lanes.store import lower
from frontdesk.schedule.model import Occurrence, now_us
from frontdesk.schedule.retry import handed_back

# So many rows take a few milliseconds, for which everybody else in this process waits.
SMALL = 32
# So many ends take PostgreSQL long enough to claim meanwhile in a transaction of its own.
MANY = 16
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


class DueStore:
    """One for a worker: `owner` is its name. PostgreSQL's own clock says what is due, unless one is given."""

    def __init__(self, database: Database, owner: str, lease_us: int, clock: Callable[[], int] | None = None) -> None:
        self._database = database
        self._owner = owner
        self._lease_us = lease_us
        self._clock = clock
        self._steps = 0
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
            view = View(ask, self._owner, set(self.held), now, self._lease_us)
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
            view = View(ask, self._owner, set(self.held), now, self._lease_us)
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
            return await self._database.whole(work, small=True)

    def _now(self, connection: Connection) -> int:
        if self._clock is not None:
            return self._clock()
        return connection.execute(CLOCK).scalar_one() if connection.dialect.name == "postgresql" else now_us()
