"""Tells whether a server's schema is one, and mends what is not: a tool must not be lost to a sloppy word in it.

The full check against the metaschema takes ten milliseconds a tool; this one looks at the words that matter here.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

Schema = Mapping[str, Any]

TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
# How deep a schema may nest: far more than any tool needs, far less than Python's own limit.
DEEPEST = 40
ANYTHING: Schema = {"type": "object"}
NESTED = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
NESTED_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
NESTED_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")


def fault(schema: object) -> str | None:
    """What is wrong with a tool's input schema, in a few words, or None."""
    if not isinstance(schema, dict):
        return "is no object"
    root = cast("Schema", schema)
    if "type" in root and root["type"] != "object":
        return f"is of type {str(root['type'])[:40]!r} where a tool takes an object"
    return _fault(root, "", 0)


def mended(schema: object) -> Schema:
    """The parts of a faulty schema that hold: parameters keep their names, and take anything where they must."""
    if not isinstance(schema, dict):
        return ANYTHING
    root = cast("Schema", schema)
    properties = root.get("properties")
    if root.get("type", "object") != "object" or not isinstance(properties, dict):
        return ANYTHING
    kept = {name: _part(value) for name, value in cast("Schema", properties).items()}
    required = root.get("required")
    names = [name for name in _list(required) if name in kept] if _fault_of_required(required) is None else []
    found = {"type": "object", "properties": kept, **({"required": names} if names else {})}
    # A part that leans on definitions of the whole is sound by itself, and not without them.
    return ANYTHING if "$ref" in str(kept) else found


def inputs(schema: Schema) -> tuple[str, ...]:
    """The names of a tool's parameters."""
    properties = schema.get("properties")
    return tuple(cast("Schema", properties)) if isinstance(properties, dict) else ()


def texts(schema: Schema) -> str:
    """What the schema says about a tool's parameters, and the words they may be, run together."""
    return " ".join(_texts(schema, 0))


def _texts(part: object, depth: int) -> Iterator[str]:
    if not isinstance(part, dict) or depth > DEEPEST:
        return
    schema = cast("Schema", part)
    if depth:
        yield from (word for word in [schema.get("description"), *_list(schema.get("enum"))] if isinstance(word, str))
    nested = [schema.get("items"), *(one for word in NESTED_LISTS for one in _list(schema.get(word)))]
    properties = schema.get("properties")
    for one in (*nested, *(cast("Schema", properties).values() if isinstance(properties, dict) else ())):
        yield from _texts(one, depth + 1)


def _part(value: object) -> object:
    if _fault(value, "", 1) is None:
        return value
    told = cast("Schema", value).get("description") if isinstance(value, dict) else None
    return {"description": told} if isinstance(told, str) else {}


def _fault(schema: object, where: str, depth: int) -> str | None:
    if isinstance(schema, bool):
        return None
    if not isinstance(schema, dict):
        return f"has no schema at {where or 'its root'}"
    if depth > DEEPEST:
        return "nests too deep"
    found = cast("Schema", schema)
    return _fault_of_words(found, where) or _fault_within(found, where, depth)


def _fault_within(schema: Schema, where: str, depth: int) -> str | None:
    for word in NESTED_MAPS:
        if word in schema and not isinstance(schema[word], dict):
            return f"has {where}{word} that is no object"
    for word in NESTED_LISTS:
        if word in schema and not (isinstance(schema[word], list) and schema[word]):
            return f"has {where}{word} that is no list of schemas"
    nested = [(f"{where}{word}", schema[word]) for word in NESTED if word in schema]
    for word in NESTED_LISTS:
        nested += [(f"{where}{word}.{number}", part) for number, part in enumerate(_list(schema.get(word)))]
    for word in NESTED_MAPS:
        nested += [(f"{where}{word}.{str(name)[:40]}", part) for name, part in schema.get(word, {}).items()]
    return next((told for at, part in nested if (told := _fault(part, f"{at}.", depth + 1))), None)


def _fault_of_words(schema: Schema, where: str) -> str | None:
    kinds = schema.get("type", [])
    for kind in _list(kinds, [kinds]):
        if not isinstance(kind, str) or kind not in TYPES:
            return f"has {where}type {str(kind)[:40]!r}, which there is not"
    if "$ref" in schema and not str(schema["$ref"]).startswith("#"):
        return f"points at another document in {where}$ref"
    if "enum" in schema and not isinstance(schema["enum"], list):
        return f"has {where}enum that is no list"
    for words, kind in ((NUMBERS, (int, float)), (COUNTS, int)):
        for word in words:
            if word in schema and (not isinstance(schema[word], kind) or isinstance(schema[word], bool)):
                return f"has {where}{word} that is no number"
    return _fault_of_required(schema.get("required"), where) or _fault_of_pattern(schema.get("pattern"), where)


def _fault_of_required(required: object, where: str = "") -> str | None:
    if required is None or all(isinstance(name, str) for name in _list(required, (None,))):
        return None
    return f"has {where}required that is no list of names"


def _fault_of_pattern(pattern: object, where: str) -> str | None:
    if pattern is None:
        return None
    try:
        re.compile(pattern if isinstance(pattern, str) else "(")
    except (re.error, RecursionError, OverflowError):
        return f"has {where}pattern that cannot be used"
    return None


def _list(value: object, otherwise: Sequence[Any] = ()) -> Sequence[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else otherwise
