"""The reference pages as data: their tables, with what stands above each, and the words that are set as code."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.support.desk import ROOT

BAR = re.compile(r"(?<!\\)\|")
CODE = re.compile(r"`([^`]+)`")
ASIDE = re.compile(r"\([^()]*\)")


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a page: the heading it is under, the paragraph before it, its columns, and the cells of its rows."""

    heading: str
    before: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def page(name: str) -> str:
    return ROOT.joinpath("docs/reference", f"{name}.md").read_text()


def tables(text: str, *columns: str) -> list[Table]:
    """The tables of a page whose first columns have these names."""
    found = [table for table in _every_table(text) if table.columns[: len(columns)] == columns]
    assert found, f"no table begins with the columns {columns}"
    return found


def _every_table(text: str) -> Iterator[Table]:
    heading = before = ""
    for paragraph in text.split("\n\n"):
        if paragraph.startswith("#"):
            heading = paragraph.lstrip("# ")
        if paragraph.startswith("|"):
            columns, _, *rows = map(_cells, paragraph.strip().splitlines())
            yield Table(heading, before, columns, tuple(rows))
        before = paragraph


def _cells(row: str) -> tuple[str, ...]:
    return tuple(cell.strip().replace(r"\|", "|") for cell in BAR.split(row)[1:-1])


def code(text: str) -> list[str]:
    """What is set as code."""
    return CODE.findall(text)


def without_asides(text: str) -> str:
    """The same without what stands in brackets, which explains the word before it."""
    return ASIDE.sub("", text)


def plain(text: str) -> str:
    """The same words, none of them set as code."""
    return text.replace("`", "")
