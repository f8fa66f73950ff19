"""Texts from outside: cleaned, cut and listed; and what does not fit, told to a model."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError, field_validator

from frontdesk.llm.tools import ToolInput, describe_validation_errors
from frontdesk.schedules.delivery_rules import ERROR_LENGTH, settle_attempt
from frontdesk.schedules.model import DeliveryFailed
from frontdesk.text import is_storable, list_first, one_line, storable
from tests.unit.test_schedule_prompt import RUN

WHOLE, HALF, MARK = "\N{GRINNING FACE}", "\ud83d", "\N{REPLACEMENT CHARACTER}"


@given(st.text(st.characters()))
def test_every_text_becomes_one_that_can_be_stored_and_stays_so(text: str) -> None:
    clean = storable(text)
    assert is_storable(clean)
    assert "\0" not in clean.encode().decode()


def test_halves_that_belong_together_are_one_character_again() -> None:
    assert storable(f"a\0{HALF}\ude00") == f"a{WHOLE}"
    assert storable(f"a{HALF}") == f"a{MARK}"
    assert [is_storable(text) for text in (WHOLE, HALF, "\0")] == [True, False, False]


@pytest.mark.parametrize(
    ("text", "line"), [(" a \n b ", "a b"), ("abcdef", "abcdef"), ("abcdefg", "abcde…"), ("abcd efg", "abcd…")]
)
def test_a_text_is_cut_to_one_line(text: str, line: str) -> None:
    assert one_line(text, 6) == line


@pytest.mark.parametrize(("names", "said"), [([], ""), (["a", "b"], "a, b"), (["a", "b", "c"], "a, b, …")])
def test_some_names_stand_for_many(names: list[str], said: str) -> None:
    assert list_first(names, 2) == said


class Order(ToolInput):
    """For a test."""

    tea: str
    cups: int = 1

    @field_validator("tea")
    @classmethod
    def known(cls, tea: str) -> str:
        if tea != "green":
            raise ValueError("there is only green")
        return tea


def test_what_does_not_fit_is_told_by_its_place_and_without_what_was_sent() -> None:
    with pytest.raises(ValidationError) as raised:
        Order.model_validate({"tea": "secret", "cups": "many"})
    assert describe_validation_errors(raised.value) == (
        "tea: there is only green; cups: Input should be a valid integer, unable to parse string as an integer"
    )
    with pytest.raises(ValidationError) as raised:
        Order.model_validate(7)
    assert describe_validation_errors(raised.value).startswith("arguments: Input should be")


def test_what_a_run_came_to_is_made_fit_to_be_stored() -> None:
    said = settle_attempt(RUN, f"a\0{HALF}\ude00", 0, 0, 0.0)
    failed = settle_attempt(RUN, DeliveryFailed(f"{HALF}{'x' * ERROR_LENGTH}"), 0, 0, 0.0)
    assert said.answer == f"a{WHOLE}"
    assert failed.error == MARK + "x" * (ERROR_LENGTH - 1)
