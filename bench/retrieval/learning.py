"""Simulates past use: the search remembers the questions of others, and their tools, before each question.

It takes this many past questions of each tool, and each counts for every tool that answered it. It hides past
questions that are nearly equal to the current one, so that no result comes from the question itself.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from bench.retrieval.data import Question, RetrievalSet
from bench.retrieval.embeddings import Embeddings
from frontdesk.tools.learning import NEAREST_USES, recall_tools
from frontdesk.tools.learning_store import LearnedUses

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NEARLY_THE_SAME = 0.95
SEED = 1
# More than the search uses: it skips the others.
SPEAKING = 5 * NEAREST_USES

Floats: TypeAlias = NDArray[np.float32]


def taught(one: RetrievalSet, model: Embeddings, uses_each: int) -> list[Mapping[str, float]]:
    """For each question of the set, the past uses that the search gets."""
    before = _past(one, uses_each)
    rows = [(question, tool_id) for question in before for tool_id in question.right]
    vectors = model.of([question.text for question, _ in rows])
    asked = model.of([question.text for question in one.questions])
    plain = np.array([_plain(question.text) for question, _ in rows])
    tools = np.array([tool_id for _, tool_id in rows])
    found: list[Mapping[str, float]] = []
    for question, vector in zip(one.questions, asked, strict=True):
        near = vectors @ vector
        seen = np.flatnonzero((near <= NEARLY_THE_SAME) & (plain != _plain(question.text)))
        nearest = seen[np.argsort(-near[seen])[:SPEAKING]]
        found.append(recall_tools(_uses(tools[nearest], vectors[nearest]), vector, NOW))
    return found


def _past(one: RetrievalSet, uses_each: int) -> Sequence[Question]:
    """This many questions of each tool, each question once."""
    of_tool: defaultdict[str, list[Question]] = defaultdict(list)
    for question in one.past:
        for tool_id in question.right:
            of_tool[tool_id].append(question)
    random = np.random.default_rng(SEED)
    taken: dict[Question, None] = {}
    for tool_id in sorted(of_tool):
        asked = of_tool[tool_id]
        places: list[int] = random.permutation(len(asked))[:uses_each].tolist()
        taken |= dict.fromkeys(asked[place] for place in places)
    return list(taken)


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def _uses(tools: NDArray[np.str_], vectors: Floats) -> LearnedUses:
    return LearnedUses(tools.tolist(), vectors, np.ones(len(tools), np.float32), np.full(len(tools), NOW.timestamp()))
