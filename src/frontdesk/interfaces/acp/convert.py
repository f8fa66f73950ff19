"""Converts between the protocol and our values: prompts, session updates, and the options of a session; no I/O."""

import binascii
import re
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from pathlib import PurePosixPath
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from frontdesk.agents.host import Agent, Media, ModelChoice
from frontdesk.coding.model import CodingSession, CodingSessionChanges, FileDiff, FileLocation, PermissionMode
from frontdesk.errors import Invalid
from frontdesk.interfaces.acp.jsonrpc import INVALID_PARAMS, Json, RpcError
from frontdesk.interfaces.acp.schema import (
    AudioContentBlock,
    BlobResourceContents,
    ContentBlock,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    TextContentBlock,
    TextResourceContents,
)
from frontdesk.llm.events import PlanStep
from frontdesk.text import one_line, storable

MAX_BYTES = 20_000_000
NAME_CHARACTERS = 200
URI_CHARACTERS = 2000
COMMAND_PATTERN = re.compile(r"\s*/([a-zA-Z][\w-]*)(?:\s+(.*))?", re.DOTALL)
# Text in a file that could be mistaken for the edge of a context.
CONTEXT_EDGE = re.compile(r"<(?=\s*/\s*context\s*>|context ref=)", re.IGNORECASE)
CONTEXT_START, CONTEXT_END = '\n\n<context ref="', "\n</context>"
UNSAFE_IN_LINK = re.compile(r"[\[\]()<>\s]+")


@dataclass(frozen=True, slots=True)
class PromptContent:
    """A prompt for the agent; `typed_text` is its text without the files that came with it."""

    text: str
    media: Sequence[Media]
    typed_text: str


@dataclass(frozen=True, slots=True)
class AcceptedMedia:
    """Which media the session's model accepts."""

    images: bool = False
    audio: bool = False


@dataclass(frozen=True, slots=True)
class PromptPart:
    """One converted block: words at its place in the text, a context at the end of the text, or media."""

    words: str = ""
    context: str = ""
    media: Media | None = None
    typed: bool = False


def convert_prompt(blocks: Sequence[ContentBlock], *, images: bool = False, sounds: bool = False) -> PromptContent:
    """Convert a whole prompt; an `RpcError` names the block that cannot be converted, and the reason."""
    accepted = AcceptedMedia(images, sounds)
    parts = [_convert_block(block, number, accepted) for number, block in enumerate(blocks, 1)]
    text = _join_parts([part for part in parts if part.words])
    media = tuple(part.media for part in parts if part.media is not None)
    if not text.strip() and not media:
        raise RpcError(INVALID_PARAMS, "The prompt is empty; write something, or add a picture")
    return PromptContent("".join([text, *(part.context for part in parts)]), media, text)


def strip_context(text: str) -> str:
    """Turn `PromptContent.text` back into `PromptContent.typed_text`: the text without its files."""
    while text.endswith(CONTEXT_END) and CONTEXT_START in text:
        text = text[: text.rindex(CONTEXT_START)]
    return text


def parse_command(text: str) -> tuple[str, str] | None:
    """The name of a slash command and the text after it; None where the text is not a command."""
    found = COMMAND_PATTERN.fullmatch(text)
    return (found[1].lower(), (found[2] or "").strip()) if found else None


def _convert_block(block: ContentBlock, number: int, accepted: AcceptedMedia) -> PromptPart:
    match block:
        case TextContentBlock(text=text):
            return PromptPart(storable(text), typed=True)
        case ResourceContentBlock(name=name, uri=uri):
            return PromptPart(_mention(name, uri))
        case ImageContentBlock(data=data, mime_type=mime) | AudioContentBlock(data=data, mime_type=mime):
            return PromptPart(media=_decode_media(f"{number} ({block.type})", data, _plain_mime(mime), accepted))
        case EmbeddedResourceContentBlock(resource=TextResourceContents(uri=uri, text=text)):
            return PromptPart(_mention(_name_of(uri), uri), _context_block(uri, text))
        case EmbeddedResourceContentBlock(resource=BlobResourceContents() as blob):
            return _convert_blob(blob, f"{number} (resource)", accepted)
        case _:
            raise RpcError(INVALID_PARAMS, f"Block {number} is of an unknown kind")


def _convert_blob(blob: BlobResourceContents, block: str, accepted: AcceptedMedia) -> PromptPart:
    mime, name = _plain_mime(blob.mime_type or ""), _name_of(blob.uri)
    if mime.startswith(("image/", "audio/")):
        return PromptPart(_mention(name, blob.uri), media=_decode_media(block, blob.blob, mime, accepted))
    size = len(_decode(block, blob.blob))
    kind = one_line(mime, NAME_CHARACTERS) or "unknown type"
    return PromptPart(f"{_mention(name, blob.uri)} (a file of {size} bytes, {kind}; its content is not shown)")


def _decode_media(block: str, data: str, mime: str, accepted: AcceptedMedia) -> Media:
    if not mime.startswith(("image/", "audio/")):
        raise RpcError(INVALID_PARAMS, f"Block {block} names a type that is neither an image nor audio")
    if mime.startswith("image/") and not accepted.images:
        advice = "choose one that does, or name it in FRONTDESK_IMAGE_MODELS if it does"
        raise RpcError(
            INVALID_PARAMS, f"Block {block}: this session's model takes no images, as far as is known; {advice}"
        )
    if mime.startswith("audio/") and not accepted.audio:
        raise RpcError(INVALID_PARAMS, f"Block {block}: this session's model takes no audio; choose one that does")
    return Media(mime, _decode(block, data))


def _decode(block: str, data: str) -> bytes:
    # Four letters are three bytes, so data that is too long is refused before it is decoded.
    if len(data) > MAX_BYTES // 3 * 4 + 4:
        raise _too_large(block)
    try:
        found = b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise RpcError(INVALID_PARAMS, f"Block {block} is not valid base64") from None
    if not found:
        raise RpcError(INVALID_PARAMS, f"Block {block} is empty")
    if len(found) > MAX_BYTES:
        raise _too_large(block)
    return found


def _too_large(block: str) -> RpcError:
    return RpcError(INVALID_PARAMS, f"Block {block} is larger than {MAX_BYTES // 1_000_000} MB; send a smaller one")


def _plain_mime(mime: str) -> str:
    return mime.partition(";")[0].strip().lower()


def _mention(name: str, uri: str) -> str:
    called = UNSAFE_IN_LINK.sub(" ", one_line(storable(name), NAME_CHARACTERS)).strip() or _name_of(uri)
    place = _shown_uri(uri)
    # In Markdown, an address with spaces or brackets has to stand in <>.
    return f"[@{called}](<{place}>)" if UNSAFE_IN_LINK.search(place) else f"[@{called}]({place})"


def _shown_uri(uri: str) -> str:
    """A URI as a person would write it; for a file, its path."""
    plain = one_line(storable(_path_of(uri) or uri), URI_CHARACTERS)
    return plain.replace("<", "%3C").replace(">", "%3E")


def _path_of(uri: str) -> str:
    try:
        parts = urlsplit(uri)
    except ValueError:
        return ""
    return unquote(parts.path) if parts.scheme == "file" else ""


def _name_of(uri: str) -> str:
    path = _path_of(uri) or uri.partition("?")[0].partition("#")[0]
    return UNSAFE_IN_LINK.sub(" ", one_line(storable(PurePosixPath(path).name), NAME_CHARACTERS)).strip() or "resource"


def _context_block(uri: str, text: str) -> str:
    inside = CONTEXT_EDGE.sub("&lt;", storable(text))
    return f'{CONTEXT_START}{escape(_shown_uri(uri))}">\n{inside}{CONTEXT_END}'


def _join_parts(parts: Sequence[PromptPart]) -> str:
    """Join the words of all parts, with a separator between words that would run together."""
    text = ""
    for before, part in zip([None, *parts], parts, strict=False):
        close = text and not text[-1].isspace() and (part.words[0].isalnum() or part.words[0] == "[")
        if close and before is not None:
            text += "\n" if before.typed and part.typed else " "
        text += part.words
    return text


CallStatus = Literal["pending", "in_progress", "completed", "failed"]
Severity = Literal["info", "warning", "error"]
CURRENCY = "USD"


def text_block(words: str) -> Json:
    """A content block of text."""
    return {"type": "text", "text": words}


def media_block(mime: str, data: bytes) -> Json:
    """A content block of an image or audio."""
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


def tool_call(call_id: str, title: str, **fields: Any) -> Json:  # noqa: ANN401 - the fields of a call
    """A call that is new to the editor; the fields have the protocol's names."""
    return {"sessionUpdate": "tool_call", "toolCallId": call_id, "title": title, **fields}


def tool_call_update(call_id: str, **fields: Any) -> Json:  # noqa: ANN401 - as above
    """Changes of a call; a list replaces the earlier list."""
    return {"sessionUpdate": "tool_call_update", "toolCallId": call_id, **fields}


def call_location(place: FileLocation) -> Json:
    return {"path": str(place.path), **({} if place.line is None else {"line": place.line})}


def call_content(block: Json) -> Json:
    """A content block within a call."""
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
    """The slash commands: name, description, and a hint for the text after it, or an empty one."""
    listed = [
        {"name": name, "description": description, **({"input": {"hint": hint}} if hint else {})}
        for name, description, hint in offered
    ]
    return {"sessionUpdate": "available_commands_update", "availableCommands": listed}


def mode_update(mode: str) -> Json:
    return {"sessionUpdate": "current_mode_update", "currentModeId": mode}


def options_update(options: Sequence[Json]) -> Json:
    """All options of a session with their current values."""
    return {"sessionUpdate": "config_option_update", "configOptions": list(options)}


def session_info_update(title: str, updated_at: datetime | None = None) -> Json:
    """The title of a session; an empty title removes the old one."""
    at = {} if updated_at is None else {"updatedAt": updated_at.isoformat()}
    return {"sessionUpdate": "session_info_update", "title": title or None, **at}


def notice_update(severity: Severity, title: str, description: str = "") -> Json:
    """A notice that is not part of the conversation; only for editors that accept notices."""
    more = {"description": description} if description else {}
    return {"sessionUpdate": "notice", "severity": severity, "title": title, **more}


def compaction_update(compaction_id: str, summary: str) -> Json:
    """The conversation was summarised; only for editors that accept compactions."""
    return {
        "sessionUpdate": "compaction_update",
        "compactionId": compaction_id,
        "status": "completed",
        "summary": [text_block(summary)] if summary else [],
    }


DEFAULT_EFFORT = "default"
MODES: Mapping[PermissionMode, tuple[str, str]] = {
    PermissionMode.ASK: ("Ask", "Reads by itself, and asks before it changes or runs anything"),
    PermissionMode.ACCEPT_EDITS: ("Accept edits", "Edits files by itself, and asks before it runs anything"),
    PermissionMode.AUTO: ("Auto", "Does everything by itself"),
    PermissionMode.PLAN: ("Plan", "Looks and plans, and changes nothing"),
}
MEMORY_OPTIONS = {"auto": "Edits its memory by itself", "ask": "Asks before it edits its memory"}


@dataclass(frozen=True, slots=True)
class SessionChoices:
    """What a person can choose in a session; `can_ask_memory` where the host can ask before a memory edit."""

    models: Sequence[ModelChoice]
    agents: Sequence[Agent]
    can_ask_memory: bool = False

    def model_of(self, session: CodingSession) -> ModelChoice:
        """The model of a session's turns."""
        own = next((agent.model for agent in self.agents if agent.id == session.agent_id), None)
        name = session.model or own or (self.models[0].name if self.models else "default")
        return next((model for model in self.models if model.name == name), ModelChoice(name))


def mode_state(session: CodingSession) -> Json:
    available = [{"id": mode.value, "name": name, "description": text} for mode, (name, text) in MODES.items()]
    return {"currentModeId": session.mode.value, "availableModes": available}


def option_list(session: CodingSession, choices: SessionChoices) -> Sequence[Json]:
    """All options with their current values."""
    model = choices.model_of(session)
    offered = {one.name: one.title or one.name for one in (*choices.models, model)}
    agents = {agent.id: agent.name for agent in choices.agents} or {session.agent_id: session.agent_id}
    efforts = {DEFAULT_EFFORT: "Default", **{effort: effort.capitalize() for effort in model.efforts}}
    effort = session.effort if session.effort in efforts else DEFAULT_EFFORT
    return [
        _select_option(
            "mode", "Mode", "mode", session.mode.value, {mode.value: name for mode, (name, _) in MODES.items()}
        ),
        _select_option("model", "Model", "model", model.name, offered),
        *([_select_option("effort", "Effort", "thought_level", effort, efforts)] if model.efforts else []),
        _select_option("agent", "Agent", None, session.agent_id, agents),
        *(
            [_select_option("memory", "Memory edits", None, _memory_option(session), MEMORY_OPTIONS)]
            if choices.can_ask_memory
            else []
        ),
    ]


def option_change(session: CodingSession, choices: SessionChoices, option: str, value: str) -> CodingSessionChanges:
    """The change of a session when an option is set."""
    allowed = next((one for one in option_list(session, choices) if one["id"] == option), None)
    if allowed is None:
        raise Invalid(f"There is no option '{option[:50]}' in this session")
    if value not in {one["value"] for one in allowed["options"]}:
        raise Invalid(f"'{value[:50]}' cannot be chosen for {option}; take one of those listed")
    match option:
        case "mode":
            return {"mode": PermissionMode(value)}
        case "model":
            return {"model": value}
        case "effort":
            return {"effort": None if value == DEFAULT_EFFORT else value}
        case "memory":
            return {"asks_memory": value == "ask"}
        case _:
            return {"agent_id": value}


def _memory_option(session: CodingSession) -> str:
    return "ask" if session.asks_memory else "auto"


def _select_option(option: str, name: str, category: str | None, value: str, offered: Mapping[str, str]) -> Json:
    return {
        "type": "select",
        "id": option,
        "name": name,
        **({"category": category} if category else {}),
        "currentValue": value,
        "options": [{"value": one, "name": title} for one, title in offered.items()],
    }
