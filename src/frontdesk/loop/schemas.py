"""JSON schemas as models read them best: everything in its place, and nothing said that tells them nothing."""

from collections.abc import Mapping
from typing import Any, cast

DEFINITIONS = "$defs"
REFERENCE = "#/$defs/"
# In these each key is somebody's name for a schema, and no word of the schema itself.
NAMED = ("properties", "patternProperties")
# In these there is data, in which a key may be called like a word of a schema.
DATA = ("default", "const", "enum", "examples")

Schema = Mapping[str, Any]


def inlined(schema: Schema) -> dict[str, Any]:
    """The schema with each definition where it is referred to, and without the names that classes and fields have.

    Where a definition holds itself, anything is taken: no schema can be written out that has no end.
    """
    definitions: Mapping[str, Schema] = schema.get(DEFINITIONS, {})
    return _whole({key: value for key, value in schema.items() if key != DEFINITIONS}, definitions, ())


def _whole(schema: Schema, definitions: Mapping[str, Schema], within: tuple[str, ...]) -> dict[str, Any]:
    reference = schema.get("$ref", "")
    if reference.startswith(REFERENCE):
        name = reference.removeprefix(REFERENCE)
        meant: Schema = {} if name in within else definitions[name]
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        return _whole({**meant, **beside}, definitions, (*within, name))
    return {key: _part(key, value, definitions, within) for key, value in schema.items() if key != "title"}


def _part(key: str, value: object, definitions: Mapping[str, Schema], within: tuple[str, ...]) -> object:
    match value:
        case dict() if key in NAMED:
            named = cast("Mapping[str, Schema]", value)
            return {name: _whole(one, definitions, within) for name, one in named.items()}
        case dict() if key not in DATA:
            return _whole(cast("Schema", value), definitions, within)
        case list() if key not in DATA:
            return [
                _whole(cast("Schema", one), definitions, within) if isinstance(one, dict) else one
                for one in cast("list[object]", value)
            ]
        case _:
            return value
