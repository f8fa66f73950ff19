"""The claims about finding tools: for a value that must be larger, the claim is an inverse ratio below 1."""

from collections.abc import Mapping

from bench.claims import Verdict
from bench.retrieval.measure import RetrievalMeasured
from bench.retrieval.quality import FASTMCP, HYBRID, OURS, WORDS, QualityMeasured, after
from bench.retrieval.speed import SizeMeasured

# Points of NDCG@10 in the mean of all sets.
MORE_THAN_WORDS, MORE_THAN_HYBRID = 6.0, 3.0
AFTER_USES = {"metatool": 75.0, "toollens": 77.0}
USES = 5
TOLD_APART = 0.94
MOST_MS = {10_000: 20.0, 100_000: 40.0}
MOST_MB = 400.0


def retrieval_verdicts(measured: RetrievalMeasured) -> list[Verdict]:
    quality = _quality(measured.quality) if measured.quality else []
    return [*quality, *(_speed(measured.speed) if measured.speed else [])]


def _quality(measured: QualityMeasured) -> list[Verdict]:
    ours = measured.ndcg(OURS)
    learnt = {name: 100 * measured.found[after(USES)][name].ndcg for name in AFTER_USES}
    apart = sum(measured.told_apart.values()) / len(measured.told_apart)
    return [
        _more(WORDS, ours, measured.ndcg(WORDS), MORE_THAN_WORDS),
        _more(HYBRID, ours, measured.ndcg(HYBRID), MORE_THAN_HYBRID),
        _more(FASTMCP, ours, measured.ndcg(FASTMCP), MORE_THAN_WORDS),
        *(
            _least(f"after {USES} uses a tool, NDCG@10 on {name} is at least {least:g}", learnt[name], least)
            for name, least in AFTER_USES.items()
        ),
        _least(f"the score tells what no tool answers apart at least as {TOLD_APART:g} (AUROC)", apart, TOLD_APART),
    ]


def _speed(measured: Mapping[int, SizeMeasured]) -> list[Verdict]:
    found: list[Verdict] = []
    for count, most in MOST_MS.items():
        search, one = f"a search among {count:,} tools", measured[count]
        found.append(Verdict(f"{search} costs at most {most:g} ms of CPU", one.whole_ms, most, ()))
        found.append(Verdict(f"{search} costs less than FastMCP's", one.to_fastmcp, 1.0, ()))
    largest = max(measured)
    memory = f"with {largest:,} tools the process takes at most {MOST_MB:g} MB"
    return [*found, Verdict(memory, measured[largest].resident_mb, MOST_MB, ())]


def _more(other: str, ours: float, theirs: float, points: float) -> Verdict:
    claim = f"search finds at least {points:g} points more than {other} (NDCG@10 {ours:.1f} against {theirs:.1f})"
    return Verdict(claim, (theirs + points) / ours, 1.0, ())


def _least(claim: str, found: float, least: float) -> Verdict:
    return Verdict(f"{claim}: {found:.3g}", least / found, 1.0, ())
