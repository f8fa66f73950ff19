"""An agent's memory blocks: what stands in them, what did before, and changing them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from frontdesk.agents.blocks import mark_of
from frontdesk.agents.host import EVERYONE, Block, Whose
from frontdesk.agents.remembering import Change, changes, find_block
from frontdesk.surfaces.web.marks import short
from frontdesk.surfaces.web.model import Asked, Done, Shown
from frontdesk.surfaces.web.pages.agents.diff import Piece, diff
from frontdesk.surfaces.web.pages.agents.found import place, the_agent
from frontdesk.surfaces.web.pages.people.address import checked

SHOWN = 10
# No person's id can be this.
ALL = "\t"


@dataclass(frozen=True, slots=True)
class Edit:
    """A change as it is shown."""

    at: datetime
    pieces: list[Piece]


async def memory(asked: Asked) -> Shown:
    """Every block with its value; of one, what it was before."""
    agent = await the_agent(asked)
    person = asked.query.get("person", "")
    whose = _whose(asked, person)
    blocks = await asked.app.host.blocks(agent.id, whose)
    label = asked.query.get("block") or next((block.label for block in blocks), "")
    chosen = await find_block(asked.app.host, agent.id, label, whose) if label else None
    made = await _changes(asked, agent.id, chosen, whose) if chosen else ()
    people = await asked.app.host.people(agent.id) if chosen and chosen.per_person else ()
    shown = made[:SHOWN] if asked.query.get("all") is None else made
    context = {
        "agent": agent,
        "known": True,
        "base": place(asked),
        "tab": "memory",
        "blocks": blocks,
        "chosen": chosen,
        "person": person,
        "people": _choices(people, person),
        "mark": mark_of(chosen.value) if chosen else "",
        "edits": [Edit(one.at, diff(one.before, one.after)) for one in shown],
        "count": len(made),
    }
    return Shown("agents/memory.html", f"Memory of {short(agent.name, 80)}", context)


async def write(asked: Asked) -> Done:
    agent = await the_agent(asked)
    label = asked.form.get("label", "")
    # A browser sends the ends of lines as it pleases.
    value = asked.form.get("value", "").replace("\r\n", "\n")
    person = asked.form.get("person", "")
    whose = _whose(asked, person)
    block = await asked.app.host.write_block(agent.id, label, value, asked.form.get("seen", ""), whose)
    query = {"block": block.label, **({"person": person} if person else {})}
    return Done(f"{place(asked, 'memory')}?{urlencode(query)}", _said(block))


async def _changes(asked: Asked, agent_id: str, block: Block, whose: Whose) -> Sequence[Change]:
    return changes(block.value, await asked.app.host.block_versions(agent_id, block.label, whose))


def _whose(asked: Asked, person: str) -> Whose:
    """Whose memory is looked at: one's own, another person's, or what everybody begins with."""
    if person == ALL:
        return EVERYONE
    return checked(person) if person else asked.caller.user_id


def _choices(people: Sequence[str], chosen: str) -> Sequence[tuple[str, str]]:
    known = [("", "Yours"), (ALL, "What each person begins with"), *((one, short(one, 60)) for one in people)]
    return known if any(chosen == value for value, _ in known) else [*known, (chosen, short(chosen, 60))]


def _said(block: Block) -> str:
    return f"{short(block.label, 100)} is written: {len(block.value)} of {block.limit} characters"
