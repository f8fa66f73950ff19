"""Makes any number of tools from those of the sets: it replaces some words with words of other tools."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray

from bench.retrieval.data import Tool
from bench.retrieval.embeddings import Embeddings
from frontdesk.embedding.builtin import DIMENSIONS
from frontdesk.tools.index_segments import ToolDocument

SERVERS = 300
# The share of a description's words that change, and how far a vector moves from its tool's vector.
CHANGED, MOVED = 0.3, 0.6
SEED = 1
CHUNK = 1000
PACKED = np.dtype(np.float16)


@dataclass(frozen=True, slots=True)
class Files:
    """Invented tools on disk, one a line, and their vectors: a process that reads them holds nothing else of them."""

    tools: Path
    vectors: Path


def made_up(count: int, known: Sequence[Tool]) -> list[Tool]:
    """The sets' own tools first, then similar ones."""
    random = Random(SEED)
    words = sorted({word for tool in known for word in tool.description.split() if word.isalpha()})
    return [_like(known[number % len(known)], number, len(known), words, random) for number in range(count)]


def _like(tool: Tool, number: int, first: int, words: Sequence[str], random: Random) -> Tool:
    server = f"server{number % SERVERS}"
    if number < first:
        return replace(tool, id=f"{server}::{tool.name}#{number}", server=server)
    said = " ".join(random.choice(words) if random.random() < CHANGED else word for word in tool.description.split())
    name = f"{tool.name}_{random.choice(words).lower()}"
    return replace(tool, id=f"{server}::{name}#{number}", server=server, name=name, description=said)


def write(folder: Path, tools: Sequence[Tool], known: Sequence[Tool], model: Embeddings) -> Files:
    files = Files(folder / f"tools-{len(tools)}.jsonl", folder / f"vectors-{len(tools)}.bin")
    with files.tools.open("w") as sink:
        for tool in tools:
            print(json.dumps([tool.id, tool.server, tool.name, tool.description, dict(tool.parameters)]), file=sink)
    near = model.of([tool.text for tool in known])
    random = np.random.default_rng(SEED)
    with files.vectors.open("wb") as sink:
        for start in range(0, len(tools), CHUNK):
            rows = near[np.arange(start, min(start + CHUNK, len(tools))) % len(known)]
            moved = rows + MOVED * random.standard_normal(rows.shape, np.float32) / np.sqrt(DIMENSIONS)
            sink.write((moved / np.linalg.norm(moved, axis=1, keepdims=True)).astype(PACKED).tobytes())
    return files


def chunks(files: Files) -> Iterator[tuple[list[ToolDocument], NDArray[np.float32]]]:
    """The tools with their vectors in batches, as a catalogue passes them to search."""
    docs: list[ToolDocument] = []
    with files.tools.open() as lines, files.vectors.open("rb") as vectors:
        for line in lines:
            tool_id, server, name, description, parameters = json.loads(line)
            docs.append(Tool(tool_id, server, name, description, parameters).doc)
            if len(docs) == CHUNK:
                yield docs, _vectors(vectors.read(len(docs) * DIMENSIONS * PACKED.itemsize))
                docs = []
        if docs:
            yield docs, _vectors(vectors.read())


def _vectors(packed: bytes) -> NDArray[np.float32]:
    return np.frombuffer(packed, PACKED).reshape(-1, DIMENSIONS).astype(np.float32)
