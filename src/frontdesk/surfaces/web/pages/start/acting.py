"""The first steps, taken with a form."""

from urllib.parse import quote

from pydantic import ValidationError

from frontdesk.agents.host import Block, NewAgent
from frontdesk.errors import Invalid
from frontdesk.loop.tools import problems_of
from frontdesk.schedule.asked import Asked as Plan
from frontdesk.surfaces.demo.place import NAME, spec
from frontdesk.surfaces.rest.tools.asked import ServerAsked
from frontdesk.surfaces.scheduled import ways_to_say
from frontdesk.surfaces.web.model import Asked, Done
from frontdesk.tools.catalogue.crawl import Step


async def make_agent(asked: Asked) -> Done:
    name, persona, model = (_said(asked, field) for field in ("name", "persona", "model"))
    if name is None:
        raise Invalid("An agent needs a name")
    blocks = (Block("persona", persona),) if persona else ()
    made = await asked.app.host.create(NewAgent(name, _said(asked, "description") or "", model, blocks))
    return Done("/start#server", f"{made.name} is there, as {made.id}. Talk with it: frontdesk chat {made.id}")


async def add_server(asked: Asked) -> Done:
    token = _said(asked, "token")
    given = {
        "name": _said(asked, "name") or "",
        "url": _said(asked, "url") or "",
        "transport": _said(asked, "transport") or "http",
        "headers": {"Authorization": f"Bearer {token}"} if token else {},
    }
    try:
        wanted = ServerAsked.model_validate(given)
    except ValidationError as error:
        raise Invalid(f"That does not fit: {problems_of(error)}") from error
    return _added(await asked.app.tools.house.add_server(asked.caller, wanted.spec))


async def add_demo_tools(asked: Asked) -> Done:
    return _added(await asked.app.tools.house.add_server(asked.caller, spec(NAME)))


async def schedule(asked: Asked) -> Done:
    plan = Plan(
        _said(asked, "prompt") or "",
        agent_id=_said(asked, "agent"),
        when=_said(asked, "when"),
        zone=_said(asked, "zone"),
    )
    with ways_to_say("when it is to come: in plain words, or as a cron rule"):
        added = await asked.app.schedules.add(asked.caller, plan)
    return Done(_planned(added.schedule.id), f"Scheduled with number {added.schedule.id}: {added.rule.sentence}")


async def run(asked: Asked) -> Done:
    number = asked.form.get("schedule", "")
    await asked.app.schedules.run_now(asked.caller, number)
    return Done(_planned(number), "It runs now; what the agent says is shown here.")


def _planned(number: object) -> str:
    return f"/start?made={quote(str(number), safe='')}#schedule"


def _said(asked: Asked, field: str) -> str | None:
    """What was filled in, if anything was."""
    return asked.form.get(field, "").strip() or None


def _added(step: Step) -> Done:
    return Done("/start#schedule", f"{step.server} answered, and has {step.tools} tools.")
