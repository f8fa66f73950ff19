"""The uses of the tenants that searched lately, in memory; other replicas' are seen within seconds."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from frontdesk.tools.learning.model import Use, Uses, uses_of
from frontdesk.tools.learning.store import PER_TENANT, PER_TOOL, LearningStore

LOOK_SECONDS = 2.0
# Uses held in memory for all tenants together: some 50 MB.
MOST = 20_000


@dataclass(slots=True)
class Remembered:
    """One tenant's uses as far as they were read; `arrays` are made from them when they are next asked for."""

    revision: int = 0
    forgotten: int = 0
    looked_at: float = 0.0
    uses: dict[tuple[str, str], Use] = field(default_factory=dict[tuple[str, str], Use])
    arrays: Uses | None = None


class Memory:
    """The tenants that were asked about longest ago fall out first."""

    def __init__(self, store: LearningStore, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._tenants: OrderedDict[str, Remembered] = OrderedDict()

    async def of(self, tenant: str) -> Uses:
        """What this tenant's past says."""
        found = self._tenants.get(tenant)
        if found is None:
            found = self._tenants[tenant] = Remembered(looked_at=-LOOK_SECONDS)
        self._tenants.move_to_end(tenant)
        now = self._clock()
        if now - found.looked_at >= LOOK_SECONDS:
            # Said before it is done: whoever comes meanwhile takes what there is.
            found.looked_at = now
            await self._look(tenant, found)
            self._make_room(tenant)
        if found.arrays is None:
            found.arrays = uses_of(_counting(found))
        return found.arrays

    def look_again(self, tenant: str) -> None:
        """Something was written here."""
        if tenant in self._tenants:
            self._tenants[tenant].looked_at = -LOOK_SECONDS

    async def _look(self, tenant: str, found: Remembered) -> None:
        revision, forgotten = await self._store.state(tenant)
        if forgotten != found.forgotten:
            found.uses, found.revision, found.forgotten, found.arrays = {}, 0, forgotten, None
        if revision > found.revision:
            newer = await self._store.since(tenant, found.revision)
            if forgotten != found.forgotten:
                # Another look came in between and has seen that these are to be forgotten.
                return
            for use in reversed(newer):
                key = (use.tool_id, use.query_digest)
                found.uses.pop(key, None)
                found.uses[key] = use
            found.revision, found.arrays = revision, None

    def _make_room(self, newest: str) -> None:
        held = sum(len(one.uses) for one in self._tenants.values())
        while held > MOST or len(self._tenants) > MOST:
            oldest = next(iter(self._tenants))
            if oldest == newest:
                return
            held -= len(self._tenants.pop(oldest).uses)


def _counting(found: Remembered) -> list[Use]:
    """The newest few of each tool, and of all."""
    counts: dict[str, int] = {}
    kept: list[Use] = []
    for use in reversed(found.uses.values()):
        counts[use.tool_id] = counts.get(use.tool_id, 0) + 1
        if counts[use.tool_id] <= PER_TOOL and len(kept) < PER_TENANT:
            kept.append(use)
    return kept
