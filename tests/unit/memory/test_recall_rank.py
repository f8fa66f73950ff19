"""In which order items come, and why."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np

from frontdesk.memory.model import ItemHit, ItemType, TimelineItem
from frontdesk.memory.search.index_store import PostingList
from frontdesk.memory.search.query_store import SearchCandidates
from frontdesk.memory.search.service import (
    SITTING_SECONDS,
    WORD_WEIGHT,
    RankedItem,
    SearchEvidence,
    rank_items,
    relevance_score,
)

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
    """Of items 1, 2, 3 …, each long ago, hours apart, unless it is said when."""
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
