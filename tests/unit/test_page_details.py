"""What people type and what they are told: odd, long, and still right."""

import pytest

from frontdesk.errors import Invalid
from frontdesk.interfaces.web.pages.people import LARGEST_OFFSET, parse_offset
from frontdesk.interfaces.web.pages.schema_form import form_arguments, schema_fields
from frontdesk.interfaces.web.sessions import LONGEST_MESSAGE, pack_text, unpack_text


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
