"""The claims about finding memories: for a value that must be larger, the claim is an inverse ratio below 1."""

from bench.claims import Verdict
from bench.memory.measure import MemoryMeasured
from bench.memory.quality import AS_WRITTEN, OURS, STEMS, UNTUNED_BOTH, UNTUNED_MEANING, QualityMeasured
from bench.memory.speed import EACH

DEPTH = 10
BEATEN = (AS_WRITTEN, STEMS, UNTUNED_MEANING, UNTUNED_BOTH)
MOST_TIMES = 3.0


def memory_verdicts(measured: MemoryMeasured) -> list[Verdict]:
    slower = "search is at most {0:g}x slower (p95) with {1:,} memories than with {2:,}, among {3:,} people ({4})"
    return [
        *(_more(measured.quality, other) for other in BEATEN),
        *(
            Verdict(slower.format(MOST_TIMES, one.size.many, EACH, one.size.people, name), one.ratio, MOST_TIMES, ())
            for name, one in measured.speed.items()
        ),
    ]


def _more(measured: QualityMeasured, other: str) -> Verdict:
    ours, theirs = measured.found[OURS].recall(DEPTH), measured.found[other].recall(DEPTH)
    claim = f"search finds more of LoCoMo's evidence than {other} (recall@{DEPTH} {ours:.1f} against {theirs:.1f})"
    return Verdict(claim, theirs / ours, 1.0, ())
