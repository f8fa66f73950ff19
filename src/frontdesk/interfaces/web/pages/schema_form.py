"""Builds a form from a tool's JSON schema, and reads the arguments from the filled form. No I/O."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast

from frontdesk.errors import Invalid
from frontdesk.text import one_line, parse_json_object

# For a tool with more fields, the page asks for the arguments as JSON.
MOST_FIELDS = 60
MOST_OPTIONS = 200
# References may be circular.
MOST_REFERENCES = 8
HINT_LENGTH = 300
SENTENCE_ENDS = (".", "!", "?", ":", "…")
FIELD_PREFIX = "arg."
ALL_ARGUMENTS = "arguments"

Schema = Mapping[str, Any]


class FieldShape(StrEnum):
    """The kind of input for a value."""

    TEXT = "text"
    NUMBER = "number"
    INTEGER = "integer"
    BOOLEAN = "boolean"
    CHOICE = "choice"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class FormField:
    """One argument. The `options` of a choice are pairs of JSON value and label."""

    name: str
    shape: FieldShape
    required: bool = False
    hint: str = ""
    value: str = ""
    options: Sequence[tuple[str, str]] = ()

    @property
    def key(self) -> str:
        """The name of the form field."""
        return FIELD_PREFIX + self.name


def schema_fields(schema: Schema, given: Mapping[str, str]) -> Sequence[FormField] | None:
    """A field for each argument, with its current value. None if the schema names no arguments, or too many."""
    properties = _mapping(schema.get("properties"))
    if not properties or len(properties) > MOST_FIELDS:
        return None
    required = _list(schema.get("required"))
    found = [
        _schema_field(name, _resolve_reference(part, schema), name in required) for name, part in properties.items()
    ]
    ordered = sorted(found, key=lambda field: not field.required)
    return [_filled_field(field, given) for field in ordered]


def form_arguments(fields: Sequence[FormField] | None, form: Mapping[str, str]) -> Mapping[str, Any]:
    """The tool's arguments from the filled form. Empty fields are left out."""
    if fields is None:
        found = parse_json_object(form.get(ALL_ARGUMENTS, ""))
        if found is None:
            raise Invalid('The arguments must be a JSON object: {"name": "value"}')
        return found
    read = {field.name: _parse_value(field, form.get(field.key, "")) for field in fields if _is_filled(field, form)}
    whole = parse_json_object(read)
    if whole is None:
        raise Invalid("The arguments are nested too deeply to be sent")
    return whole


def _is_filled(field: FormField, form: Mapping[str, str]) -> bool:
    """The value of a field. An empty text counts as a value only for required text fields."""
    return bool(form.get(field.key)) or (field.required and field.shape is FieldShape.TEXT)


def _parse_value(field: FormField, text: str) -> object:
    if field.shape is FieldShape.TEXT:
        return text.replace("\r\n", "\n")
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Invalid(f"'{one_line(field.name, HINT_LENGTH)}' must be {SHAPE_HINTS[field.shape]}") from error
    if not _has_shape(field, value):
        raise Invalid(f"'{one_line(field.name, HINT_LENGTH)}' must be {SHAPE_HINTS[field.shape]}")
    return int(value) if field.shape is FieldShape.INTEGER and isinstance(value, float) else value


SHAPE_HINTS: Mapping[FieldShape, str] = {
    FieldShape.NUMBER: "a number, such as 2.5",
    FieldShape.INTEGER: "a whole number",
    FieldShape.BOOLEAN: "yes or no",
    FieldShape.CHOICE: "one of the options",
    FieldShape.JSON: 'JSON, such as ["a", "b"] or {"name": "value"}',
}


def _has_shape(field: FormField, value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) != float("inf")
    match field.shape:
        case FieldShape.NUMBER:
            return number and value == value  # noqa: PLR0124 - how NaN is told
        case FieldShape.INTEGER:
            return number and (isinstance(value, int) or (isinstance(value, float) and value.is_integer()))
        case FieldShape.BOOLEAN:
            return isinstance(value, bool)
        case _:
            return True


def _schema_field(name: str, part: Schema, required: bool) -> FormField:
    hint = _field_hint(part)
    options = _list(part.get("enum")) or ([part["const"]] if "const" in part else [])
    if options and len(options) <= MOST_OPTIONS:
        shown = [(_json(one), one_line(one if isinstance(one, str) else _json(one), HINT_LENGTH)) for one in options]
        return FormField(name, FieldShape.CHOICE, required, hint, _preset(part, required), shown)
    kind = _value_type(part)
    shape = (
        FieldShape(kind)
        if kind in ("number", "integer", "boolean")
        else FieldShape.TEXT
        if kind == "string"
        else FieldShape.JSON
    )
    return FormField(name, shape, required, hint, _preset(part, required, text=shape is FieldShape.TEXT))


def _preset(part: Schema, required: bool, *, text: bool = False) -> str:
    """The initial value: the default of a required argument. Optional arguments stay empty."""
    default = part.get("default")
    if not required or default is None:
        return ""
    return default if text and isinstance(default, str) else _json(default)


def _value_type(part: Schema) -> str:
    value: object = part.get("type")
    kinds = [one for one in _list(value) or [value] if one != "null"]
    return str(kinds[0]) if len(kinds) == 1 else ""


def _field_hint(part: Schema) -> str:
    """The schema's description and limits of an argument, as sentences."""
    least, most = part.get("minimum"), part.get("maximum")
    limits = [
        f"at least {least}" if isinstance(least, int | float) else "",
        f"at most {most}" if isinstance(most, int | float) else "",
        f"as {one_line(str(part['format']), 40)}" if isinstance(part.get("format"), str) else "",
        f"{one_line(_json(part['default']), 80)} by default" if part.get("default") is not None else "",
    ]
    told = one_line(str(part.get("description") or part.get("title") or ""), HINT_LENGTH)
    limited = ", ".join(one for one in limits if one)
    if not told or not limited:
        return told or limited
    return f"{told if told.endswith(SENTENCE_ENDS) else f'{told}.'} {limited[0].upper()}{limited[1:]}."


def _resolve_reference(part: object, root: Schema, depth: int = MOST_REFERENCES) -> Schema:
    """A part of a schema with its reference resolved, and without the alternative `null`."""
    found = _mapping(part)
    if depth == 0:
        return found
    reference = found.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        target: object = root
        for step in reference.removeprefix("#/").split("/"):
            target = _mapping(target).get(step.replace("~1", "/").replace("~0", "~"))
        return {
            **_resolve_reference(target, root, depth - 1),
            **{name: found[name] for name in found if name != "$ref"},
        }
    for choice in ("anyOf", "oneOf"):
        branches = [one for one in map(_mapping, _list(found.get(choice))) if one.get("type") != "null"]
        if len(branches) == 1:
            return {**_resolve_reference(branches[0], root, depth - 1), **{n: found[n] for n in found if n != choice}}
    return found


def _filled_field(field: FormField, given: Mapping[str, str]) -> FormField:
    said = given.get(field.key)
    return (
        field if said is None else FormField(field.name, field.shape, field.required, field.hint, said, field.options)
    )


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _list(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
