"""Lists every operation of the product, by the service of the app that runs it."""

from collections.abc import Mapping, Sequence

from frontdesk.agents.chat.operations import CHAT_OPERATIONS
from frontdesk.key_operations import KEY_OPERATIONS
from frontdesk.memory.operations.table import MEMORY_OPERATIONS
from frontdesk.operations import Operation
from frontdesk.schedules.operations import SCHEDULE_OPERATIONS
from frontdesk.tools.operations import TOOL_OPERATIONS

# By the names of the services, as `App` has them. Routes and tools are listed in this order.
OPERATIONS: Mapping[str, Sequence[Operation]] = {
    "chat": CHAT_OPERATIONS,
    "tools": TOOL_OPERATIONS,
    "schedules": SCHEDULE_OPERATIONS,
    "identity": KEY_OPERATIONS,
    "memory": MEMORY_OPERATIONS,
}
