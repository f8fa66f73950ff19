"""News of scheduled prompts: what became of them, told to whoever has their agent open."""

from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

import anyio
import structlog

from frontdesk.app import App
from frontdesk.background import Chore
from frontdesk.errors import NotFound
from frontdesk.identity.model import Caller
from frontdesk.schedule.asked import PastWanted
from frontdesk.schedule.model import Past, Standing, now_us
from frontdesk.surfaces.acp.commands.markdown import words

Tell = Callable[[str, "Tidings"], Awaitable[None]]
INTERVAL_SECONDS = 2.0
# A database that is away is asked less and less often.
LONGEST_SECONDS = 30.0
LOOKED_AT = 100
PROMPT = 200
ENDED = frozenset({Standing.DELIVERED, Standing.DEAD})

log = structlog.get_logger("frontdesk.acp")
LOOKING = Chore(log, "acp_news_wait", "acp_news_failed")


@dataclass(frozen=True, slots=True)
class Tidings:
    """A scheduled prompt that the agent has answered, or that it could not be given.

    `prompt` and `conversation_id` are as the schedule has them now; empty and None where it is gone.
    """

    run_id: str
    schedule_id: int
    standing: Standing
    prompt: str = ""
    conversation_id: str | None = None
    answer: str | None = None
    reason: str | None = None

    @property
    def text(self) -> str:
        """As Markdown: which prompt it was, and under it the agent's answer as it is, or what went wrong."""
        asked = f": {words(self.prompt, PROMPT)}" if self.prompt else ""
        head = f"**Scheduled prompt {self.schedule_id}**{asked}"
        if self.standing is Standing.DELIVERED:
            return f"{head}\n\n{self.answer or 'The agent said nothing.'}"
        return f"{head}\n\nIt was not delivered, and is not tried again: {words(self.reason or 'no reason is known')}"


@dataclass(slots=True)
class Watch:
    """Since when an agent is watched, and which runs were told: by their ends too, as a dead one can be tried again."""

    began_us: int = field(default_factory=now_us)
    told: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])

    def fresh(self, runs: Collection[Past]) -> list[Past]:
        """Those that have ended since and were not told, the first to end first; what is no longer listed is let go."""
        ended = {
            (run.id, run.ended_us): run
            for run in runs
            if run.standing in ENDED and run.ended_us is not None and run.ended_us >= self.began_us
        }
        self.told &= ended.keys()
        return [ended[one] for one in sorted(ended.keys() - self.told, key=lambda one: one[1])]


class News:
    """For one editor. `who` says who is at its other end, anew each time."""

    def __init__(self, app: App, who: Callable[[], Awaitable[Caller]], interval: float = INTERVAL_SECONDS) -> None:
        self._app = app
        self._who = who
        self._interval = interval
        self._watches: dict[str, Watch] = {}

    def watch(self, agent_id: str) -> None:
        """Tell what ends from now on of an agent that is open from now on, though the next look comes later."""
        self._watches.setdefault(agent_id, Watch())

    async def run(self, agents: Callable[[], Collection[str]], tell: Tell) -> None:
        """Until cancelled: tell of the agents that are open by then. Each run is told once, or not at all."""
        wait = self._interval
        while True:
            well = await self._round(frozenset(agents()), tell)
            wait = self._interval if well else min(2 * wait, LONGEST_SECONDS)
            await anyio.sleep(wait)

    async def _round(self, agents: frozenset[str], tell: Tell) -> bool:
        """Look at each agent; whether all could be looked at."""
        self._watches = {agent_id: self._watches.get(agent_id) or Watch() for agent_id in agents}
        return all(
            [
                await LOOKING.attempt(partial(self._look, agent_id, watch, tell), agent_id=agent_id)
                for agent_id, watch in list(self._watches.items())
            ]
        )

    async def _look(self, agent_id: str, watch: Watch, tell: Tell) -> None:
        caller = await self._who()
        wanted = PastWanted(agent_id=agent_id, limit=LOOKED_AT)
        runs = (await self._app.schedules.looking.history(caller, wanted)).runs
        # Who may see everybody's is told of nobody else's all the same.
        for run in watch.fresh([run for run in runs if run.user_id in (None, caller.user_id)]):
            tidings = await self._tidings(caller, run)
            watch.told.add((run.id, run.ended_us or 0))
            await tell(agent_id, tidings)

    async def _tidings(self, caller: Caller, run: Past) -> Tidings:
        told = Tidings(run.id, run.schedule_id, run.standing, answer=run.answer, reason=run.reason)
        with suppress(NotFound):
            what = (await self._app.schedules.looking.get(caller, run.schedule_id)).what
            return replace(told, prompt=what.prompt, conversation_id=what.conversation_id)
        return told
