"""Runs both measurements of memories: how well a search finds them, and what a search costs at which size."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.memory.quality import QualityMeasured, measure_quality
from bench.memory.speed import POSTGRESQL, SQLITE, Size, SpeedMeasured, measure_speed


@dataclass(frozen=True, slots=True)
class Effort:
    """Questions to judge by (None: all), the number of memories for the timing, and the databases."""

    judged: int | None
    size: Size
    databases: Sequence[str]


FULL = Effort(None, Size(1_000_000, 1_000, 500), (SQLITE, POSTGRESQL))
QUICK = Effort(250, Size(100_000, 100, 200), (SQLITE,))


@dataclass(frozen=True, slots=True)
class MemoryMeasured:
    """The results: the quality, and the speed by database."""

    quality: QualityMeasured
    speed: Mapping[str, SpeedMeasured]


def measure_memory(effort: Effort, folder: Path) -> MemoryMeasured:
    """All files are written below `folder`."""
    quality = measure_quality(folder / "locomo", effort.judged)
    return MemoryMeasured(quality, measure_speed(folder, effort.size, effort.databases))
