"""Tests how a person's records are ranked and indexed: words, weights, and vectors in a tree."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontdesk.db.schema import TERM_LENGTH
from frontdesk.memory.model import ItemHit, ItemType, TimelineItem
from frontdesk.memory.search import vectors_store
from frontdesk.memory.search.index_store import (
    BLOCK_SIZE,
    MAX_TEXT_TERMS,
    PostingList,
    block_of,
    pack_entry,
    pack_terms,
    remove_entry,
    unpack_entries,
    unpack_terms,
    weigh_terms,
)
from frontdesk.memory.search.query_store import SearchCandidates
from frontdesk.memory.search.service import (
    SITTING_SECONDS,
    WORD_WEIGHT,
    RankedItem,
    SearchEvidence,
    mention_weight,
    rank_items,
    relevance_score,
    term_value,
)
from frontdesk.memory.search.vectors_store import TreePart, add_vectors, centre_of, nearest_numbers, split_in_two
from frontdesk.search.vectors import Floats, NumberedVectors, dimensions_of

# The order of results, and its reasons


NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
OLD = (NOW - timedelta(days=3650)).timestamp()
NAN = float("nan")
ITEM = TimelineItem(id="1", type=ItemType.MEMORY, title="x", created_at=NOW, updated_at=NOW)


def _order(
    words: Sequence[Sequence[float]],
    nearness: Sequence[float],
    *,
    at: Sequence[float] | None = None,
    memories: bool = True,
    salience: Sequence[float] | None = None,
    hidden: Sequence[int] = (),
) -> list[RankedItem]:
    """Items 1, 2, 3 …, each long ago, hours apart, unless a time is given."""
    count = len(nearness)
    apart = [OLD + 10 * SITTING_SECONDS * place for place in range(count)]
    candidates = SearchCandidates(
        np.arange(1, count + 1, dtype=np.int32),
        np.array(at or apart),
        np.full(count, memories),
        np.array(salience or [0] * count, np.float32),
        ~np.isin(np.arange(1, count + 1), hidden),
    )
    rows = np.array(words, np.float32).reshape(-1, count)
    return list(rank_items(candidates, rows, np.array(nearness, np.float32), NOW))


def _numbers(found: Sequence[RankedItem]) -> list[int]:
    return [one.n for one in found]


def test_shared_words_and_near_meaning_both_count() -> None:
    assert _numbers(_order([[0, 4, 4]], [0.5, 0.1, 0.4])) == [3, 1, 2]
    assert _numbers(_order([], [0.2, 0.9, 0.4])) == [2, 3, 1]
    assert _numbers(_order([[1, 3, 2]], [NAN, NAN, NAN])) == [2, 3, 1]


def test_what_nobody_has_read_yet_is_taken_for_as_near_as_the_others() -> None:
    found = _order([[4, 5, 1]], [0.5, NAN, 0.5])
    assert _numbers(found) == [2, 1, 3]
    assert found[0].nearness is None


def test_memories_of_one_sitting_speak_for_one_another_and_no_others_do() -> None:
    words, nearness = [[5, 0, 0, 0]], [0.3, 0.3, 0.3, 0.3]
    together = [OLD, OLD + 60, OLD + 10 * SITTING_SECONDS, OLD + 10 * SITTING_SECONDS]
    found = _order(words, nearness, at=together)
    assert _numbers(found)[:2] == [1, 2]
    assert (found[0].own_terms, found[0].neighbour_terms) == ([0], [])
    assert (found[1].own_terms, found[1].neighbour_terms) == ([], [0])
    assert all(not one.neighbour_terms for one in found[2:])
    assert all(not one.neighbour_terms for one in _order(words, nearness, at=together, memories=False))


def test_what_was_said_right_before_counts_more_than_what_came_after() -> None:
    same = [OLD] * 3
    assert _numbers(_order([[0, 5, 0]], [0.3] * 3, at=same)) == [2, 3, 1]


def test_only_what_is_allowed_is_told_and_the_rest_still_stands_beside_it() -> None:
    found = _order([[5, 0, 0]], [0.3] * 3, at=[OLD, OLD, OLD + 10 * SITTING_SECONDS], hidden=[1])
    assert _numbers(found) == [2, 3]
    assert found[0].neighbour_terms == [0]


def test_among_equals_the_new_and_the_salient_come_first_and_not_before_the_better() -> None:
    assert _numbers(_order([], [0.5, 0.5], at=[OLD, NOW.timestamp()])) == [2, 1]
    assert _numbers(_order([], [0.5, 0.5], salience=[0, 1])) == [2, 1]
    assert _numbers(_order([], [0.7, 0.5], at=[OLD, NOW.timestamp()], salience=[0, 1])) == [1, 2]
    late = NOW.timestamp() + 86_400
    assert _numbers(_order([], [0.5, 0.5], at=[late, NOW.timestamp()])) == [1, 2], "the future is no newer than now"


def test_a_score_is_the_share_of_all_that_could_speak() -> None:
    assert relevance_score(WORD_WEIGHT * 10 + 1.0, 10, by_meaning=True) == 1.0
    assert relevance_score(WORD_WEIGHT * 5, 10, by_meaning=False) == 0.5
    assert relevance_score(-0.2, 10, by_meaning=True) == relevance_score(0.3, 0, by_meaning=False) == 0.0
    assert relevance_score(2.0, 1, by_meaning=True) == 1.0


def test_the_likeliest_are_the_best_of_each_kind_and_each_is_known_by_its_number() -> None:
    rare = PostingList("rare", np.array([4, 900], np.int32), np.array([200, 100], np.uint8), 2)
    common = PostingList("common", np.arange(50, 150, dtype=np.int32), np.full(100, 90, np.uint8), 100)
    evidence = SearchEvidence.collect(
        [rare, common], 1000, np.array([7, 8, 9], np.int32), np.array([0.1, 0.9, 0.5], np.float32)
    )
    assert evidence.likeliest(2).tolist() == [4, 8, 9, 900]
    assert evidence.max_items == 102
    words, nearness = evidence.look_up(np.array([4, 8, 60, 5000], np.int32))
    assert (words > 0).tolist() == [[True, False, False, False], [False, False, True, False]]
    assert np.isnan(nearness).tolist() == [True, False, True, True]
    assert words[0, 0] > words[1, 2]
    nothing = SearchEvidence.collect([], 0, np.empty(0, np.int32), np.empty(0, np.float32))
    assert nothing.likeliest(5).tolist() == []
    assert nothing.look_up(np.array([1], np.int32))[0].shape == (0, 1)


def test_a_hit_says_why_it_was_found() -> None:
    assert ItemHit(item=ITEM, text="", score=0.5, words=["boat"], meaning=0.42).why == "words: boat; meaning 42 of 100"
    assert ItemHit(item=ITEM, text="", score=0.1, beside=["boat"]).why == "beside what says: boat"
    assert ItemHit(item=ITEM, text="", score=0.0).why == "little speaks for it"


# The weights of words, and the index of the records that contain them


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


# Vectors in cells and cells in regions, as they grow


SIZE = 16


def _vectors(count: int, seed: int = 1) -> Floats:
    found = np.random.default_rng(seed).standard_normal((count, SIZE), np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def _grown(vectors: Floats, batch: int) -> TreePart:
    """The whole tree after each batch of this size."""
    part = TreePart({}, {}, 1, 1)
    for start in range(0, len(vectors), batch):
        rows = vectors[start : start + batch]
        add_vectors(part, NumberedVectors.encode(range(start + 1, start + len(rows) + 1), rows))
    return part


@given(count=st.integers(1, 300), batch=st.integers(1, 90), alike=st.booleans())
@settings(max_examples=30, deadline=None)
def test_everything_lies_in_one_cell_each_cell_in_one_region_and_none_is_too_large(
    count: int, batch: int, *, alike: bool
) -> None:
    vectors = np.repeat(_vectors(1), count, axis=0) if alike else _vectors(count)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(vectors_store, "MAX_CELL", 8)
        patched.setattr(vectors_store, "MAX_REGION", 4)
        part = _grown(vectors, batch)
    held = [number for cell in part.cells.values() for number in cell.numbers.tolist()]
    assert sorted(held) == list(range(1, count + 1))
    assert all(len(cell) <= 8 for cell in part.cells.values())
    assert {number: cell for cell, bag in part.cells.items() for number in bag.numbers.tolist()} == part.cell_of
    listed = [cell for region in part.regions.values() for cell in region.numbers.tolist()]
    assert sorted(listed) == sorted(part.cells)
    assert all(len(region) <= 4 for region in part.regions.values())
    assert part.touched == set(part.cells)
    assert set(part.changed_regions) == set(part.regions)


def test_what_is_near_lies_in_the_nearest_cells() -> None:
    around = _vectors(20, seed=2)
    random = np.random.default_rng(3)
    vectors = np.repeat(around, 100, axis=0) + 0.1 * random.standard_normal((2000, SIZE), np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    part = _grown(vectors[random.permutation(2000)], 64)
    cells = NumberedVectors.concatenate(list(part.regions.values()))
    found = 0
    for asked in around:
        seen = NumberedVectors.concatenate([part.cells[cell] for cell in nearest_numbers(cells, asked, 8)])
        best = np.sort(seen.cosines(asked))[-10:]
        whole = np.sort(NumberedVectors.concatenate(list(part.cells.values())).cosines(asked))[-10:]
        found += int(np.isin(best, whole).sum())
    assert found >= 0.95 * 200


def test_two_heaps_are_told_apart_and_neither_is_less_than_a_quarter() -> None:
    two = _vectors(2, seed=5)
    heaps = np.concatenate([np.repeat(two[:1], 30, axis=0), np.repeat(two[1:], 50, axis=0)])
    second = split_in_two(heaps)
    assert len({bool(one) for one in second[:30]}) == len({bool(one) for one in second[30:]}) == 1
    assert second[0] != second[-1]
    uneven = split_in_two(np.concatenate([np.repeat(two[:1], 2, axis=0), np.repeat(two[1:], 78, axis=0)]))
    assert 20 <= int(uneven.sum()) <= 60


def test_a_kept_vector_points_where_it_did_also_when_it_was_kept_alone() -> None:
    vectors = _vectors(40)
    bag = NumberedVectors.encode(range(40), vectors)
    assert np.abs(bag.cosines(vectors[7]) - vectors @ vectors[7]).max() < 0.01
    assert float(bag.vectors()[3] @ vectors[3]) > 0.999
    again = NumberedVectors.read([bag.packed()], SIZE)
    assert again.numbers.tolist() == list(range(40))
    numbers, kept = zip(*bag.single_vectors(), strict=True)
    assert dimensions_of(kept[0]) == SIZE
    assert NumberedVectors.read_single(numbers, kept, SIZE).packed() == bag.packed()
    assert len(NumberedVectors.read([], SIZE).cosines(vectors[0])) == 0


def test_a_vector_of_nothing_is_no_trouble() -> None:
    nothing = np.zeros((3, SIZE), np.float32)
    assert NumberedVectors.encode([1, 2, 3], nothing).cosines(_vectors(1)[0]).tolist() == [0, 0, 0]
    assert np.isfinite(centre_of(nothing)).all()
