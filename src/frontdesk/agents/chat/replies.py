"""Makes the replies: a task of this process for each message, its words put where streams find them."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import anyio
import structlog
from anyio.abc import TaskGroup

from frontdesk.agents.chat.feed import Feed, Heard, Place, Reply
from frontdesk.agents.chat.mirror.service import Mirror
from frontdesk.agents.chat.mirror.store import MirrorStore
from frontdesk.agents.chat.model import Session, Taken, new_message_id
from frontdesk.agents.chat.words import Ear
from frontdesk.agents.host import AgentHost, Prompt
from frontdesk.background import Chore
from frontdesk.errors import Conflict, FrontdeskError, RateLimited, Unavailable
from frontdesk.journal.model import Kind, Outcome
from frontdesk.journal.record import Record
from frontdesk.journal.service import Journal
from frontdesk.loop.events import Started, StopReason

AT_ONCE = 8
# Whoever sends a message waits so long for its turn to begin; from then on the host has it.
BEGIN_SECONDS = 2.0
RETRY_SECONDS = 1.0
FORGET_SECONDS = 5.0
END_SECONDS = 10
FAILED = "The reply failed inside Frontdesk; its log says why"
STOPPING = "Frontdesk is stopping; send the message again in a moment"

log = structlog.get_logger("frontdesk.chat")
FORGETTING = Chore(log, "chat_replies_not_forgotten", "chat_replies_not_forgotten")


@dataclass(slots=True)
class Job:
    """A reply in the making.

    Until the host has `started` it, it may be waiting behind another turn, or be `refused`; when it is known which,
    it is `settled`.
    """

    session: Session
    prompt: Prompt
    reply: Reply
    ear: Ear
    started: bool = False
    refused: FrontdeskError | None = None
    settled: anyio.Event = field(default_factory=anyio.Event)
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    finished: anyio.Event = field(default_factory=anyio.Event)

    def start(self) -> None:
        self.started = True
        self.settled.set()

    def end(self, stop: StopReason, error: FrontdeskError | None = None) -> None:
        """Say the last word; before the turn began, `error` is why it did not."""
        if not self.started:
            self.refused = error
        self.reply.add(self.ear.end(stop, error.public if error is not None and stop is StopReason.ERROR else None))


class Replies:
    """The replies of this process.

    `interrupt` ends the turns behind them; `shared` is given where other replicas may be asked to tell them.
    """

    def __init__(
        self,
        host: AgentHost,
        journal: Journal,
        tasks: TaskGroup,
        interrupt: Callable[[], Awaitable[None]],
        shared: MirrorStore | None,
    ) -> None:
        self._host = host
        self._journal = journal
        self._tasks = tasks
        self._interrupt = interrupt
        self._feed = Feed()
        self._mirror = Mirror(shared, self._feed, self._cancel) if shared else None
        self._jobs: dict[str, Job] = {}
        self._closing = False

    async def begin(
        self, session: Session, prompt: Prompt, calls: Mapping[str, Mapping[str, Any]] | None = None
    ) -> Taken:
        """Start on a reply, and see its turn begin or wait; `calls` are the tool calls the prompt is about.

        What the host refuses while somebody waits here is raised.
        """
        if self._closing:
            raise Unavailable(STOPPING)
        reply = Reply(session.id, new_message_id(), datetime.now(UTC))
        if not await self._admitted(reply, session.user_id):
            raise RateLimited(f"user {session.user_id} ({AT_ONCE} replies under way)", RETRY_SECONDS)
        job = Job(session, prompt, self._feed.open(reply), Ear(dict(calls or {})))
        self._jobs[reply.message_id] = job
        self._tasks.start_soon(self._make, job)
        with anyio.move_on_after(BEGIN_SECONDS):
            await job.settled.wait()
        if job.refused is not None:
            # Whoever sent the message is told now; streams that are opened later need not tell it again.
            await self._read(reply)
            raise job.refused
        return Taken(reply.message_id, queued=not job.settled.is_set())

    def follow(self, session_id: str, place: Place | None) -> AsyncGenerator[Heard]:
        if self._mirror is None:
            return self._feed.follow(session_id, place, _nothing_else, _nobody_else)
        return self._feed.follow(session_id, place, self._mirror.look, self._mirror.note)

    async def stop(self, session: Session) -> bool:
        """Stop a session's replies, here and elsewhere, and see them end; whether there was anything."""
        here = [job for job in self._jobs.values() if job.session.id == session.id]
        # Those that wait go first: when the one that runs has stopped, the next would begin.
        for job in here:
            if not job.started:
                job.scope.cancel()
        everywhere = await self._mirror.ask_cancel(session.id) if self._mirror is not None else ()
        stopped = await self._host.cancel(session.agent_id, session.conversation_id, session.user_id)
        with anyio.move_on_after(END_SECONDS):
            for job in here:
                await job.finished.wait()
            if self._mirror is not None and everywhere:
                await self._mirror.ended(session.id, everywhere)
        return bool(here) or bool(everywhere) or stopped

    async def run(self) -> None:
        async with anyio.create_task_group() as tasks:
            if self._mirror is not None:
                tasks.start_soon(self._mirror.run)
            await FORGETTING.every(FORGET_SECONDS, self._forget)

    async def close(self) -> None:
        """End what is under way, as interrupted; to be called more than once if need be."""
        self._closing = True
        for job in self._jobs.values():
            if not job.started:
                job.scope.cancel()
        await self._interrupt()
        with anyio.move_on_after(END_SECONDS, shield=True):
            for job in list(self._jobs.values()):
                await job.finished.wait()
            if self._mirror is not None:
                await self._mirror.close()
        self._feed.close()

    async def _forget(self) -> None:
        self._feed.forget(anyio.current_time())

    async def _admitted(self, reply: Reply, user_id: str) -> bool:
        if self._mirror is not None:
            return await self._mirror.announce(reply, user_id, AT_ONCE)
        return sum(job.session.user_id == user_id for job in self._jobs.values()) < AT_ONCE

    async def _read(self, reply: Reply) -> None:
        reply.read = True
        if self._mirror is not None:
            await self._mirror.note(reply)

    def _cancel(self, message_id: str) -> None:
        if message_id in self._jobs:
            self._jobs[message_id].scope.cancel()

    async def _make(self, job: Job) -> None:
        record = Record(self._journal, "chat", "turn", job.prompt.acting, Kind.TURN)
        try:
            with job.scope:
                await self._hear(job)
            if job.scope.cancelled_caught:
                if self._closing:
                    job.end(StopReason.INTERRUPTED, Unavailable(STOPPING))
                else:
                    job.end(
                        StopReason.CANCELLED, Conflict("The message was cancelled before its turn began; send it again")
                    )
        except FrontdeskError as error:
            job.end(StopReason.ERROR, error)
        except Exception:
            log.exception("reply_failed", request_id=job.prompt.caller.request_id)
            job.end(StopReason.ERROR, FrontdeskError(FAILED))
        finally:
            job.reply.add(job.ear.end(StopReason.INTERRUPTED))
            stop = job.reply.ended.stop if job.reply.ended else StopReason.INTERRUPTED
            record.outcome, record.reason = (Outcome.FAILED, stop) if stop.is_broken else (Outcome.OK, None)
            record.write()
            del self._jobs[job.reply.message_id]
            job.settled.set()
            job.finished.set()

    async def _hear(self, job: Job) -> None:
        async with aclosing(self._host.send(job.prompt)) as events:
            async for event in events:
                if isinstance(event, Started):
                    job.start()
                word = job.ear.hear(event)
                if word is not None:
                    job.reply.add(word)


async def _nothing_else(_session_id: str) -> bool:
    """Where there is no other replica, all is known."""
    return True


async def _nobody_else(_reply: Reply) -> None:
    """Where there is no other replica, nobody need know."""
