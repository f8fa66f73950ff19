"""All tools of the memory room: those that agents are given, and those besides."""

from collections.abc import Mapping

from frontdesk.identity import rights
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
# What each of them needs, which the services hold every caller to: to read a group's records, and to write them.
_NEEDS = (
    (ACTIVITIES, rights.ACTIVITIES_READ, rights.ACTIVITIES_WRITE),
    (CATEGORIES, rights.CATEGORIES_READ, rights.CATEGORIES_WRITE),
    (MEMORIES, rights.MEMORIES_READ, rights.MEMORIES_WRITE),
    (QUEUE, rights.AI_TASKS_READ, rights.AI_TASKS_WRITE),
    (TASKS, rights.TASKS_READ, rights.TASKS_WRITE),
    (TIMELINE, rights.TIMELINE_READ, rights.TIMELINE_WRITE),
    (TIMING, rights.TASKS_TIME, rights.TASKS_TIME),
)
REQUIRED: Mapping[str, str] = {
    tool.name: read if tool.read_only else write for group, read, write in _NEEDS for tool in group
}
# Every tool costs a model attention, and categories are also made and found by their names.
BESIDES: tuple[MemoryTool, ...] = CATEGORIES


def for_agents(house: House) -> tuple[MemoryTool, ...]:
    """The tools that an agent has for its person."""
    return (status_tool(house), *RECORDS)
