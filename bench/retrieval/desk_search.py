"""Frontdesk's search as a program: reads invented tools from disk, then a question a line; prints each one's cost."""

import importlib
import json
import sys
import time
from pathlib import Path

from bench.retrieval.made_up import Files, chunks
from frontdesk.embedding.builtin import MODEL_FOLDER, MiniLmModel
from frontdesk.tools.finder import split_clauses
from frontdesk.tools.index import ToolIndex
from frontdesk.tools.index_segments import IndexQuery


def main(tools: str, vectors: str) -> None:
    # It loads all of Frontdesk, so that its memory is comparable to a serving process.
    importlib.import_module("frontdesk.interfaces.http.application")
    index, model = ToolIndex(), MiniLmModel(MODEL_FOLDER)
    for docs, rows in chunks(Files(Path(tools), Path(vectors))):
        index.put(docs)
        index.set_vectors([doc.id for doc in docs], rows)
    print(len(index), flush=True)
    for line in sys.stdin:
        print(json.dumps(_asked(index, model, json.loads(line))), flush=True)


def _asked(index: ToolIndex, model: MiniLmModel, question: str) -> dict[str, float]:
    """CPU milliseconds of one embedding of the question, of everything that search embeds, and of the search itself."""
    clock = [time.process_time_ns()]
    model.vectors([question])
    clock.append(time.process_time_ns())
    asked = model.vectors(split_clauses(question))
    clock.append(time.process_time_ns())
    index.search(IndexQuery(question, asked))
    clock.append(time.process_time_ns())
    names = ("one_embedding", "embedding", "search")
    return {name: (clock[at + 1] - clock[at]) / 1e6 for at, name in enumerate(names)}


if __name__ == "__main__":
    main(*sys.argv[1:])
