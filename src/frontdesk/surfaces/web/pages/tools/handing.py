"""Handing tools out: what an agent would get and give up, and then really."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from frontdesk.loop.text import some_of
from frontdesk.surfaces import given
from frontdesk.surfaces.web.model import Asked, Done, Shown
from frontdesk.surfaces.web.pages.tools.common import acting, address, agents, tool_at
from frontdesk.tools.selection.model import Choice, Selection
from frontdesk.tools.service import Wanted

GIVE, TAKE = "give", "take"
WHAT = ((GIVE, "Give it what fits"), (TAKE, "Take from it what fits least"))
NAMED = 5


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be done for which agent, as the form says it."""

    agent: str
    query: str
    what: str = GIVE
    min_score: float = given.MIN_SCORE
    keep: str = ""

    @property
    def complete(self) -> bool:
        return bool(self.agent and self.query)


def ordered(said: Mapping[str, str]) -> Order:
    """The order that a form or an address tells of."""
    what = TAKE if said.get("what") == TAKE else GIVE
    least = given.min_score(said.get("least", given.MIN_SCORE))
    return Order(said.get("agent", ""), said.get("q", "").strip(), what, least, said.get("keep", ""))


async def plan(asked: Asked) -> Shown:
    """What would become of the agent's tools, without anything being done."""
    order = ordered(asked.query)
    selection, note = await _carry_out(asked, order, dry_run=True) if order.complete else (None, "")
    context = {
        "order": order,
        "what": WHAT,
        "selection": selection,
        "note": note,
        "agents": await agents(asked, order.agent),
        "tool_at": tool_at,
    }
    return Shown("tools/plan.html", "Hand out tools", context)


async def hand_out(asked: Asked) -> Done:
    """Do what the plan says."""
    order = ordered(asked.form)
    selection, note = await _carry_out(asked, order, dry_run=False)
    least = f"{order.min_score:g}"
    to = address("/tools/plan", agent=order.agent, q=order.query, what=order.what, least=least, keep=order.keep)
    return Done(to, note or told(selection))


async def _carry_out(asked: Asked, order: Order, *, dry_run: bool) -> tuple[Selection, str]:
    caller, keep, tools = acting(asked, order.agent), given.tool_names(order.keep), asked.app.tools
    if order.what == TAKE:
        return await tools.prune(caller, order.query, keep=keep, dry_run=dry_run), ""
    wanted = Wanted(order.query, keep, min_score=order.min_score, dry_run=dry_run)
    outcomes = await tools.find(caller, wanted)
    return outcomes.selection, outcomes.note


def told(selection: Selection) -> str:
    """What was done, in a sentence."""
    said = [
        *selection.unknown,
        _named("Attached", selection.attached),
        _named("Detached", selection.detached),
        _named("The agent host did not do", selection.failed),
    ]
    return " ".join(part for part in said if part) or "Nothing had to be changed."


def _named(word: str, choices: Sequence[Choice]) -> str:
    return f"{word}: {some_of([choice.name for choice in choices], NAMED)}." if choices else ""
