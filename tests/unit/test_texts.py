"""Tests texts from outside and from people: cleaned, cut, listed, and shown correctly on pages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError, field_validator

from frontdesk.errors import Invalid
from frontdesk.interfaces.web.pages.people import LARGEST_OFFSET, parse_offset
from frontdesk.interfaces.web.pages.schema_form import form_arguments, schema_fields
from frontdesk.interfaces.web.sessions import LONGEST_MESSAGE, pack_text, unpack_text
from frontdesk.llm.tools import ToolInput, describe_validation_errors
from frontdesk.schedules.delivery_rules import ERROR_LENGTH, settle_attempt
from frontdesk.schedules.model import DeliveryFailed
from frontdesk.text import is_storable, list_first, one_line, storable
from tests.unit.schedules.test_delivery import RUN

# Texts from outside: cleaned, cut and listed; and validation errors for a model


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


# People's input and messages to people: odd, long, and still correct


@pytest.mark.parametrize("kind", ["integer", "number"])
def test_a_number_with_hundreds_of_digits_is_a_number(kind: str) -> None:
    fields = schema_fields({"properties": {"n": {"type": kind}}}, {})
    assert form_arguments(fields, {"arg.n": "1" + "0" * 400}) == {"n": 10**400}
    for infinite in ("1e999", "NaN", "-Infinity"):
        with pytest.raises(Invalid):
            form_arguments(fields, {"arg.n": infinite})


def test_whole_numbers_may_be_written_with_a_point_and_others_are_refused() -> None:
    fields = schema_fields({"properties": {"n": {"type": "integer"}}}, {})
    assert form_arguments(fields, {"arg.n": "3.0"}) == {"n": 3}
    for other in ("3.5", "true", '"3"'):
        with pytest.raises(Invalid):
            form_arguments(fields, {"arg.n": other})


@pytest.mark.parametrize("said", ["\U0001f600" * 400, "ü" * 5000, "a\U0001f600" * 500, "x" * 5000])
def test_a_long_sentence_is_kept_as_far_as_it_fits(said: str) -> None:
    found = unpack_text(pack_text(said))
    assert found
    assert said.startswith(found)
    assert len(found.encode()) > LONGEST_MESSAGE - 4


def test_an_offset_is_read_whole() -> None:
    assert [parse_offset(said) for said in ("", "0", "5", "0000000000005", str(LARGEST_OFFSET))] == [
        0,
        0,
        5,
        5,
        LARGEST_OFFSET,
    ]
    for said in (str(LARGEST_OFFSET + 1), "9" * 5000, "-1", "\u0665", "1.0"):
        with pytest.raises(Invalid):
            parse_offset(said)
