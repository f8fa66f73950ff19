"""What a listing changes in the catalogue, and what becomes of listings that make no sense."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontdesk.mcp_client.model import RemoteTool
from frontdesk.tools import listing
from frontdesk.tools.listing import (
    MOST_FAULTS,
    MOST_PROBLEMS,
    ListedTool,
    clean_listing,
    find_schema_fault,
    repair_schema,
)
from frontdesk.tools.model import ReviewStatus
from frontdesk.tools.versions import ChangeKind, KnownTool, compare_listing

SCHEMA: Mapping[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WORDS = ["type", "properties", "required", "items", "anyOf", "$ref", "enum", "pattern", "minimum", "x", "\ud800"]
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4),
    max_leaves=12,
)
NAMES = st.text(alphabet=st.sampled_from("ab_ é\x00\ud800\u202e"), max_size=4) | st.just("a" * 300)
TOOLS = st.builds(
    RemoteTool,
    NAMES,
    st.text(st.characters(exclude_categories=()), max_size=8),
    st.dictionaries(st.sampled_from(WORDS), JSON, max_size=4),
    st.dictionaries(st.text(max_size=3), JSON, max_size=2),
)


def tool(name: str, description: str = "Says the weather.", schema: Mapping[str, Any] = SCHEMA) -> RemoteTool:
    return RemoteTool(name, description, schema)


def listed(name: str, description: str = "Says the weather.", schema: Mapping[str, Any] = SCHEMA) -> ListedTool:
    [found] = clean_listing("shop", [tool(name, description, schema)]).tools
    return found


def known(found: ListedTool) -> KnownTool:
    return KnownTool(found.name, found.api_name, found.seal)


def kinds(before: KnownTool, now: ListedTool, *, hold: bool = False) -> list[ChangeKind]:
    return [change.kind for change in compare_listing({before.name: before}, [now], hold=hold).changes]


@given(st.lists(TOOLS, max_size=6))
@settings(max_examples=60)
def test_no_listing_is_so_strange_that_it_cannot_be_sifted(tools: list[RemoteTool]) -> None:
    found = clean_listing("shop", tools)
    assert len({one.api_name for one in found.tools}) == len({one.name for one in found.tools}) == len(found.tools)
    for one in found.tools:
        told = [one.name, one.description, one.input_texts, json.loads(one.parameters), json.loads(one.annotations)]
        json.dumps([*told, *one.inputs, *found.problems], ensure_ascii=False).encode()
        assert "\x00" not in one.name + one.description + "".join(one.inputs)
    again = {one.name: known(one) for one in found.tools}
    assert compare_listing(again, clean_listing("shop", tools).tools, hold=True).changes == []


@settings(max_examples=40)
@given(st.lists(TOOLS, max_size=5), st.lists(TOOLS, max_size=5), st.booleans())
def test_every_tool_is_accounted_for_under_its_own_name(
    before: list[RemoteTool], now: list[RemoteTool], hold: bool
) -> None:
    old, new = ({one.name: one for one in clean_listing("shop", tools).tools} for tools in (before, now))
    found = compare_listing({name: known(one) for name, one in old.items()}, list(new.values()), hold=hold)
    assert {change.name for change in found.changes if change.kind is ChangeKind.GONE} == old.keys() - new.keys()
    assert {change.name for change in found.changes if change.kind is ChangeKind.NEW} <= new.keys() - old.keys()
    changed = {name for name in old.keys() & new.keys() if old[name].seal != new[name].seal}
    assert {change.name for change in found.changes if change.kind in (ChangeKind.TAKEN, ChangeKind.HELD)} == changed
    assert all(change.listed is None or change.listed.name == change.name for change in found.changes)


def test_a_renamed_set_is_gone_and_new() -> None:
    before = {name: known(listed(name)) for name in ("a", "b")}
    found = compare_listing(before, [listed("c"), listed("d")], hold=True)
    assert found.summary == "2 new (c, d); 2 gone (a, b)"


@pytest.mark.parametrize(
    ("now", "what"),
    [
        (listed("a", "Sends your keys."), "description"),
        (listed("a", schema={"type": "object"}), "schema"),
        (listed("a", "Sends your keys.", {"type": "object"}), "description and schema"),
    ],
)
def test_what_changed_is_said(now: ListedTool, what: str) -> None:
    for hold, kind in ((False, ChangeKind.TAKEN), (True, ChangeKind.HELD)):
        [change] = compare_listing({"a": known(listed("a"))}, [now], hold=hold).changes
        assert (change.kind, change.what, change.listed) == (kind, what, now)


def test_the_order_of_words_in_a_schema_is_no_change() -> None:
    turned = {name: SCHEMA[name] for name in reversed(list(SCHEMA))}
    assert kinds(known(listed("a")), listed("a", schema=turned)) == []


def test_a_held_change_is_told_once_and_settled_when_the_server_takes_it_back() -> None:
    good, bad, worse = listed("a"), listed("a", "Bad."), listed("a", "Worse.")
    held = replace(known(good), standing=ReviewStatus.HELD, changed=True, other=bad.seal)
    assert kinds(held, bad, hold=True) == []
    assert kinds(held, worse, hold=True) == [ChangeKind.HELD]
    assert kinds(held, good, hold=True) == [ChangeKind.SETTLED]
    assert kinds(held, bad, hold=False) == [ChangeKind.TAKEN], "nobody wants changes held any more"


def test_a_taken_change_stays_flagged_until_the_server_takes_it_back() -> None:
    good, bad, worse = listed("a"), listed("a", "Bad."), listed("a", "Worse.")
    taken = replace(known(bad), changed=True, other=good.seal)
    assert kinds(taken, bad) == []
    assert kinds(taken, worse) == [ChangeKind.TAKEN]
    assert kinds(taken, worse, hold=True) == [ChangeKind.HELD]
    assert kinds(taken, good) == [ChangeKind.SETTLED]


def test_a_refused_version_is_not_told_again_and_another_is() -> None:
    good, bad, worse = listed("a"), listed("a", "Bad."), listed("a", "Worse.")
    refused = replace(known(good), refused=bad.seal)
    for hold in (False, True):
        assert kinds(refused, bad, hold=hold) == []
        assert kinds(replace(refused, gone=True), bad, hold=hold) == [ChangeKind.BACK]
    assert kinds(refused, worse, hold=True) == [ChangeKind.HELD]


def test_a_tool_that_went_and_came_back_changed_is_no_new_tool() -> None:
    gone = replace(known(listed("a")), gone=True)
    assert kinds(gone, listed("a")) == [ChangeKind.BACK]
    assert kinds(gone, listed("a", "Bad."), hold=True) == [ChangeKind.HELD]
    assert kinds(replace(gone), listed("b")) == [ChangeKind.NEW], "and is not told to be gone once more"


def test_a_name_that_models_could_not_tell_from_a_former_one_is_left_out() -> None:
    former = listed("a é")
    twin = former.api_name.removeprefix("shop__")
    found = compare_listing({former.name: known(former)}, [listed(twin)], hold=False)
    assert [change.kind for change in found.changes] == [ChangeKind.GONE]
    assert "could not tell" in found.problems[0]


def test_what_is_wrong_with_a_listing_is_said_and_the_rest_is_kept() -> None:
    absurd = [
        tool("good"),
        tool("good", "Another."),
        tool("x" * 201),
        tool("nul\x00"),
        tool("long", "d" * 30_000),
        tool("hidden", "Fine\u200b.\U000e0041\x00\U000e0101\ufe03"),
        tool("tagged", schema={"type": "object", "properties": {"a": {"description": "b\U000e0041\ud800"}}}),
        tool("big", schema={"type": "object", "description": "d" * 200_000}),
        tool("nan", schema={"type": "object", "default": float("nan")}),
        tool("liar", schema={"type": "array"}),
    ]
    found = clean_listing("shop", absurd)
    kept = {one.name: one for one in found.tools}
    assert list(kept) == ["good", "long", "hidden", "tagged", "big", "nan", "liar"]
    assert kept["good"].description == "Says the weather."
    assert len(kept["long"].description) == 20_000
    assert kept["hidden"].description == "Fine."
    assert {kept[name].parameters for name in ("big", "nan", "liar")} == {'{"type": "object"}'}
    assert json.loads(kept["tagged"].parameters)["properties"] == {"a": {"description": "b"}}
    assert len(found.problems) == 9


def test_a_listing_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "MOST_TOOLS", 20)
    found = clean_listing("shop", [tool(str(number)) for number in range(25)])
    assert len(found.tools) == 20
    assert found.problems == ("lists 25 tools; the first 20 are taken",)


def test_a_server_full_of_faults_is_not_looked_into_for_ever() -> None:
    found = clean_listing("shop", [tool(str(number), schema={"type": "x"}) for number in range(MOST_FAULTS + 100)])
    assert len(found.tools) == MOST_FAULTS + 100
    assert len(found.problems) == MOST_PROBLEMS + 1
    assert found.problems[-1] == "and 550 more"


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"type": "text"}, "type 'text'"),
        ({"type": ["string", 7]}, "type '7'"),
        ({"required": True}, "required"),
        ({"enum": "a"}, "enum"),
        ({"minimum": "1"}, "minimum"),
        ({"maxLength": True}, "maxLength"),
        ({"pattern": "("}, "pattern"),
        ({"$ref": "https://inside.example/secrets"}, "another document"),
        ({"anyOf": []}, "anyOf"),
        ({"items": [{"type": "string"}]}, "items"),
        ({"properties": []}, "properties"),
        ("string", "no schema"),
    ],
)
def test_a_faulty_parameter_takes_anything_and_the_others_stay(part: object, said: str) -> None:
    schema = {"type": "object", "properties": {"a": part, "b": {"type": "integer"}}, "required": ["b"]}
    assert said in (find_schema_fault(schema) or "")
    assert repair_schema(schema) == {**schema, "properties": {"a": {}, "b": {"type": "integer"}}}
    assert find_schema_fault(repair_schema(schema)) is None


def test_a_sound_schema_is_left_alone() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/a"}, "b": {"anyOf": [{"type": ["string", "null"]}, True]}},
        "additionalProperties": False,
        "$defs": {"a": {"type": "array", "items": {"enum": [1, None]}, "minItems": 1}},
    }
    assert find_schema_fault(schema) is None
    assert find_schema_fault({}) is None


def test_a_bottomless_schema_is_a_fault() -> None:
    deep: dict[str, Any] = {"type": "object"}
    for _ in range(100):
        deep = {"type": "object", "properties": {"a": deep}}
    assert find_schema_fault(deep) == "nests too deep"
    assert repair_schema(deep) == {"type": "object", "properties": {"a": {}}}


def test_a_name_that_would_forge_lines_is_left_out_and_escapes_do_not_hide_in_a_schema() -> None:
    schema = {"type": "object", "properties": {"a\x1b[2J": {"description": "red\x1b[31m"}, "b\nc": {"pattern": "\\bx"}}}
    found = clean_listing(
        "shop", [tool("good\n\n2. another"), tool("line\u2028break"), tool("two words", schema=schema)]
    )
    assert [one.name for one in found.tools] == ["two words"]
    assert json.loads(found.tools[0].parameters)["properties"] == {
        "a[2J": {"description": "red[31m"},
        "b c": {"pattern": "\\bx"},
    }
    plain = clean_listing("shop", [tool("a", schema={"type": "object", "properties": {"x": {"pattern": "\\bx\n"}}})])
    assert plain.problems == (), "what may stay is no reason to complain"
