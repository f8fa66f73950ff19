"""In which order items come, and why."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np

from frontdesk.memory.model import Item, ItemType
from frontdesk.memory.recall.evidence import Evidence
from frontdesk.memory.recall.model import Hit
from frontdesk.memory.recall.postings.packing import Posting
from frontdesk.memory.recall.rank import SITTING_SECONDS, WORDS, Candidates, Ranked, ranked
from frontdesk.memory.recall.score import score

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
OLD = (NOW - timedelta(days=3650)).timestamp()
NAN = float("nan")
ITEM = Item(id="1", type=ItemType.MEMORY, title="x", created_at=NOW, updated_at=NOW)


def _order(
    words: Sequence[Sequence[float]],
    nearness: Sequence[float],
    *,
    at: Sequence[float] | None = None,
    memories: bool = True,
    salience: Sequence[float] | None = None,
    hidden: Sequence[int] = (),
) -> list[Ranked]:
    """Of items 1, 2, 3 …, each long ago, hours apart, unless it is said when."""
    count = len(nearness)
    apart = [OLD + 10 * SITTING_SECONDS * place for place in range(count)]
    candidates = Candidates(
        np.arange(1, count + 1, dtype=np.int32),
        np.array(at or apart),
        np.full(count, memories),
        np.array(salience or [0] * count, np.float32),
        ~np.isin(np.arange(1, count + 1), hidden),
    )
    rows = np.array(words, np.float32).reshape(-1, count)
    return list(ranked(candidates, rows, np.array(nearness, np.float32), NOW))


def _numbers(found: Sequence[Ranked]) -> list[int]:
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
    assert (found[0].own, found[0].beside) == ([0], [])
    assert (found[1].own, found[1].beside) == ([], [0])
    assert all(not one.beside for one in found[2:])
    assert all(not one.beside for one in _order(words, nearness, at=together, memories=False))


def test_what_was_said_right_before_counts_more_than_what_came_after() -> None:
    same = [OLD] * 3
    assert _numbers(_order([[0, 5, 0]], [0.3] * 3, at=same)) == [2, 3, 1]


def test_only_what_is_allowed_is_told_and_the_rest_still_stands_beside_it() -> None:
    found = _order([[5, 0, 0]], [0.3] * 3, at=[OLD, OLD, OLD + 10 * SITTING_SECONDS], hidden=[1])
    assert _numbers(found) == [2, 3]
    assert found[0].beside == [0]


def test_among_equals_the_new_and_the_salient_come_first_and_not_before_the_better() -> None:
    assert _numbers(_order([], [0.5, 0.5], at=[OLD, NOW.timestamp()])) == [2, 1]
    assert _numbers(_order([], [0.5, 0.5], salience=[0, 1])) == [2, 1]
    assert _numbers(_order([], [0.7, 0.5], at=[OLD, NOW.timestamp()], salience=[0, 1])) == [1, 2]
    late = NOW.timestamp() + 86_400
    assert _numbers(_order([], [0.5, 0.5], at=[late, NOW.timestamp()])) == [1, 2], "the future is no newer than now"


def test_a_score_is_the_share_of_all_that_could_speak() -> None:
    assert score(WORDS * 10 + 1.0, 10, by_meaning=True) == 1.0
    assert score(WORDS * 5, 10, by_meaning=False) == 0.5
    assert score(-0.2, 10, by_meaning=True) == score(0.3, 0, by_meaning=False) == 0.0
    assert score(2.0, 1, by_meaning=True) == 1.0


def test_the_likeliest_are_the_best_of_each_kind_and_each_is_known_by_its_number() -> None:
    rare = Posting("rare", np.array([4, 900], np.int32), np.array([200, 100], np.uint8), 2)
    common = Posting("common", np.arange(50, 150, dtype=np.int32), np.full(100, 90, np.uint8), 100)
    evidence = Evidence.of([rare, common], 1000, np.array([7, 8, 9], np.int32), np.array([0.1, 0.9, 0.5], np.float32))
    assert evidence.likeliest(2).tolist() == [4, 8, 9, 900]
    assert evidence.most == 102
    words, nearness = evidence.about(np.array([4, 8, 60, 5000], np.int32))
    assert (words > 0).tolist() == [[True, False, False, False], [False, False, True, False]]
    assert np.isnan(nearness).tolist() == [True, False, True, True]
    assert words[0, 0] > words[1, 2]
    nothing = Evidence.of([], 0, np.empty(0, np.int32), np.empty(0, np.float32))
    assert nothing.likeliest(5).tolist() == []
    assert nothing.about(np.array([1], np.int32))[0].shape == (0, 1)


def test_a_hit_says_why_it_was_found() -> None:
    assert Hit(item=ITEM, text="", score=0.5, words=["boat"], meaning=0.42).why == "words: boat; meaning 42 of 100"
    assert Hit(item=ITEM, text="", score=0.1, beside=["boat"]).why == "beside what says: boat"
    assert Hit(item=ITEM, text="", score=0.0).why == "little speaks for it"
