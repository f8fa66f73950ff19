"""Puts the memory room together."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from frontdesk.db.engine import Database
from frontdesk.embedding.port import Embedder
from frontdesk.memory.activities.service import Activities
from frontdesk.memory.categories.service import Categories
from frontdesk.memory.memories.service import Memories
from frontdesk.memory.naming.service import Names
from frontdesk.memory.people.service import Elsewhere, People
from frontdesk.memory.queue.service import Queue
from frontdesk.memory.recall.reading import Reader
from frontdesk.memory.recall.service import Recall
from frontdesk.memory.service import MemoryRoom
from frontdesk.memory.store import Records
from frontdesk.memory.tasks.service import Tasks
from frontdesk.memory.timeline.service import Timeline
from frontdesk.memory.timing.service import Timing
from frontdesk.memory.waking import AgentNamed, Schedule, Unschedule, Waker


@dataclass(frozen=True, slots=True)
class Neighbours:
    """What the room asks of others: to wake an agent, to know agents, and what else is kept of a person."""

    schedule: Schedule
    cancel: Unschedule
    agent_named: AgentNamed
    name_of: Callable[[str], Awaitable[str | None]]
    elsewhere: Sequence[Elsewhere] = ()


def open_memory(database: Database, embedder: Embedder | None, others: Neighbours) -> tuple[MemoryRoom, Reader]:
    """The room, and what reads for its meaning what comes in; give `run` of that a task of its own."""
    records = Records(database)
    reader = Reader(records, embedder)
    records.listen(reader.wake)
    waker = Waker(records, others.schedule, others.cancel, others.agent_named)
    tasks = Tasks(records, waker.follow)
    room = MemoryRoom(
        tasks=tasks,
        memories=Memories(records),
        activities=Activities(records),
        timeline=Timeline(records, tasks),
        timing=Timing(records),
        queue=Queue(records, others.name_of),
        categories=Categories(records),
        recall=Recall(records, embedder),
        people=People(records, others.elsewhere),
        names=Names(records),
    )
    return room, reader
