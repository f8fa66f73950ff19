"""A turn as somebody looks at it afterwards, or while it runs, and their word on what waits in it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from frontdesk.agents.asking import recorded
from frontdesk.agents.host import Agent, AgentHost, Approval, Prompt, Said
from frontdesk.agents.patience import in_time
from frontdesk.agents.turns.model import TurnQuery, TurnRecord
from frontdesk.agents.turns.service import Turns, no_turn
from frontdesk.errors import Conflict, NotFound, Unavailable
from frontdesk.identity import rights
from frontdesk.identity.keys import FIRST_USER
from frontdesk.identity.model import Caller
from frontdesk.journal.service import Journal
from frontdesk.loop.events import ApprovalRequest

# So many agents are known by name where turns are listed; others show by their ids.
NAMED = 200
GONE = "its agent was deleted, and what was said with it"


@dataclass(frozen=True, slots=True)
class Listing:
    """Turns, and the agents that could have taken them; `trouble` is why the host does not name them."""

    turns: Sequence[TurnRecord]
    agents: Sequence[Agent]
    trouble: str | None = None


@dataclass(frozen=True, slots=True)
class Account:
    """All that is kept of a turn. `trouble` is why the host does not tell it; `waiting` is what needs a word now."""

    turn: TurnRecord
    agent: Agent | None = None
    said: Sequence[Said] = ()
    waiting: Sequence[ApprovalRequest] = ()
    before: str | None = None
    after: str | None = None
    keeps_turns: bool = True
    trouble: str | None = None


async def listing(host: AgentHost, turns: Turns, caller: Caller, query: TurnQuery) -> Listing:
    """Turns with their agents' names; the list is ours, and stands also when the host does not answer."""
    rights.require(caller, rights.AGENTS_READ)
    found = [turn for turn in await turns.list(query) if _may_see(caller, turn)]
    try:
        return Listing(found, await in_time(host.list(NAMED)))
    except Unavailable as error:
        return Listing(found, (), error.public)


async def account(host: AgentHost, turns: Turns, caller: Caller, turn_id: str) -> Account:
    """One turn with its events, as far as the host keeps them."""
    rights.require(caller, rights.AGENTS_READ)
    turn = await _found(turns, caller, turn_id)
    before, after = await turns.beside(turn)
    bare = Account(turn, before=before, after=after, keeps_turns=host.traits.keeps_turns)
    try:
        agent = await in_time(host.find(turn.agent_id))
        if agent is None:
            return replace(bare, trouble=GONE)
        said = await host.retell(turn)
        waiting = await _waiting(host, turn)
    except (NotFound, Unavailable) as error:
        return replace(bare, trouble=error.public)
    # The host may have found on the way that whoever ran it is gone.
    return replace(bare, turn=await turns.find(turn_id), agent=agent, said=said, waiting=waiting)


async def stop(host: AgentHost, turns: Turns, caller: Caller, turn_id: str) -> None:
    """Cancel a turn that runs, or give up what waits in it."""
    rights.require(caller, rights.AGENTS_CHAT)
    turn = await _found(turns, caller, turn_id)
    if not turn.running and not turn.waits:
        raise Conflict("This turn is over; there is nothing left to cancel")
    await host.cancel(turn.agent_id, turn.conversation_id)


async def answer(
    host: AgentHost, turns: Turns, journal: Journal, caller: Caller, turn_id: str, words: Mapping[str, Approval]
) -> str | None:
    """Give one's word on every call that waits in a turn, and have the agent go on, for whom it worked.

    The id of the turn in which it does; None where that has to wait.
    """
    rights.require(caller, rights.AGENTS_CHAT)
    turn = await _found(turns, caller, turn_id)
    waiting = await _waiting(host, turn)
    if not waiting:
        raise Conflict("Nothing waits for a word in this turn; somebody has given theirs, or it was given up")
    given = [words[one.call_id] for one in waiting if one.call_id in words]
    going_on = _person_of(turn, caller.request_id)
    prompt = Prompt(turn.agent_id, going_on, approvals=given, conversation_id=turn.conversation_id)
    return await turns.set_going(recorded(host, journal, "web", prompt))


async def _found(turns: Turns, caller: Caller, turn_id: str) -> TurnRecord:
    """A turn that the caller may see; another person's is not there for them."""
    turn = await turns.find(turn_id)
    if not _may_see(caller, turn):
        raise no_turn(turn_id)
    return turn


def _may_see(caller: Caller, turn: TurnRecord) -> bool:
    return rights.runs_installation(caller) or (turn.user_id is not None and turn.user_id == caller.user_id)


def _person_of(turn: TurnRecord, request_id: str) -> Caller:
    """Whom a turn goes on for: the person it was for, with nothing of what whoever gives their word may do.

    The host adds the bounds of the credential that the turn was begun with.
    Those who chat without a key are all one, who is no person: in that name nothing is proven.
    """
    unproven = turn.user_id == FIRST_USER and set(turn.authority.credentials) <= {FIRST_USER}
    shown = FIRST_USER if unproven else None
    return Caller(request_id, user_id=turn.user_id, credential_id=shown)


async def _waiting(host: AgentHost, turn: TurnRecord) -> Sequence[ApprovalRequest]:
    """What of this very turn waits for a word."""
    if not turn.waits:
        return ()
    asked = {one.call_id for one in turn.pending}
    return [one for one in await host.pending(turn.agent_id, turn.conversation_id) if one.call_id in asked]
