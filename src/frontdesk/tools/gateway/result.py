"""What became of a call: content blocks as the server sent them, cut to a size that can be handed on."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from frontdesk.loop.mcp import results

MAX_RESULT = 1024 * 1024
# Room for the notes that say what was left out.
NOTE_ROOM = 1024
NOT_NAMED = "the tool failed and gave no reason"

Block = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CallResult:
    """`content` and `structured` are the server's own; `error` says in one text what went wrong, where it did."""

    ok: bool
    content: Sequence[Block] = ()
    structured: Any = None
    error: str | None = None

    @property
    def text(self) -> str:
        """The whole as text for a model."""
        if self.error is not None:
            return self.error
        return results.text_of({"content": list(self.content), "structuredContent": self.structured})


def failure(reason: str) -> CallResult:
    """A call that came to nothing, in a form that can be shown like any other result."""
    return CallResult(ok=False, content=[{"type": "text", "text": reason}], error=reason)


def read(tool: str, value: Mapping[str, Any], size: int, limit: int = MAX_RESULT) -> CallResult:
    """A result of tools/call that came in `size` bytes."""
    kind = value.get("resultType", results.COMPLETE)
    if kind != results.COMPLETE:
        return failure(f"{tool} wants more than its arguments ({kind}), which cannot be given here")
    found = CallResult(
        ok=True, content=results.objects(value.get("content")), structured=value.get("structuredContent")
    )
    if size > limit:
        try:
            found = shortened(found, limit)
        except RecursionError:
            return failure(f"{tool} answers with something nested too deeply to be handed on; ask it for less")
    if results.is_error(value):
        text = found.text
        return replace(found, ok=False, error=text or f"{tool}: {NOT_NAMED}")
    return found


def shortened(result: CallResult, limit: int) -> CallResult:
    """The same with what is too large cut or left out, and a note wherever something is missing."""
    left = limit - NOTE_ROOM
    structured, notes = result.structured, list[str]()
    size = _size(structured) if structured is not None else 0
    # Whatever text there is says the same, and can be cut.
    if size > left or (size and size + _size(list(result.content)) > left):
        structured = None
        notes.append(f"[structured content of {size} bytes left out: a result has at most {limit} bytes]")
    else:
        left -= size
    content: list[Block] = []
    for number, block in enumerate(result.content):
        if left <= 0:
            notes.append(f"[{len(result.content) - number} more blocks left out: a result has at most {limit} bytes]")
            break
        fitted = _fitted(block, left, limit)
        left -= _size(fitted)
        content.append(fitted)
    content += [{"type": "text", "text": note} for note in notes]
    return replace(result, content=content, structured=structured)


def _fitted(block: Block, left: int, limit: int) -> Block:
    size = _size(block)
    if size <= left:
        return block
    if block.get("type") != "text" or not isinstance(block.get("text"), str):
        kind = block.get("mimeType") or block.get("type") or "unknown content"
        return {"type": "text", "text": f"[{kind} of {size} bytes left out: a result has at most {limit} bytes]"}
    text = str(block["text"])
    kept = _cut(text, left)
    note = f"\n[{len(text) - len(kept)} of {len(text)} characters left out: a result has at most {limit} bytes]"
    return {**block, "text": kept + note}


def _cut(text: str, size: int) -> str:
    """The beginning of a text that takes so many bytes in JSON."""
    kept = text[:size]
    while kept and (taken := _size(kept)) > size:
        kept = kept[: min(len(kept) - 1, len(kept) * size // taken)]
    return kept


def _size(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode(errors="replace"))
