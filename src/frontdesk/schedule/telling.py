"""What the log says of deliveries: never a prompt, never an answer."""

from collections import Counter
from collections.abc import Sequence

import structlog

from frontdesk.schedule.due.model import Settled
from frontdesk.schedule.model import SECOND, Standing

# When more end at once, a line for each would take longer than they did; history and journal have them all.
TOLD_ONE_BY_ONE = 10

log = structlog.get_logger("frontdesk.schedule")


def tell_of(ended: Sequence[Settled]) -> None:
    """One line for each attempt that ended, or one for all when they are many."""
    if len(ended) > TOLD_ONE_BY_ONE:
        _tell_of_many(ended)
        return
    for one in ended:
        told: dict[str, object] = {
            "delivery_id": one.occurrence.id,
            "schedule_id": one.occurrence.schedule_id,
            "agent_id": one.occurrence.agent_id,
            "attempt": one.occurrence.attempt,
            "late_ms": max(0, one.occurrence.started_us - one.occurrence.due_us) // 1000,
            "took_ms": one.took_us // 1000,
        }
        if one.standing is Standing.DELIVERED:
            log.info("prompt_delivered", **told)
        elif one.standing is Standing.WAITING:
            log.warning("prompt_failed", **told, error=one.error, again_s=one.wait_us // SECOND)
        else:
            log.error("prompt_dead", **told, error=one.error)


def _tell_of_many(ended: Sequence[Settled]) -> None:
    """As loud as the worst of them would have been alone."""
    stood = Counter(one.standing for one in ended)
    delivered, failed = stood[Standing.DELIVERED], stood[Standing.WAITING]
    dead = len(ended) - delivered - failed
    say = log.error if dead else log.warning if failed else log.info
    say("prompts_ended", delivered=delivered, failed=failed, dead=dead)
