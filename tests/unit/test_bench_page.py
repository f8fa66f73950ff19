"""The page of figures that `./dev bench` writes."""

from pathlib import Path

from bench.claims import Verdict
from bench.page import section, write

ORDER = ["calls", "turns"]


def test_a_part_that_was_measured_again_takes_its_old_place_and_leaves_the_others(tmp_path: Path) -> None:
    page = tmp_path / "measured.md"
    slow = Verdict("a call is quick", 2.0, 1.0, ())
    write({"turns": section("turns", "", [Verdict("a turn is quick", 0.5, 1.0, ())])}, ORDER, page)
    write({"calls": section("calls", "one  two", [slow])}, ORDER, page)
    write({"calls": section("calls", "three  four", [Verdict("a call is quick", 0.25, 1.0, ())])}, ORDER, page)
    text = page.read_text()
    assert text.startswith("# Measured\n")
    assert [line for line in text.splitlines() if line.startswith("## ")] == ["## calls", "## turns"]
    assert "three  four" in text
    assert "one  two" not in text
    assert "| a call is quick | 0.25 | 1 | yes |" in text
    assert "| a turn is quick | 0.50 | 1 | yes |" in text


def test_a_claim_that_does_not_hold_is_told_as_such() -> None:
    assert "| a call is quick | 2.00 | 1 | **no** |" in section("calls", "", [Verdict("a call is quick", 2.0, 1.0, ())])
