"""Reads the public sets of tools and questions that judge the search. They lie beside the repository, never in it."""

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from training.sets import UNSEEN

from bench.processes import ROOT
from frontdesk.tools.index_segments import ToolDocument
from frontdesk.tools.model import tool_text

SHARED = ROOT.parent / "shared" / "data"
# Another part of these sets was used for training.
SEEN = ("metatool", "metatool_multi", "sealtools")
SETS = (*UNSEEN, *SEEN)
# These have enough questions to serve as past use.
USED = ("metatool", "toollens")


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as a set describes it; `parameters` has a description of each by its name."""

    id: str
    server: str
    name: str
    description: str
    parameters: Mapping[str, str]

    @property
    def doc(self) -> ToolDocument:
        return ToolDocument(
            self.id,
            self.server,
            self.name,
            self.description,
            tuple(self.parameters),
            parameter_texts=" ".join(self.parameters.values()),
        )

    @property
    def text(self) -> str:
        return tool_text(self.server, self.name, self.description, self.parameters)


@dataclass(frozen=True, slots=True)
class Question:
    """A wish in somebody's words, and the ids of the tools that fulfil it."""

    text: str
    right: tuple[str, ...]


@dataclass(frozen=True)
class RetrievalSet:
    """Tools with the questions to judge by, and the questions of past use."""

    name: str
    tools: Sequence[Tool]
    questions: Sequence[Question]
    past: Sequence[Question]

    @cached_property
    def ids(self) -> list[str]:
        return [tool.id for tool in self.tools]


def read_sets(at_most: int | None = None) -> list[RetrievalSet]:
    return [read_set(name, at_most) for name in SETS]


def read_set(name: str, at_most: int | None = None) -> RetrievalSet:
    """`at_most` takes that many questions, evenly spread."""
    folder = SHARED / "tool-retrieval" / name
    tools = [_tool(line) for line in lines(folder / "tools.jsonl.gz")]
    asked: dict[bool, list[Question]] = {True: [], False: []}
    for line in lines(folder / "queries.jsonl.gz"):
        asked[line["split"] == "test"].append(Question(line["query"], tuple(line["gold"])))
    step = max(1, -(-len(asked[True]) // at_most)) if at_most else 1
    return RetrievalSet(name, tools, asked[True][::step], asked[False])


def chatter(at_most: int) -> list[str]:
    """Questions about people's lives that no tool answers, from LoCoMo."""
    path = SHARED / "locomo" / "locomo10.json.gz"
    talks: list[Any] = json.loads(gzip.decompress(_there(path).read_bytes()))
    asked: list[str] = [about["question"] for talk in talks for about in talk["qa"]]
    return asked[:: max(1, len(asked) // at_most)][:at_most]


def lines(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(_there(path), "rt", encoding="utf-8") as found:
        for line in found:
            yield json.loads(line)


def _there(path: Path) -> Path:
    if not path.is_file():
        raise RuntimeError(f"{path} is missing: search is judged by public data that does not come with the repository")
    return path


def _tool(line: Mapping[str, Any]) -> Tool:
    texts = {name: text if isinstance(text, str) else "" for name, text in line["parameters"].items()}
    return Tool(line["id"], line["server"], line["name"], line["description"], texts)
