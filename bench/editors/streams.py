"""Measures what it takes to show a piece of a long answer, beside the SDK's own sender."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.editors.ways import REST_SECONDS, Taking, Way, in_turns
from bench.proxies.programs import cpu_seconds

WORDS = 2_000
LONG = f'@@[{{"text": "{"word " * WORDS}"}}]@@'


@dataclass(frozen=True, slots=True)
class StreamedAnswer:
    """A long answer: its pieces per second over the whole turn, and the CPU that the sender spent on each."""

    per_second: float
    cpu_us: float


@dataclass(frozen=True, slots=True)
class Streams:
    """The same long answer from each, round by round."""

    told: Mapping[Way, Sequence[StreamedAnswer]]

    def ratios(self, way: Way, other: Way) -> list[float]:
        """How many times as many pieces per second the first sends as the second."""
        pairs = zip(self.told[way], self.told[other], strict=True)
        return [one.per_second / another.per_second for one, another in pairs]


def measure_streams(ways: Mapping[Way, Taking], rounds: int) -> Streams:
    told: dict[Way, list[StreamedAnswer]] = {way: [] for way in ways}
    for number in range(1 + rounds):
        for way in in_turns(ways, number):
            told[way].append(_tell(ways[way]))
    # The first round is the warm-up.
    return Streams({way: found[1:] for way, found in told.items()})


def _tell(way: Taking) -> StreamedAnswer:
    way.begin()
    time.sleep(REST_SECONDS)
    before = cpu_seconds(way.pid)
    taken = way.take(LONG)
    spent = cpu_seconds(way.pid) - before
    time.sleep(REST_SECONDS)
    if taken.pieces < WORDS:
        raise RuntimeError(f"of {WORDS} words came {taken.pieces}")
    return StreamedAnswer(taken.pieces / taken.whole, spent / taken.pieces * 1e6)
