"""Measures in pairs what an editor's turn takes beyond the same turn of the host."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import quantiles

from bench.editors.editor import Taken
from bench.editors.places import NOTES
from bench.editors.ways import REST_SECONDS, Taking, Way, in_turns
from bench.turns import ANSWER, TEXT, THREAD

READ = f'@@[{{"tool": "read_file", "args": {{"path": "{NOTES}"}}}}, {{"text": "{ANSWER}"}}]@@'
TALK = "words alone"
KINDS: Mapping[str, str] = {TALK: TEXT, "with a file read": READ}
WARM_UP = 30


class Part(StrEnum):
    """Until when."""

    FIRST = "first"
    WHOLE = "whole"


@dataclass(frozen=True, slots=True)
class Pairs:
    """The same turns directly and through the editor by turns, in `rounds` that are judged separately."""

    taken: Mapping[Way, Sequence[Taken]]
    rounds: int

    def ms(self, way: Way, part: Part) -> list[float]:
        return [getattr(one, part) * 1e3 for one in self.taken[way]]

    def added_ms(self, part: Part, share: int) -> list[float]:
        """A percentile through the editor minus the same percentile of the host, round by round."""
        ours, theirs = (self._by_round(way, part) for way in (Way.EDITOR, Way.DIRECT))
        return [at(one, share) - at(other, share) for one, other in zip(ours, theirs, strict=True)]

    def each_ms(self, part: Part) -> list[float]:
        """The differences, pair by pair."""
        return [one - other for one, other in zip(self.ms(Way.EDITOR, part), self.ms(Way.DIRECT, part), strict=True)]

    def _by_round(self, way: Way, part: Part) -> list[list[float]]:
        all_of_it = self.ms(way, part)
        size = len(all_of_it) // self.rounds
        return [all_of_it[start : start + size] for start in range(0, size * self.rounds, size)]


def measure_overhead(ways: Mapping[Way, Taking], rounds: int, pairs: int) -> Mapping[str, Pairs]:
    """Run this many rounds, each with this many pairs of each kind of turn."""
    return {kind: Pairs(_taken(ways, words, rounds * pairs), rounds) for kind, words in KINDS.items()}


def at(values: Sequence[float], share: int) -> float:
    return quantiles(values, n=100, method="inclusive")[share - 1]


def _taken(ways: Mapping[Way, Taking], words: str, count: int) -> Mapping[Way, Sequence[Taken]]:
    taken: dict[Way, list[Taken]] = {way: [] for way in ways}
    for number in range(WARM_UP + count):
        for way in in_turns(ways, number):
            if number % THREAD == 0:
                ways[way].begin()
                time.sleep(REST_SECONDS)
            taken[way].append(ways[way].take(words))
            time.sleep(REST_SECONDS)
    if len({one.pieces for found in taken.values() for one in found}) > 1:
        raise RuntimeError("the editor was not shown what the host said")
    return {way: found[WARM_UP:] for way, found in taken.items()}
