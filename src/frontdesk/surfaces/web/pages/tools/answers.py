"""What a tool answered, as it can be shown: texts, pictures, and the rest as JSON."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from frontdesk.surfaces.cli.plain import revealed
from frontdesk.tools.gateway.result import CallResult

PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
BASE64 = re.compile(r"[A-Za-z0-9+/\s]+={0,2}\s*")
# Pages stay small.
MOST_PICTURE = 400_000
MOST_BLOCKS = 50


@dataclass(frozen=True, slots=True)
class Block:
    """A part of an answer: a text, or the address of a picture."""

    text: str = ""
    picture: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call came to, and how long it took."""

    ok: bool
    blocks: Sequence[Block]
    structured: str
    took_us: float


def answer(result: CallResult, took_us: float) -> Answer:
    blocks = [_block(one) for one in result.content[:MOST_BLOCKS]]
    if len(result.content) > MOST_BLOCKS:
        blocks.append(Block(f"{len(result.content) - MOST_BLOCKS} more parts are not shown."))
    if not blocks and result.error:
        blocks = [Block(result.error)]
    structured = "" if result.structured is None else revealed(result.structured, 2)
    return Answer(result.ok, blocks, structured, took_us)


def _block(block: Mapping[str, Any]) -> Block:
    text, data, kind = block.get("text"), block.get("data"), block.get("mimeType")
    if block.get("type") == "text" and isinstance(text, str):
        return Block(text)
    if kind in PICTURES and isinstance(data, str) and len(data) <= MOST_PICTURE and BASE64.fullmatch(data):
        return Block(picture=f"data:{kind};base64,{data}")
    return Block(revealed(block, 2))
