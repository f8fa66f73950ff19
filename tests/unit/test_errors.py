"""What an error says, and to whom."""

from collections.abc import Mapping
from typing import Any

import pytest

from frontdesk.errors import Invalid, NotFound, Unavailable
from frontdesk.loop.tools import Given, Tool, ToolOutcome, attempt, typed_tool

pytestmark = pytest.mark.anyio
PRIVATE = "The database postgresql://ada:***@db.internal/desk does not answer"
PUBLIC = "The database does not answer; try again shortly"


def away() -> Unavailable:
    return Unavailable(PRIVATE, public=PUBLIC)


def test_a_hint_is_for_people_and_the_words_of_a_contract_stay_as_they_are() -> None:
    error = Invalid("Invalid cron expression: 61 * * * *", "minutes end at 59")
    assert str(error) == "Invalid cron expression: 61 * * * *"
    assert error.public == error.in_full == "Invalid cron expression: 61 * * * * (minutes end at 59)"


def test_only_whoever_runs_the_house_reads_where_its_parts_are() -> None:
    assert (away().public, away().in_full) == (PUBLIC, PRIVATE)
    assert Unavailable("Letta does not answer").public == NotFound("Letta does not answer").public


def test_what_is_redacted_is_said_to_nobody() -> None:
    error = Unavailable("s3cret at home", public="s3cret")
    error.redact(lambda text: text.replace("s3cret", "***"))
    assert (str(error), error.in_full, error.public) == ("*** at home", "*** at home", "***")


async def test_a_model_is_told_what_a_stranger_may_read() -> None:
    async def typed(_given: Given) -> ToolOutcome:
        raise away()

    async def untyped(_given: Mapping[str, Any]) -> ToolOutcome:
        raise away()

    assert await attempt(typed_tool("ours", "", Given, typed), {}) == ToolOutcome(PUBLIC, ok=False)
    assert await attempt(Tool("any", "", {}, untyped), {}) == ToolOutcome(f"Error: {PUBLIC}", ok=False)
