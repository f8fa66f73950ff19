"""Makes room in a long conversation: what is old is summed up by the model, and stays searchable."""

from collections.abc import Sequence
from dataclasses import dataclass

import anyio
import structlog
from pydantic_ai.direct import model_request
from pydantic_ai.messages import ModelMessage, ModelRequest
from pydantic_ai.models import Model

from frontdesk.agents.embedded.talk.model import StoredMessage, has_words, turn_starts
from frontdesk.loop.access import OFFLINE
from frontdesk.loop.events import Failed, Trouble
from frontdesk.loop.media import user_message
from frontdesk.loop.messages import CHARACTERS_PER_TOKEN, text_of, tokens_in
from frontdesk.loop.models import window_of
from frontdesk.loop.troubles import MODEL_ERRORS, failed
from frontdesk.loop.usage import Spent

FULL = 0.7
KEPT = 0.25
SUMMARY_SECONDS = 120
MECHANICAL_CHARACTERS = 4_000
SHORTEST = 200
REFUSED = ("content_filter", "error")
ASK = (
    "Sum up the conversation above for your own later use: who the person is and what they want, decisions, facts, "
    "open ends, and what you promised. Plain text, at most 400 words."
)

log = structlog.get_logger("frontdesk.agents")


@dataclass(frozen=True, slots=True)
class Summed:
    """A summary that stands for all messages up to `until`.

    Where it is not `by_model`, it is the person's own words, shortened.
    """

    summary: str
    until: int
    rest: Sequence[StoredMessage]
    by_model: bool = True


def split(messages: Sequence[StoredMessage], window: int) -> int:
    """How many of the oldest messages to sum up: none while they fit, else whole turns until few are left."""
    sizes = [tokens_in(one.message) for one in messages]
    total = sum(sizes)
    if total <= window * FULL:
        return 0
    cut = 0
    for index, size in enumerate(sizes):
        if has_words(messages[index].message):
            cut = index
            if total <= window * KEPT:
                break
        total -= size
    return cut


def before_newest(messages: Sequence[StoredMessage]) -> int:
    """How many messages there are before the newest turn."""
    return next(reversed(turn_starts(messages)), 0)


async def compact(model: Model, summary: str | None, messages: Sequence[StoredMessage], spent: Spent) -> Summed | None:
    """Sum up the older part of a conversation that fills the model's window; None where it does not.

    Room has to be made, and so what is old is shortened where the model gives no summary of it.
    """
    cut = split(messages, window_of(model))
    found = await sum_up(model, summary, messages, cut, spent)
    return _noted(_shortened(summary, messages, cut)) if isinstance(found, Failed) else found


async def sum_up(
    model: Model, summary: str | None, messages: Sequence[StoredMessage], cut: int, spent: Spent
) -> Summed | Failed | None:
    """Sum up so many of the oldest messages; None where that is none, or why the model gives no summary."""
    if cut == 0:
        return None
    if model.model_name == OFFLINE:
        return _noted(_shortened(summary, messages, cut))
    found = await _summed_up(model, summary, [one.message for one in messages[:cut]], spent)
    if isinstance(found, Failed):
        return found
    return _noted(Summed(found, messages[cut - 1].id, messages[cut:]))


def _shortened(summary: str | None, messages: Sequence[StoredMessage], cut: int) -> Summed:
    text = mechanical(summary, [one.message for one in messages[:cut]])
    return Summed(text, messages[cut - 1].id, messages[cut:], by_model=False)


def _noted(summed: Summed) -> Summed:
    log.info("conversation_compacted", characters=len(summed.summary), by_model=summed.by_model)
    return summed


async def _summed_up(model: Model, summary: str | None, old: Sequence[ModelMessage], spent: Spent) -> str | Failed:
    """The model's own summary, or why it gives none."""
    room = int(window_of(model) * FULL) * CHARACTERS_PER_TOKEN
    try:
        with anyio.fail_after(SUMMARY_SECONDS):
            answer = await model_request(model, [user_message(f"{transcript(summary, old, room)}\n\n{ASK}")])
    except TimeoutError as error:
        return _failed(error, Failed(Trouble.UNAVAILABLE, f"The model gave no summary in {SUMMARY_SECONDS} s"))
    except MODEL_ERRORS as error:
        return _failed(error, failed(error))
    spent.add(answer)
    text = text_of(answer).strip()
    if not text or answer.finish_reason in REFUSED:
        return _failed(None, Failed(Trouble.INTERNAL, "The model answered, but gave no summary; take another model"))
    return text


def _failed(error: Exception | None, failure: Failed) -> Failed:
    log.warning("summary_failed", error=type(error).__name__ if error else "no summary")
    return failure


def transcript(summary: str | None, old: Sequence[ModelMessage], room: int) -> str:
    """A conversation as plain text, each message cut to its share of the room."""
    share = max(SHORTEST, room // (len(old) + 1))
    said = [("user" if isinstance(message, ModelRequest) else "you", text_of(message)) for message in old]
    lines = [f"{who}: {text[:share]}" for who, text in said if text]
    return "\n".join([*([f"Earlier: {summary}"] if summary else []), *lines])[-room:]


def mechanical(summary: str | None, old: Sequence[ModelMessage]) -> str:
    """What can be said without a model: the summary there is, and the person's own words, shortened."""
    asked = [text for message in old if isinstance(message, ModelRequest) and (text := text_of(message))]
    quotes = "\n".join(f"The person said: {text[:200]}" for text in asked)[-MECHANICAL_CHARACTERS:]
    return "\n".join([*([summary[:MECHANICAL_CHARACTERS]] if summary else []), quotes])
