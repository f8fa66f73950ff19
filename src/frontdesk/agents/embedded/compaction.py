"""Sums up the older part of a long conversation; the messages stay stored and searchable."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import anyio
import structlog
from pydantic_ai.direct import model_request
from pydantic_ai.messages import ModelMessage, ModelRequest
from pydantic_ai.models import Model

from frontdesk.agents.embedded.conversation import StoredMessage, TurnSender, TurnState, has_words, turn_starts
from frontdesk.agents.embedded.conversation_store import ConversationStore
from frontdesk.agents.turns.model import NewTurn
from frontdesk.agents.turns.service import Emit
from frontdesk.db.engine import Transaction
from frontdesk.llm.access import OFFLINE
from frontdesk.llm.events import Compacted, Failed, FailureKind, StopReason, TurnEnd, Usage
from frontdesk.llm.messages import CHARACTERS_PER_TOKEN, estimate_tokens, message_text, user_message
from frontdesk.llm.models import ModelPool, context_window
from frontdesk.llm.turn import MODEL_ERRORS, UsageTotal, describe_model_error

FULL_SHARE = 0.7
KEPT_SHARE = 0.25
SUMMARY_SECONDS = 120
MECHANICAL_CHARACTERS = 4_000
MIN_MESSAGE_CHARACTERS = 200
REFUSED_REASONS = ("content_filter", "error")
SUMMARY_PROMPT = (
    "Sum up the conversation above for your own later use: who the person is and what they want, decisions, facts, "
    "open ends, and what you promised. Plain text, at most 400 words."
)

log = structlog.get_logger("frontdesk.agents")


@dataclass(frozen=True, slots=True)
class ConversationSummary:
    """A summary that stands for all messages up to `until`.

    Unless it is `by_model`, it consists of the person's own messages, shortened.
    """

    summary: str
    until: int
    rest: Sequence[StoredMessage]
    by_model: bool = True


def count_to_summarise(messages: Sequence[StoredMessage], window: int) -> int:
    """How many of the oldest messages to sum up: none if they fit, else whole turns until `KEPT_SHARE` is left."""
    sizes = [estimate_tokens(one.message) for one in messages]
    total = sum(sizes)
    if total <= window * FULL_SHARE:
        return 0
    cut = 0
    for index, size in enumerate(sizes):
        if has_words(messages[index].message):
            cut = index
            if total <= window * KEPT_SHARE:
                break
        total -= size
    return cut


def count_before_newest_turn(messages: Sequence[StoredMessage]) -> int:
    """The number of messages before the newest turn."""
    return next(reversed(turn_starts(messages)), 0)


async def compact_if_full(
    model: Model, summary: str | None, messages: Sequence[StoredMessage], usage: UsageTotal
) -> ConversationSummary | None:
    """Sum up the older part of a conversation that fills the model's window; returns None if it fits.

    The conversation must get shorter in any case: if the model gives no summary, the person's messages are shortened.
    """
    cut = count_to_summarise(messages, context_window(model))
    found = await summarise_oldest(model, summary, messages, cut, usage)
    return _log_summary(_summary_without_model(summary, messages, cut)) if isinstance(found, Failed) else found


async def summarise_oldest(
    model: Model, summary: str | None, messages: Sequence[StoredMessage], cut: int, usage: UsageTotal
) -> ConversationSummary | Failed | None:
    """Sum up the `cut` oldest messages; returns None if there are none, or the model's failure."""
    if cut == 0:
        return None
    if model.model_name == OFFLINE:
        return _log_summary(_summary_without_model(summary, messages, cut))
    found = await _ask_for_summary(model, summary, [one.message for one in messages[:cut]], usage)
    if isinstance(found, Failed):
        return found
    return _log_summary(ConversationSummary(found, messages[cut - 1].id, messages[cut:]))


def _summary_without_model(summary: str | None, messages: Sequence[StoredMessage], cut: int) -> ConversationSummary:
    text = quote_person(summary, [one.message for one in messages[:cut]])
    return ConversationSummary(text, messages[cut - 1].id, messages[cut:], by_model=False)


def _log_summary(summed: ConversationSummary) -> ConversationSummary:
    log.info("conversation_compacted", characters=len(summed.summary), by_model=summed.by_model)
    return summed


async def _ask_for_summary(
    model: Model, summary: str | None, old: Sequence[ModelMessage], usage: UsageTotal
) -> str | Failed:
    """The model's summary, or its failure."""
    budget = int(context_window(model) * FULL_SHARE) * CHARACTERS_PER_TOKEN
    try:
        with anyio.fail_after(SUMMARY_SECONDS):
            answer = await model_request(
                model, [user_message(f"{transcript(summary, old, budget)}\n\n{SUMMARY_PROMPT}")]
            )
    except TimeoutError as error:
        return _log_failure(error, Failed(FailureKind.UNAVAILABLE, f"The model gave no summary in {SUMMARY_SECONDS} s"))
    except MODEL_ERRORS as error:
        return _log_failure(error, describe_model_error(error))
    usage.add(answer)
    text = message_text(answer).strip()
    if not text or answer.finish_reason in REFUSED_REASONS:
        return _log_failure(
            None, Failed(FailureKind.INTERNAL, "The model answered, but gave no summary; take another model")
        )
    return text


def _log_failure(error: Exception | None, failure: Failed) -> Failed:
    log.warning("summary_failed", error=type(error).__name__ if error else "no summary")
    return failure


def transcript(summary: str | None, old: Sequence[ModelMessage], budget: int) -> str:
    """A conversation as plain text, with each message cut to its share of the available length."""
    share = max(MIN_MESSAGE_CHARACTERS, budget // (len(old) + 1))
    said = [("user" if isinstance(message, ModelRequest) else "you", message_text(message)) for message in old]
    lines = [f"{who}: {text[:share]}" for who, text in said if text]
    return "\n".join([*([f"Earlier: {summary}"] if summary else []), *lines])[-budget:]


def quote_person(summary: str | None, old: Sequence[ModelMessage]) -> str:
    """A summary without a model: the earlier summary and the person's messages, shortened."""
    asked = [text for message in old if isinstance(message, ModelRequest) and (text := message_text(message))]
    quotes = "\n".join(f"The person said: {text[:200]}" for text in asked)[-MECHANICAL_CHARACTERS:]
    return "\n".join([*([summary[:MECHANICAL_CHARACTERS]] if summary else []), quotes])


@dataclass(slots=True)
class CompactionRunner:
    """Sums up a conversation on request, as a turn: no other turn runs meanwhile, and its usage is recorded.

    `everyone` is true if the caller runs the installation and may do this in any person's conversation.
    """

    new: NewTurn
    conversations: ConversationStore
    models: ModelPool
    everyone: bool = False
    _usage: UsageTotal = field(default_factory=UsageTotal)

    async def begin(self, connection: Transaction) -> TurnState:
        new, sender = self.new, TurnSender(self.new.user_id, runs=self.everyone)
        return await self.conversations.read_turn_state(connection, new.agent_id, new.conversation_id, new.id, sender)

    async def run(self, state: TurnState, emit: Emit) -> TurnEnd:
        model = await self.models.open(state.agent.model)
        summed = await summarise_oldest(
            model, state.summary, state.past, count_before_newest_turn(state.past), self._usage
        )
        if isinstance(summed, Failed):
            # The conversation still fits, so it is not changed.
            await emit(replace(summed, message=f"Nothing was summed up, and nothing has changed. {summed.message}"))
            return TurnEnd(StopReason.ERROR, usage=self.usage(), failure=summed.trouble)
        if summed is not None:
            await self.conversations.store_summary(state.conversation_id, summed.summary, summed.until)
            await emit(Compacted(summed.summary, by_model=summed.by_model))
        return TurnEnd(StopReason.END_TURN, usage=self.usage())

    def usage(self) -> Usage:
        return self._usage.total
