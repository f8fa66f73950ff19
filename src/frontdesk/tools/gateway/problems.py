"""What is wrong with arguments, in words an agent can act on: where, what is wanted, and what was perhaps meant."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from frontdesk.loop.text import closest, some_of
from frontdesk.tools.gateway.schemas import Problem

SHOWN = 10
SHOWN_NAMES = 30
VALUE_LENGTH = 60
MESSAGE_LENGTH = 200
BOUNDS: Mapping[str, str] = {
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


def told(tool: str, schema: Mapping[str, Any], problems: Sequence[Problem]) -> str:
    """The whole message: each problem once, and the properties there are."""
    lines = list(dict.fromkeys(line for problem in problems for line in _lines(problem)))
    shown = lines[:SHOWN] + ([f"and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else [])
    known = _described(schema)
    return "\n".join(
        [
            f"The arguments do not fit {tool}; nothing was called. Correct this and call again:",
            *(f"- {line}" for line in shown),
            f"Its arguments: {known}" if known else "It takes no arguments.",
        ]
    )


def _lines(problem: Problem) -> Iterable[str]:
    match problem.validator:
        case "required":
            return [_missing(problem, name) for name in problem.validator_value if name not in problem.instance]
        case "additionalProperties" if problem.validator_value is False:
            return [_unknown(problem, name) for name in _strangers(problem)]
        case "anyOf" | "oneOf" if problem.context:
            return [_no_form(problem)]
        case _:
            return [f"{_where(problem)}: {_reason(problem)}"]


def _missing(problem: Problem, name: str) -> str:
    wanted = _wanted(_properties(problem.schema).get(name))
    line = f"{_where(problem, name)}: is missing" + (f" ({wanted})" if wanted else "")
    meant = closest(name, _strangers(problem))
    return f"{line}; you gave '{meant}', did you mean '{name}'?" if meant else line


def _unknown(problem: Problem, name: str) -> str:
    properties = _properties(problem.schema)
    meant = closest(name, [known for known in properties if known not in problem.instance]) or closest(
        name, list(properties)
    )
    line = f"{_where(problem, name)}: there is no such argument"
    return f"{line}; did you mean '{meant}'?" if meant else line


def _no_form(problem: Problem) -> str:
    """Of the forms that a value may take, the one it comes nearest to; where it is none at all, all of them."""
    nearest = max(problem.context, key=lambda inner: len(list(inner.absolute_path)))
    if len(list(nearest.absolute_path)) > len(list(problem.absolute_path)):
        return next(iter(_lines(nearest)))
    forms = [_wanted(form) for form in problem.validator_value]
    wanted = " or ".join(dict.fromkeys(form for form in forms if form)) or "another value"
    return f"{_where(problem)}: expected {wanted}, got {_shown(problem.instance)}"


def _reason(problem: Problem) -> str:
    value, got = problem.validator_value, _shown(problem.instance)
    match problem.validator:
        case "type":
            return f"expected {_types(value)}, got {got}"
        case "enum":
            return f"must be one of {_choices(value)}, got {got}"
        case "const":
            return f"must be {_shown(value)}, got {got}"
        case bound if bound in BOUNDS:
            return f"{BOUNDS[bound].format(value)}, got {got}"
        case _:
            return problem.message[:MESSAGE_LENGTH]


def _where(problem: Problem, name: str | None = None) -> str:
    path = [*problem.absolute_path, *([] if name is None else [name])]
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")[:MESSAGE_LENGTH] or "the arguments"


def _described(schema: Mapping[str, Any]) -> str:
    required = schema.get("required")
    needed = cast("list[str]", required) if isinstance(required, list) else []
    items = list(_properties(schema).items())
    texts = [
        f"{name} ({', '.join(part for part in (_wanted(value), 'required' if name in needed else '') if part)})"
        for name, value in items[:SHOWN_NAMES]
    ]
    return ", ".join(text.removesuffix(" ()") for text in texts) + (", …" if len(items) > SHOWN_NAMES else "")


def _wanted(schema: object) -> str:
    if not isinstance(schema, Mapping):
        return ""
    found = cast("Mapping[str, Any]", schema)
    if isinstance(found.get("enum"), list):
        return f"one of {_choices(found['enum'])}"
    if "const" in found:
        return _shown(found["const"])
    for forms in (found.get("anyOf"), found.get("oneOf")):
        if isinstance(forms, list):
            return " or ".join(dict.fromkeys(_wanted(form) for form in cast("list[object]", forms)))
    return _types(found["type"]) if "type" in found else ""


def _types(value: object) -> str:
    return " or ".join(map(str, cast("list[object]", value))) if isinstance(value, list) else str(value)


def _choices(values: Sequence[object]) -> str:
    return some_of([_shown(value) for value in values[: SHOWN + 1]], SHOWN)


def _shown(value: object) -> str:
    match value:
        case dict():
            return "an object"
        case list():
            return "an array"
        case str() if len(value) > VALUE_LENGTH:
            return f"a text of {len(value)} characters"
        case _:
            return json.dumps(value, ensure_ascii=False, default=str)


def _properties(schema: object) -> Mapping[str, Any]:
    found: object = cast("Mapping[str, Any]", schema).get("properties") if isinstance(schema, Mapping) else None
    return cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else {}


def _strangers(problem: Problem) -> list[str]:
    """The properties that were given and are not known."""
    properties = _properties(problem.schema)
    return [name for name in cast("Mapping[str, Any]", problem.instance) if name not in properties]
