"""Past uses lift the tools they were of."""

from datetime import UTC, datetime, timedelta

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from frontdesk.tools.learning import HALF_LIFE_DAYS, NEAREST_USES, recall_tools
from frontdesk.tools.learning_store import LearnedUses

NOW = datetime(2026, 1, 1, tzinfo=UTC)
QUERY = np.array([1, 0, 0], np.float32)


def at_cosine(cosine: float) -> NDArray[np.float32]:
    return np.array([cosine, np.sqrt(1 - cosine**2), 0], np.float32)


def uses(*told: tuple[str, float], weight: float = 1.0, days: float = 0.0) -> LearnedUses:
    """Each use as (tool, how near its query was to the one now asked)."""
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
