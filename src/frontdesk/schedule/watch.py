"""Tells whether a lease was left alone: whether its owner had the time and the database to renew it, and did not."""

import time
from collections.abc import Callable, Iterable

from frontdesk.schedule.due.model import Lease
from frontdesk.schedule.model import SECOND


class Watch:
    """A lease past its end may only look lost: the clock was set, or the database was away and nobody could renew it.

    Whoever is alive renews within a third of a lease's length, and soon after the database answers again. So a lease
    was left alone when it was seen unchanged for two thirds of its length, by looks of which no two lie further apart
    than a third: a longer silence, of the database or of the one who looks, makes everything be seen anew.
    """

    def __init__(self, lease_us: int, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._third_us = lease_us // 3
        self._monotonic = monotonic
        self._looked_us: int | None = None
        self._seen: dict[Lease, int] = {}

    def look(self, leases: Iterable[Lease]) -> set[Lease]:
        """These are all that others have by now; those of them that were left alone."""
        now_us = self._now_us()
        before = self._seen if self._in_sight(now_us) else {}
        self._seen = {lease: before.get(lease, now_us) for lease in leases}
        self._looked_us = now_us
        return {lease for lease in self._seen if self.left_alone(lease)}

    def left_alone(self, lease: Lease) -> bool:
        now_us = self._now_us()
        since_us = self._seen.get(lease, now_us)
        return self._in_sight(now_us) and now_us - since_us >= 2 * self._third_us

    def _in_sight(self, now_us: int) -> bool:
        return self._looked_us is not None and now_us - self._looked_us <= self._third_us

    def _now_us(self) -> int:
        return int(self._monotonic() * SECOND)
