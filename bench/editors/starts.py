"""Measures the time from starting an agent to its first answer, beside the SDK's own echo agent."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from bench.editors.editor import initialize, started
from bench.editors.places import DESK, ECHO, settings_of
from bench.editors.ways import Way

COMMANDS = {Way.EDITOR: DESK, Way.SDK: ECHO}
# So that each has its compiled modules, and the files are in the disk cache.
WARM_UP = 2


def measure_starts(folder: Path, url: str, rounds: int) -> Mapping[Way, Sequence[float]]:
    """Seconds of each agent, round by round, by turns."""
    taken: dict[Way, list[float]] = {way: [] for way in COMMANDS}
    for number in range(WARM_UP + rounds):
        for way in list(COMMANDS)[:: 1 if number % 2 else -1]:
            taken[way].append(_start(way, folder, url))
    return {way: found[WARM_UP:] for way, found in taken.items()}


def ratios(taken: Mapping[Way, Sequence[float]]) -> list[float]:
    return [ours / theirs for ours, theirs in zip(taken[Way.EDITOR], taken[Way.SDK], strict=True)]


def ratio(taken: Mapping[Way, Sequence[float]]) -> float:
    return median(ratios(taken))


def _start(way: Way, folder: Path, url: str) -> float:
    settings = settings_of(folder / "starts", url) if way is Way.EDITOR else {}
    before = time.perf_counter()
    with started(f"start-{way.name}", COMMANDS[way], folder, settings) as editor:
        initialize(editor)
        taken = time.perf_counter() - before
        # What the agent still opens now is not part of this measurement, and would slow down the next one.
        editor.process.kill()
    return taken
