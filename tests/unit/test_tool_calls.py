"""Tests arguments of tool calls against schemas and limits, and when a failing server is no longer called."""

import json
import marshal
import math
import string
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from frontdesk.coercion import (
    MAX_NAME_CHARACTERS,
    MAX_NAMES,
    coerce_drop_rate,
    coerce_flag,
    coerce_limit,
    coerce_min_score,
    coerce_tool_names,
)
from frontdesk.errors import Invalid
from frontdesk.llm.tools import ToolInput, ToolOutcome, inline_definitions, typed_tool
from frontdesk.tools import arguments
from frontdesk.tools.arguments import ArgumentCheck
from frontdesk.tools.calls import (
    CLOSED_BREAKER,
    FAILURES_TO_OPEN,
    FIRST_BREAKER_PAUSE,
    LONGEST_BREAKER_PAUSE,
    CircuitBreaker,
)
from frontdesk.tools.json_schema import MAX_QUICK_SCHEMA, UnusableSchema, compile_quick_check, find_violations

# Arguments against a tool's schema: valid ones pass, and the messages for others tell an agent how to correct them


FORECAST: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 1},
        "days": {"type": "integer", "minimum": 1, "maximum": 10},
        "units": {"enum": ["metric", "imperial"]},
        "places": {"type": "array", "items": {"type": "object", "properties": {"lat": {"type": "number"}}}},
        "when": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    },
    "required": ["city"],
    "additionalProperties": False,
}


async def told(schema: Mapping[str, Any], given_arguments: Mapping[str, Any]) -> str:
    with pytest.raises(Invalid) as refused:
        await ArgumentCheck().check("weather::forecast", schema, given_arguments)
    return str(refused.value)


async def passes(schema: Mapping[str, Any], given_arguments: Mapping[str, Any]) -> bool:
    try:
        await ArgumentCheck().check("weather::forecast", schema, given_arguments)
    except Invalid:
        return False
    return True


async def test_each_problem_is_told_with_its_place_what_is_wanted_and_what_was_meant() -> None:
    text = await told(
        FORECAST, {"City": "Rome", "days": "three", "units": "kelvin", "places": [{"lat": 1}, {"lat": "x"}], "when": 3}
    )
    assert text.splitlines() == [
        "The arguments do not fit weather::forecast; nothing was called. Correct this and call again:",
        '- days: expected integer, got "three"',
        '- units: must be one of "metric", "imperial", got "kelvin"',
        '- places[1].lat: expected number, got "x"',
        "- when: expected string or null, got 3",
        "- city: is missing (string); you gave 'City', did you mean 'city'?",
        "- City: there is no such argument; did you mean 'city'?",
        (
            'Its arguments: city (string, required), days (integer), units (one of "metric", "imperial"), '
            "places (array), when (string or null)"
        ),
    ]


@pytest.mark.parametrize(
    ("schema", "given_arguments", "line"),
    [
        ({"properties": {"n": {"minimum": 3}}}, {"n": 2}, "n: must be at least 3, got 2"),
        (
            {"properties": {"s": {"maxLength": 3}}},
            {"s": "x" * 99},
            "s: must have at most 3 characters, got a text of 99",
        ),
        ({"properties": {"c": {"const": True}}}, {"c": 1}, "c: must be true, got 1"),
        ({"properties": {"o": {"type": "object"}}}, {"o": []}, "o: expected object, got an array"),
        ({"properties": {"o": {"type": ["string", "null"]}}}, {"o": {}}, "o: expected string or null, got an object"),
        ({"required": ["user_id"]}, {"userId": 1}, "user_id: is missing; you gave 'userId', did you mean 'user_id'?"),
        ({"required": ["user_id"]}, {"colour": 1}, "user_id: is missing\n"),
        ({"properties": {"a": {"not": {"type": "string"}}}}, {"a": "b"}, "a: "),
        ({"minProperties": 1}, {}, "the arguments: "),
        (
            {"properties": {"f": {"oneOf": [{"properties": {"k": {"type": "integer"}}}, {"type": "null"}]}}},
            {"f": {"k": "x"}},
            'f.k: expected integer, got "x"',
        ),
        (
            {"$defs": {"p": {"required": ["x"]}}, "properties": {"p": {"$ref": "#/$defs/p"}}},
            {"p": {}},
            "p.x: is missing",
        ),
        (
            {"$schema": "http://json-schema.org/draft-04/schema#", "type": "object", "required": ["a"]},
            {},
            "a: is missing",
        ),
    ],
)
async def test_problems_read_well(schema: Mapping[str, Any], given_arguments: Mapping[str, Any], line: str) -> None:
    assert f"- {line}" in await told(schema, given_arguments)


async def test_many_problems_and_many_properties_are_cut() -> None:
    names = [f"{letter}{digit}" for letter in string.ascii_lowercase for digit in range(3)]
    schema = {"properties": {name: {"type": "integer"} for name in names}}
    lines = (await told(schema, dict.fromkeys(names, "no"))).splitlines()
    assert lines[11] == "- and 40 more"
    assert lines[-1].endswith(", …")
    assert len("\n".join(lines)) < 3000


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nothing"},
        {"properties": []},
        {"properties": {"a": {"enum": "abc"}}},
        {"properties": {"a": {"required": True}}},
        {"$ref": "https://example.com/schema.json"},
        {"$ref": "#/nowhere"},
        {"$ref": "#"},
        {"properties": {"a": {"$ref": "#/properties/a"}}},
        {"properties": {"a": {"multipleOf": 0}}},
        {"required": 7},
        {"$schema": "https://example.com/own", "type": 7},
    ],
)
async def test_a_schema_that_makes_no_sense_lets_everything_through(schema: Mapping[str, Any]) -> None:
    assert await passes(schema, {"a": "x" * 10})


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"pattern": "(x+x+)+y"}}},
        {"patternProperties": {"(x+x+)+y": {"type": "integer"}}, "additionalProperties": False},
        {"patternProperties": {"(x+x+)+y": {}}, "unevaluatedProperties": False},
        {"propertyNames": {"pattern": "(x+x+)+y"}, "not": {"required": ["b"]}},
    ],
)
async def test_patterns_of_others_are_not_run(schema: Mapping[str, Any]) -> None:
    assert await passes(schema, {"a": "x" * 5000, "x" * 5000: 1})


async def test_a_schema_without_end_is_given_up() -> None:
    doubling = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(60)}
    schema = {"$defs": {**doubling, "d60": {"type": "object"}}, "$ref": "#/$defs/d0"}
    with pytest.raises(UnusableSchema):
        find_violations(schema, {}, 1)
    assert await passes(schema, {})


async def test_vast_arguments_are_left_to_the_server() -> None:
    schema = {"properties": {"a": {"type": "array", "items": {"type": "string"}, "uniqueItems": True}}}
    assert not await passes(schema, {"a": [1] * 100})
    assert await passes(schema, {"a": [1] * (arguments.MAX_VALUES + 1)})
    assert await passes({"properties": {"a": {"uniqueItems": True}}}, {"a": [{}] * 1000})


async def test_a_schema_that_changed_is_another_schema() -> None:
    check = ArgumentCheck()
    await check.check("t", {"properties": {"a": {"const": 1}}}, {"a": 1})
    with pytest.raises(Invalid):
        await check.check("t", {"properties": {"a": {"const": True}}}, {"a": 1})


SIMPLE = st.sampled_from(
    [
        {"type": "string"},
        {"type": "integer"},
        {"type": ["number", "null"]},
        {"type": "boolean"},
        {"enum": ["a", "1", ""]},
        {"type": "string", "minLength": 1, "maxLength": 2},
        {"minimum": 1, "maximum": 2},
        {"type": "array", "items": {"type": "integer"}, "minItems": 1},
        {"anyOf": [{"type": "string"}, {"type": "object", "required": ["b"]}]},
        {"type": "object", "properties": {"b": {"type": "integer"}}, "additionalProperties": {"type": "string"}},
        {"description": "anything", "default": 3},
    ]
)
NAMES = st.sampled_from("abc")
VALUES = st.recursive(
    st.none() | st.booleans() | st.sampled_from([0, 1, 2, 1.0, 1.5, "", "a", "1", "abc"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=4,
)


@given(
    st.dictionaries(NAMES, SIMPLE, max_size=3),
    st.lists(NAMES, max_size=2, unique=True),
    st.sampled_from([True, False, {"type": "integer"}]),
    st.dictionaries(NAMES, VALUES, max_size=3),
)
def test_the_quick_way_says_what_the_validator_says(
    properties: dict[str, Any], required: list[str], more: object, value: dict[str, Any]
) -> None:
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": more}
    fits = compile_quick_check(schema, marshal.dumps(schema, 2))
    assert fits is not None
    assert fits(value) == (find_violations(schema, value, 1) == [])


TOO_MUCH_FOR_THE_QUICK_WAY: Sequence[Mapping[str, Any]] = [
    {"$defs": {"a": {}}, "properties": {"a": {"$ref": "#/$defs/a"}}},
    {"$dynamicRef": "#"},
    {"$schema": "https://json-schema.org/draft/2019-09/schema", "$recursiveRef": "#"},
    {"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False},
    {"$schema": "https://example.com/own"},
    {"$id": "http://["},
    {"type": "nothing"},
    {"minimum": "3"},
    {"properties": {"a": {"pattern": "(?=a)"}}},
    {"properties": {"a": {"pattern": "(a{1000}){1000}"}}},
    {"description": "x" * MAX_QUICK_SCHEMA},
]


@pytest.mark.parametrize("schema", TOO_MUCH_FOR_THE_QUICK_WAY)
def test_a_schema_that_could_take_long_is_not_checked_the_quick_way(schema: Mapping[str, Any]) -> None:
    assert compile_quick_check(schema, marshal.dumps(dict(schema), 2)) is None


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"properties": {"a": {"pattern": "^(a+)+$"}}}, {"a": "a" * 50_000 + "!"}),
        ({"properties": {"a": {"items": {"anyOf": [{"const": n} for n in range(1000)]}}}}, {"a": [-1] * 9000}),
        ({"properties": {"a": {"uniqueItems": True}}}, {"a": [{"n": n // 2} for n in range(9000)]}),
        ({"required": ["b"]}, {"a": "\ud800"}),
        ({"properties": {"a": {"const": 1}}}, {"a": "\ud800"}),
        ({"required": ["b"]}, {1: 2}),
    ],
)
def test_the_quick_way_comes_to_an_end_and_raises_nothing(schema: dict[str, Any], value: dict[str, Any]) -> None:
    fits = compile_quick_check(schema, marshal.dumps(schema, 2))
    assert fits is not None
    assert fits(value) is False


async def test_arguments_nested_too_deep_for_the_quick_way_are_checked_by_the_other() -> None:
    deep: dict[str, Any] = {}
    for _ in range(900):
        deep = {"a": deep}
    schema = {"const": deep}
    assert await passes(schema, deep)


# Any parameters of a selection: clamped, defaulted or read in any spelling, never refused


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
NAME = st.text(st.characters(codec="ascii", exclude_characters=",\"'[]"), min_size=1, max_size=30).filter(
    lambda name: name.strip() == name
)


@given(ANYTHING)
@settings(deadline=None)
def test_whatever_is_given_comes_out_within_bounds(junk: Any) -> None:
    assert 1 <= coerce_limit(junk) <= 25
    assert 0 <= coerce_min_score(junk) <= 100
    assert 0 <= coerce_drop_rate(junk, 0.6) <= 1
    assert coerce_flag(junk) in (True, False)
    names = coerce_tool_names(junk)
    assert len(set(names)) == len(names) <= MAX_NAMES
    assert all(0 < len(name) <= MAX_NAME_CHARACTERS and name == name.strip() for name in names)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (5, 5),
        ("12", 12),
        (" 7 ", 7),
        (3.7, 3),
        ("3.7", 3),
        (0, 1),
        (-4, 1),
        (1000, 25),
        (10**400, 25),
        (-(10**400), 1),
        ("9" * 5000, 25),
        (math.inf, 25),
        (math.nan, 10),
        ("NaN", 10),
        ("abc", 10),
        ("", 10),
        (None, 10),
        (True, 10),
        (False, 10),
        ([5], 10),
        ({"limit": 5}, 10),
        (Decimal(5), 10),
    ],
)
def test_a_limit_is_clamped_and_junk_means_ten(said: object, meant: int) -> None:
    assert coerce_limit(said) == meant


@pytest.mark.parametrize(
    ("said", "meant"), [(0, 0), (73.5, 73.5), ("80", 80), (-1, 0), (101, 100), ("high", 50), (None, 50), (True, 50)]
)
def test_a_least_score_is_clamped_and_junk_means_fifty(said: object, meant: float) -> None:
    assert coerce_min_score(said) == meant


@pytest.mark.parametrize(
    ("said", "meant"), [(0.25, 0.25), ("0.5", 0.5), (60, 1), (-0.1, 0), ("lots", 0.6), (None, 0.6)]
)
def test_a_drop_rate_is_clamped_and_junk_means_the_default(said: object, meant: float) -> None:
    assert coerce_drop_rate(said, 0.6) == meant


@pytest.mark.parametrize(
    "said", [True, "true", "TRUE", "True", " true ", "1", 1, 1.0, 2, 10**400, "yes", "Y", "on", "t", '"true"']
)
def test_yes_is_understood_in_every_spelling(said: object) -> None:
    assert coerce_flag(said) is True


@pytest.mark.parametrize("said", [False, "false", "False", "FALSE", "0", 0, 0.0, "no", "n", "off", "f", "'false'"])
def test_no_is_understood_in_every_spelling(said: object) -> None:
    assert coerce_flag(said, default=True) is False


@pytest.mark.parametrize("said", [None, "", "perhaps", math.nan, [], {}, [True]])
def test_what_is_neither_yes_nor_no_is_the_default(said: object) -> None:
    assert coerce_flag(said) is False
    assert coerce_flag(said, default=True) is True


@given(st.lists(NAME, max_size=20))
@settings(deadline=None)
def test_a_list_of_tools_means_the_same_however_it_is_written(names: list[str]) -> None:
    once = tuple(dict.fromkeys(names))
    assert coerce_tool_names(names) == once
    assert coerce_tool_names(tuple(names)) == once
    assert coerce_tool_names(json.dumps(names)) == once
    assert coerce_tool_names(" , ".join(names)) == once


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("[a, b]", ("a", "b")),
        ("['a', 'shop::b']", ("a", "shop::b")),
        ("a,,b,", ("a", "b")),
        ("  ", ()),
        ('["a", 5, null, ["b"], " a ", ""]', ("a",)),
        ("[" * 20_000, ()),
        ({"a": "b"}, ()),
        (7, ()),
        ("x" * 400, ()),
    ],
)
def test_a_list_of_tools_is_read_as_well_as_can_be(said: object, meant: tuple[str, ...]) -> None:
    assert coerce_tool_names(said) == meant


def test_a_list_of_tools_has_an_end() -> None:
    assert len(coerce_tool_names([f"tool-{number}" for number in range(1000)])) == MAX_NAMES
    assert len(coerce_tool_names(",".join(f"tool-{number}" for number in range(1000)))) == MAX_NAMES


# JSON schemas with all references resolved: a model never has to follow one


class Colour(StrEnum):
    """How it looks."""

    RED = "red"
    BLUE = "blue"


class Wheel(BaseModel):
    title: str
    colour: Colour = Field(Colour.RED, description="Of the wheel.")


class Cart(ToolInput):
    wheels: list[Wheel]
    spare: Wheel | None = None
    colours: dict[str, Colour] = Field(default_factory=dict[str, Colour])


class Branch(BaseModel):
    name: str
    branches: list["Branch"] = Field(default_factory=list["Branch"])


def test_a_definition_stands_where_it_is_referred_to_with_what_was_said_beside_it() -> None:
    told = inline_definitions(Cart.model_json_schema())
    colour = {"default": "red", "description": "Of the wheel.", "enum": ["red", "blue"], "type": "string"}
    wheel = {"properties": {"title": {"type": "string"}, "colour": colour}, "required": ["title"], "type": "object"}
    assert told["properties"]["wheels"] == {"items": wheel, "type": "array"}
    assert told["properties"]["spare"] == {"anyOf": [wheel, {"type": "null"}], "default": None}
    assert told["properties"]["colours"]["additionalProperties"]["enum"] == ["red", "blue"]
    assert "$" not in json.dumps(told)


def test_what_holds_itself_takes_anything_inside() -> None:
    branches = inline_definitions(Branch.model_json_schema())["properties"]["branches"]
    assert branches == {"type": "array", "items": {}}


def test_data_in_a_schema_is_left_as_it_is() -> None:
    data: dict[str, Any] = {"title": "kept", "$ref": "#/$defs/none"}
    schema = {"title": "dropped", "default": data, "examples": [data], "const": data, "enum": [data]}
    assert inline_definitions(schema) == {key: schema[key] for key in ("default", "examples", "const", "enum")}


def test_a_tool_of_ours_shows_its_arguments_whole() -> None:
    async def run(_given: Cart) -> ToolOutcome:
        return ToolOutcome("")

    shown = typed_tool("cart", "Makes a cart.", Cart, run).parameters
    assert "$" not in json.dumps(shown)
    assert set(shown["properties"]) == {"wheels", "spare", "colours"}


# When a failing server is no longer called, and when it is tried again


def failing(times: int, now: float = 0.0) -> CircuitBreaker:
    breaker = CLOSED_BREAKER
    for _ in range(times):
        breaker = breaker.admitted().failed(now, was_try=False)
    return breaker


def test_it_opens_after_failures_in_a_row_and_not_before() -> None:
    assert failing(FAILURES_TO_OPEN - 1) == CircuitBreaker(FAILURES_TO_OPEN - 1)
    opened = failing(FAILURES_TO_OPEN)
    assert (opened.retry_at, opened.wait(0), opened.wait(4)) == (
        FIRST_BREAKER_PAUSE,
        FIRST_BREAKER_PAUSE,
        FIRST_BREAKER_PAUSE - 4,
    )


def test_one_answer_between_failures_begins_the_count_anew() -> None:
    breaker = failing(FAILURES_TO_OPEN - 1).succeeded()
    assert breaker is CLOSED_BREAKER
    assert breaker.failed(0, was_try=False) == CircuitBreaker(1)


def test_after_the_pause_one_call_tries_and_the_others_wait() -> None:
    opened = failing(FAILURES_TO_OPEN)
    assert (opened.retry_at, opened.wait(FIRST_BREAKER_PAUSE)) == (FIRST_BREAKER_PAUSE, 0)
    trying = opened.admitted()
    assert (trying.trying, trying.wait(FIRST_BREAKER_PAUSE) > 0) == (True, True)
    assert trying.succeeded() is CLOSED_BREAKER
    again = trying.failed(FIRST_BREAKER_PAUSE, was_try=True)
    assert (again.trying, again.wait(FIRST_BREAKER_PAUSE)) == (False, 2 * FIRST_BREAKER_PAUSE)


def test_a_try_that_its_caller_gave_up_leaves_the_next_one_to_others() -> None:
    trying = failing(FAILURES_TO_OPEN).admitted()
    assert trying.abandoned(was_try=False).wait(FIRST_BREAKER_PAUSE) > 0
    assert trying.abandoned(was_try=True).wait(FIRST_BREAKER_PAUSE) == 0


def test_calls_from_before_it_opened_do_not_lengthen_the_pause() -> None:
    opened = failing(FAILURES_TO_OPEN)
    late = opened.failed(5, was_try=False)
    assert late == replace(opened, failures=FAILURES_TO_OPEN + 1)


@given(st.integers(1, 30))
def test_the_pause_doubles_up_to_a_limit(tries: int) -> None:
    breaker, now = failing(FAILURES_TO_OPEN), 0.0
    for _ in range(tries):
        now += breaker.wait(now)
        assert breaker.wait(now) == 0
        breaker = breaker.admitted().failed(now, was_try=True)
    assert breaker.wait(now) == min(LONGEST_BREAKER_PAUSE, FIRST_BREAKER_PAUSE * 2**tries)
