"""What `find_tools` says in words, and the figures of `tools bench`."""

from dataclasses import astuple
from typing import Any

import pytest

from frontdesk.search.evaluation import compute_ndcg, measure_ranking
from frontdesk.tools.finder import ToolMatch, ToolSearchResults
from frontdesk.tools.model import CatalogueTool, ToolKind
from frontdesk.tools.operations import describe_found_tools
from frontdesk.tools.selection import SelectionResult, ToolChoice
from frontdesk.tools.service import FindToolsResult


def a_tool(name: str = "send", description: str = "Sends.", **more: Any) -> CatalogueTool:
    parameters = more.pop("parameters", {"type": "object"})
    return CatalogueTool(f"shop::{name}", "shop", name, description, parameters, **more)


def words(*findings: ToolMatch, selection: SelectionResult | None = None, searched: int = 5, **more: Any) -> str:
    found = ToolSearchResults(
        findings,
        searched,
        best=more.pop("best", None),
        by_meaning=more.pop("by_meaning", True),
        unread=more.pop("unread", 0),
    )
    outcomes = FindToolsResult(found, selection or SelectionResult(), servers=more.pop("servers", ()))
    return describe_found_tools(outcomes, **more)


def test_an_empty_catalogue_says_how_to_fill_it() -> None:
    assert "frontdesk tools add NAME URL" in words(searched=0, by_meaning=False)
    assert "Only words" not in words(searched=0, by_meaning=False)


def test_a_search_by_words_alone_says_so() -> None:
    assert "Only words were compared" in words(by_meaning=False)
    assert "40 new tools could be compared by words only" in words(unread=40)


def test_many_servers_are_cut_short() -> None:
    text = words(servers=[f"s{number}" for number in range(50)])
    assert "s29 and 20 more." in text
    assert "s30" not in text


def test_a_long_description_and_many_arguments_are_cut_short() -> None:
    many: dict[str, Any] = {"properties": {f"p{number}": {} for number in range(40)}, "required": ["p3"]}
    text = words(ToolMatch(a_tool(description="word " * 200, parameters=many), 80))
    assert "…" in text
    assert "Arguments: p3 (required), p0, p1" in text
    assert "p24 and 15 more" in text
    assert "p25" not in text


def test_a_tool_of_a_server_that_is_away_is_marked_and_one_of_the_host_is_not_to_be_called() -> None:
    text = words(ToolMatch(a_tool(stale=True), 80))
    assert "did not answer lately" in text
    host = CatalogueTool("host::archive", "host", "archive", "", {}, ToolKind.HOST)
    assert "call_tool" not in words(ToolMatch(host, 80))


def test_what_gave_way_what_was_left_and_what_failed_are_told_with_reasons() -> None:
    many = [ToolChoice(f"tool{number}", None, "made room") for number in range(20)]
    done = SelectionResult(
        attached=[ToolChoice("a", "shop::a", "scored 80")],
        kept=[ToolChoice("b", None, "wanted, and held already", 60), ToolChoice("c", None, "there is room")],
        detached=many,
        skipped=[ToolChoice("d", None, "no room")],
        failed=[ToolChoice("e", None, "the host refused")],
    )
    text = words(ToolMatch(a_tool(), 80), selection=done)
    assert "Attached: a (scored 80).\nHeld already: b.\nDetached: tool0 (made room)" in text
    assert "tool11 (made room) and 8 more." in text
    assert "Not attached: d (no room).\nFailed: e (the host refused)." in text
    assert "by your next turn" in text


@pytest.mark.parametrize("schema", [{}, {"properties": 5}, {"properties": {"a": {}}, "required": "a"}])
def test_a_strange_schema_has_no_needed_arguments(schema: dict[str, Any]) -> None:
    assert a_tool(parameters=schema).parameter_names[0] == []


def test_the_figures_are_the_usual_ones() -> None:
    assert compute_ndcg(["a", "b"], {"a", "b"}) == 1
    assert compute_ndcg(["x", "a"], {"a"}) == pytest.approx(0.6309, abs=1e-4)
    assert compute_ndcg([*"abcdefghij", "z"], {"z"}) == 0
    found = measure_ranking([(["a", "x"], {"a"}), (["x", "y", "b"], {"b", "c"}), ([], {"d"})])
    assert astuple(found) == pytest.approx(
        ((1 + 0.5 / (1 + 0.6309)) / 3, 1 / 3, 1 / 2, 1 / 2, (1 + 1 / 3) / 3), abs=1e-4
    )
