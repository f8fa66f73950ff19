"""Takes over the schedules of a PromptYoSelf file, each of them once however often it is read."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from anyio import to_thread

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

    async def take_over(self, path: Path) -> Imported:
        """Read the whole file, decide about each row, and make what is to be made in one go."""
        rows = await to_thread.run_sync(partial(file.read, path))
        now = now_us()
        planned = plan(rows, self.limits, now)
        known = {taken.new.made_by for taken in planned.taken if await self._has(taken.new.made_by)}
        fresh = [(taken.new, taken.intended_us) for taken in planned.taken if taken.new.made_by not in known]
        made = await self.store.add_many(fresh, now) if fresh else ()
        return Imported(str(path), made, len(known), planned.left_out)

    async def _has(self, mark: str | None) -> bool:
        return await self.store.count(ScheduleFilter(states=tuple(State), made_by=mark)) > 0
