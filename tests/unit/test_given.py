"""What callers give a selection, whatever it is: clamped, defaulted or read in any spelling, never refused."""

import json
import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontdesk.interfaces.coercion import (
    MAX_NAME_CHARACTERS,
    MAX_NAMES,
    coerce_drop_rate,
    coerce_flag,
    coerce_limit,
    coerce_min_score,
    coerce_tool_names,
)

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
