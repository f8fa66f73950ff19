"""The memory room's tools as the MCP door offers them."""

from frontdesk.app import App
from frontdesk.identity.model import Caller
from frontdesk.memory.asked.common import Asked
from frontdesk.memory.asked.status import SystemStatus
from frontdesk.memory.scope import Scope
from frontdesk.memory.tooling import status
from frontdesk.memory.tooling.table import BESIDES, RECORDS
from frontdesk.memory.tooling.tool import MemoryTool, Told
from frontdesk.surfaces.mcp.memory.auth import AUTH
from frontdesk.surfaces.mcp.tool import Door, Result, ToolSpec

# What an agent says of its work is said under its name.
AS_AGENT = frozenset({"accept_ai_task", "update_ai_task", "complete_ai_task", "fail_ai_task"})


def _spec(tool: MemoryTool) -> ToolSpec:
    """A connected agent reaches them here: so many tools at once would drown its others."""

    async def run(app: App, caller: Caller, given: Asked) -> Result:
        return _result(await tool.run(app.memory, Scope.of(caller), given))

    return ToolSpec(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        arguments=tool.arguments,
        answer=tool.answer,
        run=run,
        door=Door.MEMORY,
        for_agent=tool.name in AS_AGENT,
        read_only=tool.read_only,
        destructive=tool.destructive,
        plain=True,
        handed=False,
        beside=tool in BESIDES,
    )


def _result(told: Told) -> Result:
    return Result([{"type": "text", "text": told.text}], told.answer.model_dump(mode="json"))


async def _status(app: App, caller: Caller, given: SystemStatus) -> Result:
    house = status.House(app.parts, app.journal)
    return _result(await status.status(house, app.memory, Scope.of(caller), given))


STATUS = ToolSpec(
    name=status.NAME,
    title=status.TITLE,
    description=status.STATUS,
    arguments=SystemStatus,
    answer=status.SystemStatusAnswer,
    run=_status,
    door=Door.MEMORY,
    for_agent=False,
    plain=True,
    handed=False,
)

MEMORY: tuple[ToolSpec, ...] = (*AUTH, STATUS, *map(_spec, (*RECORDS, *BESIDES)))
