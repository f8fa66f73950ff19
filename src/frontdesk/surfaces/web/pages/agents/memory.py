"""An agent's memory blocks: what stands in them, what did before, and changing them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from frontdesk.agents.blocks import mark_of
from frontdesk.agents.host import Block
from frontdesk.agents.remembering import Change, changes, find_block
from frontdesk.surfaces.web.marks import short
from frontdesk.surfaces.web.model import Asked, Done, Shown
from frontdesk.surfaces.web.pages.agents.diff import Piece, diff
from frontdesk.surfaces.web.pages.agents.found import place, the_agent

SHOWN = 10


@dataclass(frozen=True, slots=True)
class Edit:
    """A change as it is shown."""

    at: datetime
    pieces: list[Piece]


async def memory(asked: Asked) -> Shown:
    """Every block with its value; of one, what it was before."""
    agent = await the_agent(asked)
    blocks = await asked.app.host.blocks(agent.id)
    label = asked.query.get("block") or next((block.label for block in blocks), "")
    chosen = await find_block(asked.app.host, agent.id, label) if label else None
    made = await _changes(asked, agent.id, chosen) if chosen else ()
    shown = made[:SHOWN] if asked.query.get("all") is None else made
    context = {
        "agent": agent,
        "known": True,
        "base": place(asked),
        "tab": "memory",
        "blocks": blocks,
        "chosen": chosen,
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
    block = await asked.app.host.write_block(agent.id, label, value, asked.form.get("seen", ""))
    return Done(f"{place(asked, 'memory')}?{urlencode({'block': block.label})}", _said(block))


async def _changes(asked: Asked, agent_id: str, block: Block) -> Sequence[Change]:
    return changes(block.value, await asked.app.host.block_versions(agent_id, block.label))


def _said(block: Block) -> str:
    return f"{short(block.label, 100)} is written: {len(block.value)} of {block.limit} characters"
