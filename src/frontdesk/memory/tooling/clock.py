"""On whose clock the tools tell times."""

from zoneinfo import ZoneInfo

from frontdesk.memory.moments import zone_of
from frontdesk.memory.scope import Scope
from frontdesk.memory.service import MemoryRoom


async def clock(room: MemoryRoom, scope: Scope, named: str | None = None) -> ZoneInfo:
    """The zone that was asked for, or the person's own."""
    return zone_of(named, "" if named and named.strip() else await room.people.zone(scope))
