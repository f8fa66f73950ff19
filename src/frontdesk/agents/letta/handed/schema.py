"""A tool's schema in words that Letta can read."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
ONES = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")


def readable(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Without `true` and `false` in the place of a schema: at one of them Letta fails to read a whole list of tools.

    Whether the arguments of a call fit is checked against the schema as it was.
    """
    return {key: _readable(key, value) for key, value in schema.items()}


def _readable(key: str, value: object) -> object:
    if key in MAPS and isinstance(value, Mapping):
        return {name: _schema(part) for name, part in cast("Mapping[str, object]", value).items()}
    if key in LISTS and isinstance(value, Sequence):
        return [_schema(part) for part in cast("Sequence[object]", value)]
    return readable(cast("Mapping[str, Any]", value)) if key in ONES and isinstance(value, Mapping) else value


def _schema(part: object) -> object:
    if isinstance(part, bool):
        return {}
    return readable(cast("Mapping[str, Any]", part)) if isinstance(part, Mapping) else part
