"""What is found first, how sure the score is, and the reasons that are given."""

from collections.abc import Iterable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from frontdesk.tools.index import ToolIndex
from frontdesk.tools.index_segments import IndexHit, IndexQuery, ToolDocument

TOOLS = (
    ToolDocument(
        "github::create_issue", "github", "create_issue", "Open a new issue in a repository", ("title", "body")
    ),
    ToolDocument("github::list_issues", "github", "list_issues", "List the issues of a repository", ("state",)),
    ToolDocument("jira::create_issue", "jira", "create_issue", "Add a ticket to a project", ("project", "summary")),
    ToolDocument("sky::getForecast", "sky", "getForecast", "Weather for the coming days", ("city",)),
    ToolDocument(
        "mail::send", "mail", "send", "Send an email message", ("to", "subject"), parameter_texts="address of somebody"
    ),
)
MEANINGS = {"github::create_issue": 0, "github::list_issues": 1, "jira::create_issue": 2, "sky::getForecast": 3}


def meaning(*parts: tuple[int, float], rest: int = 6) -> NDArray[np.float32]:
    """A vector of length 1 with so much of each direction, and the rest of it in one that others have nothing of."""
    found = np.zeros(8, np.float32)
    for direction, share in parts:
        found[direction] = share
    found[rest] = np.sqrt(max(0.0, 1 - float(found @ found)))
    return found


def of_tools(numbers: Iterable[int]) -> NDArray[np.float32]:
    return np.array([meaning((number, 0.95), rest=7) for number in numbers])


@pytest.fixture
def index() -> ToolIndex:
    made = ToolIndex()
    made.put(TOOLS)
    made.set_vectors(list(MEANINGS), of_tools(MEANINGS.values()))
    return made


def search(index: ToolIndex, text: str, *parts: tuple[int, float], **more: object) -> list[IndexHit]:
    vectors = meaning(*parts)[None] if parts else None
    return index.search(IndexQuery(text, vectors, **more))  # pyright: ignore[reportArgumentType] - as the tests say


@pytest.mark.parametrize(
    "asked",
    [
        "sky::getForecast",
        "getForecast",
        "sky__getForecast",
        "GETFORECAST",
        " `getForecast` ",
        "use sky__getForecast now",
    ],
)
def test_a_tool_that_is_called_by_its_name_comes_first_with_100(index: ToolIndex, asked: str) -> None:
    first, *others = search(index, asked, (0, 0.9))
    assert (first.id, first.score, first.exact) == ("sky::getForecast", 100, True)
    assert all(hit.score < 100 and not hit.exact for hit in others)


def test_a_brand_that_is_spoken_of_is_no_tool_that_is_called() -> None:
    index = ToolIndex()
    index.put([ToolDocument("a::github", "a", "github", "Anything about code"), *TOOLS])
    assert not any(hit.exact for hit in search(index, "list my issues on GitHub"))


def test_a_name_that_several_servers_have_puts_all_of_them_first(index: ToolIndex) -> None:
    assert {hit.id for hit in search(index, "create_issue")[:2]} == {"github::create_issue", "jira::create_issue"}


def test_words_find_tools_while_no_vector_is_there() -> None:
    index = ToolIndex()
    index.put(TOOLS)
    found = search(index, "send an email to my boss", (3, 0.9))
    assert [hit.id for hit in found] == ["mail::send"]
    assert found[0].score > 50


def test_a_tool_without_a_vector_is_found_beside_those_that_have_one(index: ToolIndex) -> None:
    assert index.missing_vectors() == ["mail::send"]
    assert search(index, "send an email message", (4, 0.9))[0].id == "mail::send"


def test_meaning_finds_what_shares_no_word(index: ToolIndex) -> None:
    first = search(index, "will it rain tomorrow?", (3, 0.9))[0]
    assert first.id == "sky::getForecast"
    assert first.score > 50
    assert first.words == ()
    assert first.meaning > 80


def test_the_reasons_are_the_catalogues_own_words_the_telling_ones_first(index: ToolIndex) -> None:
    first = search(index, "listing open issues of some repositories")[0]
    assert first.id == "github::list_issues"
    assert set(first.words) == {"list", "issue", "repository"}
    assert first.words[-1] == "repository"


@pytest.mark.parametrize("size", [1, 2, 5])
def test_among_few_tools_the_best_of_a_bad_lot_scores_low(size: int) -> None:
    index = ToolIndex()
    index.put(TOOLS[:size])
    index.set_vectors([tool.id for tool in TOOLS[:size]], of_tools(range(size)))
    assert all(hit.score < 20 for hit in search(index, "why do cats purr?", (0, 0.15), (1, 0.1)))
    assert search(index, "why do cats purr?", (0, 0.15), min_score=50.0) == []
    assert search(index, "make an issue about this bug", (0, 0.7))[0].score > 50


def test_past_use_lifts_a_tool_and_is_told(index: ToolIndex) -> None:
    without = search(index, "note this bug down", (0, 0.6), (2, 0.5))
    lifted = search(index, "note this bug down", (0, 0.6), (2, 0.5), past={"jira::create_issue": 0.6})
    assert [hit.id for hit in without[:2]] == ["github::create_issue", "jira::create_issue"]
    assert lifted[0].id == "jira::create_issue"
    assert lifted[0].past_use == 60
    assert lifted[0].score > without[1].score


def test_a_wrong_past_does_not_drown_the_right_words(index: ToolIndex) -> None:
    """Once used for a query somewhat like this one, which is as much as a mistake amounts to."""
    found = search(index, "list the issues of this repository", (1, 0.8), past={"sky::getForecast": 0.35})
    assert found[0].id == "github::list_issues"


def test_past_use_of_a_tool_that_is_gone_or_forbidden_shows_nothing(index: ToolIndex) -> None:
    found = search(
        index, "anything", (0, 0.2), past={"old::tool": 1.0, "mail::send": 1.0}, servers=frozenset({"github"})
    )
    assert {hit.id for hit in found} <= {"github::create_issue", "github::list_issues"}


def test_the_best_clause_of_a_long_query_counts(index: ToolIndex) -> None:
    whole, clause = meaning((0, 0.3)), meaning((3, 0.95))
    assert index.search(IndexQuery("?", np.array([whole])))[0].id == "github::create_issue"
    assert index.search(IndexQuery("?", np.array([whole, clause])))[0].id == "sky::getForecast"


def test_the_one_tool_that_is_allowed_is_found_far_down_among_many() -> None:
    index = ToolIndex()
    index.put(
        ToolDocument(f"s::issue_{number}", "s", f"issue_{number}", "issue " * (number % 7)) for number in range(1000)
    )
    everything = [hit.id for hit in search(index, "issue", limit=1000)]
    assert len(everything) == 1000
    for wanted in (everything[300:301], everything[255:258], everything[-2:]):
        assert [hit.id for hit in search(index, "issue", limit=5, allowed=set(wanted).__contains__)] == wanted


shares = st.lists(st.tuples(st.integers(0, 4), st.floats(0, 0.4)), max_size=3)
texts = st.lists(st.sampled_from(["issue", "create", "send", "weather", "list", "the", "nonsense"]), max_size=8)


@settings(max_examples=60, deadline=None)
@given(texts, shares, st.floats(0, 100), st.integers(0, 6))
def test_scores_fall_from_first_to_last_and_keep_to_what_was_asked(
    said: Sequence[str], parts: list[tuple[int, float]], least: float, limit: int
) -> None:
    index = ToolIndex()
    index.put(TOOLS)
    index.set_vectors(list(MEANINGS), of_tools(MEANINGS.values()))
    query = IndexQuery(" ".join(said), meaning(*parts)[None], limit=limit, min_score=least)
    scores = [hit.score for hit in index.search(query)]
    assert scores == sorted(scores, reverse=True)
    assert len(scores) <= limit
    assert all(least <= score <= 100 for score in scores)
    everything = index.search(IndexQuery(query.text, query.vectors, limit=100))
    assert index.search(query) == [hit for hit in everything if hit.score >= least][:limit]
