"""The page on what differs from the SDK names tests that there are."""

import re
from pathlib import Path

from tests.requirements import shows

ROOT = Path(__file__).parents[4]
PAGE = ROOT / "docs" / "reference" / "agent365.md"
WHERE = ("tests/unit/platform", "tests/surfaces/platform")
ROW = re.compile(r"^\| [^|]+ \| [^|]+ \| ([^|]*) \|$", re.MULTILINE)
NAMED = re.compile(r"`(test_[a-z_]+)`")
DEFINED = re.compile(r"^(?:async )?def (test_\w+)", re.MULTILINE)


@shows("A365-ADAPTERS")
def test_each_difference_of_an_adapter_is_shown_by_tests_that_there_are() -> None:
    table = PAGE.read_text().split("## Adapters")[1]
    rows = [row for row in ROW.findall(table)[1:] if row.strip() and not set(row) <= set("-|")]
    files = [path for folder in WHERE for path in ROOT.joinpath(folder).rglob("test_*.py")]
    defined = {name for path in files for name in DEFINED.findall(path.read_text())}
    assert len(rows) >= 10
    assert all(NAMED.findall(row) for row in rows)
    assert set(NAMED.findall(table)) <= defined
