"""Delivers one run to its agent: writes the prompt, reads the turn's events, and returns the answer or a failure."""

from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from anyio.lowlevel import checkpoint_if_cancelled

from frontdesk.agents.host import AgentHost, Prompt
from frontdesk.errors import Conflict, FrontdeskError, MissingScope, PendingApproval, RateLimited, Unavailable
from frontdesk.identity.authority import Authority, AuthorityService
from frontdesk.identity.model import AgentIdSource, Caller
from frontdesk.identity.rights import INSTALLATION_ADMIN, SCHEDULES_ADMIN, SCHEDULES_WRITE
from frontdesk.llm.events import Done, Event, Failed, FailureKind, Started, StopReason, TextChunk, ToolCall
from frontdesk.schedules.model import DeliverRun, DeliveryFailed, Occurrence, format_utc, from_us, now_us


def compose_prompt(occurrence: Occurrence, now_us: int) -> str:
    """The text that the agent receives: a header that explains it, then the schedule's prompt."""
    return f"[{' '.join(_prompt_header(occurrence, now_us))}]\n\n{occurrence.prompt}"


def _prompt_header(occurrence: Occurrence, now_us: int) -> list[str]:
    due, now = format_utc(from_us(occurrence.intended_us)), format_utc(from_us(now_us))
    run = f"This is a scheduled run of schedule {occurrence.schedule_id}, number {occurrence.number}"
    sentences = [
        f"{run}, and not a request to schedule anything again.",
        f"It was started by hand at {due}." if occurrence.manual else f"It was due at {due} and comes at {now}.",
        _describe_repetition(occurrence),
        f"Attempt {occurrence.attempt}, delivery {occurrence.id}.",
    ]
    if occurrence.in_doubt:
        sentences.append("An earlier attempt may have reached you: what you did for this delivery id, do not do twice.")
    return [sentence for sentence in sentences if sentence]


def _describe_repetition(occurrence: Occurrence) -> str:
    if not occurrence.recurring:
        return ""
    return "It is the last one." if occurrence.last else "The schedule repeats by itself."


ANSWER_BYTES = 64 * 1024
TRUNCATED = "\n[The rest was left out]"
# A busy agent is tried again soon; an agent that waits for an approval takes longer.
BUSY_SECONDS = 2.0
APPROVAL_SECONDS = 60.0
# A credential needs one of these scopes to have an agent prompted.
SCHEDULING_SCOPES = frozenset({SCHEDULES_WRITE, SCHEDULES_ADMIN, INSTALLATION_ADMIN})


def make_deliver(
    host: AgentHost, authorities: AuthorityService | None = None, clock: Callable[[], int] = now_us
) -> DeliverRun:
    """A function that delivers one run to the host, and returns the agent's answer after the turn.

    A run acts with the present rights of the credentials behind its schedule; without `authorities`, with the stored
    rights. If it is cancelled, it ends the turn first.
    """

    async def deliver(occurrence: Occurrence) -> str | None:
        turn = DeliveryTurn(occurrence)
        try:
            if authorities is not None:
                occurrence = replace(occurrence, authority=await _current_authority(authorities, occurrence))
            async with aclosing(host.send(prompt_of(occurrence, clock()))) as events:
                async for event in events:
                    turn.add_event(event)
        except FrontdeskError as error:
            # A query that is cancelled midway looks like a database failure; the cancellation is what counts.
            await checkpoint_if_cancelled()
            raise turn.failure_of(error) from error
        return turn.answer()

    return deliver


async def _current_authority(authorities: AuthorityService, occurrence: Occurrence) -> Authority:
    found = await authorities.current(occurrence.authority)
    if found.scopes is not None and not found.scopes & SCHEDULING_SCOPES:
        raise MissingScope(SCHEDULES_WRITE)
    return found


def prompt_of(occurrence: Occurrence, at_us: int) -> Prompt:
    """The turn for a run, in the name of the agent and the person whose schedule it is."""
    caller = Caller(occurrence.id, occurrence.agent_id, occurrence.user_id, AgentIdSource.SCHEDULE)
    return Prompt(
        occurrence.agent_id,
        occurrence.authority.applied_to(caller),
        compose_prompt(occurrence, at_us),
        conversation_id=occurrence.conversation_id,
        patient=True,
        otid=occurrence.id,
        again=occurrence.in_doubt,
    )


class AnswerText:
    """Collects an agent's answer, cut to `ANSWER_BYTES`, with a blank line after tool calls."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._size = 0
        self._paused = False

    def add(self, text: str) -> None:
        if self._size > ANSWER_BYTES:
            return
        if self._paused and self._parts:
            text = f"\n\n{text}"
        self._paused = False
        self._parts.append(text)
        self._size += len(text.encode(errors="replace"))

    def pause(self) -> None:
        self._paused = True

    @property
    def text(self) -> str | None:
        """The answer, or None if the agent wrote nothing."""
        whole = "".join(self._parts)
        if self._size <= ANSWER_BYTES:
            return whole.strip() or None
        limit = ANSWER_BYTES - len(TRUNCATED)
        return whole.encode(errors="replace")[:limit].decode(errors="ignore") + TRUNCATED


@dataclass(slots=True)
class DeliveryTurn:
    """Reads the events of a turn, and decides what they mean for the run."""

    occurrence: Occurrence
    _started: bool = False
    _failed: Failed | None = None
    _stop: StopReason = StopReason.INTERRUPTED
    _answer: AnswerText = field(default_factory=AnswerText)

    def add_event(self, event: Event) -> None:
        match event:
            case Started():
                self._started = True
            case Failed():
                self._failed = event
            case Done(stop):
                self._stop = stop
            case TextChunk(text):
                self._answer.add(text)
            case ToolCall():
                self._answer.pause()
            case _:
                return

    def answer(self) -> str | None:
        """The agent's answer after the end of the turn; raises `DeliveryFailed` if the turn failed."""
        if not self._stop.is_broken:
            return self._answer.text
        if self._stop is StopReason.CANCELLED:
            raise self._undelivered("Somebody cancelled the run", permanent=True)
        failed = self._failed
        if failed is None:
            raise self._undelivered("The run was interrupted", counted=False, retry_after=BUSY_SECONDS)
        if failed.trouble is FailureKind.BUSY:
            raise self._undelivered(failed.message, counted=False, retry_after=failed.retry_after or BUSY_SECONDS)
        permanent = failed.trouble.is_permanent
        raise self._undelivered(failed.message, permanent=permanent, retry_after=failed.retry_after)

    def failure_of(self, error: FrontdeskError) -> DeliveryFailed:
        """The failure of a turn that the host refused or broke off."""
        text = error.public_message
        match error:
            case PendingApproval():
                return self._undelivered(text, counted=False, retry_after=APPROVAL_SECONDS)
            case Conflict():
                return self._undelivered(text, counted=False, retry_after=BUSY_SECONDS)
            case Unavailable() | RateLimited():
                return self._undelivered(text, retry_after=error.retry_after)
            case _:
                return self._undelivered(text, permanent=True)

    def _undelivered(
        self, text: str, *, permanent: bool = False, counted: bool = True, retry_after: float | None = None
    ) -> DeliveryFailed:
        # An earlier doubt stays until a turn has started that could check it.
        doubt = self._started or self.occurrence.in_doubt
        return DeliveryFailed(text, permanent=permanent, counted=counted, retry_after=retry_after, in_doubt=doubt)
