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
    """Run this; if the editor leaves meanwhile, no error is logged."""

    async def quietly() -> None:
        with suppress(ConnectionClosed):
            await work()

    await BACKGROUND_WORK.attempt(quietly)


# A host on another server is called over the network, so less often.
NEAR_SECONDS = 2.0
FAR_SECONDS = 15.0

MEMORY_POLL = BackgroundJob(log, "acp_memory_waits", "acp_memory_failed")


class MemoryWatcher:
    """Notifies open sessions of memory edits; each session shows them when it is not at work."""

    def __init__(self, host: AgentHost) -> None:
        self._host = host
        self._seconds = NEAR_SECONDS if host.features.can_require_approval else FAR_SECONDS

    async def run(self, sessions: Callable[[], Collection["EditorSession"]]) -> None:
        """Run until cancelled."""
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
    """The blocks that differ from the known values, by label."""
    return [
        MemoryEdit(block.label, known.get(block.label, ""), block.value)
        for block in blocks
        if known.get(block.label, "") != block.value
    ]


ShowResult = Callable[[str, "ScheduledResult"], Awaitable[None]]
INTERVAL_SECONDS = 2.0
# While the database is unavailable, the interval grows up to this.
MAX_INTERVAL_SECONDS = 30.0
MAX_RUNS = 100
PROMPT_CHARACTERS = 200
ENDED_STATUSES = frozenset({RunStatus.DELIVERED, RunStatus.DEAD})

SCHEDULE_POLL = BackgroundJob(log, "acp_news_wait", "acp_news_failed")


@dataclass(frozen=True, slots=True)
class ScheduledResult:
    """A scheduled prompt that the agent has answered, or that could not be delivered.

    `prompt` and `conversation_id` are those of the schedule now; empty and None where it was deleted.
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
        """Markdown: the prompt, and below it the agent's answer, or what went wrong."""
        prompt = f": {escape_line(self.prompt, PROMPT_CHARACTERS)}" if self.prompt else ""
        head = f"**Scheduled prompt {self.schedule_id}**{prompt}"
        if self.standing is RunStatus.DELIVERED:
            return f"{head}\n\n{self.answer or 'The agent said nothing.'}"
        reason = escape_line(self.reason or "no reason is known")
        return f"{head}\n\nIt was not delivered, and is not tried again: {reason}"


@dataclass(slots=True)
class AgentWatch:
    """The start of the watch over an agent, and the runs that were shown.

    Runs are known by id and end, since a dead run can be tried again.
    """

    began_us: int = field(default_factory=now_us)
    told: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])

    def new_results(self, runs: Collection[RunRecord]) -> list[RunRecord]:
        """Runs that ended since `began_us` and were not shown, in the order of their ends."""
        ended = {
            (run.id, run.ended_us): run
            for run in runs
            if run.standing in ENDED_STATUSES and run.ended_us is not None and run.ended_us >= self.began_us
        }
        self.told &= ended.keys()
        return [ended[one] for one in sorted(ended.keys() - self.told, key=lambda one: one[1])]


class ScheduleWatcher:
    """Watches the schedules of one editor's agents; `get_caller` identifies the caller for each poll."""

    def __init__(
        self, app: App, get_caller: Callable[[], Awaitable[Caller]], interval: float = INTERVAL_SECONDS
    ) -> None:
        self._app = app
        self._get_caller = get_caller
        self._interval = interval
        self._watches: dict[str, AgentWatch] = {}

    def watch(self, agent_id: str) -> None:
        """Report runs of this agent that end from now on, even those that end before the next poll."""
        self._watches.setdefault(agent_id, AgentWatch())

    async def run(self, agents: Callable[[], Collection[str]], tell: ShowResult) -> None:
        """Run until cancelled, for the agents that are open at each poll; each run is reported at most once."""
        wait = self._interval
        while True:
            well = await self._round(frozenset(agents()), tell)
            wait = self._interval if well else min(2 * wait, MAX_INTERVAL_SECONDS)
            await anyio.sleep(wait)

    async def _round(self, agents: frozenset[str], tell: ShowResult) -> bool:
        """Poll for each agent; returns False if any of them failed."""
        self._watches = {agent_id: self._watches.get(agent_id) or AgentWatch() for agent_id in agents}
        return all(
            [
                await SCHEDULE_POLL.attempt(partial(self._look, agent_id, watch, tell), agent_id=agent_id)
                for agent_id, watch in list(self._watches.items())
            ]
        )

    async def _look(self, agent_id: str, watch: AgentWatch, tell: ShowResult) -> None:
        caller = await self._get_caller()
        wanted = ListRuns(agent_id=agent_id, limit=MAX_RUNS)
        runs = (await self._app.schedules.queries.history(caller, wanted)).runs
        # A caller who may see the runs of all people is still shown only their own.
        for run in watch.new_results([run for run in runs if run.user_id in (None, caller.user_id)]):
            result = await self._result(caller, run)
            watch.told.add((run.id, run.ended_us or 0))
            await tell(agent_id, result)

    async def _result(self, caller: Caller, run: RunRecord) -> ScheduledResult:
        result = ScheduledResult(run.id, run.schedule_id, run.standing, answer=run.answer, reason=run.reason)
        with suppress(NotFound):
            what = (await self._app.schedules.queries.get(caller, run.schedule_id)).what
            return replace(result, prompt=what.prompt, conversation_id=what.conversation_id)
        return result
