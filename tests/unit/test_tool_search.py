"""Tests the search index for tools: words, vectors, ranking, and the effect of past uses."""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from threading import Event, Thread

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule
from numpy.typing import NDArray

from frontdesk.memory.search.index_store import MEMORY_BM25
from frontdesk.search.bm25 import Bm25
from frontdesk.search.vectors import QuantisedVectors, join_vectors
from frontdesk.search.words import STOP_WORDS, split_words, stem, terms
from frontdesk.tools.finder import MOST_CLAUSES, split_clauses
from frontdesk.tools.index import CLAUSE_FACTOR, MANY_ROWS, ToolIndex
from frontdesk.tools.index_segments import TOOL_BM25, IndexHit, IndexQuery, ToolDocument
from frontdesk.tools.learning import HALF_LIFE_DAYS, NEAREST_USES, recall_tools
from frontdesk.tools.learning_store import LearnedUses
from frontdesk.tools.model import ToolKind

# The index in memory: tools come and go, and every search sees their state at one moment


WORDS = ("weather", "issue", "email", "invoice", "flight", "search", "create", "list")
DIMENSIONS = 16
QUERIES = ("create an invoice", "list flights and emails", "weather", "search")


def direction(text: str) -> NDArray[np.float32]:
    """A vector that depends on the text alone."""
    found = np.random.default_rng(sum(map(ord, text))).standard_normal(DIMENSIONS)
    return (found / np.linalg.norm(found)).astype(np.float32)


def doc(number: int, words: Sequence[str] = (), server: str = "s", kind: ToolKind = ToolKind.MCP) -> ToolDocument:
    name = f"{'_'.join(words[:2])}_{number}"
    return ToolDocument(f"{server}::{name}", server, name, " ".join(words), tuple(words[2:3]), kind)


docs = st.builds(
    doc,
    st.integers(0, 30),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=4),
    st.sampled_from(("s", "t")),
    st.sampled_from(ToolKind),
)


def filled(index: ToolIndex, tools: Sequence[ToolDocument], *, vectors: bool = True) -> ToolIndex:
    index.put(tools)
    if vectors:
        missing = index.missing_vectors()
        index.set_vectors(missing, np.array([direction(tool_id) for tool_id in missing]).reshape(-1, DIMENSIONS))
    return index


def found(index: ToolIndex, text: str, *, vectors: bool = True, limit: int = 100) -> list[IndexHit]:
    return index.search(IndexQuery(text, direction(text)[None] if vectors else None, limit=limit))


class Changes(RuleBasedStateMachine):
    """After any changes, an index answers like a new one with the same tools."""

    tools = Bundle("tools")

    def __init__(self) -> None:
        super().__init__()
        self.index = ToolIndex()
        self.known: dict[str, ToolDocument] = {}
        self.placed: set[str] = set()

    @rule(target=tools, given=st.lists(docs, max_size=12))
    def put(self, given: list[ToolDocument]) -> object:
        wanted = {one.id: one for one in given}
        self.placed -= {tool_id for tool_id, one in wanted.items() if self.known.get(tool_id) != one}
        self.index.put(given)
        self.known |= wanted
        return multiple(*wanted)

    @rule(gone=consumes(tools))
    def remove(self, gone: str) -> None:
        self.index.remove([gone, "nobody::knows"])
        self.known.pop(gone, None)
        self.placed.discard(gone)

    @rule(share=st.integers(1, 3))
    def set_vectors(self, share: int) -> None:
        missing = self.index.missing_vectors()[::share]
        self.index.set_vectors(missing, np.array([direction(one) for one in missing]).reshape(-1, DIMENSIONS))
        self.placed |= set(missing)

    @invariant()
    def answers_as_if_made_afresh(self) -> None:
        fresh = ToolIndex()
        fresh.put(self.known.values())
        placed = sorted(self.placed)
        fresh.set_vectors(placed, np.array([direction(one) for one in placed]).reshape(-1, DIMENSIONS))
        assert len(self.index) == len(self.known)
        assert set(self.index.missing_vectors()) == set(self.known) - self.placed
        for text in QUERIES:
            assert found(self.index, text) == found(fresh, text)


Changes.TestCase.settings = settings(max_examples=25, stateful_step_count=12, deadline=None)
TestChanges = Changes.TestCase


@settings(max_examples=30, deadline=None)
@given(st.lists(docs, max_size=25, unique_by=lambda one: one.id), st.randoms(use_true_random=False))
def test_the_order_of_insertion_does_not_matter(tools: list[ToolDocument], random: object) -> None:
    shuffled = sorted(tools, key=lambda one: hash((one.id, str(random))))
    for text in QUERIES:
        assert found(filled(ToolIndex(), tools), text) == found(filled(ToolIndex(), shuffled), text)


@settings(max_examples=30, deadline=None)
@given(st.lists(docs, min_size=1, max_size=25), st.data())
def test_filters_never_let_another_tool_through_and_hide_none_of_theirs(
    tools: list[ToolDocument], data: st.DataObject
) -> None:
    index = filled(ToolIndex(), tools)
    known = {one.id: one for one in tools}
    allowed = data.draw(st.sets(st.sampled_from(sorted(known))))
    everything = {hit.id for hit in found(index, "create")}
    query = IndexQuery(
        "create", direction("create")[None], limit=100, servers=frozenset({"s"}), kinds=frozenset({ToolKind.MCP})
    )
    got = {hit.id for hit in index.search(query)}
    assert got == {one for one in everything if known[one].server == "s" and known[one].kind is ToolKind.MCP}
    one_of_them = IndexQuery("create", direction("create")[None], limit=1, allowed=allowed.__contains__)
    assert len(index.search(one_of_them)) == min(1, len(allowed & everything))
    assert all(hit.id in allowed for hit in index.search(one_of_them))


def test_what_did_not_change_keeps_its_vector_and_what_did_loses_it() -> None:
    index = filled(ToolIndex(), [doc(1, ["weather"]), doc(2, ["email"])])
    index.put([doc(1, ["weather"]), ToolDocument("s::email_2", "s", "email_2", "Now it sends letters.")])
    assert index.missing_vectors() == ["s::email_2"]


def test_vectors_of_another_model_are_refused() -> None:
    index = filled(ToolIndex(), [doc(1, ["weather"])])
    with pytest.raises(ValueError, match="another model"):
        index.set_vectors(["s::weather_1"], np.ones((1, 3), np.float32))


def test_an_empty_index_finds_nothing() -> None:
    index = ToolIndex()
    index.remove(["a::b"])
    index.set_vectors(["a::b"], np.ones((1, 3), np.float32))
    assert found(index, "anything") == []
    assert (len(index), "a::b" in index, index.missing_vectors()) == (0, False, [])


def test_a_search_sees_the_tools_of_one_moment_while_others_change_them() -> None:
    """Two sets of tools alternate, each replaced as a whole: no search may see some of both."""
    sides = [[doc(number, ["weather", side]) for number in range(40)] for side in ("email", "flight")]
    index = ToolIndex()
    stop, mixed = Event(), list[set[str]]()

    def look() -> None:
        while not stop.is_set():
            seen = {hit.id.split("_")[1] for hit in found(index, "weather", vectors=False)}
            if len(seen) > 1:
                mixed.append(seen)

    readers = [Thread(target=look) for _ in range(3)]
    for reader in readers:
        reader.start()
    for turn in range(60):
        index.put(sides[turn % 2])
        index.set_vectors(index.missing_vectors(), np.ones((40, DIMENSIONS), np.float32))
        index.remove([one.id for one in sides[turn % 2]])
    stop.set()
    for reader in readers:
        reader.join(10)
    assert not mixed


# The ranking, the confidence of the score, and the given reasons


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
    """A vector of length 1 with these shares of each direction; the rest is in a direction of its own."""
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
    """Used once for a slightly similar query, which is no more than a mistake would be."""
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


# Vectors with one byte a number find the same as exact ones


Floats = NDArray[np.float32]
VECTOR_DIMENSIONS = 384


def directions(count: int, seed: int) -> Floats:
    """Vectors in clusters, like those of tools: some of them near each other, most not."""
    random = np.random.default_rng(seed)
    centres = random.standard_normal((max(1, count // 20), VECTOR_DIMENSIONS))
    found = centres[random.integers(len(centres), size=count)] + 0.7 * random.standard_normal(
        (count, VECTOR_DIMENSIONS)
    )
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


def filled_vectors(vectors: Floats) -> QuantisedVectors:
    return QuantisedVectors.empty(len(vectors), vectors.shape[1]).with_rows(np.arange(len(vectors)), vectors)


@pytest.mark.parametrize("count", [1, 3, 341, 342, 1000])
def test_products_are_those_of_the_exact_vectors(count: int) -> None:
    vectors, queries = directions(count, 1), directions(3, 2)
    assert np.abs(filled_vectors(vectors).cosines(queries) - queries @ vectors.T).max() < 0.005


@pytest.mark.parametrize("parts_of_query", [1, 3])
def test_the_first_ten_of_many_are_those_that_brute_force_finds(parts_of_query: int) -> None:
    count = MANY_ROWS + 2_000
    vectors = directions(count, 3)
    index = ToolIndex()
    index.put(ToolDocument(f"s::t{number:05}", "s", f"t{number:05}", "") for number in range(count))
    index.set_vectors([f"s::t{number:05}" for number in range(count)], vectors)
    for seed in range(20):
        parts = vectors[[seed * 1000 + number for number in range(parts_of_query)]]
        whole = parts.sum(axis=0, keepdims=True) / np.linalg.norm(parts.sum(axis=0))
        asked = np.concatenate([whole, parts]) if parts_of_query > 1 else whole
        found = [int(hit.id[-5:]) for hit in index.search(IndexQuery("?", asked))]
        near = asked @ vectors.T
        exact = near[0] if parts_of_query == 1 else np.maximum(near[0], CLAUSE_FACTOR * near[1:].max(axis=0))
        tenth = np.sort(exact)[-10]
        assert len(found) == 10
        # Only vectors as near as the tenth may replace it: a byte has no finer steps.
        assert min(exact[found]) >= tenth - 0.003


def test_a_vector_that_is_set_again_does_not_change_what_a_reader_holds() -> None:
    before = filled_vectors(directions(5, 4))
    seen = before.cosines(directions(1, 5))
    after = before.with_rows(np.array([2]), directions(1, 6))
    assert (before.cosines(directions(1, 5)) == seen).all()
    assert (after.cosines(directions(1, 5)) != seen).sum() == 1


def test_joining_keeps_what_lives_and_knows_which_rows_have_no_vector() -> None:
    one = filled_vectors(directions(3, 7))
    whole = join_vectors([(one, np.array([True, False, True])), (None, np.ones(2, np.bool_))])
    assert whole is not None
    assert whole.ready.tolist() == [True, True, False, False]
    assert np.allclose(whole.cosines(directions(1, 8))[0, :2], one.cosines(directions(1, 8))[0, [0, 2]])
    assert join_vectors([(None, np.ones(2, np.bool_))]) is None


# How names and sentences are split into words


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


# Past uses raise the rank of their tools


NOW = datetime(2026, 1, 1, tzinfo=UTC)
QUERY = np.array([1, 0, 0], np.float32)


def at_cosine(cosine: float) -> NDArray[np.float32]:
    return np.array([cosine, np.sqrt(1 - cosine**2), 0], np.float32)


def uses(*told: tuple[str, float], weight: float = 1.0, days: float = 0.0) -> LearnedUses:
    """Each use as (tool, how near its query was to the present one)."""
    return LearnedUses(
        tools=[tool for tool, _ in told],
        vectors=np.array([at_cosine(cosine) for _, cosine in told], np.float32).reshape(-1, 3),
        weights=np.full(len(told), weight, np.float32),
        at=np.full(len(told), (NOW - timedelta(days=days)).timestamp()),
    )


def test_no_past_says_nothing() -> None:
    assert recall_tools(uses(), QUERY, NOW) == {}


def test_the_tool_of_the_nearest_query_is_lifted_most() -> None:
    found = recall_tools(uses(("near", 0.9), ("far", 0.5), ("unrelated", 0.1)), QUERY, NOW)
    assert found["near"] > found["far"] > 0
    assert "unrelated" not in found


def test_more_uses_say_more_and_never_more_than_certain() -> None:
    once = recall_tools(uses(("a", 0.8)), QUERY, NOW)["a"]
    often = recall_tools(uses(*[("a", 0.8)] * 8), QUERY, NOW)["a"]
    assert once < often <= 1


def test_uses_fade_with_time() -> None:
    fresh, old = (recall_tools(uses(("a", 0.5), days=days), QUERY, NOW)["a"] for days in (0, HALF_LIFE_DAYS))
    assert 0.4 < old / fresh < 0.6


def test_a_use_that_counts_for_nothing_or_less_lifts_nothing() -> None:
    assert recall_tools(uses(("a", 0.9), weight=0), QUERY, NOW) == {}
    assert recall_tools(uses(("a", 0.9), weight=-1), QUERY, NOW) == {}


def test_a_tool_that_is_used_all_the_time_does_not_crowd_out_nearer_ones() -> None:
    found = recall_tools(uses(*[("busy", 0.4)] * 500, ("right", 0.95)), QUERY, NOW)
    assert found["right"] > 0.5
    many = recall_tools(uses(*[("busy", 0.4)] * NEAREST_USES), QUERY, NOW)
    assert found["busy"] <= many["busy"]


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.floats(-1, 1)), max_size=60), st.floats(0, 400))
def test_every_strength_is_between_nothing_and_certain(told: list[tuple[str, float]], days: float) -> None:
    found = recall_tools(uses(*told, weight=5.0, days=days), QUERY, NOW)
    assert all(0 < strength <= 1 for strength in found.values())
    assert set(found) <= {tool for tool, _ in told}
