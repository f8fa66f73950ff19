"""The quick way to see that arguments fit: plain schemas, which most are, as one function; all else is left to others.

A JSON schema validator takes some 70 µs for a handful of arguments, these functions 3. They only ever say "it fits":
where they do not, or there is none for a schema, the validator is asked, which can also say why.
"""

from collections.abc import Callable, Mapping
from typing import Any, cast

Fits = Callable[[Any], bool]

MAX_DEPTH = 8
DRAFTS = ("https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema")
# They say nothing about what fits; patterns of foreign schemas are not run at all.
SILENT = frozenset(
    {
        "$comment",
        "$schema",
        "default",
        "deprecated",
        "description",
        "examples",
        "format",
        "pattern",
        "readOnly",
        "title",
        "writeOnly",
    }
)
OF_OBJECTS = frozenset({"properties", "required", "additionalProperties"})


class NotPlain(Exception):
    """A schema, or a part of one, that needs a real validator."""


def compiled(schema: Mapping[str, Any]) -> Fits | None:
    """The function for a schema, if it is plain."""
    try:
        if str(schema.get("$schema", DRAFTS[0])).rstrip("#") not in DRAFTS:
            return None
        return _compiled(schema, 0)
    except NotPlain:
        return None


def _compiled(schema: object, depth: int) -> Fits:
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        raise NotPlain
    found = cast("dict[str, Any]", schema)
    said = [keyword for keyword in found if keyword not in SILENT and keyword not in OF_OBJECTS]
    if not KEYWORDS.keys() >= set(said):
        raise NotPlain
    parts = [KEYWORDS[keyword](found[keyword], depth + 1) for keyword in said]
    if not OF_OBJECTS.isdisjoint(found):
        parts.append(_object(found, depth + 1))
    return parts[0] if len(parts) == 1 else lambda value: all(part(value) for part in parts)


def _object(schema: dict[str, Any], depth: int) -> Fits:
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(properties, dict) or not _is_list_of(str, required):
        raise NotPlain
    known = {name: _compiled(part, depth) for name, part in cast("dict[str, Any]", properties).items()}
    more: object = schema.get("additionalProperties", True)
    other: Fits = (lambda _value: bool(more)) if isinstance(more, bool) else _compiled(more, depth)

    def fits(value: object) -> bool:
        if not isinstance(value, dict):
            return True
        given = cast("dict[str, Any]", value)
        return all(name in given for name in required) and all(known.get(name, other)(given[name]) for name in given)

    return fits


def _type(value: object, _depth: int) -> Fits:
    names = cast("list[str]", [value] if isinstance(value, str) else value)
    if not _is_list_of(str, names) or not TYPES.keys() >= set(names):
        raise NotPlain
    tests = [TYPES[name] for name in names]
    return tests[0] if len(tests) == 1 else lambda given: any(test(given) for test in tests)


def _enum(value: object, _depth: int) -> Fits:
    # Of texts alone: whether 1, 1.0 and true are one value is a longer story.
    if not _is_list_of(str, value):
        raise NotPlain
    allowed = frozenset(cast("list[str]", value))
    return lambda given: isinstance(given, str) and given in allowed


def _any_of(value: object, depth: int) -> Fits:
    if not _is_list_of(dict, value) or not value:
        raise NotPlain
    forms = [_compiled(form, depth) for form in cast("list[object]", value)]
    return lambda given: any(form(given) for form in forms)


def _items(value: object, depth: int) -> Fits:
    fits = _compiled(value, depth)
    return lambda given: not isinstance(given, list) or all(fits(one) for one in cast("list[Any]", given))


def _limit(kind: Fits, measure: Callable[[Any], float], *, least: bool) -> Callable[[object, int], Fits]:
    def make(value: object, _depth: int) -> Fits:
        if not _is_number(value):
            raise NotPlain
        bound = cast("float", value)
        if least:
            return lambda given: not kind(given) or measure(given) >= bound
        return lambda given: not kind(given) or measure(given) <= bound

    return make


def _is_list_of(kind: type, value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, kind) for one in cast("list[object]", value))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_integer(value: object) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, float) and value.is_integer())


TYPES: Mapping[str, Fits] = {
    "array": lambda value: isinstance(value, list),
    "boolean": lambda value: isinstance(value, bool),
    "integer": _is_integer,
    "null": lambda value: value is None,
    "number": _is_number,
    "object": lambda value: isinstance(value, dict),
    "string": lambda value: isinstance(value, str),
}
KEYWORDS: Mapping[str, Callable[[object, int], Fits]] = {
    "anyOf": _any_of,
    "enum": _enum,
    "items": _items,
    "maxItems": _limit(TYPES["array"], len, least=False),
    "maxLength": _limit(TYPES["string"], len, least=False),
    "maximum": _limit(_is_number, float, least=False),
    "minItems": _limit(TYPES["array"], len, least=True),
    "minLength": _limit(TYPES["string"], len, least=True),
    "minimum": _limit(_is_number, float, least=True),
    "type": _type,
}
