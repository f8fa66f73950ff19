"""Whether the schema of a tool's arguments is one."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Protocol, cast

import jsonschema
import jsonschema.exceptions
import jsonschema.validators
import referencing.exceptions

from frontdesk.loop.text import one_line
from frontdesk.platform.declared.fields import Fields
from frontdesk.platform.declared.model import ANYTHING
from frontdesk.platform.declared.notes import Notes
from frontdesk.platform.declared.saying import quoted

LONGEST = 256 * 1024
LONGEST_REASON = 160
# A file that is read again each time it changes has the same schemas in it.
REMEMBERED = 4096
LONGEST_REMEMBERED = 4096
NONSENSE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    jsonschema.exceptions.UnknownType,
    referencing.exceptions.Unresolvable,
)


class Draft(Protocol):
    """The library's validator for one draft of the specification."""

    def check_schema(self, schema: object, format_checker: object) -> None: ...


def input_schema(found: Fields, notes: Notes) -> Mapping[str, Any]:
    """The schema that a tool declares, or one that takes anything where it makes no sense."""
    schema = found.object("inputSchema", notes)
    if schema is None:
        return ANYTHING
    where = found.at("inputSchema")
    wrong = _fault(schema)
    if wrong is not None:
        notes.error(where, f"{wrong}; until then the tool takes anything")
        return ANYTHING
    if "type" not in schema:
        notes.warn(where, 'does not say "type": "object", which MCP clients want; add it')
    _check_required(schema, where, notes)
    return schema


def _fault(schema: Mapping[str, Any]) -> str | None:
    kind = schema.get("type", "object")
    if kind != "object":
        return f'is for {quoted(str(kind))} where a tool takes named arguments; write "type": "object"'
    text = json.dumps(schema)
    if len(text) > LONGEST:
        return f"is larger than {LONGEST // 1024} KiB; leave out what callers need not know"
    return _unsound(text) if len(text) > LONGEST_REMEMBERED else _known_unsound(text)


def _unsound(text: str) -> str | None:
    schema: dict[str, Any] = json.loads(text)
    try:
        chosen: object = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
        cast("Draft", chosen).check_schema(schema, format_checker=None)
    except jsonschema.exceptions.SchemaError as error:
        return f"is no JSON Schema at {error.json_path}: {one_line(error.message, LONGEST_REASON)}; mend that"
    except NONSENSE:
        return "is no JSON Schema that could be checked; write a simpler one"
    return None


_known_unsound = lru_cache(REMEMBERED)(_unsound)


def _check_required(schema: Mapping[str, Any], where: str, notes: Notes) -> None:
    # An old draft has another meaning for the word.
    required, properties = schema.get("required"), schema.get("properties")
    if not isinstance(required, list) or not isinstance(properties, dict):
        return
    known = cast("dict[str, object]", properties)
    for name in cast("list[str]", required):
        if name not in known:
            near = notes.meant(name, known)
            notes.warn(f"{where}.required", f"asks for {quoted(name)}, which no property describes{near}")
