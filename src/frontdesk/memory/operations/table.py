"""Lists the operations on a person's records."""

from frontdesk.memory.operations.activities import ACTIVITY_OPERATIONS
from frontdesk.memory.operations.memories import MEMORIES_OPERATIONS
from frontdesk.memory.operations.status import STATUS_OPERATION
from frontdesk.memory.operations.tasks import TASK_OPERATIONS
from frontdesk.memory.operations.time_tracking import TIME_OPERATIONS
from frontdesk.memory.operations.timeline import CATEGORY_OPERATIONS, TIMELINE_OPERATIONS
from frontdesk.memory.operations.work_queue import WORK_OPERATIONS
from frontdesk.memory.rest.people import PERSON_OPERATIONS
from frontdesk.operations import Operation

# Clients list the tools in this order.
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
