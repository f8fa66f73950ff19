"""What was said in a session, turned back into messages."""

from collections.abc import Sequence

from frontdesk.agents.events import ApprovalRequest, Done, TextChunk, ToolCall, ToolReturn, ToolStatus, UserText
from frontdesk.agents.host import Said
from frontdesk.surfaces.rest.shapes import MessageShape, ToolCallShape


def messages(said: Sequence[Said]) -> list[MessageShape]:
    """The person's messages and the agent's replies, one for each turn, in order."""
    found: list[MessageShape] = []
    replies: dict[str, MessageShape] = {}
    for one in said:
        if isinstance(one.event, UserText):
            found.append(MessageShape(id=one.id, type="user", content=one.event.text, timestamp=one.at))
            continue
        if one.turn_id not in replies:
            replies[one.turn_id] = MessageShape(id=one.turn_id, type="agent", content="", timestamp=one.at)
            found.append(replies[one.turn_id])
        _add(replies[one.turn_id], one)
    return found


def waiting(requests: Sequence[ApprovalRequest]) -> list[ToolCallShape]:
    return [
        ToolCallShape(id=one.call_id, name=one.name, parameters=dict(one.arguments), status="pending")
        for one in requests
    ]


def _add(reply: MessageShape, one: Said) -> None:
    match one.event:
        case TextChunk(text):
            reply.content += text
        case ToolCall(call_id, name, arguments):
            reply.tool_calls.append(ToolCallShape(id=call_id, name=name, parameters=dict(arguments), status="running"))
        case ToolReturn():
            _settle(reply, one.event)
        case ApprovalRequest():
            reply.tool_calls = [call for call in reply.tool_calls if call.id != one.event.call_id]
            reply.tool_calls += waiting([one.event])
        case Done(stop):
            reply.stop_reason = stop
        case _:
            pass


def _settle(reply: MessageShape, returned: ToolReturn) -> None:
    call = next((call for call in reply.tool_calls if call.id == returned.call_id), None)
    if call is None:
        call = ToolCallShape(id=returned.call_id, name=returned.name, parameters={}, status="running")
        reply.tool_calls.append(call)
    if returned.status is ToolStatus.OK:
        call.status, call.result = "completed", returned.text
    else:
        call.status, call.error = "error", returned.text
