"""Looks how far a house is: what it thinks with, and which of the first steps are done."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from frontdesk.agents.host import Agent
from frontdesk.agents.patience import in_time
from frontdesk.errors import FrontdeskError
from frontdesk.identity.keys import FIRST_USER
from frontdesk.loop.access import OFFLINE, ModelAccess
from frontdesk.schedule.asked import PastWanted, Rule, Wanted
from frontdesk.schedule.model import Past, Schedule, Standing, State, moment
from frontdesk.surfaces.web.model import Asked
from frontdesk.tools.catalogue.roster.model import ServerState
from frontdesk.tools.catalogue.servers import Transport

SHOWN = 5
AGENTS = 200
# A prompt that is due within this is worth waiting for on the page.
SOON = timedelta(minutes=10)
UNDER_WAY = (Standing.RUNNING, Standing.WAITING)


@dataclass(frozen=True, slots=True)
class Planned:
    """A schedule, its rule in words, and what became of its newest run."""

    schedule: Schedule
    latest: Past | None
    waiting: bool

    @property
    def rule(self) -> str:
        return Rule.of(self.schedule.what.trigger, self.schedule.intended_us).sentence

    @property
    def runs(self) -> bool:
        return self.latest is not None and self.latest.standing in UNDER_WAY


@dataclass(frozen=True, slots=True)
class Found:
    """How each step stands. `letta` is the server that hosts the agents; `away` says why it could not be asked."""

    letta: str | None
    model: str
    agents: Sequence[Agent]
    away: str
    servers: Sequence[ServerState]
    schedules: Sequence[Schedule]
    planned: Planned | None
    editor: bool
    platform: bool

    @property
    def offline(self) -> bool:
        return self.letta is None and self.model == OFFLINE

    @property
    def tools(self) -> int:
        return sum(state.tools for state in self.servers)

    @property
    def steps(self) -> Sequence[tuple[str, str, bool]]:
        """Where on the page each step is, what it is called, and whether it is done."""
        return (
            ("model", "Connect a model or Letta", not self.offline),
            ("agent", "Make an agent", bool(self.agents)),
            ("server", "Add a tool server", self.tools > 0),
            ("schedule", "Schedule a prompt", bool(self.schedules)),
            ("editor", "Open an editor", self.editor),
            ("platform", "Agent 365", self.platform),
        )

    @property
    def done(self) -> int:
        return sum(done for _, _, done in self.steps[: self.needed])

    @property
    def needed(self) -> int:
        """All but the last: that one is for those who have it."""
        return len(self.steps) - 1


async def look(asked: Asked) -> Found:
    app, caller = asked.app, asked.caller
    agents, away = await _agents(asked)
    states = [state for state in app.tools.catalogue.servers() if state.spec.transport is not Transport.HOST]
    listed = await app.schedules.looking.list(caller, Wanted(include_cancelled=True, limit=SHOWN))
    # Whoever sits at this machine has their editor's sessions under the name of the first start.
    person = replace(caller, user_id=caller.user_id or FIRST_USER)
    sessions = await app.workspace.sessions.list(person)
    return Found(
        letta=app.settings.letta_base_url,
        model=ModelAccess.of(app.settings).chosen,
        agents=agents,
        away=away,
        servers=states,
        schedules=listed.schedules,
        planned=await _planned(asked, listed.schedules),
        editor=bool(sessions.sessions),
        platform=app.settings.platform_app_id is not None,
    )


async def _agents(asked: Asked) -> tuple[Sequence[Agent], str]:
    """The host's agents, or why it does not say: somebody who sets it up has to see that here."""
    try:
        return await in_time(asked.app.host.list(AGENTS)), ""
    except FrontdeskError as error:
        return (), error.public


async def _planned(asked: Asked, listed: Sequence[Schedule]) -> Planned | None:
    """The schedule that was just made, or the last of those that are shown."""
    looking, caller = asked.app.schedules.looking, asked.caller
    made = asked.query.get("made")
    chosen = await looking.get(caller, made) if made else listed[-1] if listed else None
    if chosen is None:
        return None
    runs = (await looking.history(caller, PastWanted(schedule_id=chosen.id, limit=1))).runs
    latest = runs[0] if runs else None
    due = chosen.intended_us if chosen.state is State.ACTIVE else None
    soon = due is not None and moment(due) - asked.now < SOON
    return Planned(chosen, latest, soon or (latest is not None and latest.standing in UNDER_WAY))
