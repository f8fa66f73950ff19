"""The caller's own tools: run here when a Letta agent calls them, and answered to Letta."""

from collections.abc import Mapping, Sequence

import anyio
from letta_client.types.agents import ToolReturnParam

from frontdesk.agents.turns.service import Emit
from frontdesk.loop.events import ApprovalRequest, ToolCall, ToolReturn, ToolStatus
from frontdesk.loop.tools import Tool, attempt, in_order

AT_ONCE = 16


def unasked(request: ApprovalRequest, tools: Mapping[str, Tool]) -> bool:
    """Whether this is a call to a tool of the caller's that may run without anybody's word."""
    tool = tools.get(request.name)
    return tool is not None and not tool.needs_approval


async def run_all(requests: Sequence[ApprovalRequest], tools: Mapping[str, Tool], emit: Emit) -> list[ToolReturnParam]:
    """Run these calls in their order, those that only read beside each other; the answers are in the same order."""
    answers: dict[str, ToolReturnParam] = {}
    limit = anyio.CapacityLimiter(AT_ONCE)

    async def run(request: ApprovalRequest) -> None:
        async with limit:
            outcome = await attempt(tools[request.name], request.arguments, request.call_id)
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

    async for group in in_order(requests, lambda request: (tools[request.name], request.arguments)):
        for request in group:
            await emit(ToolCall(request.call_id, request.name, request.arguments))
        async with anyio.create_task_group() as tasks:
            for request in group:
                tasks.start_soon(run, request)
    return [answers[request.call_id] for request in requests]
