"""Compares a server's listing with the stored tools, and decides which version of a tool is in use."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from frontdesk.errors import Invalid
from frontdesk.text import list_first
from frontdesk.tools.listing import ListedTool, describe_differences
from frontdesk.tools.model import ReviewStatus

NAMES_SHOWN = 5


class ChangeKind(StrEnum):
    """What happened to a tool since its server last listed its tools.

    NEW: never seen before. BACK: it was gone and is back unchanged. GONE: no longer listed. TAKEN: it changed, and the
    new version is in use, with a flag. HELD: it changed, and the approved version stays in use until a person reviews
    the change. SETTLED: it is again the approved version, so there is nothing to review.
    """

    NEW = "new"
    BACK = "back"
    GONE = "gone"
    TAKEN = "taken"
    HELD = "held"
    SETTLED = "settled"


@dataclass(frozen=True, slots=True)
class KnownTool:
    """A tool as the catalogue stores it.

    `seal` identifies the version in use. After a change, `changed` is set and `other` is the seal of the version not in
    use: the new version of a held tool, otherwise the approved version. `refused` is the seal of a version that a
    person refused.
    """

    name: str
    api_name: str
    seal: str
    standing: ReviewStatus = ReviewStatus.READY
    changed: bool = False
    other: str | None = None
    refused: str | None = None
    gone: bool = False

    @property
    def approved(self) -> str:
        taken = self.changed and self.standing is ReviewStatus.READY
        return self.other or self.seal if taken else self.seal


@dataclass(frozen=True, slots=True)
class ListingChange:
    """The change of one tool. `what` says how a TAKEN or HELD version differs from the approved version."""

    kind: ChangeKind
    name: str
    listed: ListedTool | None = None
    what: str = ""


@dataclass(frozen=True, slots=True)
class ListingComparison:
    """The rows to write, the changes to report to a person, and the server's number of tools afterwards."""

    changes: Sequence[ListingChange]
    problems: Sequence[str]
    tools: int

    def count(self, kind: ChangeKind) -> int:
        return sum(change.kind is kind for change in self.changes)

    @property
    def summary(self) -> str:
        """For example `3 new, 2 gone (a, b)`; empty if nothing changed."""
        told: list[str] = []
        for kind in ChangeKind:
            names = [change.name for change in self.changes if change.kind is kind]
            told += [f"{len(names)} {kind} ({list_first(names, NAMES_SHOWN)})"] if names else []
        return "; ".join(told)


def compare_listing(known: Mapping[str, KnownTool], listed: Sequence[ListedTool], *, hold: bool) -> ListingComparison:
    """Find the changes of a listing; with `hold`, a tool that differs from its approved version waits for review."""
    api_names = {tool.api_name: tool.name for tool in known.values()}
    changes: list[ListingChange] = []
    problems: list[str] = []
    for tool in listed:
        before = known.get(tool.name)
        if before is None and tool.api_name in api_names:
            problems.append(f"tool {tool.name!r} is left out: models could not tell it from a former one")
        elif before is None:
            changes.append(ListingChange(ChangeKind.NEW, tool.name, tool))
        else:
            changes += _changes_of_tool(before, tool, hold=hold)
    names = {tool.name for tool in listed}
    changes += [
        ListingChange(ChangeKind.GONE, name) for name, tool in known.items() if not tool.gone and name not in names
    ]
    return ListingComparison(changes, problems, len(listed) - len(problems))


def _changes_of_tool(before: KnownTool, now: ListedTool, *, hold: bool) -> Iterator[ListingChange]:
    if now.seal == before.seal and before.standing is ReviewStatus.READY:
        if before.gone:
            yield ListingChange(ChangeKind.BACK, now.name)
    elif now.seal in (before.approved, before.refused):
        if before.changed or before.gone:
            yield ListingChange(ChangeKind.SETTLED if before.changed else ChangeKind.BACK, now.name)
    elif not hold:
        yield ListingChange(ChangeKind.TAKEN, now.name, now, describe_differences(before.approved, now.seal))
    elif before.standing is ReviewStatus.READY or now.seal != before.other or before.gone:
        yield ListingChange(ChangeKind.HELD, now.name, now, describe_differences(before.approved, now.seal))


ToolRow = Mapping[Any, Any]

VERSION_COLUMNS = ("description", "parameters", "inputs", "input_texts", "annotations", "seal", "digest")
APPROVED_STATE: Mapping[str, Any] = {"standing": ReviewStatus.READY, "change": "", "other": None}


def known_from_row(row: ToolRow) -> KnownTool:
    """The fields of a row that the comparison needs."""
    return KnownTool(
        row["name"],
        row["api_name"],
        row["seal"],
        ReviewStatus(row["standing"]),
        bool(row["change"]),
        _parse_content(row["other"])["seal"] if row["other"] else None,
        row["refused"],
        row["gone"],
    )


def first_version(listed: ListedTool) -> dict[str, Any]:
    """The row of a tool that was never seen; it needs no approval."""
    return {
        "name": listed.name,
        "api_name": listed.api_name,
        "refused": None,
        **_listed_content(listed),
        **APPROVED_STATE,
    }


def changed_version(row: ToolRow, change: ListingChange, now: datetime) -> dict[str, Any]:
    """The columns that the change writes to the row."""
    flag = f"{change.what} changed on {now:%Y-%m-%d at %H:%M} UTC"
    match change:
        case ListingChange(kind=ChangeKind.TAKEN, listed=ListedTool() as listed):
            return {
                **_listed_content(listed),
                "standing": ReviewStatus.READY,
                "change": flag,
                "other": json.dumps(_approved_content(row)),
            }
        case ListingChange(kind=ChangeKind.HELD, listed=ListedTool() as listed):
            return {
                **_approved_content(row),
                "standing": ReviewStatus.HELD,
                "change": flag,
                "other": json.dumps(_listed_content(listed)),
            }
        case _:
            return {**_approved_content(row), **APPROVED_STATE}


def reviewed_version(row: ToolRow, *, accept: bool) -> dict[str, Any]:
    """The columns that a person's decision writes to a row that changed."""
    if not row["change"]:
        raise Invalid(f"The tool '{row['id']}' has not changed since it was approved; there is nothing to review")
    new = _parse_content(row["other"]) if row["standing"] == ReviewStatus.HELD else _current_content(row)
    if accept:
        return {**new, **APPROVED_STATE, "refused": None}
    return {**_approved_content(row), **APPROVED_STATE, "refused": new["seal"]}


def _approved_content(row: ToolRow) -> dict[str, Any]:
    taken = row["change"] and row["standing"] == ReviewStatus.READY and row["other"]
    return _parse_content(row["other"]) if taken else _current_content(row)


def _current_content(row: ToolRow) -> dict[str, Any]:
    return {name: row[name] for name in VERSION_COLUMNS}


def _parse_content(stored: str) -> dict[str, Any]:
    return json.loads(stored)


def _listed_content(listed: ListedTool) -> dict[str, Any]:
    return {
        "description": listed.description,
        "parameters": listed.parameters,
        "inputs": "\n".join(listed.inputs),
        "input_texts": listed.input_texts,
        "annotations": listed.annotations,
        "seal": listed.seal,
        "digest": listed.digest,
    }
