"""One piece of a text in the place of another."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.coding.tools import TextEdit, replace_text
from frontdesk.errors import Invalid


def test_the_only_place_is_replaced() -> None:
    assert replace_text("one\ntwo\nthree\n", "two", "2") == TextEdit("one\n2\nthree\n", 2, 1)


def test_what_is_there_more_than_once_is_replaced_only_when_asked() -> None:
    with pytest.raises(Invalid, match="is there 3 times"):
        replace_text("a b a b a", "a", "c")
    assert replace_text("a b a b a", "a", "c", every=True) == TextEdit("c b c b c", 1, 3)


def test_what_is_not_there_is_told() -> None:
    with pytest.raises(Invalid, match="is not in the file"):
        replace_text("one", "two", "three")


def test_an_edit_that_changes_nothing_is_refused() -> None:
    with pytest.raises(Invalid, match="nothing would change"):
        replace_text("one\ntwo", "one", "one")
    with pytest.raises(Invalid, match="line ends alone"):
        replace_text("one\ntwo", "one\ntwo", "one\r\ntwo")


@pytest.mark.parametrize("sent", ["\n", "\r\n"])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_text_keeps_its_line_ends_whichever_are_sent(ends: str, sent: str) -> None:
    text = f"one{ends}two{ends}three{ends}"
    done = replace_text(text, f"one{sent}two", f"1{sent}2{sent}2.5")
    assert done == TextEdit(f"1{ends}2{ends}2.5{ends}three{ends}", 1, 1)
    assert replace_text(text, "two", f"2{sent}2.5").text == f"one{ends}2{ends}2.5{ends}three{ends}"


def test_the_odd_lines_of_a_mixed_text_can_be_edited() -> None:
    text = "one\r\ntwo\r\nthree\nfour\r\n"
    assert replace_text(text, "three\nfour", "3\n4").text == "one\r\ntwo\r\n3\n4\r\n"
    assert replace_text(text, "one\ntwo", "1\n2").text == "1\r\n2\r\nthree\nfour\r\n"


SOME = st.text("ab\n", max_size=8)


@given(SOME, SOME, SOME, SOME, SOME)
def test_an_edit_of_a_windows_text_is_that_of_a_plain_one_with_other_line_ends(
    before: str, start: str, end: str, after: str, new: str
) -> None:
    # The X is what makes it the only one.
    old, text = f"{start}X{end}", f"{before}{start}X{end}{after}\n"
    plain = replace_text(text, old, new)
    windows = replace_text(text.replace("\n", "\r\n"), old, new)
    assert plain == TextEdit(f"{before}{new}{after}\n", before.count("\n") + 1, 1)
    assert windows == TextEdit(plain.text.replace("\n", "\r\n"), plain.line, 1)
