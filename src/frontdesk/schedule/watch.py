"""Tells whether the clock on the wall can be trusted: whether it has gone on evenly for a while."""

import time
from collections.abc import Callable

from frontdesk.schedule.model import SECOND


class Watch:
    """A lease that seems to have run out may only look so, because the clock was set.

    Whoever is alive renews his leases within a third of their length. So after the clock was set, and at the start,
    when nobody can tell whether it was, no lease counts as run out until half of a lease's length has passed.
    """

    def __init__(self, lease_us: int, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._lease_us = lease_us
        self._monotonic = monotonic
        self._ahead_us: int | None = None
        self._since_us = 0

    def trusts(self, now_us: int) -> bool:
        steady_us = int(self._monotonic() * SECOND)
        ahead_us = now_us - steady_us
        # So little cannot make a lease run out that was renewed in time.
        if self._ahead_us is None or abs(ahead_us - self._ahead_us) > self._lease_us // 4:
            self._since_us = steady_us
        self._ahead_us = ahead_us
        return steady_us - self._since_us >= self._lease_us // 2
