"""`/schedule/new`: make a schedule in plain words, and see first how they are understood."""

from collections.abc import Mapping
from typing import Any

from frontdesk.errors import Conflict, Invalid, NotFound
from frontdesk.schedule.asked import Asked as Wish
from frontdesk.schedule.asked import When
from frontdesk.schedule.triggers.plain import plain
from frontdesk.surfaces.scheduled import ways_to_say
from frontdesk.surfaces.web.model import Asked, Done, Shown
from frontdesk.surfaces.web.pages.schedule.agents import roster
from frontdesk.surfaces.web.pages.schedule.told import sentence, times_of

TIMES = 5
WAYS = "when, such as: every weekday at 9 Berlin time"


async def form(asked: Asked) -> Shown:
    """The form; htmx asks for the preview alone, as one types."""
    said = _said(asked.query)
    if asked.part:
        return Shown("schedule/preview.html", "Preview", await _preview(asked, said))
    return await _form(asked, said)


async def look(asked: Asked) -> Shown:
    """The preview for who has no JavaScript; what was typed stays."""
    return await _form(asked, _said(asked.form))


async def make(asked: Asked) -> Done | Shown:
    """Make it; what is wrong is said beside what was typed."""
    said = _said(asked.form)
    wish = Wish(said["prompt"], said["agent"] or None, when=said["when"], zone=said["zone"] or None)
    try:
        with ways_to_say(WAYS):
            added = await asked.app.schedules.add(asked.caller, wish)
    except (Invalid, Conflict, NotFound) as error:
        return await _form(asked, said, error.in_full)
    made = added.schedule
    return Done(f"/schedule/{made.id}", f"Schedule {made.id} was made: {sentence(made)}")


def _said(fields: Mapping[str, str]) -> dict[str, str]:
    found = {name: fields.get(name, "").strip() for name in ("when", "zone", "agent", "prompt")}
    # Browsers send lines as the mail of old had them.
    return {**found, "prompt": found["prompt"].replace("\r\n", "\n")}


async def _form(asked: Asked, said: Mapping[str, str], wrong: str = "") -> Shown:
    agents = await roster(asked)
    context = {
        **await _preview(asked, said),
        "said_fields": said,
        "agents": agents.choices(said["agent"], "Choose an agent"),
        "nobody": not agents.agents and not agents.wrong,
        "host_wrong": agents.wrong,
        "refused": wrong,
    }
    return Shown("schedule/new.html", "New schedule", context, 400 if wrong else 200)


async def _preview(asked: Asked, said: Mapping[str, str]) -> dict[str, Any]:
    """How the words are understood, or what is wrong with them; nothing while there are none."""
    nothing: dict[str, Any] = {"understood": None, "rule": "", "times": [], "zone": "", "unread": ""}
    if not said["when"]:
        return nothing
    try:
        rule = When(when=said["when"], zone=said["zone"] or None)
        found = await asked.app.schedules.looking.preview_rule(asked.caller, rule, TIMES)
    except Invalid as error:
        return {**nothing, "unread": error.in_full}
    rule = found.rule.facts["rule"] or ""
    return {**nothing, "understood": plain(rule), "rule": rule, "times": times_of(found), "zone": found.zone}
