"""Stores turns: claims them, renews their leases, ends them, and interrupts those of dead processes."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from pydantic import TypeAdapter
from sqlalchemy import ColumnElement, Row, bindparam, func, insert, select, text, tuple_, update

from frontdesk.agents.turns.model import LEASE, LeaseOwner, NewTurn, TurnQuery, TurnRecord
from frontdesk.db.engine import Database, Transaction
from frontdesk.db.schema import turns
from frontdesk.db.statements import lease_time
from frontdesk.errors import Conflict, TakenOver
from frontdesk.identity.authority import Authority, AuthorityService
from frontdesk.identity.store import KeyStore
from frontdesk.llm.events import ApprovalRequest, StopReason, TurnEnd

T = TypeVar("T")
PENDING_ADAPTER = TypeAdapter(list[ApprovalRequest])
# Built once: every turn runs these, and building a statement takes longer than running it.
INSERT_TURN = insert(turns)
LOCK_LANE = text("SELECT pg_advisory_xact_lock(hashtextextended(:lane, 3020))")
RUNNING_TURN = select(turns).where(turns.c.lane == bindparam("lane"), turns.c.running)
CHECK_OWNER = (
    select(turns.c.id)
    .where(turns.c.id == bindparam("the_id"), turns.c.owner == bindparam("the_owner"), turns.c.running)
    .with_for_update()
)
END_OWNED_TURN = update(turns).where(
    turns.c.id == bindparam("the_id"), turns.c.owner == bindparam("the_owner"), turns.c.running
)
# Set while tool calls of a turn wait for approval.
HAS_PENDING = turns.c.pending.is_not(None)
CLEAR_PENDING = (
    update(turns)
    .where(turns.c.lane == bindparam("the_lane"), turns.c.conversation_id == bindparam("the_conversation"), HAS_PENDING)
    .values(pending=None)
)


@dataclass(frozen=True, slots=True)
class ClaimedTurn(Generic[T]):
    """A turn was claimed; `begun` is the result of the host's part of the transaction."""

    begun: T


class TurnStore:
    """Stores turns. `within` is the host's work in the same transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.authorities = AuthorityService(KeyStore(database))

    async def claim(
        self, new: NewTurn, owner: LeaseOwner, within: Callable[[Transaction], Awaitable[T]]
    ) -> ClaimedTurn[T] | None:
        """Begin a turn and do `within`; returns None while another turn of the lock is running."""
        async with self._database.brief_transaction() as connection:
            if connection.dialect.name == "postgresql":
                await connection.execute(LOCK_LANE, {"lane": new.lane})
            now = await lease_time(connection)
            if not await self._free(connection, new.lane, owner, now):
                return None
            row = {
                "id": new.id,
                "lane": new.lane,
                "agent_id": new.agent_id,
                "conversation_id": new.conversation_id,
                "user_id": new.user_id,
                "otid": new.otid,
                "running": True,
                "owner": str(owner),
                "leased_until": now + LEASE,
                "cancel_asked": False,
                "input_tokens": 0,
                "output_tokens": 0,
                "started_at": now,
                **new.authority.columns,
            }
            await connection.execute(INSERT_TURN, row)
            return ClaimedTurn(await within(connection))

    async def _free(self, connection: Transaction, lock: str, owner: LeaseOwner, now: datetime) -> bool:
        """Whether no turn runs in the lock; a turn that a dead owner left there is marked as interrupted."""
        found = (await connection.execute(RUNNING_TURN, {"lane": lock})).one_or_none()
        if found is None:
            return True
        # A turn of this process was left behind: the caller holds this process's lock, so none of ours runs.
        if found.owner != str(owner) and not _abandoned(found, owner, now):
            return False
        await connection.execute(_interrupt([found.id], now))
        return True

    async def end(
        self,
        turn_id: str,
        owner: LeaseOwner,
        ending: TurnEnd,
        now: datetime,
        within: Callable[[Transaction], Awaitable[None]] | None = None,
    ) -> bool:
        """Record the end; returns False, and writes nothing, if the owner has lost the turn."""
        pending = PENDING_ADAPTER.dump_json(list(ending.pending)).decode() if ending.pending else None
        change = {
            "the_id": turn_id,
            "the_owner": str(owner),
            "running": False,
            "stop": ending.stop,
            "pending": pending,
            "input_tokens": ending.usage.input_tokens,
            "output_tokens": ending.usage.output_tokens,
            "cost_usd": ending.usage.cost_usd,
            "failure": ending.failure,
            "ended_at": now,
        }
        async with self._database.brief_transaction() as connection:
            if (await connection.execute(END_OWNED_TURN, change)).rowcount == 0:
                return False
            if within is not None:
                await within(connection)
        return True

    async def renew(self, owner: LeaseOwner, ids: Collection[str]) -> tuple[set[str], set[str]]:
        """Renew the leases of these turns; returns the turns still owned, and those to be cancelled."""
        mine = (turns.c.id.in_(ids), turns.c.owner == str(owner), turns.c.running)
        async with self._database.transaction() as connection:
            until = await lease_time(connection) + LEASE
            await connection.execute(update(turns).where(*mine).values(leased_until=until))
            rows = (await connection.execute(select(turns.c.id, turns.c.cancel_asked).where(*mine))).all()
        return {row.id for row in rows}, {row.id for row in rows if row.cancel_asked}

    async def ask_cancel(self, lock: str, conversation_id: str) -> bool:
        """Ask the owner to cancel the running turn of a conversation; returns whether there is one."""
        this = (turns.c.lane == lock, turns.c.conversation_id == conversation_id, turns.c.running)
        change = update(turns).where(*this).values(cancel_asked=True)
        async with self._database.transaction() as connection:
            return (await connection.execute(change)).rowcount > 0

    async def hold(self, connection: Transaction, turn_id: str, owner: LeaseOwner) -> None:
        """Check, within a transaction, that a turn still belongs to its owner, which may then write."""
        given = {"the_id": turn_id, "the_owner": str(owner)}
        if (await connection.execute(CHECK_OWNER, given)).one_or_none() is None:
            raise TakenOver

    async def find(self, turn_id: str) -> TurnRecord | None:
        async with self._database.read_transaction() as connection:
            row = (await connection.execute(select(turns).where(turns.c.id == turn_id))).one_or_none()
        return None if row is None else _record(row)

    async def list(self, query: TurnQuery) -> Sequence[TurnRecord]:
        """List turns, the newest first; an unknown `before` or `after` is ignored."""
        async with self._database.read_transaction() as connection:
            place = await _cursor_of(connection, query.before or query.after)
            forward = query.after is not None and place is not None
            wanted = select(turns).where(*_conditions(query))
            key = tuple_(turns.c.started_at, turns.c.id)
            if place is not None:
                wanted = wanted.where(key > place if forward else key < place)
            order = (turns.c.started_at, turns.c.id) if forward else (turns.c.started_at.desc(), turns.c.id.desc())
            rows = (await connection.execute(wanted.order_by(*order).limit(query.limit))).all()
        found = [_record(row) for row in rows]
        return found[::-1] if forward else found

    async def settle(self, lock: str, conversation_id: str) -> None:
        """Record that nothing waits for approval in a conversation."""
        async with self._database.transaction() as connection:
            await clear_pending(connection, lock, conversation_id)

    async def waiting(self, lock: str, conversation_id: str) -> TurnRecord | None:
        """The turn of a conversation that waits for approval, as far as we know."""
        this = (turns.c.lane == lock, turns.c.conversation_id == conversation_id, HAS_PENDING)
        query = select(turns).where(*this).order_by(turns.c.started_at.desc()).limit(1)
        async with self._database.read_transaction() as connection:
            row = (await connection.execute(query)).one_or_none()
        return None if row is None else _record(row)

    async def running(self, lock: str) -> TurnRecord | None:
        """The running turn of a lock, in any process."""
        async with self._database.read_transaction() as connection:
            row = (await connection.execute(RUNNING_TURN, {"lane": lock})).one_or_none()
        return None if row is None else _record(row)

    async def neighbours(self, turn: TurnRecord) -> tuple[str | None, str | None]:
        """The ids of the turns before and after one, in its conversation."""
        at, same = turns.c.started_at, turns.c.conversation_id == turn.conversation_id
        query = select(turns.c.id).where(turns.c.lane == turn.lane, same).limit(1)
        async with self._database.read_transaction() as connection:
            before = await connection.execute(query.where(at < turn.started_at).order_by(at.desc()))
            after = await connection.execute(query.where(at > turn.started_at).order_by(at))
            return before.scalar_one_or_none(), after.scalar_one_or_none()

    async def recover(self, owner: LeaseOwner, lock: str, underway: Collection[str]) -> int:
        """Mark the turns that dead owners left, and ours that no longer run, as interrupted; returns how many."""
        async with self._database.read_transaction() as connection:
            rows = (await connection.execute(RUNNING_TURN, {"lane": lock})).all()
            now = await lease_time(connection)
        left = {row.id for row in rows if row.owner == str(owner) and row.id not in underway}
        gone = [row.id for row in rows if row.id in left or _abandoned(row, owner, now)]
        if gone:
            async with self._database.transaction() as connection:
                await connection.execute(_interrupt(gone, now))
        return len(gone)


async def require_idle(connection: Transaction, lock: str) -> None:
    """Raise an error while a turn of the lock is running; none begins until the transaction ends."""
    if connection.dialect.name == "postgresql":
        await connection.execute(LOCK_LANE, {"lane": lock})
    if (await connection.execute(RUNNING_TURN, {"lane": lock})).first() is not None:
        raise Conflict("The agent is in the middle of a turn; wait for its end, or cancel it")


async def clear_pending(connection: Transaction, lock: str, conversation_id: str) -> None:
    """Record, within a transaction, that nothing waits for approval in a conversation."""
    await connection.execute(CLEAR_PENDING, {"the_lane": lock, "the_conversation": conversation_id})


def parse_pending(stored: str | None) -> Sequence[ApprovalRequest]:
    return PENDING_ADAPTER.validate_json(stored) if stored else ()


async def _cursor_of(connection: Transaction, turn_id: str | None) -> tuple[object, ...] | None:
    if turn_id is None:
        return None
    row = (await connection.execute(select(turns.c.started_at, turns.c.id).where(turns.c.id == turn_id))).one_or_none()
    return None if row is None else tuple(row)


def _conditions(query: TurnQuery) -> Sequence[ColumnElement[bool]]:
    wanted: list[ColumnElement[bool]] = []
    if query.waiting:
        wanted.append(HAS_PENDING)
    if query.agent_id is not None:
        # Few turns wait, but a database without statistics would scan all of the agent's turns instead.
        agent = func.coalesce(turns.c.agent_id, "") if query.waiting else turns.c.agent_id
        wanted.append(agent == query.agent_id)
    if query.stop is not None:
        wanted.append(turns.c.stop == query.stop)
    if query.running:
        # The index also contains ended turns; this condition skips them.
        wanted.append(turns.c.stop.is_(None))
    return wanted


def _record(row: Row[tuple[object, ...]]) -> TurnRecord:
    return TurnRecord(
        id=row.id,
        lane=row.lane,
        agent_id=row.agent_id,
        conversation_id=row.conversation_id,
        user_id=row.user_id,
        otid=row.otid,
        running=row.running,
        stop=StopReason(row.stop) if row.stop else None,
        pending=parse_pending(row.pending),
        waits=row.pending is not None,
        cancel_asked=row.cancel_asked,
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
        cost_usd=row.cost_usd,
        failure=row.failure,
        started_at=row.started_at,
        ended_at=row.ended_at,
        authority=Authority.from_columns(row.credentials, row.scopes),
    )


def _abandoned(row: Row[tuple[object, ...]], owner: LeaseOwner, now: datetime) -> bool:
    return row.leased_until < now or owner.knows_ended(row.owner)


def _interrupt(ids: Collection[str], now: datetime):  # noqa: ANN202 - SQLAlchemy's own type says no more
    changed = {"running": False, "stop": StopReason.INTERRUPTED, "ended_at": now}
    return update(turns).where(turns.c.id.in_(ids), turns.c.running).values(changed)
