"""Makes room in a long conversation: what is old is summed up by the model, and stays searchable."""

from collections.abc import Sequence
from dataclasses import dataclass

import anyio
import structlog
from pydantic_ai.direct import model_request
from pydantic_ai.messages import ModelMessage, ModelRequest, UserPromptPart
from pydantic_ai.models import Model

from frontdesk.agents.embedded.talk.model import StoredMessage
from frontdesk.loop.access import OFFLINE
from frontdesk.loop.messages import repaired, text_of, tokens_in, user_message
from frontdesk.loop.models import window_of
from frontdesk.loop.troubles import MODEL_ERRORS

FULL = 0.7
KEPT = 0.25
SUMMARY_SECONDS = 120
MECHANICAL_CHARACTERS = 4_000
ASK = (
    "Sum up the conversation above for your own later use: who the person is and what they want, decisions, facts, "
    "open ends, and what you promised. Plain text, at most 400 words."
)

log = structlog.get_logger("frontdesk.agents")


@dataclass(frozen=True, slots=True)
class Compacted:
    """A summary that stands for all messages up to `until`."""

    summary: str
    until: int
    rest: Sequence[StoredMessage]


def split(messages: Sequence[StoredMessage], window: int) -> int:
    """How many of the oldest messages to sum up: none while they fit, else whole turns until few are left."""
    sizes = [tokens_in(one.message) for one in messages]
    total = sum(sizes)
    if total <= window * FULL:
        return 0
    cut = 0
    for index, size in enumerate(sizes):
        if _begins_turn(messages[index].message):
            cut = index
            if total <= window * KEPT:
                break
        total -= size
    return cut


async def compact(model: Model, summary: str | None, messages: Sequence[StoredMessage]) -> Compacted | None:
    """Sum up the older part of a conversation that fills the model's window; None where it does not."""
    cut = split(messages, window_of(model))
    if cut == 0:
        return None
    old = [one.message for one in messages[:cut]]
    text = await _summed_up(model, summary, old)
    log.info("conversation_compacted", messages=cut, characters=len(text))
    return Compacted(text, messages[cut - 1].id, messages[cut:])


async def _summed_up(model: Model, summary: str | None, old: Sequence[ModelMessage]) -> str:
    before = [user_message(f"Earlier: {summary}")] if summary else []
    if model.model_name != OFFLINE:
        try:
            with anyio.fail_after(SUMMARY_SECONDS):
                answer = await model_request(model, repaired([*before, *old, user_message(ASK)]))
        except (*MODEL_ERRORS, TimeoutError) as error:
            log.warning("summary_failed", error=type(error).__name__)
        else:
            if text := text_of(answer):
                return text
    return mechanical(summary, old)


def mechanical(summary: str | None, old: Sequence[ModelMessage]) -> str:
    """What can be said without a model: the person's own words, shortened."""
    asked = [text for message in old if isinstance(message, ModelRequest) and (text := text_of(message))]
    lines = [*([summary] if summary else []), *(f"The person said: {text[:200]}" for text in asked)]
    return "\n".join(lines)[-MECHANICAL_CHARACTERS:]


def _begins_turn(message: ModelMessage) -> bool:
    return isinstance(message, ModelRequest) and any(isinstance(part, UserPromptPart) for part in message.parts)
