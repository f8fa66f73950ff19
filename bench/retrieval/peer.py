"""Queries FastMCP's search, which runs in an environment of its own."""

import json
import re
import subprocess
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

from bench.processes import PEERS_PYTHON, ROOT
from bench.retrieval.data import Tool

STOP_SECONDS = 15
# Characters that a tool's name should not contain; FastMCP's search splits words at the replacement as well.
OTHER = re.compile(r"[^\w.-]+")


@dataclass(frozen=True, slots=True)
class Answered:
    """The ids that it found, best first, and the cost."""

    ids: Sequence[str]
    cpu_ms: float


@dataclass(frozen=True, slots=True)
class Peer:
    """FastMCP with some tools, ready for questions."""

    questions: IO[str]
    answers: IO[str]
    id_of: dict[str, str]

    def ask(self, question: str) -> Answered:
        print(json.dumps(question), file=self.questions, flush=True)
        line = self.answers.readline()
        if not line:
            raise RuntimeError("FastMCP's search ended before it answered")
        found = json.loads(line)
        return Answered([self.id_of[name] for name in found["names"]], found["cpu_ms"])


@contextmanager
def peer(tools: Sequence[Tool]) -> Generator[Peer]:
    if not PEERS_PYTHON.exists():
        raise RuntimeError(f"{PEERS_PYTHON.relative_to(ROOT)} is missing; ./dev bench installs it")
    names = _names(tools)
    program = [str(PEERS_PYTHON), "-m", "bench.retrieval.fastmcp_search"]
    with subprocess.Popen(program, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        told = [
            {"name": name, "description": tool.description, "parameters": dict(tool.parameters)}
            for name, tool in zip(names, tools, strict=True)
        ]
        print(json.dumps(told), file=process.stdin, flush=True)
        try:
            yield Peer(process.stdin, process.stdout, {name: tool.id for name, tool in zip(names, tools, strict=True)})
        finally:
            process.stdin.close()
            _ended(process)


def _ended(process: subprocess.Popen[str]) -> None:
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()


def _names(tools: Sequence[Tool]) -> list[str]:
    """The name that FastMCP gives to a proxied server's tool: the server's name comes first; all names differ."""
    found: list[str] = []
    seen: Counter[str] = Counter()
    for tool in tools:
        name = OTHER.sub("_", f"{tool.server}_{tool.name}" if tool.server else tool.name)
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return found
