"""Which version of a tool counts: a row before and after a change, a review, without a database.

A row's content is the version that counts. `other` is the one that does not, as JSON: of a held tool the new one, of a
tool that was changed the one that was approved.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from frontdesk.errors import Invalid
from frontdesk.tools.catalogue.changes import Change, Kind, Known
from frontdesk.tools.catalogue.sifting import Listed
from frontdesk.tools.model import Standing

Row = Mapping[Any, Any]

CONTENT = ("description", "parameters", "inputs", "input_texts", "annotations", "seal", "digest")
APPROVED: Mapping[str, Any] = {"standing": Standing.READY, "change": "", "other": None}


def known(row: Row) -> Known:
    """What the comparison needs of a row."""
    return Known(
        row["name"],
        row["api_name"],
        row["seal"],
        Standing(row["standing"]),
        bool(row["change"]),
        _content(row["other"])["seal"] if row["other"] else None,
        row["refused"],
        row["gone"],
    )


def first(listed: Listed) -> dict[str, Any]:
    """The row of a tool that was never seen; it is taken as it is."""
    return {"name": listed.name, "api_name": listed.api_name, "refused": None, **_of(listed), **APPROVED}


def moved(row: Row, change: Change, now: datetime) -> dict[str, Any]:
    """What a change of these kinds makes of a row."""
    flag = f"{change.what} changed on {now:%Y-%m-%d at %H:%M} UTC"
    match change:
        case Change(kind=Kind.TAKEN, listed=Listed() as listed):
            return {**_of(listed), "standing": Standing.READY, "change": flag, "other": json.dumps(_approved(row))}
        case Change(kind=Kind.HELD, listed=Listed() as listed):
            return {**_approved(row), "standing": Standing.HELD, "change": flag, "other": json.dumps(_of(listed))}
        case _:
            return {**_approved(row), **APPROVED}


def reviewed(row: Row, *, accept: bool) -> dict[str, Any]:
    """What somebody's word makes of a row that changed."""
    if not row["change"]:
        raise Invalid(f"The tool '{row['id']}' has not changed since it was approved; there is nothing to review")
    new = _content(row["other"]) if row["standing"] == Standing.HELD else _counting(row)
    if accept:
        return {**new, **APPROVED, "refused": None}
    return {**_approved(row), **APPROVED, "refused": new["seal"]}


def _approved(row: Row) -> dict[str, Any]:
    taken = row["change"] and row["standing"] == Standing.READY and row["other"]
    return _content(row["other"]) if taken else _counting(row)


def _counting(row: Row) -> dict[str, Any]:
    return {name: row[name] for name in CONTENT}


def _content(stored: str) -> dict[str, Any]:
    return json.loads(stored)


def _of(listed: Listed) -> dict[str, Any]:
    return {
        "description": listed.description,
        "parameters": listed.parameters,
        "inputs": "\n".join(listed.inputs),
        "input_texts": listed.input_texts,
        "annotations": listed.annotations,
        "seal": listed.seal,
        "digest": listed.digest,
    }
