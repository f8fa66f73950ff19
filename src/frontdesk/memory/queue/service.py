"""The work queue as every door uses it: work is put in, taken by one agent at a time, and reported on."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from functools import partial

from frontdesk.errors import Invalid, Unavailable
from frontdesk.identity import rights
from frontdesk.loop.text import storable
from frontdesk.memory.given import Fields, Page
from frontdesk.memory.model import AiStatus, AiTask
from frontdesk.memory.queue import defining, store, working
from frontdesk.memory.queue.figures import store as figures
from frontdesk.memory.queue.figures.model import AiStats
from frontdesk.memory.queue.line import store as line
from frontdesk.memory.queue.wanted import AiWanted
from frontdesk.memory.queue.working import Begin, Said
from frontdesk.memory.scope import Scope
from frontdesk.memory.store import Mine, Records

QUEUED = 100
LONGEST_NAME = 200
REPORTED = (AiStatus.IN_PROGRESS, AiStatus.COMPLETED, AiStatus.FAILED, AiStatus.PAUSED)
RESULT = ("output", "artifacts", "logs", "metrics")


class Queue:
    """`name_of` is the agent host's name for an agent id, None for one that it does not know.

    One AI task comes back with its history, several without.
    """

    def __init__(self, records: Records, name_of: Callable[[str], Awaitable[str | None]]) -> None:
        self._records = records
        self._name_of = name_of

    async def create(self, scope: Scope, fields: Fields, zone: str | None = None) -> AiTask:
        """Put work into the queue: assigned to its agent at once, unless it is to be `pending` still."""
        scope.require(rights.AI_TASKS_WRITE)
        name = await self._named(fields) or ""
        return await self._records.change(scope, partial(defining.create, fields=fields, agent_name=name, zone=zone))

    async def list(self, scope: Scope, wanted: AiWanted) -> Page[AiTask]:
        scope.require(rights.AI_TASKS_READ)
        return await self._records.read(scope, partial(store.page, wanted=wanted))

    async def queued(self, scope: Scope, agent_name: str, limit: int = QUEUED) -> Sequence[AiTask]:
        """What waits for an agent, by its name or id: the oldest first, with what one who is gone left behind."""
        scope.require(rights.AI_TASKS_READ)

        def look(mine: Mine) -> Sequence[AiTask]:
            return line.waiting(mine, agent_name, mine.clock(), limit)

        return await self._records.read(scope, look)

    async def get(self, scope: Scope, ai_task_id: str) -> AiTask:
        scope.require(rights.AI_TASKS_READ)
        return await self._records.read(scope, partial(working.shown, ai_task_id=ai_task_id))

    async def update(self, scope: Scope, ai_task_id: str, fields: Fields, zone: str | None = None) -> AiTask:
        """Change what is to be done, while nobody works on it, and its status, as far as there is a way."""
        scope.require(rights.AI_TASKS_WRITE)
        name = await self._named(fields)
        work = partial(defining.update, ai_task_id=ai_task_id, fields=fields, agent_name=name, zone=zone)
        return await self._records.change(scope, work)

    async def delete(self, scope: Scope, ai_task_id: str) -> AiTask:
        """Take it out of the queue for good; what it was."""
        scope.require(rights.AI_TASKS_WRITE)
        return await self._records.change(scope, partial(defining.delete, ai_task_id=ai_task_id))

    async def approve(self, scope: Scope, ai_task_id: str) -> AiTask:
        """Let it be executed as it stands; for the person alone. What an agent changes in it needs approval again."""
        scope.require(rights.AI_TASKS_WRITE)
        return await self._records.change(scope, partial(defining.approve, ai_task_id=ai_task_id))

    async def accept(
        self,
        scope: Scope,
        ai_task_id: str,
        estimated_cost_usd: float | None = None,
        estimated_duration_min: int | None = None,
        *,
        agent_name: str | None = None,
        lease: timedelta | None = None,
    ) -> AiTask:
        """Take this one, under a lease; `agent_name` says who takes it where no agent acts.

        Left to itself the lease is a quarter of an hour, or as long as the work is estimated to take.
        """
        scope.require(rights.AI_TASKS_WRITE)
        begin = Begin(
            estimated_cost_usd=estimated_cost_usd,
            estimated_duration_min=estimated_duration_min,
            agent_name=agent_name,
            lease=lease,
        )
        return await self._records.change(scope, partial(working.accept, ai_task_id=ai_task_id, begin=begin))

    async def claim(
        self, scope: Scope, agent_name: str | None = None, *, lease: timedelta | None = None
    ) -> AiTask | None:
        """Take the next one that waits for the agent, the most pressing first; None where nothing can be begun.

        No two ever take the same one. What somebody took and then fell silent about is taken over.
        """
        scope.require(rights.AI_TASKS_WRITE)
        agent = agent_name or scope.agent_id
        if not agent:
            raise Invalid("Say for which agent the work is: give agent_name")
        return await self._records.change(scope, partial(working.claim, agent=agent, lease=lease))

    async def renew(self, scope: Scope, ai_task_id: str, claims: int, *, lease: timedelta | None = None) -> AiTask:
        """Hold it for longer; `claims` is what it was when it was taken."""
        scope.require(rights.AI_TASKS_WRITE)
        said = Said(claims=claims, lease=lease)
        return await self._records.change(scope, partial(working.renew, ai_task_id=ai_task_id, said=said))

    async def report(
        self,
        scope: Scope,
        ai_task_id: str,
        status: AiStatus | str | None = None,
        fields: Fields | None = None,
        *,
        claims: int | None = None,
        lease: timedelta | None = None,
    ) -> AiTask:
        """Say how it goes; that renews the lease. Only whoever holds it can, or the person.

        What cost or took more than its cap is kept all the same, as it is spent: the history says so as a warning.
        """
        scope.require(rights.AI_TASKS_WRITE)
        if status is not None and status not in REPORTED:
            raise Invalid(f"status must be one of {', '.join(REPORTED)}")
        stands = None if status is None else AiStatus(status)
        said = Said(status=stands, fields=_told(fields or {}), claims=claims, lease=lease)
        return await self._records.change(scope, partial(working.report, ai_task_id=ai_task_id, said=said))

    async def complete(
        self, scope: Scope, ai_task_id: str, fields: Fields | None = None, *, claims: int | None = None
    ) -> AiTask:
        """It is done. `fields`: output, artifacts, logs, metrics, actual_cost_usd, actual_duration_min.

        All of them are kept; minutes that are not given are counted from when it was begun.
        """
        given = dict(fields or {})
        result = {name: given.pop(name) for name in RESULT if name in given}
        told = {**given, "execution_result": result} if result else given
        return await self.report(scope, ai_task_id, AiStatus.COMPLETED, told, claims=claims)

    async def fail(self, scope: Scope, ai_task_id: str, error_message: str, *, claims: int | None = None) -> AiTask:
        """It could not be done, and why. It can be assigned again."""
        return await self.report(scope, ai_task_id, AiStatus.FAILED, {"error_message": error_message}, claims=claims)

    async def stats(self, scope: Scope, zone: str | None = None) -> AiStats:
        scope.require(rights.AI_TASKS_READ)
        return await self._records.read(scope, partial(figures.stats, zone=zone))

    async def _named(self, fields: Fields) -> str | None:
        """The agent's name: as given, as its host knows it, else its id; None where no agent is named."""
        agent_id, given = fields.get("agent_id"), fields.get("agent_name")
        if given or not agent_id:
            return storable(given) if given else None
        try:
            return storable(await self._name_of(agent_id) or agent_id)[:LONGEST_NAME]
        except Unavailable:
            # Work can be planned while the agents' host is away.
            return storable(agent_id)


def _told(fields: Fields) -> Fields:
    """What a report may hold, fit to be kept."""
    if unknown := sorted(set(fields) - working.OUTCOME):
        raise Invalid(f"A report has no '{unknown[0][:100]}'; it has {', '.join(sorted(working.OUTCOME))}")
    return {name: storable(value) if isinstance(value, str) else value for name, value in fields.items()}
