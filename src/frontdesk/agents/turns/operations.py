"""Runs, lists, reads and cancels turns for interfaces, and approves their tool calls."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

import anyio
import structlog

from frontdesk.agents.host import Agent, AgentHost, Approval, HistoryItem, Prompt, host_answer_in_time
from frontdesk.agents.turns.model import TurnQuery, TurnRecord
from frontdesk.agents.turns.service import TurnService, turn_not_found
from frontdesk.errors import Conflict, FrontdeskError, NotFound, Unavailable
from frontdesk.identity import rights
from frontdesk.identity.keys import LOCAL_USER
from frontdesk.identity.model import Caller
from frontdesk.journal.model import EntryKind, Outcome
from frontdesk.journal.service import CallRecord, Journal
from frontdesk.llm.events import ApprovalRequest, Done, Event, Failed, Started, StopReason, TextChunk


@dataclass(slots=True)
class TurnAnswer:
    """The result of a turn: its answer, or in `trouble` the reason why it failed."""

    conversation_id: str = ""
    stop: StopReason = StopReason.INTERRUPTED
    trouble: str | None = None
    parts: list[str] = field(default_factory=list[str])

    @property
    def text(self) -> str:
        return "".join(self.parts)

    def add_event(self, event: Event) -> None:
        match event:
            case Started(conversation_id=conversation_id):
                self.conversation_id = conversation_id
            case TextChunk(text):
                self.parts.append(text)
            case Failed(message=message):
                self.trouble = message
            case Done(stop):
                self.stop = stop
            case _:
                return


async def ask_agent(host: AgentHost, journal: Journal, surface: str, prompt: Prompt, seconds: float) -> TurnAnswer:
    """Run a turn and wait for its end; a turn that takes longer than `seconds` is cancelled."""
    answer = TurnAnswer()
    with CallRecord(journal, surface, "turn", prompt.agent_caller, EntryKind.TURN) as record:
        with anyio.move_on_after(seconds) as limit:
            async with aclosing(host.send(prompt)) as events:
                async for event in events:
                    answer.add_event(event)
        if limit.cancelled_caught:
            raise Conflict(f"The agent had no answer after {seconds:.0f} s, and was stopped; ask for less at a time")
        if answer.stop.is_broken:
            record.outcome, record.reason = Outcome.FAILED, answer.stop
    return answer


async def run_journaled_turn(host: AgentHost, journal: Journal, surface: str, prompt: Prompt) -> AsyncGenerator[Event]:
    """Run a turn and yield its events; the journal gets an entry for every outcome."""
    with CallRecord(journal, surface, "turn", prompt.agent_caller, EntryKind.TURN) as record:
        async with aclosing(host.send(prompt)) as events:
            async for event in events:
                if isinstance(event, Done) and event.stop.is_broken:
                    record.outcome, record.reason = Outcome.FAILED, event.stop
                yield event


# The interface that the journal shows for a turn that the agent began itself, after a tool call.
FOLLOW_UP_SURFACE = "follow-up"

log = structlog.get_logger("frontdesk.agents")


async def run_follow_up(host: AgentHost, journal: Journal, caller: Caller, text: str) -> None:
    """Run a turn of the caller's agent that nobody waits for; errors go to the log and the journal."""
    agent_id = caller.agent_id
    if agent_id is None:
        return
    try:
        await _send_follow_up(host, journal, Prompt(agent_id, caller, text, follow_up=True))
    except FrontdeskError as error:
        log.warning("follow_up_not_sent", agent_id=agent_id, reason=type(error).__name__, error=str(error))
    except Exception:
        log.exception("follow_up_failed", agent_id=agent_id)


async def _send_follow_up(host: AgentHost, journal: Journal, prompt: Prompt) -> None:
    async with aclosing(run_journaled_turn(host, journal, FOLLOW_UP_SURFACE, prompt)) as events:
        async for event in events:
            if isinstance(event, Done):
                log.info("followed_up", agent_id=prompt.agent_id, stop=event.stop)


# Lists of turns show the names of at most this many agents, and the ids of others.
NAMED_AGENTS = 200
AGENT_DELETED = "its agent was deleted, with its conversations"


@dataclass(frozen=True, slots=True)
class TurnList:
    """Turns, and the host's agents with their names; `trouble` is the reason why the host did not list its agents."""

    turns: Sequence[TurnRecord]
    agents: Sequence[Agent]
    trouble: str | None = None


@dataclass(frozen=True, slots=True)
class TurnDetails:
    """A turn with all its stored data. `waiting` are tool calls to approve; `trouble` is why there is no history."""

    turn: TurnRecord
    agent: Agent | None = None
    said: Sequence[HistoryItem] = ()
    waiting: Sequence[ApprovalRequest] = ()
    before: str | None = None
    after: str | None = None
    keeps_turns: bool = True
    trouble: str | None = None


async def list_turns(host: AgentHost, turns: TurnService, caller: Caller, query: TurnQuery) -> TurnList:
    """Turns with their agents' names; if the host does not answer, the turns are listed without names."""
    rights.require_scope(caller, rights.AGENTS_READ)
    found = [turn for turn in await turns.list(query) if _may_see(caller, turn)]
    try:
        return TurnList(found, await host_answer_in_time(host.list(NAMED_AGENTS)))
    except Unavailable as error:
        return TurnList(found, (), error.public_message)


async def read_turn(host: AgentHost, turns: TurnService, caller: Caller, turn_id: str) -> TurnDetails:
    """One turn with its events, as far as the host stores them."""
    rights.require_scope(caller, rights.AGENTS_READ)
    turn = await _find_visible_turn(turns, caller, turn_id)
    before, after = await turns.neighbours(turn)
    bare = TurnDetails(turn, before=before, after=after, keeps_turns=host.features.keeps_turns)
    try:
        agent = await host_answer_in_time(host.find(turn.agent_id))
        if agent is None:
            return replace(bare, trouble=AGENT_DELETED)
        said = await host.turn_history(turn)
        waiting = await _pending_requests(host, turn)
    except (NotFound, Unavailable) as error:
        return replace(bare, trouble=error.public_message)
    # Meanwhile the host may have found that the process of the turn has ended.
    return replace(bare, turn=await turns.find(turn_id), agent=agent, said=said, waiting=waiting)


async def cancel_turn(host: AgentHost, turns: TurnService, caller: Caller, turn_id: str) -> None:
    """Cancel a running turn, or its calls that wait for approval."""
    rights.require_scope(caller, rights.AGENTS_CHAT)
    turn = await _find_visible_turn(turns, caller, turn_id)
    if not turn.running and not turn.waits:
        raise Conflict("This turn is over; there is nothing left to cancel")
    await host.cancel(turn.agent_id, turn.conversation_id)


async def answer_approvals(
    host: AgentHost, turns: TurnService, journal: Journal, caller: Caller, turn_id: str, answers: Mapping[str, Approval]
) -> str | None:
    """Approve or deny the waiting tool calls of a turn, and let the agent continue for the person of the turn.

    Returns the id of the turn in which it continues; None if that turn has to wait.
    """
    rights.require_scope(caller, rights.AGENTS_CHAT)
    turn = await _find_visible_turn(turns, caller, turn_id)
    waiting = await _pending_requests(host, turn)
    if not waiting:
        raise Conflict("Nothing waits for approval in this turn; it was approved, denied or cancelled meanwhile")
    given = [answers[one.call_id] for one in waiting if one.call_id in answers]
    going_on = _caller_for_person(turn, caller.request_id)
    prompt = Prompt(turn.agent_id, going_on, approvals=given, conversation_id=turn.conversation_id)
    return await turns.start_in_background(run_journaled_turn(host, journal, "web", prompt))


async def _find_visible_turn(turns: TurnService, caller: Caller, turn_id: str) -> TurnRecord:
    """A turn that the caller may see; another person's is not found."""
    turn = await turns.find(turn_id)
    if not _may_see(caller, turn):
        raise turn_not_found(turn_id)
    return turn


def _may_see(caller: Caller, turn: TurnRecord) -> bool:
    return rights.runs_installation(caller) or (turn.user_id is not None and turn.user_id == caller.user_id)


def _caller_for_person(turn: TurnRecord, request_id: str) -> Caller:
    """The person of a turn, without any rights of the person who approves its calls.

    The host adds the limits of the credential that the turn began with. Everybody who chats without a key shares one
    name, which proves nothing.
    """
    unproven = turn.user_id == LOCAL_USER and set(turn.authority.credentials) <= {LOCAL_USER}
    shown = LOCAL_USER if unproven else None
    return Caller(request_id, user_id=turn.user_id, credential_id=shown)


async def _pending_requests(host: AgentHost, turn: TurnRecord) -> Sequence[ApprovalRequest]:
    """The tool calls of this turn that wait for approval."""
    if not turn.waits:
        return ()
    asked = {one.call_id for one in turn.pending}
    return [one for one in await host.pending(turn.agent_id, turn.conversation_id) if one.call_id in asked]
