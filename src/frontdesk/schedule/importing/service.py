"""Takes over the schedules of a PromptYoSelf file, each of them once however often it is read."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from anyio import to_thread

from frontdesk.agents.host import AgentHost
from frontdesk.errors import Unavailable
from frontdesk.identity.model import Caller
from frontdesk.schedule import rights
from frontdesk.schedule.asked import Imported
from frontdesk.schedule.importing import store as file
from frontdesk.schedule.importing.plan import plan
from frontdesk.schedule.limits import Limits
from frontdesk.schedule.model import State, now_us
from frontdesk.schedule.store import ScheduleFilter, ScheduleStore


@dataclass(frozen=True, slots=True)
class Importing:
    """What was taken over before is known by its mark, also after it was cancelled here or has ended."""

    store: ScheduleStore
    limits: Limits
    host: AgentHost

    async def take_over(self, caller: Caller, path: Path) -> Imported:
        """Read the whole file, decide about each row, and make what is to be made in one go."""
        rights.require_admin(caller, "An import")
        rows = await to_thread.run_sync(partial(file.read, path))
        now = now_us()
        planned = plan(rows, self.limits, now)
        known = {taken.new.made_by for taken in planned.taken if await self._has(taken.new.made_by)}
        fresh = [taken for taken in planned.taken if taken.new.made_by not in known]
        news = [(taken.new, taken.intended_us) for taken in fresh]
        made = await self.store.add_many(news, now, [taken.fired for taken in fresh])
        warnings = await self._warnings(Counter(taken.new.agent_id for taken in fresh))
        return Imported(str(path), made, len(known), planned.left_out, warnings)

    async def _warnings(self, counts: Mapping[str, int]) -> Sequence[str]:
        """The agents among these that the host does not know: each of their runs would be a dead letter."""
        try:
            gone = [agent_id for agent_id in counts if await self.host.find(agent_id) is None]
        except Unavailable as error:
            return [f"Whether the agents are there is not known: {error.public}"]
        return [
            f"Agent '{agent_id}', of {counts[agent_id]} of these, is not known to the agent host: its runs will fail; "
            "make the agent, or cancel them"
            for agent_id in gone
        ]

    async def _has(self, mark: str | None) -> bool:
        return await self.store.count(ScheduleFilter(states=tuple(State), made_by=mark)) > 0
