"""Writes docs/reference/measured.md: a section for each part of the bench, from its last full run."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench.claims import Verdict
from bench.processes import ROOT
from frontdesk import __version__

PAGE = ROOT / "docs" / "reference" / "measured.md"
HEAD = """# Measured

Written by `./dev bench`, never by hand: each section is the last full run of the command that it names. What counts is
the ratio in a claim, found against a peer or a floor in the same run; a time by itself says little.
"""
SECTION = re.compile(r"^## (?P<name>.+?)\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def section(name: str, table: str, verdicts: Sequence[Verdict]) -> str:
    """The results of one part."""
    figures = f"\n```text\n{table}\n```\n" if table else ""
    rows = "".join(
        f"| {verdict.claim} | {verdict.found:.2f} | {verdict.most:g} | {'yes' if verdict.holds else '**no**'} |\n"
        for verdict in verdicts
    )
    run = f"`./dev bench --only {name}` on {datetime.now(UTC):%Y-%m-%d}, Frontdesk {__version__}."
    return f"## {name}\n\n{run}\n{figures}\n| claim | found | at most | holds |\n|---|---|---|---|\n{rows}"


def write(found: Mapping[str, str], order: Sequence[str], page: Path = PAGE) -> None:
    """Replace the older sections of the same names with these."""
    before = page.read_text() if page.exists() else ""
    kept = {match["name"]: match[0].rstrip() + "\n" for match in SECTION.finditer(before)}
    sections = {**kept, **found}
    page.write_text("\n".join([HEAD, *(sections[name] for name in order if name in sections)]))
