"""Checks the arguments of a tool call before the call, and describes each problem so that an agent can fix it."""

import hashlib
import json
import marshal
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import anyio

from frontdesk.errors import Invalid
from frontdesk.text import closest_name, list_first
from frontdesk.tools.json_schema import (
    FitsSchema,
    SchemaViolation,
    UnusableSchema,
    compile_quick_check,
    find_violations,
    is_valid_schema,
)

PROBLEMS_SHOWN = 10
PARAMETERS_SHOWN = 30
VALUE_LENGTH_SHOWN = 60
MESSAGE_LENGTH_SHOWN = 200
BOUND_MESSAGES: Mapping[str, str] = {
    "minimum": "must be at least {}",
    "maximum": "must be at most {}",
    "exclusiveMinimum": "must be more than {}",
    "exclusiveMaximum": "must be less than {}",
    "minLength": "must have at least {} characters",
    "maxLength": "must have at most {} characters",
    "minItems": "must have at least {} items",
    "maxItems": "must have at most {} items",
    "multipleOf": "must be a multiple of {}",
}


def describe_problems(tool: str, schema: Mapping[str, Any], problems: Sequence[SchemaViolation]) -> str:
    """The whole message: each problem once, then the tool's properties."""
    lines = list(dict.fromkeys(line for problem in problems for line in _problem_lines(problem)))
    shown = lines[:PROBLEMS_SHOWN] + (
        [f"and {len(lines) - PROBLEMS_SHOWN} more"] if len(lines) > PROBLEMS_SHOWN else []
    )
    known = _describe_parameters(schema)
    return "\n".join(
        [
            f"The arguments do not fit {tool}; nothing was called. Correct this and call again:",
            *(f"- {line}" for line in shown),
            f"Its arguments: {known}" if known else "It takes no arguments.",
        ]
    )


def _problem_lines(problem: SchemaViolation) -> Iterable[str]:
    match problem.validator:
        case "required":
            return [
                _describe_missing(problem, name) for name in problem.validator_value if name not in problem.instance
            ]
        case "additionalProperties" if problem.validator_value is False:
            return [_describe_unknown(problem, name) for name in _unknown_properties(problem)]
        case "anyOf" | "oneOf" if problem.context:
            return [_describe_no_form(problem)]
        case _:
            return [f"{_describe_place(problem)}: {_describe_reason(problem)}"]


def _describe_missing(problem: SchemaViolation, name: str) -> str:
    wanted = _describe_wanted(_schema_properties(problem.schema).get(name))
    line = f"{_describe_place(problem, name)}: is missing" + (f" ({wanted})" if wanted else "")
    meant = closest_name(name, _unknown_properties(problem))
    return f"{line}; you gave '{meant}', did you mean '{name}'?" if meant else line


def _describe_unknown(problem: SchemaViolation, name: str) -> str:
    properties = _schema_properties(problem.schema)
    meant = closest_name(name, [known for known in properties if known not in problem.instance]) or closest_name(
        name, list(properties)
    )
    line = f"{_describe_place(problem, name)}: there is no such argument"
    return f"{line}; did you mean '{meant}'?" if meant else line


def _describe_no_form(problem: SchemaViolation) -> str:
    """Describe the permitted form that is closest to the value; if none is close, list all forms."""
    nearest = max(problem.context, key=lambda inner: len(list(inner.absolute_path)))
    if len(list(nearest.absolute_path)) > len(list(problem.absolute_path)):
        return next(iter(_problem_lines(nearest)))
    forms = [_describe_wanted(form) for form in problem.validator_value]
    wanted = " or ".join(dict.fromkeys(form for form in forms if form)) or "another value"
    return f"{_describe_place(problem)}: expected {wanted}, got {_describe_value(problem.instance)}"


def _describe_reason(problem: SchemaViolation) -> str:
    value, got = problem.validator_value, _describe_value(problem.instance)
    match problem.validator:
        case "type":
            return f"expected {_describe_types(value)}, got {got}"
        case "enum":
            return f"must be one of {_describe_choices(value)}, got {got}"
        case "const":
            return f"must be {_describe_value(value)}, got {got}"
        case bound if bound in BOUND_MESSAGES:
            return f"{BOUND_MESSAGES[bound].format(value)}, got {got}"
        case _:
            return problem.message[:MESSAGE_LENGTH_SHOWN]


def _describe_place(problem: SchemaViolation, name: str | None = None) -> str:
    path = [*problem.absolute_path, *([] if name is None else [name])]
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")[:MESSAGE_LENGTH_SHOWN] or "the arguments"


def _describe_parameters(schema: Mapping[str, Any]) -> str:
    required = schema.get("required")
    needed = cast("list[str]", required) if isinstance(required, list) else []
    items = list(_schema_properties(schema).items())
    texts = [
        f"{name} ("
        + ", ".join(part for part in (_describe_wanted(value), "required" if name in needed else "") if part)
        + ")"
        for name, value in items[:PARAMETERS_SHOWN]
    ]
    return ", ".join(text.removesuffix(" ()") for text in texts) + (", …" if len(items) > PARAMETERS_SHOWN else "")


def _describe_wanted(schema: object) -> str:
    if not isinstance(schema, Mapping):
        return ""
    found = cast("Mapping[str, Any]", schema)
    if isinstance(found.get("enum"), list):
        return f"one of {_describe_choices(found['enum'])}"
    if "const" in found:
        return _describe_value(found["const"])
    for forms in (found.get("anyOf"), found.get("oneOf")):
        if isinstance(forms, list):
            return " or ".join(dict.fromkeys(_describe_wanted(form) for form in cast("list[object]", forms)))
    return _describe_types(found["type"]) if "type" in found else ""


def _describe_types(value: object) -> str:
    return " or ".join(map(str, cast("list[object]", value))) if isinstance(value, list) else str(value)


def _describe_choices(values: Sequence[object]) -> str:
    return list_first([_describe_value(value) for value in values[: PROBLEMS_SHOWN + 1]], PROBLEMS_SHOWN)


def _describe_value(value: object) -> str:
    match value:
        case dict():
            return "an object"
        case list():
            return "an array"
        case str() if len(value) > VALUE_LENGTH_SHOWN:
            return f"a text of {len(value)} characters"
        case _:
            return json.dumps(value, ensure_ascii=False, default=str)


def _schema_properties(schema: object) -> Mapping[str, Any]:
    found: object = cast("Mapping[str, Any]", schema).get("properties") if isinstance(schema, Mapping) else None
    return cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else {}


def _unknown_properties(problem: SchemaViolation) -> list[str]:
    """The given properties that the schema does not have."""
    properties = _schema_properties(problem.schema)
    return [name for name in cast("Mapping[str, Any]", problem.instance) if name not in properties]


SCHEMAS_CACHED = 1000
# More than any tool needs. With more values, the server may check for itself.
MAX_VALUES = 10_000
MAX_SCHEMA = 256 * 1024
MAX_PROBLEMS = 50


@dataclass(slots=True)
class KnownSchema:
    """What is known about one schema; `sound` is set when a check first needs it."""

    fits: FitsSchema | None
    sound: bool | None = None


class ArgumentCheck:
    """Keeps the most recently used schemas, by digest."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, KnownSchema] = OrderedDict()
        # The schema objects seen last, by `id()`, so that most calls need no digest. Keeping the object keeps its id
        # unique.
        self._seen: dict[int, tuple[Mapping[str, Any], KnownSchema]] = {}

    async def check(self, tool: str, schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> None:
        """Raise `Invalid` if the arguments do not fit; an invalid schema accepts everything."""
        known = self._look_up(schema)
        if known is None or known.sound is False or _has_too_many_values(arguments):
            return
        if known.fits is not None and known.fits(arguments):
            return
        try:
            found = find_violations(schema, arguments, MAX_PROBLEMS)
        except UnusableSchema:
            known.sound = False
            return
        if found and await self._is_sound(known, schema):
            raise Invalid(describe_problems(tool, schema, found))

    async def _is_sound(self, known: KnownSchema, schema: Mapping[str, Any]) -> bool:
        if known.sound is None:
            # This takes many milliseconds for a large schema.
            known.sound = await anyio.to_thread.run_sync(is_valid_schema, schema)
        return known.sound

    def _look_up(self, schema: Mapping[str, Any]) -> KnownSchema | None:
        seen = self._seen.get(id(schema))
        if seen is not None and seen[0] is schema:
            return seen[1]
        known = self._by_digest(schema)
        if known is not None:
            if len(self._seen) >= SCHEMAS_CACHED:
                self._seen.clear()
            self._seen[id(schema)] = schema, known
        return known

    def _by_digest(self, schema: Mapping[str, Any]) -> KnownSchema | None:
        try:
            # marshal is four times as fast as JSON, and it distinguishes 1 from True.
            written = marshal.dumps(cast("dict[str, None]", schema), 2)
        except ValueError:
            return None
        if len(written) > MAX_SCHEMA:
            return None
        key = hashlib.sha256(written).digest()
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = KnownSchema(compile_quick_check(schema, written))
            if len(self._known) > SCHEMAS_CACHED:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(key)
        return known


def _has_too_many_values(arguments: Mapping[str, Any]) -> bool:
    """Whether there are so many values that checking them would delay other requests."""
    waiting, seen = [cast("object", arguments)], 0
    while waiting and seen <= MAX_VALUES:
        value = waiting.pop()
        if isinstance(value, Mapping):
            waiting.extend(cast("Mapping[str, object]", value).values())
        elif isinstance(value, list):
            waiting.extend(cast("list[object]", value))
        seen += 1
    return seen > MAX_VALUES
