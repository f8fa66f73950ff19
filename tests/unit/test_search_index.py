"""The index in memory: tools come and go, and every search sees them as they stood at one moment."""

from collections.abc import Sequence
from threading import Event, Thread

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule
from numpy.typing import NDArray

from frontdesk.tools.index import ToolIndex
from frontdesk.tools.index_segments import IndexHit, IndexQuery, ToolDocument
from frontdesk.tools.model import ToolKind

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
    """Whatever is done to an index, it answers as one made afresh of the same tools."""

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
    """Two sets of tools take turns, each put whole: no search may see some of one and some of the other."""
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
