"""All tools of the memory room: those that agents are given, and those besides."""

from frontdesk.memory.tooling.activities import ACTIVITIES
from frontdesk.memory.tooling.categories import CATEGORIES
from frontdesk.memory.tooling.memories import MEMORIES
from frontdesk.memory.tooling.queue import QUEUE
from frontdesk.memory.tooling.status import House, status_tool
from frontdesk.memory.tooling.tasks import TASKS
from frontdesk.memory.tooling.timeline import TIMELINE
from frontdesk.memory.tooling.timing import TIMING
from frontdesk.memory.tooling.tool import MemoryTool

# What works on a person's records, and needs nothing but the room.
RECORDS: tuple[MemoryTool, ...] = (*TASKS, *MEMORIES, *ACTIVITIES, *TIMELINE, *TIMING, *QUEUE)
# Every tool costs a model attention, and categories are also made and found by their names.
BESIDES: tuple[MemoryTool, ...] = CATEGORIES


def for_agents(house: House) -> tuple[MemoryTool, ...]:
    """The tools that an agent has for its person."""
    return (status_tool(house), *RECORDS)
