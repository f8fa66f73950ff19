"""Reports the results about finding tools, as tables for people and as JSON for machines."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import mean, median
from typing import Any

from training.sets import UNSEEN

from bench.retrieval.data import SETS
from bench.retrieval.measure import RetrievalMeasured
from bench.retrieval.quality import QualityMeasured
from bench.retrieval.speed import SizeMeasured
from frontdesk.search.evaluation import RankingQuality


def table(measured: RetrievalMeasured) -> str:
    quality = [_quality_table(measured.quality)] if measured.quality else []
    return "\n\n".join([*quality, *([_speed_table(measured.speed)] if measured.speed else [])])


def _quality_table(measured: QualityMeasured) -> str:
    """NDCG@10 by set and in the mean; the other measures in the mean of the sets of each way."""
    head = ("NDCG@10", *SETS, "mean", "unseen", "Recall@1", "Recall@5", "Recall@10", "MRR")
    apart = [f"{measured.told_apart[name]:.3f}" for name in SETS]
    last = [
        ["told apart (AUROC)", *apart, f"{mean(measured.told_apart.values()):.3f}"],
        ["questions", *(f"{measured.questions[name]:,}" for name in SETS)],
    ]
    rows = [head, *(_quality_row(way, found) for way, found in measured.found.items())]
    return _aligned([*rows, *(row + [""] * (len(head) - len(row)) for row in last)])


def _quality_row(way: str, found: Mapping[str, RankingQuality]) -> tuple[str, ...]:
    whole = len(found) == len(SETS)
    cells = (f"{100 * found[name].ndcg:.1f}" if name in found else "" for name in SETS)
    means = (_percent([found[name].ndcg for name in names]) if whole else "" for names in (SETS, UNSEEN))
    others = (
        [one.recall_1 for one in found.values()],
        [one.recall_5 for one in found.values()],
        [one.recall_10 for one in found.values()],
        [one.mrr for one in found.values()],
    )
    return (way, *cells, *means, *(_percent(values) for values in others))


def _speed_table(measured: Mapping[int, SizeMeasured]) -> str:
    """CPU by question, median; one question in ten costs more than `1 in 10`."""
    head = (
        "tools",
        "CPU/search",
        "1 in 10",
        "embedding",
        "the rest",
        "x one embedding",
        "FastMCP",
        "x FastMCP",
        "memory",
    )
    return _aligned([head, *(_speed_row(count, one) for count, one in measured.items())])


def _speed_row(count: int, one: SizeMeasured) -> tuple[str, ...]:
    return (
        f"{count:,}",
        f"{one.whole_ms:.1f} ms",
        f"{one.tenth_ms:.1f} ms",
        f"{median(one.embedding):.1f} ms",
        f"{median(one.search):.1f} ms",
        f"{one.to_embedding:.2f}",
        f"{median(one.fastmcp):.1f} ms",
        f"{one.to_fastmcp:.2f}",
        f"{one.resident_mb:.0f} MB",
    )


def document(measured: RetrievalMeasured) -> dict[str, Any]:
    quality = asdict(measured.quality) if measured.quality else {}
    return quality | {"speed": {str(count): asdict(one) for count, one in measured.speed.items()}}


def _percent(values: Sequence[float]) -> str:
    return f"{100 * mean(values):.1f}"


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(_line(row, widths) for row in rows)


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
    return "  ".join([row[0].ljust(widths[0]), *cells]).rstrip()
