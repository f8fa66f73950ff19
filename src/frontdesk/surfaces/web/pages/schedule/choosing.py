"""Which schedules or runs the address of the list asks for, and a mark by which one can tell that they changed."""

from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

from frontdesk.schedule import numbers
from frontdesk.schedule.model import Past, Schedule, Standing, State
from frontdesk.surfaces.web.model import Asked

LISTED = 20
UNDER_WAY = 10
RUNS = "runs"
ANY = "any"


@dataclass(frozen=True, slots=True)
class Chosen:
    """A page of the list: schedules, or runs that are over and some that are under way; and where it goes on."""

    schedules: Sequence[Schedule] = ()
    ended: Sequence[Past] = ()
    begun: Sequence[Past] = ()
    following: str | int | None = None


async def choose(asked: Asked) -> Chosen:
    return await _runs(asked) if asked.query.get("show") == RUNS else await _schedules(asked)


def agent_of(asked: Asked) -> str | None:
    return asked.query.get("agent") or None


async def mark_of(asked: Asked, chosen: Chosen) -> str:
    """A word that is another one once something of the page has changed, or of the time line above it."""
    begun = sorted(_of_run(run) for run in chosen.begun)
    seen = ([_of_schedule(one) for one in chosen.schedules], [_of_run(run) for run in chosen.ended], begun)
    around = await asked.app.schedules.overview.mark(asked.caller, agent_of(asked))
    return f"{around}.{crc32(repr(seen).encode()):08x}"


def mark_of_one(found: Schedule, runs: Sequence[Past]) -> str:
    """The same for one schedule and its runs."""
    return f"{crc32(repr((_of_schedule(found), [_of_run(run) for run in runs])).encode()):08x}"


def _of_schedule(one: Schedule) -> tuple[object, ...]:
    return one.id, str(one.state), one.updated_us, one.fired, one.fire_us


def _of_run(run: Past) -> tuple[str, str]:
    return run.id, repr((str(run.standing), run.attempt, run.forwarded))


async def _schedules(asked: Asked) -> Chosen:
    overview, agent = asked.app.schedules.overview, agent_of(asked)
    state, place = asked.query.get("state", ""), asked.query.get("after")
    if state in ("", State.ACTIVE):
        coming = await overview.coming(asked.caller, agent, place, LISTED)
        return Chosen(coming.schedules, following=coming.next)
    kind = None if state == ANY else numbers.one_of(State, "state", state)
    newest = await overview.newest(asked.caller, agent, kind, place, LISTED)
    return Chosen(newest.schedules, following=newest.next)


async def _runs(asked: Asked) -> Chosen:
    overview, agent = asked.app.schedules.overview, agent_of(asked)
    state, place = asked.query.get("state", ""), asked.query.get("after")
    standing = numbers.one_of(Standing, "state", state) if state else None
    ended = await overview.ended(asked.caller, agent, standing, place, LISTED)
    begun = await overview.under_way(asked.caller, agent, UNDER_WAY)
    return Chosen(ended=ended.runs, begun=begun, following=ended.next)
