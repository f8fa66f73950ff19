"""Builds the session updates of the protocol from plain values; no I/O."""

from base64 import b64encode
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from frontdesk.coding.model import FileDiff, FileLocation
from frontdesk.interfaces.acp.jsonrpc import Json
from frontdesk.llm.events import PlanStep

CallStatus = Literal["pending", "in_progress", "completed", "failed"]
Severity = Literal["info", "warning", "error"]
CURRENCY = "USD"


def text_block(words: str) -> Json:
    """A content block of text."""
    return {"type": "text", "text": words}


def media_block(mime: str, data: bytes) -> Json:
    """A content block of a picture or a sound."""
    kind = "audio" if mime.startswith("audio/") else "image"
    return {"type": kind, "mimeType": mime, "data": b64encode(data).decode()}


def user_chunk(message_id: str, content: Json) -> Json:
    return _message_chunk("user_message_chunk", message_id, content)


def agent_chunk(message_id: str, content: Json) -> Json:
    return _message_chunk("agent_message_chunk", message_id, content)


def thought_chunk(message_id: str, content: Json) -> Json:
    return _message_chunk("agent_thought_chunk", message_id, content)


def _message_chunk(update: str, message_id: str, content: Json) -> Json:
    return {"sessionUpdate": update, "messageId": message_id, "content": content}


def tool_call(call_id: str, title: str, **fields: Any) -> Json:  # noqa: ANN401 - any of the fields that a call has
    """A call that the editor has not seen; the fields have the protocol's own names."""
    return {"sessionUpdate": "tool_call", "toolCallId": call_id, "title": title, **fields}


def tool_call_update(call_id: str, **fields: Any) -> Json:  # noqa: ANN401 - as above
    """What has changed of a call; a list replaces the one that was there."""
    return {"sessionUpdate": "tool_call_update", "toolCallId": call_id, **fields}


def call_location(place: FileLocation) -> Json:
    return {"path": str(place.path), **({} if place.line is None else {"line": place.line})}


def call_content(block: Json) -> Json:
    """A content block, as a call shows it."""
    return {"type": "content", "content": block}


def call_diff(change: FileDiff) -> Json:
    return {"type": "diff", "path": str(change.path), "oldText": change.before, "newText": change.after}


def call_terminal(terminal_id: str) -> Json:
    return {"type": "terminal", "terminalId": terminal_id}


def plan_update(steps: Sequence[PlanStep]) -> Json:
    entries = [{"content": step.text, "priority": "medium", "status": step.status.value} for step in steps]
    return {"sessionUpdate": "plan", "entries": entries}


def usage_update(used: int, size: int, cost_usd: float | None = None) -> Json:
    cost = {} if cost_usd is None else {"cost": {"amount": cost_usd, "currency": CURRENCY}}
    return {"sessionUpdate": "usage_update", "used": used, "size": size, **cost}


def commands_update(offered: Sequence[tuple[str, str, str]]) -> Json:
    """Slash commands: the name of each, what it does, and what may follow it, if anything."""
    listed = [
        {"name": name, "description": description, **({"input": {"hint": hint}} if hint else {})}
        for name, description, hint in offered
    ]
    return {"sessionUpdate": "available_commands_update", "availableCommands": listed}


def mode_update(mode: str) -> Json:
    return {"sessionUpdate": "current_mode_update", "currentModeId": mode}


def options_update(options: Sequence[Json]) -> Json:
    """All options of a session as they stand."""
    return {"sessionUpdate": "config_option_update", "configOptions": list(options)}


def session_info_update(title: str, updated_at: datetime | None = None) -> Json:
    """What a session is called; an empty title takes the old one away."""
    at = {} if updated_at is None else {"updatedAt": updated_at.isoformat()}
    return {"sessionUpdate": "session_info_update", "title": title or None, **at}


def notice_update(severity: Severity, title: str, description: str = "") -> Json:
    """Something to know that is no part of the talk; only for editors that take notices."""
    more = {"description": description} if description else {}
    return {"sessionUpdate": "notice", "severity": severity, "title": title, **more}


def compaction_update(compaction_id: str, summary: str) -> Json:
    """What was said has been summed up; only for editors that take compactions."""
    told = [text_block(summary)] if summary else []
    return {
        "sessionUpdate": "compaction_update",
        "compactionId": compaction_id,
        "status": "completed",
        "summary": told,
    }
