"""The parts of the training program that need neither torch nor the data."""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from random import Random

import numpy as np
import pytest
from training import Missing
from training.evaluate import judge, lost
from training.pairs import Pair, batches, in_part, own_pairs, read_pairs, taken_apart
from training.sets import RetrievalSet, read_set
from training.weights import average, mix, read_weights, write_weights

from frontdesk.embedding.embedder import Vectors
from frontdesk.tools.model import tool_text

TEXT = tool_text("Law/Family", "getDivorce", "Tells how to part. In steps.", ["where", "at_once"])
TOOLS: list[dict[str, object]] = [
    {"id": "w", "server": "", "name": "get_weather", "description": "Tells the weather.", "parameters": {"city": ""}},
    {"id": "m", "server": "", "name": "send_mail", "description": "Sends a letter.", "parameters": {}},
    *(
        {"id": f"x{number}", "server": "", "name": f"other{number}", "description": "Something.", "parameters": {}}
        for number in range(20)
    ),
]


def write_lines(path: Path, rows: Sequence[object]) -> None:
    path.parent.mkdir(exist_ok=True)
    with gzip.open(path, "wt") as file:
        file.writelines(f"{json.dumps(row)}\n" for row in rows)


@pytest.fixture
def small(tmp_path: Path) -> RetrievalSet:
    questions = [
        {"id": "1", "query": "weather in Rome", "gold": ["w"], "split": "test"},
        {"id": "2", "query": "mail Bob", "gold": ["m", "w"], "split": "test"},
        {"id": "3", "query": "trained on", "gold": ["m"], "split": "train"},
    ]
    write_lines(tmp_path / "small" / "tools.jsonl.gz", TOOLS)
    write_lines(tmp_path / "small" / "queries.jsonl.gz", questions)
    return read_set(tmp_path, "small")


def test_a_tools_text_is_taken_apart_into_what_it_was_made_of() -> None:
    parts = taken_apart(TEXT)
    assert (parts.server, parts.name) == ("Law Family", "get Divorce")
    assert (parts.description, parts.inputs) == ("Tells how to part. In steps.", "where, at once")


def test_pairs_are_made_from_a_tools_own_text() -> None:
    made = own_pairs([Pair("law", "how do I part?", TEXT, "mail: Sends a letter.")])
    assert {(pair.question, pair.right) for pair in made} == {
        ("Tells how to part.", "Law Family | get Divorce (inputs: where, at once)"),
        ("get Divorce", "Tells how to part. In steps."),
        ("mail", "Sends a letter."),
    }
    assert not any(pair.labelled for pair in made)


def test_a_tool_in_part_says_nothing_that_the_whole_does_not() -> None:
    random = Random(1)
    shown = {in_part(TEXT, random) for _ in range(50)}
    assert len(shown) > 4
    assert all(
        set(text.replace(":", "").split()) <= set(TEXT.replace(":", "").split()) | {"(inputs", "where)"}
        for text in shown
    )


def test_a_batch_is_of_one_source_and_the_same_seed_gives_the_same_batches() -> None:
    pairs = [Pair(f"source {number % 3}", str(number), "tool", "near") for number in range(90)]
    once, twice = (list(batches(pairs, 10, Random(7))) for _ in range(2))
    assert once == twice
    assert sum(map(len, once)) == 90
    assert all(len({pair.source for pair in batch}) == 1 for batch in once)


def test_weights_come_back_in_steps_of_half_precision(tmp_path: Path) -> None:
    held = {"one": np.array([[1.0, 0.1]], dtype=np.float32), "two": np.array([3.0], dtype=np.float32)}
    write_weights(tmp_path, held)
    read = read_weights(tmp_path)
    assert read["one"].tolist() == [[1.0, float(np.float16(0.1))]]
    assert mix(average([read, read]), read, 0.5)["two"].tolist() == [3.0]


def test_only_the_test_split_is_judged_and_a_perfect_model_is_perfect(small: RetrievalSet) -> None:
    def perfect(texts: Sequence[str]) -> Vectors:
        wanted = {"get weather": [1, 0], "weather in": [1, 0], "send mail": [0, 1], "mail Bob": [0.6, 0.8]}
        rows = [next((row for start, row in wanted.items() if text.startswith(start)), [-1, -1]) for text in texts]
        return np.array(rows, dtype=np.float32)

    def contrary(texts: Sequence[str]) -> Vectors:
        return perfect(texts) * (1 if len(texts) == len(small.questions) else -1)

    assert len(small.questions) == 2
    found = judge(perfect, [small])
    assert found["small"].meaning == pytest.approx(100)
    assert lost(found, judge(contrary, [small])) > 0


def test_data_that_is_not_there_is_named_with_the_option_that_says_where(tmp_path: Path) -> None:
    with pytest.raises(Missing, match=r"train_pairs.* is not there; give its folder with --data"):
        read_pairs(tmp_path)
    with pytest.raises(Missing, match="--base"):
        read_weights(tmp_path)
