"""Converts the content blocks of a prompt into text and media for the agent, and back for a replay; no I/O."""

import binascii
import re
from base64 import b64decode
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from frontdesk.agents.host import Media
from frontdesk.interfaces.acp.jsonrpc import INVALID_PARAMS, RpcError
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
from frontdesk.text import one_line, storable

MAX_BYTES = 20_000_000
NAME_CHARACTERS = 200
URI_CHARACTERS = 2000
COMMAND_PATTERN = re.compile(r"\s*/([a-zA-Z][\w-]*)(?:\s+(.*))?", re.DOTALL)
# What could pass for the edge of a context, if a file had it.
CONTEXT_EDGE = re.compile(r"<(?=\s*/\s*context\s*>|context ref=)", re.IGNORECASE)
CONTEXT_START, CONTEXT_END = '\n\n<context ref="', "\n</context>"
UNSAFE_IN_LINK = re.compile(r"[\[\]()<>\s]+")


@dataclass(frozen=True, slots=True)
class PromptContent:
    """`text` and `media` are for the agent; `said` is the text without the files that came with it."""

    text: str
    media: Sequence[Media]
    typed_text: str


@dataclass(frozen=True, slots=True)
class AcceptedMedia:
    """What the session's model takes besides text."""

    images: bool = False
    audio: bool = False


@dataclass(frozen=True, slots=True)
class PromptPart:
    """What one block comes to: words in their place, what is added at the end, or something to see or hear."""

    words: str = ""
    context: str = ""
    media: Media | None = None
    typed: bool = False


def convert_prompt(blocks: Sequence[ContentBlock], *, images: bool = False, sounds: bool = False) -> PromptContent:
    """The prompt as a whole; `RpcError` says which block cannot be taken, and why."""
    senses = AcceptedMedia(images, sounds)
    pieces = [_convert_block(block, number, senses) for number, block in enumerate(blocks, 1)]
    said = _join_parts([piece for piece in pieces if piece.words])
    media = tuple(piece.media for piece in pieces if piece.media is not None)
    if not said.strip() and not media:
        raise RpcError(INVALID_PARAMS, "The prompt is empty; write something, or add a picture")
    return PromptContent("".join([said, *(piece.context for piece in pieces)]), media, said)


def strip_context(text: str) -> str:
    """What a person said, without the files that went along; the way back from `PromptContent.text` to
    `PromptContent.said`.
    """
    while text.endswith(CONTEXT_END) and CONTEXT_START in text:
        text = text[: text.rindex(CONTEXT_START)]
    return text


def parse_command(text: str) -> tuple[str, str] | None:
    """The name of a slash command, and what follows it; None where the prompt is none."""
    found = COMMAND_PATTERN.fullmatch(text)
    return (found[1].lower(), (found[2] or "").strip()) if found else None


def _convert_block(block: ContentBlock, number: int, senses: AcceptedMedia) -> PromptPart:
    match block:
        case TextContentBlock(text=text):
            return PromptPart(storable(text), typed=True)
        case ResourceContentBlock(name=name, uri=uri):
            return PromptPart(_mention(name, uri))
        case ImageContentBlock(data=data, mime_type=mime) | AudioContentBlock(data=data, mime_type=mime):
            return PromptPart(media=_decode_media(f"{number} ({block.type})", data, _plain_mime(mime), senses))
        case EmbeddedResourceContentBlock(resource=TextResourceContents(uri=uri, text=text)):
            return PromptPart(_mention(_name_of(uri), uri), _context_block(uri, text))
        case EmbeddedResourceContentBlock(resource=BlobResourceContents() as blob):
            return _convert_blob(blob, f"{number} (resource)", senses)
        case _:
            raise RpcError(INVALID_PARAMS, f"Block {number} is of a kind that is not known here")


def _convert_blob(blob: BlobResourceContents, block: str, senses: AcceptedMedia) -> PromptPart:
    mime, name = _plain_mime(blob.mime_type or ""), _name_of(blob.uri)
    if mime.startswith(("image/", "audio/")):
        return PromptPart(_mention(name, blob.uri), media=_decode_media(block, blob.blob, mime, senses))
    size = len(_decode(block, blob.blob))
    kind = one_line(mime, NAME_CHARACTERS) or "unknown type"
    return PromptPart(f"{_mention(name, blob.uri)} (a file of {size} bytes, {kind}; its content is not shown)")


def _decode_media(block: str, data: str, mime: str, senses: AcceptedMedia) -> Media:
    if not mime.startswith(("image/", "audio/")):
        raise RpcError(INVALID_PARAMS, f"Block {block} names a type that is neither an image nor audio")
    if mime.startswith("image/") and not senses.images:
        advice = "choose one that does, or name it in FRONTDESK_IMAGE_MODELS if it does"
        raise RpcError(
            INVALID_PARAMS, f"Block {block}: this session's model takes no images, as far as is known; {advice}"
        )
    if mime.startswith("audio/") and not senses.audio:
        raise RpcError(INVALID_PARAMS, f"Block {block}: this session's model takes no audio; choose one that does")
    return Media(mime, _decode(block, data))


def _decode(block: str, data: str) -> bytes:
    # Four letters are three bytes: what is too long is not even looked at.
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
    # Markdown takes an address with spaces or brackets only so.
    return f"[@{called}](<{place}>)" if UNSAFE_IN_LINK.search(place) else f"[@{called}]({place})"


def _shown_uri(uri: str) -> str:
    """An address as a person would write it: a file's is its path."""
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


def _join_parts(pieces: Sequence[PromptPart]) -> str:
    """The words in a row; those that would grow together are kept apart."""
    text = ""
    for before, piece in zip([None, *pieces], pieces, strict=False):
        close = text and not text[-1].isspace() and (piece.words[0].isalnum() or piece.words[0] == "[")
        if close and before is not None:
            text += "\n" if before.typed and piece.typed else " "
        text += piece.words
    return text
