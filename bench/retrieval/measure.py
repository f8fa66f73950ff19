"""Runs both measurements of tools: how well a search finds them, and what a search costs."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.retrieval.quality import QualityMeasured, measure_quality
from bench.retrieval.speed import SizeMeasured, measure_speed


@dataclass(frozen=True, slots=True)
class Effort:
    """The questions of each set: to judge by (None: all), and to time."""

    judged: int | None
    timed: int


FULL = Effort(judged=None, timed=12)
QUICK = Effort(judged=100, timed=4)


@dataclass(frozen=True, slots=True)
class RetrievalMeasured:
    """The results; a half that was not requested is empty."""

    quality: QualityMeasured | None
    speed: Mapping[int, SizeMeasured]


def measure_retrieval(effort: Effort, folder: Path, only: str | None = None) -> RetrievalMeasured:
    """`only` is "quality" or "speed"; files for other processes are written below `folder`."""
    quality = None if only == "speed" else measure_quality(effort.judged)
    speed = {} if only == "quality" else measure_speed(folder, effort.timed)
    return RetrievalMeasured(quality, speed)
