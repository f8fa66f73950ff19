"""What is told to every open first page: gathered once for all of them, and only while somebody listens.

There is no task behind it. Listeners wake at the same moment; the first of them gathers, and the others take what it
found. Whoever is slow hears the latest and nothing twice, so that nothing piles up.
"""

from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from weakref import WeakKeyDictionary

import anyio

from frontdesk.app import App
from frontdesk.journal.model import Beat
from frontdesk.journal.service import Journal
from frontdesk.surfaces.web.drawing import TEMPLATES
from frontdesk.surfaces.web.model import Asked
from frontdesk.surfaces.web.pages.now.gathering import gather, look_at_host
from frontdesk.surfaces.web.pages.now.model import Facts, Host
from frontdesk.surfaces.web.pages.now.pace import SPAN, STEP, Point, pace, past
from frontdesk.surfaces.web.pages.now.parts import PARTS, contexts

# A host elsewhere is asked so often at most.
HOST_SECONDS = 10
# After so long without listeners the past is read anew.
FORGOTTEN_SECONDS = 3 * STEP.total_seconds()
READ = 3_000
# Rows of several replicas are not seen in the order of their ids: so many before the last are looked at once more.
SLACK = 200


@dataclass(frozen=True, slots=True)
class Drawn:
    """A part of the page: the number of the beat at which it was last another, and how it looks."""

    since: int
    context: Mapping[str, Any]
    html: str


@dataclass(frozen=True, slots=True)
class Told:
    """What one beat found: `at` by the loop's clock, the parts as drawn, and the points of the charts so far."""

    number: int
    at: float
    parts: Mapping[str, Drawn]
    points: Sequence[tuple[int, Point]]

    def since(self, number: int) -> dict[str, Any]:
        """What is new to somebody who was told of the beat of this number; everything to who was told nothing."""
        points = [point.told() for when, point in self.points if when > number]
        # A page that is open keeps its ages itself; who just came would take those of when a part last changed.
        drawn = {
            name: part.html if number else _html(name, part.context)
            for name, part in self.parts.items()
            if part.since > number
        }
        return {
            "parts": drawn,
            "points": points,
            "anew": len(points) == len(self.points),
        }


@dataclass(slots=True)
class Pulse:
    """One for each house in this process."""

    told: Told | None = None
    turn: anyio.Lock = field(default_factory=anyio.Lock)
    points: deque[tuple[int, Point]] = field(default_factory=lambda: deque(maxlen=SPAN // STEP))
    seen: frozenset[int] = frozenset()
    last_id: int = 0
    at: datetime | None = None
    hosted: tuple[float, Host] | None = None

    async def host(self, app: App) -> Host:
        """How the agents' host is; one that stands elsewhere is not asked each time."""
        now = anyio.current_time()
        if self.hosted is not None and app.settings.letta_base_url and now - self.hosted[0] < HOST_SECONDS:
            return self.hosted[1]
        found = await look_at_host(app)
        self.hosted = now, found
        return found

    async def facts(self, asked: Asked) -> Facts:
        return await gather(asked.app, asked.caller, await self.host(asked.app), datetime.now(UTC))

    async def next(self, asked: Asked) -> Told:
        """The beat of now, which one listener finds out for all."""
        async with self.turn:
            told, step = self.told, STEP.total_seconds()
            age = anyio.current_time() - told.at if told is not None else FORGOTTEN_SECONDS
            if told is None or age >= step:
                # The past that others were told of is known to none but them.
                told = self.told = await self._beat(asked, anew=age >= FORGOTTEN_SECONDS)
            return told

    async def _beat(self, asked: Asked, *, anew: bool) -> Told:
        number = self.told.number + 1 if self.told is not None else 1
        facts = await self.facts(asked)
        if facts.database_trouble:
            self.points.append((number, Point(facts.now, None)))
        else:
            await self._follow(asked.app.journal, number, facts.now, anew=anew)
        before: Mapping[str, Drawn] = self.told.parts if self.told is not None else {}
        parts = {name: _drawn(name, context, before.get(name), number) for name, context in contexts(facts).items()}
        return Told(number, anyio.current_time(), parts, tuple(self.points))

    async def _follow(self, journal: Journal, number: int, now: datetime, *, anew: bool) -> None:
        """Add the points of what happened since the last beat, or of the last minutes."""
        beats = await journal.beats(0 if anew else max(0, self.last_id - SLACK), READ)
        if anew or self.at is None:
            self.points.clear()
            self.points.extend((number, point) for point in past(beats, now, READ))
        else:
            fresh = self._fresh(beats)
            self.points.append((number, Point(now, pace(fresh, now - self.at))))
        self.seen, self.at = frozenset(beat.id for beat in beats), now
        self.last_id = max((beat.id for beat in beats), default=self.last_id)

    def _fresh(self, beats: Sequence[Beat]) -> Sequence[Beat]:
        oldest = min(self.seen, default=0)
        return [beat for beat in beats if beat.id not in self.seen and beat.id > oldest]


def _drawn(name: str, context: Mapping[str, Any], before: Drawn | None, number: int) -> Drawn:
    if before is not None and before.context == context:
        return before
    return Drawn(number, context, _html(name, context))


def _html(name: str, context: Mapping[str, Any]) -> str:
    return TEMPLATES.get_template(PARTS[name]).render(context)


_pulses: WeakKeyDictionary[Journal, Pulse] = WeakKeyDictionary()


def pulse_of(app: App) -> Pulse:
    """The pulse of a house; it goes with the house."""
    return _pulses.setdefault(app.journal, Pulse())


async def tell(asked: Asked) -> AsyncGenerator[Mapping[str, Any]]:
    """Everything first, and then what is new, for as long as somebody listens."""
    pulse, number = pulse_of(asked.app), 0
    while True:
        told = await pulse.next(asked)
        yield told.since(number)
        number = told.number
        await anyio.sleep_until(told.at + STEP.total_seconds())
