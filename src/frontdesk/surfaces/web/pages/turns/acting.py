"""What can be done to a turn: cancel it, or give one's word on what waits in it."""

from collections.abc import Mapping

from frontdesk.agents import retelling
from frontdesk.agents.host import Approval
from frontdesk.errors import Invalid
from frontdesk.surfaces.web.model import Asked, Done

APPROVE, REJECT = "approve", "reject"
LONGEST_REASON = 2_000


async def cancel(asked: Asked) -> Done:
    turn_id = asked.at["turn_id"]
    await retelling.stop(asked.app.host, asked.app.turns, asked.caller, turn_id)
    return Done(f"/turns/{turn_id}", "The turn is being stopped")


async def answer(asked: Asked) -> Done:
    turn_id, words = asked.at["turn_id"], _words(asked.form)
    app = asked.app
    sequel = await retelling.answer(app.host, app.turns, app.journal, asked.caller, turn_id, words)
    if sequel is None:
        return Done(f"/turns/{turn_id}", "Your word is given; the agent goes on once it has finished what it does")
    return Done(f"/turns/{sequel}", "Your word is given; here the agent goes on")


def _words(form: Mapping[str, str]) -> Mapping[str, Approval]:
    """The words of a form: `call.N` is which call, `word.N` what is said on it, `reason.N` why."""
    found: dict[str, Approval] = {}
    for name, call_id in form.items():
        kind, _, number = name.partition(".")
        if kind == "call":
            word = form.get(f"word.{number}", "")
            if word not in (APPROVE, REJECT):
                raise Invalid("Approve or reject each call that waits")
            reason = form.get(f"reason.{number}", "").strip()[:LONGEST_REASON]
            found[call_id] = Approval(call_id, word == APPROVE, reason)
    return found
