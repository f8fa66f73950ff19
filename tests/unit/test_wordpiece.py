"""The tokenizer gives what the reference gives, and nothing that a text holds can upset it."""

import json
import sys
from pathlib import Path
from typing import TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.embedding.builtin import MODEL_FOLDER, WORDS_REMEMBERED, WordPieceTokenizer

START, END, UNKNOWN = 101, 102, 100


class Golden(TypedDict):
    """What the `tokenizers` package made of a text with the same vocabulary."""

    text: str
    limit: int
    ids: list[int]


GOLDEN: list[Golden] = json.loads(Path(__file__).with_name("wordpiece_golden.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def wordpiece() -> WordPieceTokenizer:
    return WordPieceTokenizer.read(MODEL_FOLDER / "vocab.txt")


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: ascii(golden["text"][:20]))
def test_ids_are_those_of_the_reference(golden: Golden, wordpiece: WordPieceTokenizer) -> None:
    assert wordpiece.ids(golden["text"], golden["limit"]) == golden["ids"]


def test_a_special_token_in_a_text_is_plain_text(wordpiece: WordPieceTokenizer) -> None:
    ids = wordpiece.ids("[SEP] [CLS] [MASK] [PAD]", 128)
    assert ids[0] == START
    assert ids[-1] == END
    assert not {0, START, END, 103} & set(ids[1:-1])


def test_a_word_met_again_has_the_same_pieces_when_the_memory_was_full_in_between(
    wordpiece: WordPieceTokenizer,
) -> None:
    before = wordpiece.ids("unaffordable", 128)
    for number in range(WORDS_REMEMBERED + 1):
        wordpiece.ids(f"w{number}", 128)
    assert wordpiece.ids("unaffordable", 128) == before


def test_a_megabyte_is_cut_before_it_costs_anything(wordpiece: WordPieceTokenizer) -> None:
    assert wordpiece.ids("word " * 200_000, 128) == wordpiece.ids("word " * 200, 128)
    assert wordpiece.ids("x" * 1_000_000, 128) == [START, UNKNOWN, END]


@given(st.text(alphabet=st.characters(max_codepoint=sys.maxunicode, exclude_categories=()), max_size=200))
def test_any_text_has_ids_within_the_limit(text: str) -> None:
    ids = _SHARED.ids(text, 32)
    assert ids[0] == START
    assert ids[-1] == END
    assert 2 <= len(ids) <= 32


_SHARED = WordPieceTokenizer.read(MODEL_FOLDER / "vocab.txt")
