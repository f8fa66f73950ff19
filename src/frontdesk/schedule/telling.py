"""What the log says of deliveries: never a prompt, never an answer."""

from collections.abc import Sequence

import structlog

from frontdesk.schedule.due.model import Settled
from frontdesk.schedule.model import SECOND, Standing

# When more end at once, a line for each would take longer than they did; history and journal have them all.
EACH = 10

log = structlog.get_logger("frontdesk.schedule")


def tell_of(ended: Sequence[Settled]) -> None:
    """One line for each attempt that ended, or one for all when they are many."""
    if len(ended) > EACH:
        delivered = sum(one.standing is Standing.DELIVERED for one in ended)
        log.info("prompts_ended", delivered=delivered, failed=len(ended) - delivered)
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
