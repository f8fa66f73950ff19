"""The caller's own tools: run here when a Letta agent calls them, and answered to Letta."""

from collections.abc import Mapping, Sequence

import anyio
import structlog
from letta_client.types.agents import ToolReturnParam

from frontdesk.agents.events import ApprovalRequest, ToolCall, ToolReturn, ToolStatus
from frontdesk.agents.turns.service import Emit
from frontdesk.loop.tools import Tool, ToolOutcome

TOOL_SECONDS = 120
AT_ONCE = 16

log = structlog.get_logger("frontdesk.letta")


def unasked(request: ApprovalRequest, tools: Mapping[str, Tool]) -> bool:
    """Whether this is a call to a tool of the caller's that may run without anybody's word."""
    tool = tools.get(request.name)
    return tool is not None and not tool.needs_approval


async def run_all(requests: Sequence[ApprovalRequest], tools: Mapping[str, Tool], emit: Emit) -> list[ToolReturnParam]:
    """Run these calls, all at once; the answers are in the order of the calls."""
    answers: dict[str, ToolReturnParam] = {}
    limit = anyio.CapacityLimiter(AT_ONCE)

    async def run(request: ApprovalRequest) -> None:
        async with limit:
            outcome = await _attempt(tools[request.name], request)
        status = ToolStatus.OK if outcome.ok else ToolStatus.ERROR
        await emit(ToolReturn(request.call_id, request.name, outcome.text, status))
        for event in outcome.events:
            await emit(event)
        answers[request.call_id] = {
            "type": "tool",
            "tool_call_id": request.call_id,
            "status": "success" if outcome.ok else "error",
            "tool_return": outcome.text,
        }

    for request in requests:
        await emit(ToolCall(request.call_id, request.name, request.arguments))
    async with anyio.create_task_group() as tasks:
        for request in requests:
            tasks.start_soon(run, request)
    return [answers[request.call_id] for request in requests]


async def _attempt(tool: Tool, request: ApprovalRequest) -> ToolOutcome:
    """What a tool answers; whatever goes wrong in it is told to the model, and stops nothing else."""
    try:
        with anyio.fail_after(TOOL_SECONDS):
            return await tool.run(request.arguments)
    except TimeoutError:
        return ToolOutcome(f"No answer in {TOOL_SECONDS} s; the tool was stopped", ok=False)
    except Exception as error:  # noqa: BLE001 - a tool is foreign code, and the model can often do something about it
        log.debug("tool_failed", tool=tool.name, error=type(error).__name__)
        return ToolOutcome(f"Error: {error}" if str(error) else f"Error: {type(error).__name__}", ok=False)
