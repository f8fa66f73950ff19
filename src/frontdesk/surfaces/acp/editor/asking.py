"""Puts before the person what the agent would like to do."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from frontdesk.surfaces.acp.convert import updates
from frontdesk.surfaces.acp.convert.screen import Screen
from frontdesk.surfaces.acp.editor.model import Editor
from frontdesk.surfaces.acp.wire.model import Gone, Json, RpcError
from frontdesk.surfaces.acp.wire.words import RequestPermissionResponse, parsed
from frontdesk.workspace.permissions.model import Choice, Deed, Place

# A person may be away for longer than that; then it counts as a no.
PERSON_SECONDS = 3600.0
ONCE = ((Choice.ALLOW_ONCE, "Allow"), (Choice.REJECT_ONCE, "Reject"))


@dataclass(frozen=True, slots=True)
class Asking:
    """`stop` ends the turn under way, for a person who would rather have that than answer."""

    editor: Editor
    session_id: str
    screen: Callable[[], Screen]
    stop: Callable[[], None]

    async def ask(self, deed: Deed) -> Choice:
        """What the person chooses; no choice that can be read is a rejection."""
        screen = self.screen()
        await screen.seen(deed.call_id)
        asked = {"toolCall": described(deed, screen.sent_id(deed.call_id)), "options": options(deed)}
        try:
            method = "session/request_permission"
            answer = await self.editor.ask(method, self.session_id, asked, PERSON_SECONDS)
            outcome = parsed(RequestPermissionResponse, answer).outcome
        except (RpcError, TimeoutError, Gone):
            return Choice.REJECT_ONCE
        if outcome.outcome == "cancelled":
            self.stop()
            return Choice.CANCELLED
        return chosen(getattr(outcome, "option_id", ""), deed)


def described(deed: Deed, call_id: str) -> Json:
    """The call as the person has it before them while they decide."""
    content: list[Json] = [
        {"type": "diff", "path": str(one.path), "oldText": one.before, "newText": one.after} for one in deed.diffs
    ]
    if deed.why:
        # Editors differ in which of the two they show.
        content.append(updates.content(updates.text(f"{deed.why[0].upper()}{deed.why[1:]}.")))
    return {
        "toolCallId": call_id,
        "title": f"{deed.title} ({deed.why})" if deed.why else deed.title,
        "kind": deed.kind.value,
        "status": "pending",
        **({"content": content} if content else {}),
        **({"locations": [_location(place) for place in deed.places]} if deed.places else {}),
    }


def _location(place: Place) -> Json:
    return {"path": str(place.path), **({"line": place.line} if place.line is not None else {})}


def options(deed: Deed) -> Sequence[Json]:
    """Once, and for good where a lasting word would have a bound."""
    allow, reject = ONCE
    lasting = [
        (Choice.ALLOW_ALWAYS, f"Always allow {deed.covers}{deed.warns}"),
        (Choice.REJECT_ALWAYS, f"Always reject {deed.covers}"),
    ]
    named = [allow, lasting[0], reject, lasting[1]] if deed.scope and not deed.each_time else [allow, reject]
    return [{"optionId": choice.value, "name": name, "kind": choice.value} for choice, name in named]


def chosen(option_id: str, deed: Deed) -> Choice:
    """The choice that was offered under this id; a stranger's id is a rejection."""
    offered = {str(option["optionId"]) for option in options(deed)}
    return Choice(option_id) if option_id in offered else Choice.REJECT_ONCE
