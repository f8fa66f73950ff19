"""Fills a house that nobody lives in yet with a day: agents, tools, talk, prompts, keys, and a person's records."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from zoneinfo import ZoneInfo

import anyio

from frontdesk.agents.embedded.host import EmbeddedHost
from frontdesk.agents.host import Agent, AgentHost, Block, NewAgent
from frontdesk.app import App, running
from frontdesk.errors import Conflict, FrontdeskError, Invalid, Unavailable
from frontdesk.identity.keys import FIRST_NAME, FIRST_USER
from frontdesk.identity.model import Caller
from frontdesk.memory.scope import Scope
from frontdesk.surfaces.demo import handing_out, planning, remembering, scripts
from frontdesk.surfaces.demo.counting import count
from frontdesk.surfaces.demo.day import Day
from frontdesk.surfaces.demo.doors import open_doors
from frontdesk.surfaces.demo.place import spec

PERSON = "ann"
HOME = ZoneInfo("Europe/Lisbon")
SECONDS = 90
# None of them names a model: once the day is over, they think with the house's.
CAST = (
    NewAgent(
        "Ada",
        "Keeps Ann's day in order.",
        blocks=(
            Block("persona", "I am Ada. I am brief, and I say what matters first."),
            Block("human", "Ann runs a studio."),
        ),
    ),
    NewAgent("Bruno", "Answers customers at the support desk.", blocks=(Block("persona", "I am Bruno, and patient."),)),
    NewAgent("Cleo", "Reads figures, and says what they mean.", blocks=(Block("persona", "I am Cleo. I count."),)),
)


@dataclass(frozen=True, slots=True)
class Filled:
    """How much of what there is now."""

    counts: Mapping[str, int]


async def fill(app: App, operator: Caller, now: datetime) -> Filled:
    """Let a day pass that ends now; it takes some seconds, and never longer than a minute and a half."""
    await check(app)
    day = Day(now, HOME)
    stage = await _built_in(app).stage()
    try:
        with anyio.fail_after(SECONDS), stage.models.rehearsing(scripts.lines(day)):
            return await _behind(app, operator, day)
    except TimeoutError as error:
        raise Unavailable(f"The day was not over after {SECONDS} s; what was made so far stays") from error


async def _behind(app: App, operator: Caller, day: Day) -> Filled:
    """With everything at work that works behind a server."""
    trouble: FrontdeskError | None = None
    async with running(app):
        # What is raised in here would come out as one of a group, which no command can put into words.
        try:
            filled = await _fill(app, operator, day)
        except FrontdeskError as error:
            filled, trouble = Filled({}), error
        await app.tools.learning.flush()
    if trouble is not None:
        raise trouble
    return filled


async def check(app: App) -> None:
    """Refuse a house in which somebody lives: the key that the first start makes is nobody's yet."""
    _built_in(app)
    keys = [key for key in await app.keys.list() if (key.name, key.user_id) != (FIRST_NAME, FIRST_USER)]
    if keys or await app.host.list(1):
        raise Conflict(
            "This house has agents or keys already, and the demo would stand among them; "
            "give it a folder of its own: frontdesk demo --data DIR"
        )


def _built_in(app: App) -> EmbeddedHost:
    if isinstance(app.host, EmbeddedHost):
        return app.host
    raise Invalid("The demo is for the built-in agents; leave out LETTA_BASE_URL, and give it a folder: --data DIR")


async def _fill(app: App, operator: Caller, day: Day) -> Filled:
    person = replace(operator, user_id=PERSON)
    ada, bruno, cleo = await _hire(app.host)
    await app.tools.house.add_server(operator, spec())
    await remembering.remember(app.memory, Scope.of(person), ada.id, day)
    keys = await handing_out.hand_out(app.identity, PERSON, bruno)
    due = await planning.plan(app, person, (ada, bruno, cleo), day.zone.key)
    async with open_doors(app) as doors:
        shown = f"Bearer {keys.person}"
        await doors.talk(ada.id, PERSON, scripts.WITH_ADA, authorization=shown)
        await doors.talk(bruno.id, PERSON, scripts.WITH_BRUNO, authorization=shown)
        await handing_out.use(doors, keys, (ada, bruno, cleo))
        await handing_out.deny(app.tools.house, operator, doors, cleo)
    await planning.run(app, person, due)
    return Filled(await count(app, person))


async def _hire(host: AgentHost) -> tuple[Agent, Agent, Agent]:
    ada, bruno, cleo = [await host.create(new) for new in CAST]
    return ada, bruno, cleo
