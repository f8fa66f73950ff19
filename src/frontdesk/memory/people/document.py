"""The export of everything that is kept of a person, and what makes one fit to be taken in; pure."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from frontdesk import zones
from frontdesk.errors import Invalid
from frontdesk.memory.people.shape import Shape, read

FORMAT, VERSION = "frontdesk-memory", 1
PARTS, AT_ONCE = ("records", "elsewhere"), 500
Row = dict[str, Any]
Rows = Mapping[str, Sequence[Row]]
Shapes = Mapping[str, Mapping[str, Shape]]
# Which items have a row of their own, and in which table.
OWN = {"task": "tasks", "memory": "memories", "activity": "activities"}


def written(document: Mapping[str, Any]) -> Iterator[str]:
    """It as JSON, some of the rows at a time: a whole one would be held twice."""
    begun = "{"
    for name, value in document.items():
        yield f"{begun}{json.dumps(name)}: "
        if name in PARTS:
            yield from _parts(value)
        else:
            yield json.dumps(value, ensure_ascii=False)
        begun = ", "
    yield "}\n"


def _parts(tables: Mapping[str, Sequence[Any]]) -> Iterator[str]:
    begun = "{"
    for table, rows in tables.items():
        yield f"{begun}{json.dumps(table)}: ["
        for first in range(0, len(rows), AT_ONCE):
            # Without the brackets of each list there is one list again.
            some = json.dumps(rows[first : first + AT_ONCE], ensure_ascii=False)[1:-1]
            yield f", {some}" if first else some
        yield "]"
        begun = ", "
    yield "}" if tables else "{}"


def zone_of(document: Mapping[str, Any]) -> str:
    """The zone it was written in, once it is known to be such a document."""
    if document.get("format") != FORMAT or document.get("version") != VERSION:
        raise Invalid(f"This is no export that can be taken in: its format must be {FORMAT}, its version {VERSION}")
    zone = document.get("zone")
    if not isinstance(zone, str):
        raise Invalid("The document's zone is missing; give an IANA name like Europe/Berlin")
    return zones.zone_name(zone)


def rows_of(document: Mapping[str, Any], shapes: Shapes) -> Rows:
    """Its rows, each checked by itself and then all of them together."""
    records = document.get("records")
    if not isinstance(records, dict):
        raise Invalid("The document has no records; an export has them by the name of their table")
    found = cast("dict[str, object]", records)
    unknown = sorted(set(found) - set(shapes))
    if unknown:
        raise Invalid(f"The document has records that are not known here: {', '.join(unknown)}")
    rows = {table: _rows(found.get(table, []), table, columns) for table, columns in shapes.items()}
    _check_types(rows)
    _check_lines(rows["memories"])
    _check_places(rows["tasks"])
    return rows


def _rows(given: object, table: str, columns: Mapping[str, Shape]) -> list[Row]:
    if not isinstance(given, list):
        raise Invalid(f"{table} must be a list of records")
    return [_row(one, f"{table}[{number}]", columns) for number, one in enumerate(cast("list[object]", given))]


def _row(given: object, where: str, columns: Mapping[str, Shape]) -> Row:
    if not isinstance(given, dict):
        raise Invalid(f"{where} must be a record")
    row = cast("dict[str, object]", given)
    unknown = sorted(set(row) - set(columns))
    if unknown:
        raise Invalid(f"{where} has fields that are not known here: {', '.join(unknown)}")
    return {name: read(row.get(name), shape, f"{where}.{name}") for name, shape in columns.items()}


def _check_types(rows: Rows) -> None:
    """Behind each task, memory and activity of the timeline stands one, and behind nothing else."""
    for kind, table in OWN.items():
        items = {row["id"] for row in rows["timeline_items"] if row["type"] == kind}
        own = {row["id"] for row in rows[table]}
        if items != own:
            odd = min(items ^ own)
            raise Invalid(f"{table} and the items of the type {kind} must be the same; {odd} is not in both")


def _check_lines(memories: Iterable[Row]) -> None:
    """What supersedes another is superseded by none of those before it, and both say so."""
    by_id = {row["id"]: row for row in memories}
    for row in by_id.values():
        older, newer = row["supersedes"], row["superseded_by"]
        agree = older is None or by_id.get(older, {}).get("superseded_by") == row["id"]
        if not agree or (newer is not None and by_id.get(newer, {}).get("supersedes") != row["id"]):
            raise Invalid(f"Memory {row['id']} supersedes, or is superseded by, one that does not say so too")
        if older == row["id"]:
            raise Invalid(f"Memory {older} cannot supersede itself")


def _check_places(tasks: Iterable[Row]) -> None:
    """Each subtask stands right under a task that is there."""
    by_id = {row["id"]: row for row in tasks}
    for row in by_id.values():
        parent = by_id.get(row["parent_task_id"])
        level, path = (0, row["id"]) if parent is None else _under(parent, row["id"])
        if (row["parent_task_id"] is None) is not (parent is None) or (level, path) != _place(row):
            raise Invalid(f"Task {row['id']} does not stand where its parent_task_id and hierarchy_path say")


def _under(parent: Row, task_id: str) -> tuple[int, str]:
    return parent["hierarchy_level"] + 1, f"{parent['hierarchy_path']}/{task_id}"


def _place(row: Row) -> tuple[int, str]:
    return row["hierarchy_level"], row["hierarchy_path"]
