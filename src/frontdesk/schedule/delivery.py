"""Hands an occurrence to its agent and says what came of it, in the same words whichever host the agent is on."""

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from anyio.lowlevel import checkpoint_if_cancelled

from frontdesk.agents.host import AgentHost, Prompt
from frontdesk.errors import Conflict, FrontdeskError, MissingScope, PendingApproval, RateLimited, Unavailable
from frontdesk.identity.authority import Authorities, Authority
from frontdesk.identity.model import Caller, Source
from frontdesk.identity.rights import HOUSE_ADMIN, SCHEDULES_ADMIN, SCHEDULES_WRITE
from frontdesk.loop.events import Done, Event, Failed, Started, StopReason, TextChunk, ToolCall, Trouble
from frontdesk.schedule.model import Deliver, Delivered, Occurrence, Undelivered, now_us
from frontdesk.schedule.prompt import composed

ANSWER_BYTES = 64 * 1024
LEFT_OUT = "\n[The rest was left out]"
# A busy agent is asked again soon; one that waits for a person's word will not be ready so soon.
BUSY_SECONDS = 2.0
APPROVAL_SECONDS = 60.0
# Who may do none of these any more has nobody prompted.
PLANNING = frozenset({SCHEDULES_WRITE, SCHEDULES_ADMIN, HOUSE_ADMIN})

Standing = Callable[[Authority], Awaitable[Authority]]


async def unchanged(authority: Authority) -> Authority:
    """The rights as they were stored."""
    return authority


def may_run(authorities: Authorities) -> Standing:
    """A function that finds the rights of a run: those that the credentials have now which made its schedule."""

    async def now(authority: Authority) -> Authority:
        found = await authorities.now(authority)
        if found.scopes is not None and not found.scopes & PLANNING:
            raise MissingScope(SCHEDULES_WRITE)
        return found

    return now


def deliverer(host: AgentHost, standing: Standing = unchanged, clock: Callable[[], int] = now_us) -> Deliver:
    """A function that delivers to this host; it returns once the agent's turn has ended, or raises `Undelivered`.

    Cancelled, it ends the turn before it leaves. `standing` says what a run may do by now.
    """

    async def deliver(occurrence: Occurrence) -> Delivered:
        heard = Heard(occurrence)
        try:
            run = replace(occurrence, authority=await standing(occurrence.authority))
            async with aclosing(host.send(prompt_of(run, clock()))) as events:
                async for event in events:
                    heard.take_in(event)
        except FrontdeskError as error:
            # Cut off by a stop in the midst of a query, the database seems to fail; the stop is what counts.
            await checkpoint_if_cancelled()
            raise heard.refused(error) from error
        return heard.outcome()

    return deliver


def prompt_of(occurrence: Occurrence, at_us: int) -> Prompt:
    """The turn that an occurrence asks for, in the name of the agent and the person whose schedule it is."""
    caller = Caller(occurrence.id, occurrence.agent_id, occurrence.user_id, Source.SCHEDULE)
    return Prompt(
        occurrence.agent_id,
        occurrence.authority.acts(caller),
        composed(occurrence, at_us),
        conversation_id=occurrence.conversation_id,
        patient=True,
        otid=occurrence.id,
        again=occurrence.in_doubt,
    )


class Answer:
    """An agent's words, as many as are kept; what it said between two tools stands apart."""

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
        """What was said, or None where nothing was."""
        whole = "".join(self._parts)
        if self._size <= ANSWER_BYTES:
            return whole.strip() or None
        room = ANSWER_BYTES - len(LEFT_OUT)
        return whole.encode(errors="replace")[:room].decode(errors="ignore") + LEFT_OUT


@dataclass(slots=True)
class Heard:
    """What a turn has told so far."""

    occurrence: Occurrence
    _started: bool = False
    _failed: Failed | None = None
    _stop: StopReason = StopReason.INTERRUPTED
    _answer: Answer = field(default_factory=Answer)

    def take_in(self, event: Event) -> None:
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

    def outcome(self) -> Delivered:
        """The turn ended: what the agent said, or why it came to nothing."""
        if not self._stop.is_broken:
            return Delivered(self._answer.text)
        if self._stop is StopReason.CANCELLED:
            raise self._undelivered("Somebody cancelled the run", permanent=True)
        failed = self._failed
        if failed is None:
            raise self._undelivered("The run was interrupted", counted=False, retry_after=BUSY_SECONDS)
        if failed.trouble is Trouble.BUSY:
            raise self._undelivered(failed.message, counted=False, retry_after=failed.retry_after or BUSY_SECONDS)
        permanent = failed.trouble.is_permanent
        raise self._undelivered(failed.message, permanent=permanent, retry_after=failed.retry_after)

    def refused(self, error: FrontdeskError) -> Undelivered:
        """The turn was not taken on, or its host is gone."""
        text = error.public
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
    ) -> Undelivered:
        # A doubt from before stays until a turn has been begun that looked into it.
        doubt = self._started or self.occurrence.in_doubt
        return Undelivered(text, permanent=permanent, counted=counted, retry_after=retry_after, in_doubt=doubt)
