"""Runs turns as tasks of this process: one at a time for each lock, cancelled by any process, and recorded."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Generic, TypeVar

import anyio
import structlog
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectSendStream

from frontdesk.agents.turns.model import LeaseOwner, NewTurn, TurnQuery, TurnRecord
from frontdesk.agents.turns.store import TurnStore
from frontdesk.background import BackgroundJob, retry_delays
from frontdesk.db.engine import Transaction
from frontdesk.errors import Busy, Conflict, FrontdeskError, NotFound, Unavailable
from frontdesk.identity.authority import UNLIMITED, Authority, limit_caller
from frontdesk.identity.keys import LOCAL_USER
from frontdesk.identity.model import Caller
from frontdesk.llm.events import Done, Event, Failed, FailureKind, Started, StopReason, TurnEnd, Usage

T = TypeVar("T")
Emit = Callable[[Event], Awaitable[None]]

WAIT_SECONDS = 300
POLL_SECONDS = (0.02, 0.05, 0.1, 0.25, 0.5)
RENEW_SECONDS = 1.0
END_SECONDS = 10
END_PAUSES = (0.1, 0.3, 1.0, 3.0)
CLOSE_SECONDS = 30
# How long a caller that starts a turn in the background waits for it to begin.
BEGIN_SECONDS = 5
EVENT_BUFFER = 64

log = structlog.get_logger("frontdesk.turns")
LEASE_RENEWAL = BackgroundJob(log, "turn_leases_wait", "turn_leases_failed")
UNWATCHED_TURNS = BackgroundJob(log, "turn_not_begun", "turn_failed")


@dataclass(frozen=True, slots=True)
class TurnWork(Generic[T]):
    """The host's part of a turn.

    `begin` runs in the transaction that claims the turn; an error there refuses the turn. `run` takes the turn, outside
    any transaction, and returns how it ended. `end`, if given, stores the rest in the transaction that records the end.
    `spent` returns the usage of a turn that was cancelled.
    """

    begin: Callable[[Transaction], Awaitable[T]]
    run: Callable[[T, Emit], Awaitable[TurnEnd]]
    end: Callable[[Transaction], Awaitable[None]] | None = None
    spent: Callable[[], Usage] = lambda: Usage(0, 0)


@dataclass(slots=True)
class RunningTurn:
    """A turn that runs in this process; `lost` is set once another process has taken it over."""

    new: NewTurn
    lost: bool = False
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    finished: anyio.Event = field(default_factory=anyio.Event)


@dataclass(slots=True)
class UnwatchedTurn:
    """A turn in the background; `settled` is set once it began or was refused, or its caller stopped waiting."""

    turn_id: str | None = None
    refused: FrontdeskError | None = None
    settled: anyio.Event = field(default_factory=anyio.Event)

    async def consume(self, events: AsyncGenerator[Event]) -> None:
        try:
            async with aclosing(events) as opened:
                async for event in opened:
                    if isinstance(event, Started):
                        self.turn_id = event.turn_id
                        self.settled.set()
        except FrontdeskError as error:
            if self.settled.is_set():
                raise
            self.refused = error
        finally:
            self.settled.set()


@dataclass(slots=True)
class TurnLock:
    """The part of a turn lock within this process, and the number of turns that hold it or wait for it."""

    # Not an anyio.Lock: another task than the one that acquired it may close the generator.
    semaphore: anyio.Semaphore = field(default_factory=lambda: anyio.Semaphore(1))
    users: int = 0


class TurnService:
    """Takes turns in tasks of this process. From the first turn on, another task renews their leases."""

    def __init__(self, store: TurnStore, tasks: TaskGroup) -> None:
        self.owner = LeaseOwner()
        self._store = store
        self._tasks = tasks
        self._running: dict[str, RunningTurn] = {}
        self._locks: dict[str, TurnLock] = {}
        self._stop = StopReason.CANCELLED
        self._renewing = False

    async def take(self, new: NewTurn, work: TurnWork[T]) -> AsyncGenerator[Event]:
        """Take a turn and yield its events, from `Started` to `Done`; closing this early cancels the turn."""
        async with self._locked(new.lane):
            begun = await self._claim(new, work)
            send, receive = anyio.create_memory_object_stream[Event](EVENT_BUFFER)
            underway = self._running[new.id] = RunningTurn(new)
            self._tasks.start_soon(self._perform, underway, work, begun, send)
            if not self._renewing:
                self._renewing = True
                self._tasks.start_soon(self._renew_leases)
            try:
                async with receive:
                    async for event in receive:
                        yield event
            finally:
                underway.scope.cancel()
                with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                    await underway.finished.wait()

    async def start_in_background(self, events: AsyncGenerator[Event]) -> str | None:
        """Take a turn whose events nobody reads; returns its id, or None if it still waits for another turn's end.

        If the host refuses the turn while the caller waits here, its error is raised; later it is logged.
        """
        turn = UnwatchedTurn()
        self._tasks.start_soon(UNWATCHED_TURNS.attempt, partial(turn.consume, events))
        try:
            with anyio.move_on_after(BEGIN_SECONDS):
                await turn.settled.wait()
        finally:
            turn.settled.set()
        if turn.refused is not None:
            raise turn.refused
        return turn.turn_id

    async def list(self, query: TurnQuery) -> Sequence[TurnRecord]:
        """The turns of all processes, running or ended, the newest first."""
        return await self._store.list(query)

    async def find(self, turn_id: str) -> TurnRecord:
        if (found := await self._store.find(turn_id)) is None:
            raise turn_not_found(turn_id)
        return found

    async def neighbours(self, turn: TurnRecord) -> tuple[str | None, str | None]:
        """The ids of the turns before and after one, in its conversation."""
        return await self._store.neighbours(turn)

    async def caller_to_continue(self, lock: str, conversation_id: str, caller: Caller) -> Caller:
        """The caller for whom a turn continues after an approval: the turn's person, with the turn's first rights.

        If that person approves it, the limits of their present credential apply too.
        """
        turn = await self._store.waiting(lock, conversation_id)
        if turn is None:
            return caller
        bound = await self._store.authorities.current(turn.authority)
        if caller.user_id == turn.user_id:
            return limit_caller(caller, bound)
        if turn.user_id == LOCAL_USER and not bound.credentials:
            # Everybody who chats without a key shares one name, which proves nothing.
            bound = replace(bound, credentials=(LOCAL_USER,))
        return bound.applied_to(Caller(caller.request_id, user_id=turn.user_id))

    async def current_authority(self, lane: str | None, agent_id: str) -> Authority:
        """The limits of an agent now: of the turn under a lock, or without a lock, of its turns in this process."""
        if lane is not None:
            turn = await self._store.running(lane)
            return UNLIMITED if turn is None else turn.authority
        found = UNLIMITED
        for underway in self._running.values():
            if underway.new.agent_id == agent_id:
                found = found.combined_with(underway.new.authority)
        return found

    async def settle(self, lock: str, conversation_id: str) -> None:
        """Record that nothing waits for approval in a conversation."""
        await self._store.settle(lock, conversation_id)

    async def cancel(self, lock: str, conversation_id: str) -> bool:
        """Cancel the turn of a conversation, here or in another process; returns whether one was running."""
        this = (lock, conversation_id)
        here = [turn for turn in self._running.values() if (turn.new.lane, turn.new.conversation_id) == this]
        for underway in here:
            underway.scope.cancel()
        for underway in here:
            with anyio.move_on_after(END_SECONDS):
                await underway.finished.wait()
        return bool(here) or await self._store.ask_cancel(lock, conversation_id)

    async def cancel_all(self, agent_id: str) -> None:
        """Cancel an agent's turns in this process."""
        await self._cancel([turn for turn in self._running.values() if turn.new.agent_id == agent_id])

    async def cancel_person(self, user_id: str) -> None:
        """Cancel a person's turns in this process."""
        await self._cancel([turn for turn in self._running.values() if turn.new.user_id == user_id])

    async def _cancel(self, here: Sequence[RunningTurn]) -> None:
        for turn in here:
            turn.scope.cancel()
        with anyio.move_on_after(END_SECONDS):
            for turn in here:
                await turn.finished.wait()

    async def hold(self, transaction: Transaction, turn_id: str) -> None:
        """Raise `TakenOver` unless this process still owns the turn; a turn calls it before it stores something."""
        await self._store.hold(transaction, turn_id, self.owner)

    async def close(self) -> None:
        """Cancel all turns of this process; they are recorded as interrupted."""
        self._stop = StopReason.INTERRUPTED
        underway = list(self._running.values())
        for turn in underway:
            turn.scope.cancel()
        with anyio.move_on_after(END_SECONDS, shield=True):
            for turn in underway:
                await turn.finished.wait()

    async def recover(self, lock: str) -> None:
        """Mark a turn that a dead process left in the lock as interrupted."""
        await self._store.recover(self.owner, lock, set(self._running))

    async def _renew_leases(self) -> None:
        """Renew the leases of our turns, and cancel those that were cancelled through another process."""
        await LEASE_RENEWAL.run_every(RENEW_SECONDS, self._keep_alive)

    async def _keep_alive(self) -> None:
        ids = set(self._running)
        if not ids:
            return
        ours, cancelled = await self._store.renew(self.owner, ids)
        for turn_id in (ids - ours) | cancelled:
            if (underway := self._running.get(turn_id)) is not None:
                underway.lost = turn_id not in ours
                underway.scope.cancel()

    @asynccontextmanager
    async def _locked(self, lane: str) -> AsyncGenerator[None]:
        """Hold the lock within this process; it is deleted when nobody holds it or waits for it."""
        lock = self._locks.setdefault(lane, TurnLock())
        lock.users += 1
        try:
            try:
                with anyio.fail_after(WAIT_SECONDS):
                    await lock.semaphore.acquire()
            except TimeoutError as error:
                raise Busy(f"Other turns have been going on for {WAIT_SECONDS} s; cancel them or try later") from error
            try:
                yield
            finally:
                lock.semaphore.release()
        finally:
            lock.users -= 1
            if lock.users == 0:
                self._locks.pop(lane, None)

    async def _claim(self, new: NewTurn, work: TurnWork[T]) -> T:
        deadline = anyio.current_time() + WAIT_SECONDS
        waits = retry_delays(*POLL_SECONDS)
        while True:
            claimed = await self._store.claim(new, self.owner, work.begin)
            if claimed is not None:
                return claimed.begun
            if anyio.current_time() > deadline:
                raise Busy(f"Another turn has been going on for {WAIT_SECONDS} s; cancel it or try later")
            await anyio.sleep(next(waits))

    async def _perform(
        self, underway: RunningTurn, work: TurnWork[T], begun: T, send: MemoryObjectSendStream[Event]
    ) -> None:
        """Take one turn, in a task of its own; in every case, its end is recorded and `Done` is sent."""
        new = underway.new
        ending: TurnEnd | None = None
        try:
            with underway.scope:
                await send.send(Started(new.id, new.conversation_id))
                ending = await self._ending(work, begun, send.send)
        except anyio.BrokenResourceError:
            log.debug("turn_left", turn_id=new.id)
        finally:
            stop = StopReason.INTERRUPTED if underway.lost else self._stop
            ending = ending or TurnEnd(stop, usage=work.spent())
            ending = await self._end(new, ending, work.end)
            self._running.pop(new.id, None)
            underway.finished.set()
            with send, suppress(anyio.BrokenResourceError):
                await send.send(Done(ending.stop))

    async def _ending(self, work: TurnWork[T], begun: T, emit: Emit) -> TurnEnd:
        """Run the turn; an error in it ends the turn and nothing else."""
        try:
            return await work.run(begun, emit)
        except FrontdeskError as error:
            failure = _failure_of(error)
        except anyio.BrokenResourceError:
            raise
        except Exception:
            log.exception("turn_failed")
            failure = Failed(FailureKind.INTERNAL, "The turn failed inside Frontdesk; its log says why")
        await emit(failure)
        return TurnEnd(StopReason.ERROR, usage=work.spent(), failure=failure.trouble)

    async def _end(
        self, new: NewTurn, ending: TurnEnd, within: Callable[[Transaction], Awaitable[None]] | None
    ) -> TurnEnd:
        """Record the end, and return it as recorded; a turn ends even if its results cannot be stored."""
        with anyio.move_on_after(END_SECONDS, shield=True):
            for pause in (*END_PAUSES, None):
                try:
                    if not await self._store.end(new.id, self.owner, ending, datetime.now(UTC), within):
                        log.warning("turn_was_taken_over", turn_id=new.id)
                except Unavailable as error:
                    log.warning("turn_end_waits", turn_id=new.id, error=str(error))
                except Exception:
                    log.exception("turn_end_not_stored", turn_id=new.id)
                    ending, within = TurnEnd(StopReason.ERROR, usage=ending.usage, failure=FailureKind.INTERNAL), None
                else:
                    return ending
                if pause is not None:
                    await anyio.sleep(pause)
        # The next turn in this lock finds it abandoned, and the turn shows as interrupted.
        return ending


def turn_not_found(turn_id: str) -> NotFound:
    return NotFound(f"There is no turn '{turn_id}'; it may have been deleted with its conversation")


def _failure_of(error: FrontdeskError) -> Failed:
    if isinstance(error, Unavailable):
        return Failed(FailureKind.UNAVAILABLE, error.public_message, error.retry_after)
    return Failed(FailureKind.BUSY if isinstance(error, Conflict) else FailureKind.INVALID, error.public_message)
