"""How a piece of work for an agent can go from one status to another."""

from collections.abc import Mapping

from frontdesk.errors import Conflict
from frontdesk.memory.model import AiStatus

POSSIBLE: Mapping[AiStatus, tuple[AiStatus, ...]] = {
    AiStatus.PENDING: (AiStatus.ASSIGNED, AiStatus.CANCELLED),
    AiStatus.ASSIGNED: (AiStatus.IN_PROGRESS, AiStatus.CANCELLED),
    AiStatus.IN_PROGRESS: (AiStatus.PAUSED, AiStatus.COMPLETED, AiStatus.FAILED, AiStatus.CANCELLED),
    AiStatus.PAUSED: (AiStatus.IN_PROGRESS, AiStatus.CANCELLED, AiStatus.FAILED),
    AiStatus.FAILED: (AiStatus.ASSIGNED,),
    AiStatus.CANCELLED: (AiStatus.ASSIGNED,),
    AiStatus.COMPLETED: (),
}
# Where what is to be done can still be put in other words.
EDITABLE = frozenset({AiStatus.PENDING, AiStatus.ASSIGNED, AiStatus.PAUSED})
# Where there is still something to do.
OPEN = frozenset({*EDITABLE, AiStatus.IN_PROGRESS})


def check(before: AiStatus, to: AiStatus) -> None:
    """Refuse a step that does not exist, and say which do."""
    possible = POSSIBLE[before]
    if to in possible:
        return
    if not possible:
        raise Conflict(f"An AI task that is {before} cannot become {to}: {before} is final; create another one")
    raise Conflict(f"An AI task that is {before} cannot become {to}; it can become {' or '.join(possible)}")
