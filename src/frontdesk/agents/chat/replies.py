"""Makes the replies: a task of this process for each message, its words put where streams find them."""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import anyio
import structlog
from anyio.abc import TaskGroup

from frontdesk.agents.chat.feed import Feed, Heard, Place, Reply
from frontdesk.agents.chat.mirror.service import Mirror
from frontdesk.agents.chat.mirror.store import MirrorStore
from frontdesk.agents.chat.model import Session, new_message_id
from frontdesk.agents.chat.words import Ear
from frontdesk.agents.events import Started, StopReason
from frontdesk.agents.host import AgentHost, Prompt
from frontdesk.errors import FrontdeskError, RateLimited, Unavailable
from frontdesk.journal.model import Kind, Outcome, entry
from frontdesk.journal.service import Journal

AT_ONCE = 8
RETRY_SECONDS = 1.0
FORGET_SECONDS = 5.0
END_SECONDS = 10
UNFINISHED = frozenset({StopReason.ERROR, StopReason.CANCELLED, StopReason.INTERRUPTED})

log = structlog.get_logger("frontdesk.chat")


@dataclass(slots=True)
class Job:
    """A reply in the making. Until the host has `started` it, it may be waiting behind another turn."""

    session: Session
    prompt: Prompt
    reply: Reply
    ear: Ear
    started: bool = False
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    finished: anyio.Event = field(default_factory=anyio.Event)


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
    ) -> str:
        """Start on a reply and give the id of its message; `calls` are the tool calls the prompt is about."""
        if self._closing:
            raise Unavailable("Frontdesk is stopping; send the message again in a moment")
        reply = Reply(session.id, new_message_id(), datetime.now(UTC))
        if not await self._admitted(reply, session.user_id):
            raise RateLimited(f"user {session.user_id}, with {AT_ONCE} replies under way", RETRY_SECONDS)
        job = Job(session, prompt, self._feed.open(reply), Ear(dict(calls or {})))
        self._jobs[reply.message_id] = job
        self._tasks.start_soon(self._make, job)
        return reply.message_id

    def follow(self, session_id: str, place: Place | None) -> AsyncGenerator[Heard]:
        if self._mirror is None:
            return self._feed.follow(session_id, place, _nothing, _nothing)
        return self._feed.follow(session_id, place, self._mirror.look, self._mirror.note)

    async def stop(self, session: Session) -> bool:
        """Stop a session's replies, here and elsewhere, and see them end; whether there was anything."""
        here = [job for job in self._jobs.values() if job.session.id == session.id]
        # Those that wait go first: when the one that runs has stopped, the next would begin.
        for job in here:
            if not job.started:
                job.scope.cancel()
        everywhere = await self._mirror.ask_cancel(session.id) if self._mirror is not None else ()
        stopped = await self._host.cancel(session.agent_id, session.conversation_id)
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
            while True:
                await anyio.sleep(FORGET_SECONDS)
                self._feed.forget(anyio.current_time())

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

    async def _admitted(self, reply: Reply, user_id: str) -> bool:
        if self._mirror is not None:
            return await self._mirror.announce(reply, user_id, AT_ONCE)
        return sum(job.session.user_id == user_id for job in self._jobs.values()) < AT_ONCE

    def _cancel(self, message_id: str) -> None:
        if message_id in self._jobs:
            self._jobs[message_id].scope.cancel()

    async def _make(self, job: Job) -> None:
        at, began = datetime.now(UTC), time.perf_counter_ns()
        ear, reply = job.ear, job.reply
        try:
            with job.scope:
                await self._hear(job)
            if job.scope.cancelled_caught:
                reply.add(ear.end(StopReason.INTERRUPTED if self._closing else StopReason.CANCELLED))
        except FrontdeskError as error:
            reply.add(ear.end(StopReason.ERROR, str(error)))
        except Exception:
            log.exception("reply_failed", request_id=job.prompt.caller.request_id)
            reply.add(ear.end(StopReason.ERROR, "The reply failed inside Frontdesk; its log says why"))
        finally:
            reply.add(ear.end(StopReason.INTERRUPTED))
            self._record(job, at, (time.perf_counter_ns() - began) // 1000)
            del self._jobs[reply.message_id]
            job.finished.set()

    async def _hear(self, job: Job) -> None:
        async with aclosing(self._host.send(job.prompt)) as events:
            async for event in events:
                job.started = job.started or isinstance(event, Started)
                word = job.ear.hear(event)
                if word is not None:
                    job.reply.add(word)

    def _record(self, job: Job, at: datetime, duration_us: int) -> None:
        ended = job.reply.ended
        stop = ended.stop if ended else StopReason.INTERRUPTED
        row = entry(
            replace(job.prompt.caller, agent_id=job.session.agent_id),
            at=at,
            surface="chat",
            action="turn",
            outcome=Outcome.FAILED if stop in UNFINISHED else Outcome.OK,
            duration_us=duration_us,
            reason=stop if stop in UNFINISHED else None,
            kind=Kind.TURN,
        )
        self._journal.record(row)


async def _nothing(_of: object) -> None:
    """Where no other replica has anything to add."""
