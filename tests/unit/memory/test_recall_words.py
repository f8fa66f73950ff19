"""What words weigh, and how it is kept who holds them."""

from hypothesis import given
from hypothesis import strategies as st

from frontdesk.db.schema import TERM_LENGTH
from frontdesk.memory.search.index_store import (
    BLOCK_SIZE,
    MAX_TEXT_TERMS,
    block_of,
    pack_entry,
    pack_terms,
    remove_entry,
    unpack_entries,
    unpack_terms,
    weigh_terms,
)
from frontdesk.memory.search.service import mention_weight, term_value

NUMBERS = st.integers(0, 3 * BLOCK_SIZE)


@given(st.dictionaries(NUMBERS, st.integers(1, 255), max_size=60))
def test_who_holds_a_word_is_read_as_it_was_written(held: dict[int, int]) -> None:
    blocks: dict[int, bytes] = {}
    for n, weight in held.items():
        blocks[block_of(n)] = blocks.get(block_of(n), b"") + pack_entry(n, weight)
    numbers, found = unpack_entries(list(blocks.items()))
    assert dict(zip(numbers.tolist(), found.tolist(), strict=True)) == held
    for n in held:
        left, _ = unpack_entries([(block_of(n), remove_entry(blocks[block_of(n)], n))])
        assert n not in left.tolist()
        assert len(left) == len(blocks[block_of(n)]) / len(pack_entry(0, 0)) - 1


@given(st.text(max_size=300))
def test_the_words_of_any_text_are_said_and_listed_alike(text: str) -> None:
    found = weigh_terms(text)
    terms, told = unpack_terms(pack_terms(found))
    assert dict(zip(terms, map(int, told), strict=True)) == found
    assert all(1 <= weight <= 255 and 0 < len(term) <= TERM_LENGTH for term, weight in found.items())


def test_a_word_weighs_more_the_more_often_it_is_said_and_the_shorter_the_text() -> None:
    once, twice = weigh_terms("harbour and sea and sky"), weigh_terms("harbour, harbour and sea")
    assert twice["harbour"] > once["harbour"]
    assert weigh_terms(f"harbour {'boats sails ropes ' * 20}")["harbour"] < once["harbour"]
    assert weigh_terms(" ".join(f"word{number}" for number in range(9)) + " harbour")["harbour"] >= mention_weight()


def test_a_rare_word_tells_more_and_one_that_everybody_holds_a_little_still() -> None:
    assert term_value(1, 1000) > term_value(10, 1000) > term_value(1000, 1000) > 0
    assert term_value(7.5, 3) > 0, "more may be told than there are"


def test_an_endless_text_is_found_by_its_first_words() -> None:
    found = weigh_terms(" ".join(f"w{chr(97 + number % 26)}x{number}" for number in range(3 * MAX_TEXT_TERMS)))
    assert len(found) == MAX_TEXT_TERMS
    assert max(map(len, weigh_terms("a" * 1000))) == TERM_LENGTH
