"""Polls for changes from elsewhere and shows them in open sessions: memory edits, and ended runs of schedules."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import anyio
import structlog

from frontdesk.agents.host import AgentHost, MemoryBlock
from frontdesk.app import App
from frontdesk.background import BackgroundJob
from frontdesk.errors import NotFound
from frontdesk.identity.model import Caller
from frontdesk.interfaces.acp.jsonrpc import ConnectionClosed
from frontdesk.interfaces.acp.markdown import escape_line
from frontdesk.llm.events import MemoryEdit
from frontdesk.schedules.model import RunRecord, RunStatus, now_us
from frontdesk.schedules.requests import ListRuns

if TYPE_CHECKING:
    from frontdesk.interfaces.acp.session import EditorSession

log = structlog.get_logger("frontdesk.acp")
BACKGROUND_WORK = BackgroundJob(log, "acp_aside_waits", "acp_aside_failed")


async def run_in_background(work: Callable[[], Awaitable[None]]) -> None:
    """Do it; that the editor has left meanwhile is nothing to tell anybody."""

    async def quietly() -> None:
        with suppress(ConnectionClosed):
            await work()

    await BACKGROUND_WORK.attempt(quietly)


# A host that is elsewhere is asked over the network.
NEAR_SECONDS = 2.0
FAR_SECONDS = 15.0

MEMORY_POLL = BackgroundJob(log, "acp_memory_waits", "acp_memory_failed")


class MemoryWatcher:
    """Tells open sessions; each decides when, as none is interrupted."""

    def __init__(self, host: AgentHost) -> None:
        self._host = host
        self._seconds = NEAR_SECONDS if host.features.can_require_approval else FAR_SECONDS

    async def run(self, sessions: Callable[[], Collection["EditorSession"]]) -> None:
        """Until cancelled."""
        while True:
            await anyio.sleep(self._seconds)
            for agent_id, user_id in {(one.stored.agent_id, one.stored.user_id) for one in sessions()}:
                look = partial(self._look, agent_id, user_id, sessions)
                await MEMORY_POLL.attempt(look, agent_id=agent_id)

    async def _look(
        self, agent_id: str, user_id: str | None, sessions: Callable[[], Collection["EditorSession"]]
    ) -> None:
        blocks = await self._host.blocks(agent_id, user_id)
        these = [one for one in sessions() if (one.stored.agent_id, one.stored.user_id) == (agent_id, user_id)]
        for session in these:
            await session.show_memory_changes(blocks)


def memory_edits(known: Mapping[str, str], blocks: Sequence[MemoryBlock]) -> Sequence[MemoryEdit]:
    """What has changed, by label."""
    return [
        MemoryEdit(block.label, known.get(block.label, ""), block.value)
        for block in blocks
        if known.get(block.label, "") != block.value
    ]


TellResult = Callable[[str, "ScheduledResult"], Awaitable[None]]
INTERVAL_SECONDS = 2.0
# A database that is away is asked less and less often.
MAX_INTERVAL_SECONDS = 30.0
MAX_RUNS = 100
PROMPT_CHARACTERS = 200
ENDED_STATUSES = frozenset({RunStatus.DELIVERED, RunStatus.DEAD})

SCHEDULE_POLL = BackgroundJob(log, "acp_news_wait", "acp_news_failed")


@dataclass(frozen=True, slots=True)
class ScheduledResult:
    """A scheduled prompt that the agent has answered, or that it could not be given.

    `prompt` and `conversation_id` are as the schedule has them now; empty and None where it is gone.
    """

    run_id: str
    schedule_id: int
    standing: RunStatus
    prompt: str = ""
    conversation_id: str | None = None
    answer: str | None = None
    reason: str | None = None

    @property
    def text(self) -> str:
        """As Markdown: which prompt it was, and under it the agent's answer as it is, or what went wrong."""
        asked = f": {escape_line(self.prompt, PROMPT_CHARACTERS)}" if self.prompt else ""
        head = f"**Scheduled prompt {self.schedule_id}**{asked}"
        if self.standing is RunStatus.DELIVERED:
            return f"{head}\n\n{self.answer or 'The agent said nothing.'}"
        reason = escape_line(self.reason or "no reason is known")
        return f"{head}\n\nIt was not delivered, and is not tried again: {reason}"


@dataclass(slots=True)
class AgentWatch:
    """Since when an agent is watched, and which runs were told: by their ends too, as a dead one can be tried again."""

    began_us: int = field(default_factory=now_us)
    told: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])

    def new_results(self, runs: Collection[RunRecord]) -> list[RunRecord]:
        """Those that have ended since and were not told, the first to end first; what is no longer listed is let go."""
        ended = {
            (run.id, run.ended_us): run
            for run in runs
            if run.standing in ENDED_STATUSES and run.ended_us is not None and run.ended_us >= self.began_us
        }
        self.told &= ended.keys()
        return [ended[one] for one in sorted(ended.keys() - self.told, key=lambda one: one[1])]


class ScheduleWatcher:
    """For one editor. `who` says who is at its other end, anew each time."""

    def __init__(self, app: App, who: Callable[[], Awaitable[Caller]], interval: float = INTERVAL_SECONDS) -> None:
        self._app = app
        self._who = who
        self._interval = interval
        self._watches: dict[str, AgentWatch] = {}

    def watch(self, agent_id: str) -> None:
        """Tell what ends from now on of an agent that is open from now on, though the next look comes later."""
        self._watches.setdefault(agent_id, AgentWatch())

    async def run(self, agents: Callable[[], Collection[str]], tell: TellResult) -> None:
        """Until cancelled: tell of the agents that are open by then. Each run is told once, or not at all."""
        wait = self._interval
        while True:
            well = await self._round(frozenset(agents()), tell)
            wait = self._interval if well else min(2 * wait, MAX_INTERVAL_SECONDS)
            await anyio.sleep(wait)

    async def _round(self, agents: frozenset[str], tell: TellResult) -> bool:
        """Look at each agent; whether all could be looked at."""
        self._watches = {agent_id: self._watches.get(agent_id) or AgentWatch() for agent_id in agents}
        return all(
            [
                await SCHEDULE_POLL.attempt(partial(self._look, agent_id, watch, tell), agent_id=agent_id)
                for agent_id, watch in list(self._watches.items())
            ]
        )

    async def _look(self, agent_id: str, watch: AgentWatch, tell: TellResult) -> None:
        caller = await self._who()
        wanted = ListRuns(agent_id=agent_id, limit=MAX_RUNS)
        runs = (await self._app.schedules.queries.history(caller, wanted)).runs
        # Who may see everybody's is told of nobody else's all the same.
        for run in watch.new_results([run for run in runs if run.user_id in (None, caller.user_id)]):
            tidings = await self._tidings(caller, run)
            watch.told.add((run.id, run.ended_us or 0))
            await tell(agent_id, tidings)

    async def _tidings(self, caller: Caller, run: RunRecord) -> ScheduledResult:
        told = ScheduledResult(run.id, run.schedule_id, run.standing, answer=run.answer, reason=run.reason)
        with suppress(NotFound):
            what = (await self._app.schedules.queries.get(caller, run.schedule_id)).what
            return replace(told, prompt=what.prompt, conversation_id=what.conversation_id)
        return told
