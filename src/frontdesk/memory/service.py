"""The memory room as the doors see it: everything that is kept for people, each part behind a service of its own."""

from dataclasses import dataclass

from frontdesk.memory.activities.service import Activities
from frontdesk.memory.categories.service import Categories
from frontdesk.memory.memories.service import Memories
from frontdesk.memory.naming.service import Names
from frontdesk.memory.people.service import People
from frontdesk.memory.queue.service import Queue
from frontdesk.memory.recall.service import Recall
from frontdesk.memory.tasks.service import Tasks
from frontdesk.memory.timeline.service import Timeline
from frontdesk.memory.timing.service import Timing


@dataclass(frozen=True, slots=True)
class MemoryRoom:
    """Each service takes a `Scope` first, and shows and changes what is that person's."""

    tasks: Tasks
    memories: Memories
    activities: Activities
    timeline: Timeline
    timing: Timing
    queue: Queue
    categories: Categories
    recall: Recall
    people: People
    names: Names
