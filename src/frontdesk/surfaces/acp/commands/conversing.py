"""`/compact`, `/rewind` and `/model`: the conversation itself, and what thinks in it."""

from collections.abc import Sequence
from dataclasses import replace

from frontdesk.agents.host import ModelChoice
from frontdesk.errors import Invalid, NotFound
from frontdesk.identity import rights
from frontdesk.schedule.numbers import whole
from frontdesk.surfaces.acp.commands.markdown import code, table, words
from frontdesk.surfaces.acp.commands.model import Desk, Reply

MOST_TURNS = 1000
TOO_LITTLE = "There is too little to sum up yet; nothing has changed."
COMPACTED = "What was said so far is summed up; the agent goes on from the summary."
SHORTENED = (
    "There is no model that could sum up what was said so far; the agent goes on from your own words, shortened."
)
CANNOT_REWIND = "The agents' host keeps what was said; turns cannot be taken back here. Begin a new session instead."


async def compact(desk: Desk, _said: str) -> Reply:
    rights.require(desk.caller, rights.AGENTS_CHAT)
    kept = desk.session
    done = await desk.app.host.compact(kept.agent_id, kept.conversation_id, kept.user_id)
    if done is None:
        return Reply(TOO_LITTLE)
    return Reply(COMPACTED if done.by_model else SHORTENED, (done,))


async def rewind(desk: Desk, said: str) -> Reply:
    rights.require(desk.caller, rights.AGENTS_CHAT)
    wanted = whole(said.strip() or "1")
    if wanted is None or not 1 <= wanted <= MOST_TURNS:
        raise Invalid(f"Say how many turns to take back, from 1 to {MOST_TURNS}: /rewind 2")
    if not desk.app.host.traits.rewinds:
        return Reply(CANNOT_REWIND)
    kept = desk.session
    gone = await desk.app.host.rewind(kept.agent_id, kept.conversation_id, wanted, kept.user_id)
    if not gone:
        return Reply("There is no turn to take back.")
    turns = "The newest turn is" if gone == 1 else f"The newest {gone} turns are"
    return Reply(f"{turns} forgotten, though still shown above. Files and memory stay as they are.")


async def model(desk: Desk, said: str) -> Reply:
    offered = await desk.app.host.models()
    name = said.strip()
    return _change(desk, _chosen(offered, name)) if name else Reply(await _models(desk, offered))


async def _models(desk: Desk, offered: Sequence[ModelChoice]) -> str:
    agent = await desk.app.host.find(desk.session.agent_id)
    own = agent.model if agent is not None else None
    used = desk.session.model or own or (offered[0].name if offered else "")
    others = () if not used or any(one.name == used for one in offered) else (ModelChoice(used),)
    rows = [_row(one, used=one.name == used) for one in (*offered, *others)]
    return table(("model", "", "efforts", ""), rows) if rows else "The agents' host names no models."


def _change(desk: Desk, chosen: ModelChoice) -> Reply:
    """An effort that the new model has too is kept."""
    effort = desk.session.effort if desk.session.effort in chosen.efforts else None
    kept = replace(desk.session, model=chosen.name, effort=effort)
    return Reply(f"This session now thinks with {code(chosen.name)}.", change=kept)


def _chosen(offered: Sequence[ModelChoice], name: str) -> ModelChoice:
    """The model of this name or title, or the only one in whose name it stands."""
    wanted = name.casefold()
    exact = [one for one in offered if wanted in (one.name.casefold(), one.title.casefold())]
    found = exact[:1] or [one for one in offered if wanted in one.name.casefold()]
    if len(found) == 1:
        return found[0]
    if found:
        raise Invalid(f"Several models go by that: {', '.join(one.name for one in found)}; say more of the name")
    raise NotFound(f"There is no model '{name[:100]}'; /model lists those there are")


def _row(one: ModelChoice, *, used: bool) -> tuple[str, ...]:
    efforts = words(", ".join(one.efforts))
    return code(one.name), words("" if one.title == one.name else one.title), efforts, "in use" if used else ""
