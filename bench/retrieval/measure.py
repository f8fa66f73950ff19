"""Both halves of the measuring: how well tools are found, and what that costs."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.retrieval.quality import QualityMeasured, measure_quality
from bench.retrieval.speed import SizeMeasured, measure_speed


@dataclass(frozen=True, slots=True)
class Effort:
    """Questions of each set: to judge by (None: all of them), and to time."""

    judged: int | None
    timed: int


FULL = Effort(judged=None, timed=12)
QUICK = Effort(judged=100, timed=4)


@dataclass(frozen=True, slots=True)
class RetrievalMeasured:
    """What was found; a half that was not asked for is empty."""

    quality: QualityMeasured | None
    speed: Mapping[int, SizeMeasured]


def measure_retrieval(effort: Effort, folder: Path, only: str | None = None) -> RetrievalMeasured:
    """`only` "quality" or "speed"; what is written to be read by other processes goes below `folder`."""
    quality = None if only == "speed" else measure_quality(effort.judged)
    speed = {} if only == "quality" else measure_speed(folder, effort.timed)
    return RetrievalMeasured(quality, speed)
