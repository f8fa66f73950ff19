"""What people type and what they are told: odd, long, and still right."""

import pytest

from frontdesk.errors import Invalid
from frontdesk.surfaces.web import cookies
from frontdesk.surfaces.web.pages.people.address import FARTHEST, offset_of
from frontdesk.surfaces.web.pages.tools.forms import arguments_of, fields_of


@pytest.mark.parametrize("kind", ["integer", "number"])
def test_a_number_with_hundreds_of_digits_is_a_number(kind: str) -> None:
    fields = fields_of({"properties": {"n": {"type": kind}}}, {})
    assert arguments_of(fields, {"arg.n": "1" + "0" * 400}) == {"n": 10**400}
    for infinite in ("1e999", "NaN", "-Infinity"):
        with pytest.raises(Invalid):
            arguments_of(fields, {"arg.n": infinite})


def test_whole_numbers_may_be_written_with_a_point_and_others_are_refused() -> None:
    fields = fields_of({"properties": {"n": {"type": "integer"}}}, {})
    assert arguments_of(fields, {"arg.n": "3.0"}) == {"n": 3}
    for other in ("3.5", "true", '"3"'):
        with pytest.raises(Invalid):
            arguments_of(fields, {"arg.n": other})


@pytest.mark.parametrize("said", ["\U0001f600" * 400, "ü" * 5000, "a\U0001f600" * 500, "x" * 5000])
def test_a_long_sentence_is_kept_as_far_as_it_fits(said: str) -> None:
    found = cookies.unpacked(cookies.packed(said))
    assert found
    assert said.startswith(found)
    assert len(found.encode()) > cookies.LONGEST_SAID - 4


def test_an_offset_is_read_whole() -> None:
    assert [offset_of(said) for said in ("", "0", "5", "0000000000005", str(FARTHEST))] == [0, 0, 5, 5, FARTHEST]
    for said in (str(FARTHEST + 1), "9" * 5000, "-1", "\u0665", "1.0"):
        with pytest.raises(Invalid):
            offset_of(said)
