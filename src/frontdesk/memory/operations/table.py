"""Lists the operations on a person's records."""

from frontdesk.memory.operations.tasks import TASK_OPERATIONS
from frontdesk.memory.operations.time_tracking import TIME_OPERATIONS
from frontdesk.memory.operations.work_queue import WORK_OPERATIONS
from frontdesk.operations import Operation

MEMORY_OPERATIONS: tuple[Operation, ...] = (*TASK_OPERATIONS, *TIME_OPERATIONS, *WORK_OPERATIONS)
