"""What an error says, and to whom."""

from collections.abc import Mapping
from typing import Any

import pytest

from frontdesk.errors import Invalid, NotFound, Unavailable
from frontdesk.llm.tools import Tool, ToolInput, ToolOutcome, run_tool, typed_tool

pytestmark = pytest.mark.anyio
PRIVATE = "The database postgresql://ada:***@db.internal/desk does not answer"
PUBLIC = "The database does not answer; try again shortly"


def away() -> Unavailable:
    return Unavailable(PRIVATE, public=PUBLIC)


def test_a_hint_is_for_people_and_the_words_of_a_contract_stay_as_they_are() -> None:
    error = Invalid("Invalid cron expression: 61 * * * *", "minutes end at 59")
    assert str(error) == "Invalid cron expression: 61 * * * *"
    assert error.public_message == error.full_message == "Invalid cron expression: 61 * * * * (minutes end at 59)"


def test_only_the_operator_reads_where_the_parts_are() -> None:
    assert (away().public_message, away().full_message) == (PUBLIC, PRIVATE)
    assert Unavailable("Letta does not answer").public_message == NotFound("Letta does not answer").public_message


def test_what_is_redacted_is_said_to_nobody() -> None:
    error = Unavailable("s3cret at home", public="s3cret")
    error.redact(lambda text: text.replace("s3cret", "***"))
    assert (str(error), error.full_message, error.public_message) == ("*** at home", "*** at home", "***")


async def test_a_model_is_told_what_a_stranger_may_read() -> None:
    async def typed(_given: ToolInput) -> ToolOutcome:
        raise away()

    async def untyped(_given: Mapping[str, Any]) -> ToolOutcome:
        raise away()

    assert await run_tool(typed_tool("ours", "", ToolInput, typed), {}) == ToolOutcome(PUBLIC, ok=False)
    assert await run_tool(Tool("any", "", {}, untyped), {}) == ToolOutcome(f"Error: {PUBLIC}", ok=False)
