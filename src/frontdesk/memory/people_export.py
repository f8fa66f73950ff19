"""Defines the export of a person's records, and checks a document before it is imported. No I/O."""

import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import Enum, StrEnum
from typing import Any, cast
from uuid import UUID
from zoneinfo import ZoneInfo

from frontdesk import zones
from frontdesk.errors import Invalid
from frontdesk.memory.times import parse_time
from frontdesk.text import is_storable, parse_json_object

UTC_ZONE = ZoneInfo("UTC")
# The range of the database's integers.
MAX_INTEGER = 2**31 - 1


class ColumnKind(Enum):
    """The kind of a column's values, as it is named in errors."""

    ID = "an id"
    TEXT = "a text without NUL or broken characters"
    WHOLE = "a whole number"
    REAL = "a number"
    FLAG = "true or false"
    MOMENT = "an ISO 8601 time with an offset"
    WORDS = "a list of texts"
    OBJECT = "a JSON object"


@dataclass(frozen=True, slots=True)
class ColumnSchema:
    """A column of an export. `most` limits the length of a text, `choice` its values."""

    kind: ColumnKind
    optional: bool = False
    most: int | None = None
    choice: type[StrEnum] | None = None


def to_json(value: object) -> Any:  # noqa: ANN401 - JSON is whatever it is
    """A stored value as a JSON value."""
    match value:
        case Enum():
            return value.value
        case datetime() | date():
            return value.isoformat()
        case bytes():
            return value.hex()
        case Mapping():
            pairs = cast("Mapping[object, object]", value).items()
            return {str(key): to_json(one) for key, one in pairs}
        case tuple() | list() | set() | frozenset():
            return [to_json(one) for one in cast("list[object]", value)]
        case _:
            return value


def read_value(value: object, shape: ColumnSchema, where: str) -> Any:  # noqa: ANN401 - whatever the column holds
    """Parse a JSON value for a column. `where` is its place for the error message."""
    if value is None:
        if shape.optional:
            return None
        raise Invalid(f"{where} is missing; it must be {shape.kind.value}")
    found = READERS[shape.kind](value)
    if found is None:
        raise Invalid(f"{where} must be {shape.kind.value}")
    if shape.most is not None and isinstance(found, str) and len(found) > shape.most:
        raise Invalid(f"{where} must have at most {shape.most} characters; this has {len(found)}")
    if shape.choice is not None and found not in list(shape.choice):
        raise Invalid(f"{where} must be one of {', '.join(shape.choice)}")
    return found


def _read_id(value: object) -> str | None:
    try:
        return str(UUID(value)) if isinstance(value, str) else None
    except ValueError:
        return None


def _read_text(value: object) -> str | None:
    return value if isinstance(value, str) and is_storable(value) else None


def _read_integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MAX_INTEGER else None


def _read_number(value: object) -> float | None:
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    return float(number) if abs(number) <= sys.float_info.max else None


def _read_boolean(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _read_time(value: object) -> datetime | None:
    try:
        return parse_time(value, UTC_ZONE, "") if isinstance(value, str) else None
    except Invalid:
        return None


def _read_texts(value: object) -> list[str] | None:
    words = [_read_text(one) for one in cast("list[object]", value)] if isinstance(value, list) else [None]
    found = [word for word in words if word is not None]
    return found if len(found) == len(words) else None


def _read_object(value: object) -> Mapping[str, Any] | None:
    return parse_json_object(cast("object", value)) if isinstance(value, dict) else None


# Each parser returns None for values of another kind.
READERS: Mapping[ColumnKind, Callable[[object], object]] = {
    ColumnKind.ID: _read_id,
    ColumnKind.TEXT: _read_text,
    ColumnKind.WHOLE: _read_integer,
    ColumnKind.REAL: _read_number,
    ColumnKind.FLAG: _read_boolean,
    ColumnKind.MOMENT: _read_time,
    ColumnKind.WORDS: _read_texts,
    ColumnKind.OBJECT: _read_object,
}

EXPORT_FORMAT, EXPORT_VERSION = "frontdesk-memory", 1
TABLE_PARTS, ROWS_AT_ONCE = ("records", "elsewhere"), 500
ExportRow = dict[str, Any]
ExportRows = Mapping[str, Sequence[ExportRow]]
TableSchemas = Mapping[str, Mapping[str, ColumnSchema]]
# The types of items that have a row in another table.
DETAIL_TABLES = {"task": "tasks", "memory": "memories", "activity": "activities"}


def export_chunks(document: Mapping[str, Any]) -> Iterator[str]:
    """The document as JSON text, in parts of some rows, so that it is not held in memory twice."""
    begun = "{"
    for name, value in document.items():
        yield f"{begun}{json.dumps(name)}: "
        if name in TABLE_PARTS:
            yield from _table_chunks(value)
        else:
            yield json.dumps(value, ensure_ascii=False)
        begun = ", "
    yield "}\n"


def _table_chunks(tables: Mapping[str, Sequence[Any]]) -> Iterator[str]:
    begun = "{"
    for table, rows in tables.items():
        yield f"{begun}{json.dumps(table)}: ["
        for first in range(0, len(rows), ROWS_AT_ONCE):
            # The brackets of each part are removed, so that the parts form one list.
            some = json.dumps(rows[first : first + ROWS_AT_ONCE], ensure_ascii=False)[1:-1]
            yield f", {some}" if first else some
        yield "]"
        begun = ", "
    yield "}" if tables else "{}"


def read_export_zone(document: Mapping[str, Any]) -> str:
    """Check the format and version of a document. Returns its time zone."""
    if document.get("format") != EXPORT_FORMAT or document.get("version") != EXPORT_VERSION:
        raise Invalid(
            f"This export cannot be imported: its format must be {EXPORT_FORMAT}, its version {EXPORT_VERSION}"
        )
    zone = document.get("zone")
    if not isinstance(zone, str):
        raise Invalid("The document's zone is missing; give an IANA name like Europe/Berlin")
    return zones.zone_name(zone)


def read_export_rows(document: Mapping[str, Any], shapes: TableSchemas) -> ExportRows:
    """The rows of a document, after each row and their relations are checked."""
    records = document.get("records")
    if not isinstance(records, dict):
        raise Invalid("The document has no records; an export has them by the name of their table")
    found = cast("dict[str, object]", records)
    unknown = sorted(set(found) - set(shapes))
    if unknown:
        raise Invalid(f"The document has records that are not known here: {', '.join(unknown)}")
    rows = {table: _read_table(found.get(table, []), table, columns) for table, columns in shapes.items()}
    _check_types(rows)
    _check_supersessions(rows["memories"])
    _check_hierarchy(rows["tasks"])
    return rows


def _read_table(value: object, table: str, columns: Mapping[str, ColumnSchema]) -> list[ExportRow]:
    if not isinstance(value, list):
        raise Invalid(f"{table} must be a list of records")
    return [_read_row(one, f"{table}[{number}]", columns) for number, one in enumerate(cast("list[object]", value))]


def _read_row(value: object, where: str, columns: Mapping[str, ColumnSchema]) -> ExportRow:
    if not isinstance(value, dict):
        raise Invalid(f"{where} must be a record")
    row = cast("dict[str, object]", value)
    unknown = sorted(set(row) - set(columns))
    if unknown:
        raise Invalid(f"{where} has fields that are not known here: {', '.join(unknown)}")
    return {name: read_value(row.get(name), shape, f"{where}.{name}") for name, shape in columns.items()}


def _check_types(rows: ExportRows) -> None:
    """Check that timeline items of these types have exactly one row in the table of their type."""
    for kind, table in DETAIL_TABLES.items():
        items = {row["id"] for row in rows["timeline_items"] if row["type"] == kind}
        own = {row["id"] for row in rows[table]}
        if items != own:
            odd = min(items ^ own)
            raise Invalid(f"{table} and the items of the type {kind} must be the same; {odd} is not in both")


def _check_supersessions(memories: Iterable[ExportRow]) -> None:
    """Check that chains of superseding memories have no cycle and are recorded on both sides."""
    by_id = {row["id"]: row for row in memories}
    for row in by_id.values():
        older, newer = row["supersedes"], row["superseded_by"]
        agree = older is None or by_id.get(older, {}).get("superseded_by") == row["id"]
        if not agree or (newer is not None and by_id.get(newer, {}).get("supersedes") != row["id"]):
            raise Invalid(f"Memory {row['id']} supersedes, or is superseded by, one that does not say so too")
        if older == row["id"]:
            raise Invalid(f"Memory {older} cannot supersede itself")


def _check_hierarchy(tasks: Iterable[ExportRow]) -> None:
    """Check that the parent of each subtask exists and matches its path."""
    by_id = {row["id"]: row for row in tasks}
    for row in by_id.values():
        parent = by_id.get(row["parent_task_id"])
        level, path = (0, row["id"]) if parent is None else _position_under(parent, row["id"])
        if (row["parent_task_id"] is None) is not (parent is None) or (level, path) != _position(row):
            raise Invalid(f"Task {row['id']} does not stand where its parent_task_id and hierarchy_path say")


def _position_under(parent: ExportRow, task_id: str) -> tuple[int, str]:
    return parent["hierarchy_level"] + 1, f"{parent['hierarchy_path']}/{task_id}"


def _position(row: ExportRow) -> tuple[int, str]:
    return row["hierarchy_level"], row["hierarchy_path"]
