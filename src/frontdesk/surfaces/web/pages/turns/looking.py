"""The list of turns, and one turn."""

from collections.abc import Sequence

from frontdesk.agents import retelling
from frontdesk.agents.host import Agent
from frontdesk.agents.retelling import Account
from frontdesk.surfaces.web.model import Asked, Shown
from frontdesk.surfaces.web.pages.turns.marking import mark_of_list, mark_of_turn
from frontdesk.surfaces.web.pages.turns.senders import SOMEBODY, Sender, senders
from frontdesk.surfaces.web.pages.turns.telling import items_of, raw_of, waiting_in
from frontdesk.surfaces.web.pages.turns.words import CHOICES, Wanted, outcome

SHOWN = 25


def wanted(asked: Asked) -> Wanted:
    return Wanted(**{name: asked.query.get(name, "").strip() for name in ("agent", "outcome", "before", "after")})


async def every(asked: Asked) -> Shown:
    """`/turns`: the newest first, or from a place on."""
    asks = wanted(asked)
    found = await retelling.listing(asked.app.host, asked.app.turns, asked.caller, asks.query(SHOWN + 1))
    more = len(found.turns) > SHOWN
    # Towards the newer ones, the one too many is the first.
    turns = found.turns[1:] if more and asks.after else found.turns[:SHOWN]
    context = {
        "turns": turns,
        "outcome": outcome,
        "names": {agent.id: agent.name for agent in found.agents},
        "trouble": found.trouble,
        "asks": asks,
        "agents": _choices(found.agents, asks.agent),
        "outcomes": CHOICES,
        "newer": turns[0].id if turns and (asks.before or (asks.after and more)) else "",
        "older": turns[-1].id if turns and (more or asks.after) else "",
        "mark": mark_of_list(found.turns),
    }
    return Shown("turns/list.html" if asked.part else "turns/turns.html", "Turns", context)


async def one(asked: Asked) -> Shown:
    """`/turns/{turn_id}`: everything that is kept of it."""
    account = await retelling.account(asked.app.host, asked.app.turns, asked.caller, asked.at["turn_id"])
    template = "turns/account.html" if asked.part else "turns/turn.html"
    sender = (await senders(asked, [account.turn])).get(account.turn.id, SOMEBODY)
    return Shown(template, f"Turn of {_name(account)}", _context(account, sender))


def _context(account: Account, sender: Sender) -> dict[str, object]:
    turn = account.turn
    return {
        "account": account,
        "turn": turn,
        "outcome": outcome(turn),
        "agent_name": _name(account),
        "sender": sender,
        "items": items_of(account.said, sender),
        "waiting": waiting_in(account),
        "raw": raw_of(account),
        "live": turn.running or turn.waits,
        "mark": mark_of_turn(account),
    }


def _name(account: Account) -> str:
    return account.agent.name if account.agent is not None else account.turn.agent_id


def _choices(agents: Sequence[Agent], chosen: str) -> Sequence[tuple[str, str]]:
    """The agents to choose from; one that is chosen stays so, also where it is not among those that are known."""
    known = [("", "Any"), *((agent.id, agent.name[:60]) for agent in agents)]
    return known if any(chosen == value for value, _ in known) else [*known, (chosen, chosen[:60])]
