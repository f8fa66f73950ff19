"""Arguments against a tool's schema: what fits passes, what does not is told so that an agent can mend it."""

import marshal
import string
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.errors import Invalid
from frontdesk.tools import arguments
from frontdesk.tools.arguments import ArgumentCheck
from frontdesk.tools.json_schema import MAX_QUICK_SCHEMA, UnusableSchema, compile_quick_check, find_violations

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
