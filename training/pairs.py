"""Makes the training data: questions and the tools that answer them, and pairs made from the tools' own texts."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from training.sets import read_lines

FILE = "train_pairs.jsonl.gz"
_INPUTS = re.compile(r" \(inputs: ([^()]*)\)$")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s")


@dataclass(frozen=True, slots=True)
class Pair:
    """A question, the tool text that answers it, one that nearly does, and others that do as well."""

    source: str
    question: str
    right: str
    near: str | None = None
    also_right: frozenset[str] = frozenset()

    @property
    def labelled(self) -> bool:
        """True if a person labelled the tool as an answer; otherwise the pair comes from the tool's own text."""
        return self.near is not None


@dataclass(frozen=True, slots=True)
class Parts:
    """A tool's text, split into its parts."""

    server: str
    name: str
    description: str
    inputs: str


def read_pairs(data: Path) -> list[Pair]:
    return [
        Pair(row["set"], row["query"], row["positive"], row["hard_negative"], frozenset(row["also_right"]))
        for row in read_lines(data / FILE)
    ]


def own_pairs(pairs: Sequence[Pair]) -> list[Pair]:
    """Pairs that need no labels: a first sentence asks for its name and inputs, a name for its description."""
    texts: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for pair in pairs:
        texts[pair.source] |= dict.fromkeys(filter(None, (pair.right, pair.near, *sorted(pair.also_right))))
    return [made for source, found in texts.items() for text in found for made in _own(source, taken_apart(text))]


def taken_apart(text: str) -> Parts:
    inputs = _INPUTS.search(text)
    heading, _, description = _INPUTS.sub("", text).partition(": ")
    server, _, name = heading.rpartition(" | ")
    return Parts(server, name, description, inputs.group(1) if inputs else "")


def in_part(text: str, random: Random) -> str:
    """The text with something missing, like real tools."""
    parts = taken_apart(text)
    server = f"{parts.server} | " if parts.server else ""
    inputs = f" (inputs: {parts.inputs})" if parts.inputs else ""
    match random.randrange(5):
        case 0:
            return f"{parts.name}: {parts.description}{inputs}"
        case 1:
            return f"{server}{parts.name}: {parts.description}"
        case 2:
            return f"{server}{parts.name}{inputs}"
        case 3:
            return f"{parts.description}{inputs}"
        case _:
            return f"{server}{parts.name}: {_first_sentence(parts.description)}{_some(parts.inputs, random)}"


def batches(pairs: Sequence[Pair], size: int, random: Random) -> Iterator[list[Pair]]:
    """One pass in random order; each batch has one source, so that the model cannot learn to tell sources apart."""
    by_source: defaultdict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        by_source[pair.source].append(pair)
    found: list[list[Pair]] = []
    for some in by_source.values():
        random.shuffle(some)
        found += [some[start : start + size] for start in range(0, len(some) - size // 2, size)]
    random.shuffle(found)
    yield from found


def _own(source: str, parts: Parts) -> Iterator[Pair]:
    server = f"{parts.server} | " if parts.server else ""
    if parts.inputs:
        short = f"{server}{parts.name} (inputs: {parts.inputs})"
        yield Pair(f"{source}, inputs", _first_sentence(parts.description), short)
    yield Pair(f"{source}, names", parts.name, parts.description)


def _first_sentence(description: str) -> str:
    return _SENTENCE_END.split(description)[0]


def _some(inputs: str, random: Random) -> str:
    names = inputs.split(", ") if inputs else []
    kept = random.sample(names, -(-len(names) // 2))
    return f" (inputs: {', '.join(kept)})" if kept else ""
