"""Lists every operation of the product, by the service of the app that runs it."""

from collections.abc import Mapping, Sequence

from frontdesk.agents.chat.operations import CHAT_OPERATIONS
from frontdesk.key_operations import KEY_OPERATIONS
from frontdesk.memory.operations.activities import ACTIVITY_OPERATIONS
from frontdesk.memory.operations.memories import MEMORIES_OPERATIONS
from frontdesk.memory.operations.status import STATUS_OPERATION
from frontdesk.memory.operations.tasks import TASK_OPERATIONS
from frontdesk.memory.operations.time_tracking import TIME_OPERATIONS
from frontdesk.memory.operations.timeline import CATEGORY_OPERATIONS, TIMELINE_OPERATIONS
from frontdesk.memory.operations.work_queue import WORK_OPERATIONS
from frontdesk.memory.rest.people import PERSON_OPERATIONS
from frontdesk.operations import Operation
from frontdesk.schedules.operations import SCHEDULE_OPERATIONS
from frontdesk.tools.operations import TOOL_OPERATIONS

# The tools and routes of a person's records.
MEMORY_OPERATIONS: tuple[Operation, ...] = (
    STATUS_OPERATION,
    *TASK_OPERATIONS,
    *MEMORIES_OPERATIONS,
    *ACTIVITY_OPERATIONS,
    *TIMELINE_OPERATIONS,
    *TIME_OPERATIONS,
    *WORK_OPERATIONS,
    *CATEGORY_OPERATIONS,
    *PERSON_OPERATIONS,
)

# By the names of the services, as `App` has them. Routes and tools are listed in this order.
OPERATIONS: Mapping[str, Sequence[Operation]] = {
    "chat": CHAT_OPERATIONS,
    "tools": TOOL_OPERATIONS,
    "schedules": SCHEDULE_OPERATIONS,
    "identity": KEY_OPERATIONS,
    "memory": MEMORY_OPERATIONS,
}
