"""Runs all measurements of editors on one machine in one run."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.editors.overhead import Pairs, measure_overhead
from bench.editors.starts import measure_starts
from bench.editors.streams import Streams, measure_streams
from bench.editors.ways import Taking, Way, directly, through_desk, through_echo
from bench.editors.wear import Wear, measure_wear
from bench.turns import model_server


@dataclass(frozen=True, slots=True)
class Effort:
    """The rounds of paired turns, long answers and starts, and the prompts and loads of a long day."""

    rounds: int
    pairs: int
    answers: int
    starts: int
    prompts: int
    loads: int


FULL = Effort(7, 100, 15, 21, 10_000, 1_000)
QUICK = Effort(3, 40, 5, 7, 600, 60)


@dataclass(frozen=True, slots=True)
class EditorsMeasured:
    """The paired turns by what they do, the long answers, the seconds of each start, and the long day."""

    turns: Mapping[str, Pairs]
    streams: Streams
    starts: Mapping[Way, Sequence[float]]
    wear: Wear


def measure_editors(effort: Effort, folder: Path) -> EditorsMeasured:
    """All files are written below `folder`."""
    below = folder / "editors"
    below.mkdir()
    with model_server() as url:
        starts = measure_starts(below, url, effort.starts)
        turns, streams = _measure_turns(effort, below, url)
        wear = measure_wear(below, url, effort.prompts, effort.loads)
    return EditorsMeasured(turns, streams, starts, wear)


def _measure_turns(effort: Effort, folder: Path, url: str) -> tuple[Mapping[str, Pairs], Streams]:
    with ExitStack() as stack:
        both: dict[Way, Taking] = {
            Way.DIRECT: stack.enter_context(directly(folder, url)),
            Way.EDITOR: stack.enter_context(through_desk(folder, url)),
        }
        echoes = {way: stack.enter_context(through_echo(way, folder)) for way in (Way.SDK, Way.PLAIN)}
        turns = measure_overhead(both, effort.rounds, effort.pairs)
        return turns, measure_streams({**both, **echoes}, effort.answers)
