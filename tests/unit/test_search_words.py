"""How names and sentences are cut into words."""

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.memory.search.index_store import MEMORY_BM25
from frontdesk.search.ranking import Bm25
from frontdesk.search.words import STOP_WORDS, split_words, stem, terms
from frontdesk.tools.finder import MOST_CLAUSES, split_clauses
from frontdesk.tools.index_segments import TOOL_BM25


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("getUserById", "get user by id"),
        ("create_pull_request", "create pull request"),
        ("parseHTTPResponse", "parse http response"),
        ("math.factorial", "math factorial"),
        ("/v1/nutrition-facts", "v 1 nutrition facts"),
        ("base64Encode", "base 64 encode"),
        ("ID", "id"),
        ("Café_résumé", "café résumé"),
        ("天气预报", "天气 气预 预报"),
        ("获取weather数据", "获取 weather 数据"),
        ("", ""),
        ("__--..", ""),
    ],
)
def test_a_name_is_cut_where_a_reader_would_cut_it(name: str, words: str) -> None:
    assert split_words(name) == words.split()


@pytest.mark.parametrize(
    "alike",
    [
        ["list", "lists", "listed", "listing"],
        ["query", "queries"],
        ["search", "searches", "searching"],
        ["create", "created", "creates", "creating"],
        ["plan", "plans", "planning", "planned"],
    ],
)
def test_forms_of_a_word_are_one_term(alike: list[str]) -> None:
    assert len({stem(word) for word in alike}) == 1


@pytest.mark.parametrize("word", ["status", "address", "analysis", "bus", "thing", "red", "sing", "id", "天气"])
def test_an_ending_that_belongs_to_the_word_stays(word: str) -> None:
    assert stem(word) == word


def test_words_that_people_say_around_a_wish_are_no_terms() -> None:
    assert [word for _, word in terms("Could you please send an email to my boss?")] == ["send", "email", "boss"]
    assert not terms(" ".join(STOP_WORDS))


@given(st.text(max_size=60))
def test_any_text_can_be_cut_and_nothing_is_made_up(text: str) -> None:
    lowered = text.lower()
    assert all(word and word in lowered for word in split_words(text))


def test_a_word_of_the_name_weighs_more_than_one_of_the_description() -> None:
    weights = {word: weight for _, word, weight in TOOL_BM25.weigh(terms("weather"), [], terms("forecast"), [])}
    assert weights["weather"] > weights["forecast"] > 0


@given(st.lists(st.text("abc _", max_size=40), min_size=4, max_size=4))
def test_no_word_weighs_more_than_one(fields: list[str]) -> None:
    assert all(0 < weight < 1 for _, _, weight in TOOL_BM25.weigh(*map(terms, fields)))


@pytest.mark.parametrize("rarity", [TOOL_BM25.rarity, MEMORY_BM25.rarity])
def test_a_rare_word_tells_more_than_a_common_one_even_among_few(rarity: Callable[[float, int], float]) -> None:
    assert rarity(1, 1000) > rarity(500, 1000) > 0
    assert rarity(1, 3) > rarity(3, 3) > rarity(3000, 3000)


def test_with_a_length_share_words_weigh_less_in_a_long_text_and_without_one_they_do_not() -> None:
    short, long = terms("harbour sea"), terms("harbour " + "boats sails ropes " * 20)

    def weight(weighing: Bm25, text: Sequence[tuple[str, str]]) -> float:
        return {term: weight for term, _, weight in weighing.weigh(text)}["harbour"]

    assert weight(Bm25(1.0), short) == weight(Bm25(1.0), long) == 0.5
    assert weight(Bm25(1.0, length_share=0.5, usual_length=2), short) == 0.5
    assert weight(Bm25(1.0, length_share=0.5, usual_length=2), long) < 0.1


def test_a_short_query_is_one_text() -> None:
    assert split_clauses("  Send an email to Ann.  ") == ["Send an email to Ann."]


def test_a_long_query_is_also_taken_apart() -> None:
    found = split_clauses(
        "I am planning a trip to Lisbon next week. Find me a flight from Berlin, and then book a hotel near the river."
    )
    assert found[0].startswith("I am planning")
    assert found[1:] == [
        "I am planning a trip to Lisbon next week",
        "Find me a flight from Berlin",
        "book a hotel near the river",
    ]


@given(st.text(max_size=400))
def test_a_query_has_only_so_many_clauses(text: str) -> None:
    found = split_clauses(text)
    assert found[0] == text.strip()
    assert len(found) <= 1 + MOST_CLAUSES
