"""What to do about a lane that is due, from what stands in it."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from frontdesk.schedule.due.model import Ask, Lease
from frontdesk.schedule.model import SECOND, Standing

# So many at once of what may run beside other things, so that one agent cannot take every place.
WIDTH = 8
# One that takes its worker down with it each time is given up.
LOST_AT_MOST = 25
# Clocks of two machines differ by less than this.
SLACK_US = 10 * SECOND


class Do(Enum):
    """FIRE: what the lane's first schedule is due for. REST: nothing before the time given."""

    TAKE_OVER = 1
    START = 2
    DROP = 3
    BURY = 4
    FIRE = 5
    REST = 6


@dataclass(frozen=True, slots=True)
class Underway:
    """An occurrence of the lane that has not ended: it is leased until a time, or available from it on."""

    id: str
    standing: Standing
    intended_us: int
    owner: str | None
    begun_us: int
    time_us: int
    lost: int
    cancelled: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to do: with which occurrence, or until when nothing."""

    do: Do
    id: str = ""
    due_us: int | None = None


@dataclass(frozen=True, slots=True)
class View:
    """Who looks, when, and at what: `held` are the occurrences that the owner runs or is about to settle.

    What was begun after `set_back_us`, and is over, was begun by a clock that was ahead.
    """

    ask: Ask
    owner: str
    held: set[str]
    now_us: int
    lease_us: int
    set_back_us: int = sys.maxsize // 2

    def abandoned(self, one: Underway) -> bool:
        if one.owner == self.owner:
            # A claim whose answer never arrived is nobody's.
            return one.id not in self.held
        if one.owner in self.ask.dead:
            return True
        over = lapsed(one.begun_us, one.time_us, self.now_us, self.lease_us)
        return over and self.ask.left_alone(Lease(one.id, one.owner, one.time_us))

    def look_again(self, lease_until_us: int) -> int:
        """When to look at what runs: never at once, and not much later than a new lease would end."""
        return min(max(lease_until_us, self.now_us + SECOND), self.now_us + self.lease_us)


def lapsed(begun_us: int, leased_until_us: int, now_us: int, lease_us: int) -> bool:
    """Whether a lease is past its end, or was given before the clock was set back and never renewed since."""
    set_back = begun_us > now_us + SLACK_US and leased_until_us > now_us + 2 * lease_us
    return leased_until_us < now_us or set_back


def decide(view: View, underway: Sequence[Underway], fire_us: int | None, *, serial: bool) -> Verdict:
    """One thing to do in a lane; `fire_us` is when the first of its schedules fires."""
    ordered = sorted(underway, key=lambda one: (one.standing is not Standing.RUNNING, one.intended_us))
    full = sum(one.standing is Standing.RUNNING for one in ordered) >= WIDTH
    times: list[int] = []
    for one in ordered:
        verdict = _of_one(view, one)
        if full and verdict.do is Do.START:
            continue
        if verdict.due_us is None or serial:
            return verdict
        times.append(verdict.due_us)
    if fire_us is not None and not full:
        if fire_us <= view.now_us:
            return Verdict(Do.FIRE)
        times.append(fire_us)
    return Verdict(Do.REST, due_us=min(times, default=None))


def _of_one(view: View, one: Underway) -> Verdict:
    if one.standing is Standing.RUNNING:
        if not view.abandoned(one):
            return Verdict(Do.REST, due_us=view.look_again(one.time_us))
        if one.cancelled:
            return Verdict(Do.DROP, one.id)
        return Verdict(Do.BURY if one.lost >= LOST_AT_MOST else Do.TAKE_OVER, one.id)
    if one.cancelled:
        return Verdict(Do.DROP, one.id)
    if one.time_us > view.now_us:
        return Verdict(Do.REST, due_us=one.time_us)
    return Verdict(Do.START, one.id)
