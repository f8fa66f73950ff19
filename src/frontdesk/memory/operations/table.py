"""Lists the operations on a person's records."""

from frontdesk.operations import Operation

MEMORY_OPERATIONS: tuple[Operation, ...] = ()
