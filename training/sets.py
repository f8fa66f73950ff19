"""Reads the public sets of tools and questions that judge a model from the data folder."""

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from training import Missing

DATA = Path(__file__).parents[2] / "shared" / "data" / "tool-retrieval"
# No training used any tool or question of these, and no weight was tuned to one; the bench reports them separately.
UNSEEN = ("bfcl", "toolret_apigen", "ultratool", "toollens")
# Training uses their other split: they show whether the model learned it, not whether it generalizes.
SEEN = ("metatool", "sealtools")


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as the sets describe it."""

    id: str
    server: str
    name: str
    description: str
    parameters: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """A wish in somebody's words, and the rows of the tools that fulfil it."""

    text: str
    right: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RetrievalSet:
    """Tools, and questions about them that are not used for training."""

    name: str
    tools: tuple[Tool, ...]
    questions: tuple[Question, ...]


def read_set(data: Path, name: str, at_most: int | None = None) -> RetrievalSet:
    """The set's test split; `at_most` takes that many questions, evenly spread."""
    tools = tuple(_tool(row) for row in read_lines(data / name / "tools.jsonl.gz"))
    row_of = {tool.id: row for row, tool in enumerate(tools)}
    questions = [
        Question(row["query"], tuple(row_of[tool_id] for tool_id in row["gold"]))
        for row in read_lines(data / name / "queries.jsonl.gz")
        if row["split"] == "test"
    ]
    step = max(1, -(-len(questions) // at_most)) if at_most else 1
    return RetrievalSet(name, tools, tuple(questions[::step]))


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The JSON objects of a compressed file, one a line."""
    if not path.is_file():
        raise Missing(path, "--data")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def _tool(row: dict[str, Any]) -> Tool:
    return Tool(row["id"], row["server"], row["name"], row["description"], tuple(row["parameters"]))
