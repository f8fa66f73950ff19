"""Reads LoCoMo, long talks of two people and questions with the turns that answer them, from beside the repository."""

import gzip
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from bench.retrieval.data import SHARED

PATH = SHARED / "locomo" / "locomo10.json.gz"
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open", 4: "single-hop", 5: "adversarial"}
TURN = re.compile(r"D(\d+):(\d+)")
SESSION = re.compile(r"session_\d+")


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a talk, with the speaker and the time when its session began."""

    id: str
    speaker: str
    said: str
    at: datetime

    @property
    def note(self) -> str:
        """The turn as an agent would write it down."""
        return f"{self.speaker}: {self.said}"


@dataclass(frozen=True, slots=True)
class Question:
    """`right` are the turns that answer the question."""

    text: str
    right: frozenset[str]
    category: str


@dataclass(frozen=True, slots=True)
class Talk:
    """One talk over many sessions; questions without evidence in it are left out."""

    turns: Sequence[Turn]
    questions: Sequence[Question]


def read_talks(at_most: int | None = None) -> list[Talk]:
    """`at_most` limits the questions to about that many in all, evenly spread."""
    if not PATH.is_file():
        raise RuntimeError(f"{PATH} is missing: search of memories is judged by LoCoMo, which does not come with us")
    talks: list[Any] = json.loads(gzip.decompress(PATH.read_bytes()))
    asked = sum(len(talk["qa"]) for talk in talks)
    step = max(1, asked // at_most) if at_most else 1
    return [_talk(talk, step) for talk in talks]


def _talk(talk: Mapping[str, Any], step: int) -> Talk:
    turns = list(_turns(talk["conversation"]))
    known = {turn.id for turn in turns}
    asked = [_question(about, known) for about in talk["qa"]]
    return Talk(turns, [question for question in asked if question.right][::step])


def _turns(conversation: Mapping[str, Any]) -> Iterator[Turn]:
    for name in filter(SESSION.fullmatch, conversation):
        at = datetime.strptime(conversation[f"{name}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for turn in conversation[name]:
            yield Turn(turn["dia_id"], turn["speaker"], turn["text"], at)


def _question(about: Mapping[str, Any], known: set[str]) -> Question:
    named = {f"D{int(session)}:{int(turn)}" for one in about.get("evidence", []) for session, turn in TURN.findall(one)}
    return Question(about["question"], frozenset(named & known), CATEGORIES[about["category"]])
