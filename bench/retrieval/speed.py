"""Measures a search among 1,000, 10,000 and 100,000 tools, embedding included, next to FastMCP's by turns."""

import json
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import IO

import psutil

from bench.processes import ROOT
from bench.retrieval.data import SETS, Tool, read_set
from bench.retrieval.embeddings import SHIPPED, Embeddings
from bench.retrieval.made_up import Files, made_up, write
from bench.retrieval.peer import peer

SIZES = (1_000, 10_000, 100_000)
STOP_SECONDS = 15
WARM_UP = 3
# FastMCP reads every tool for every question: at this many tools it gets fewer questions.
PEER_TOOLS = 1_000_000


@dataclass(frozen=True, slots=True)
class SizeMeasured:
    """CPU milliseconds by question, and the memory of the process at the end."""

    one_embedding: Sequence[float]
    embedding: Sequence[float]
    search: Sequence[float]
    fastmcp: Sequence[float]
    resident_mb: float

    @property
    def whole(self) -> list[float]:
        return [embedding + search for embedding, search in zip(self.embedding, self.search, strict=True)]

    @property
    def whole_ms(self) -> float:
        return median(self.whole)

    @property
    def tenth_ms(self) -> float:
        """One question in ten costs more than this."""
        return quantiles(self.whole, n=10)[-1]

    @property
    def to_embedding(self) -> float:
        return median(whole / one for whole, one in zip(self.whole, self.one_embedding, strict=True))

    @property
    def to_fastmcp(self) -> float:
        return median(ours / theirs for ours, theirs in zip(self.whole, self.fastmcp, strict=False))


def measure_speed(folder: Path, questions_each: int) -> dict[int, SizeMeasured]:
    """This many questions of each set, at each size."""
    sets = [read_set(name, questions_each) for name in SETS]
    known = [tool for one in sets if one.name != "metatool_multi" for tool in one.tools]
    asked = [question.text for one in sets for question in one.questions]
    model = Embeddings(SHIPPED)
    return {count: _measure(folder, count, known, asked, model) for count in SIZES}


def _measure(folder: Path, count: int, known: list[Tool], asked: list[str], model: Embeddings) -> SizeMeasured:
    tools = made_up(count, known)
    files = write(folder, tools, known, model)
    costs: list[dict[str, float]] = []
    theirs: list[float] = []
    peer_asked = max(5, min(len(asked), PEER_TOOLS // count))
    with _desk(files) as (process, questions, answers), peer(tools) as fastmcp:
        for number, question in enumerate([*asked[:WARM_UP], *asked]):
            print(json.dumps(question), file=questions, flush=True)
            costs.append(json.loads(answers.readline()))
            if number < peer_asked + WARM_UP:
                theirs.append(fastmcp.ask(question).cpu_ms)
        resident = psutil.Process(process.pid).memory_info().rss / 1e6
    counted = costs[WARM_UP:]
    columns = ([cost[name] for cost in counted] for name in ("one_embedding", "embedding", "search"))
    return SizeMeasured(*columns, fastmcp=theirs[WARM_UP:], resident_mb=resident)


@contextmanager
def _desk(files: Files) -> Generator[tuple[subprocess.Popen[str], IO[str], IO[str]]]:
    program = [sys.executable, "-m", "bench.retrieval.desk_search", str(files.tools), str(files.vectors)]
    with subprocess.Popen(program, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        if not process.stdout.readline():
            raise RuntimeError("Frontdesk's search ended before it was ready")
        try:
            yield process, process.stdin, process.stdout
        finally:
            process.stdin.close()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
