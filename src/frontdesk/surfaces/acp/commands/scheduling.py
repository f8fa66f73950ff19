"""`/schedule`: prompts that the agent gets later, with nobody there."""

import re
from dataclasses import replace

from frontdesk.errors import Invalid, NotFound
from frontdesk.schedule.asked import Added, Asked, Rule, Wanted
from frontdesk.schedule.model import Schedule, State
from frontdesk.surfaces.acp.commands.markdown import code, table, words
from frontdesk.surfaces.acp.commands.model import Desk, Reply

NONE = "Nothing is scheduled. Have the agent prompted later: `/schedule in two hours: look at the build`"
HOW = "Say when, a colon and the prompt: /schedule in two hours: look at the build"
LISTED = 50
SHOWN = 100
# The rule in quotes, whatever is in it, or up to the first colon that is none of a time's.
OPENING, CLOSING = "\"'\u201c\u2018", "\"'\u201d\u2019"
QUOTED = re.compile(rf"[{OPENING}](?P<when>[^{CLOSING}]+)[{CLOSING}]\s*:?\s*(?P<prompt>.+)", re.DOTALL)
BEFORE_COLON = re.compile(r"(?P<when>.+?):\s+(?P<prompt>.+)", re.DOTALL)
CANCEL = re.compile(r"cancel(?:\s+#?(?P<number>\S*))?", re.IGNORECASE)


async def schedule(desk: Desk, said: str) -> Reply:
    text = said.strip()
    if text.lower() in ("", "list"):
        return await _listed(desk)
    cancelled = CANCEL.fullmatch(text)
    return await _add(desk, text) if cancelled is None else await _cancel(desk, cancelled["number"] or "")


async def _listed(desk: Desk) -> Reply:
    wanted = Wanted(desk.session.agent_id, limit=LISTED)
    found = await desk.app.schedules.looking.list(desk.caller, wanted)
    rows = [_row(one) for one in found.schedules]
    more = f"\n\nThese are the first {LISTED}; there are more." if found.next is not None else ""
    return Reply(table(("number", "when", "prompt"), rows) + more if rows else NONE)


async def _cancel(desk: Desk, number: str) -> Reply:
    found = await desk.app.schedules.looking.get(desk.caller, number)
    if found.what.agent_id != desk.session.agent_id:
        raise NotFound(f"Schedule {found.id} is not one of this agent's; /schedule lists those")
    gone = await desk.app.schedules.cancel(desk.caller, found.id)
    return Reply(f"Schedule {gone.id} cancelled: {words(gone.what.prompt, SHOWN)}")


async def _add(desk: Desk, text: str) -> Reply:
    found = QUOTED.fullmatch(text) or BEFORE_COLON.fullmatch(text)
    if found is None:
        raise Invalid(HOW)
    asked = Asked(found["prompt"].strip(), desk.session.agent_id, when=found["when"].strip())
    added = await _added(desk, asked)
    return Reply(f"Scheduled with number {added.schedule.id}: {words(added.rule.sentence)}")


async def _added(desk: Desk, asked: Asked) -> Added:
    """In this very conversation where the scheduler lets its owner have it, otherwise in one of its own."""
    here = replace(asked, conversation_id=desk.session.conversation_id)
    try:
        return await desk.app.schedules.add(desk.caller, here)
    except NotFound:
        return await desk.app.schedules.add(desk.caller, asked)


def _row(one: Schedule) -> tuple[str, ...]:
    rule = Rule.of(one.what.trigger, one.intended_us)
    state = "" if one.state is State.ACTIVE else f" ({one.state})"
    return str(one.id), code(rule.sentence) + state, words(one.what.prompt, SHOWN)
