"""Cleans what a server lists: drops unusable names, removes hidden characters, repairs schemas.

The full check against the metaschema takes ten milliseconds a tool; this module checks only the keywords that matter
here.
"""

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from frontdesk.mcp_client.model import RemoteTool, api_name
from frontdesk.tools.model import tool_text

Schema = Mapping[str, Any]

JSON_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
# How deep a schema may nest: far more than any tool needs, far less than Python's recursion limit.
DEEPEST_SCHEMA = 40
ANY_OBJECT_SCHEMA: Schema = {"type": "object"}
NESTED_SCHEMAS = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
NESTED_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
NESTED_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
NUMBER_KEYWORDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
COUNT_KEYWORDS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")


def find_schema_fault(schema: object) -> str | None:
    """Describe the fault of a tool's input schema in a few words; None if it has none."""
    if not isinstance(schema, dict):
        return "is no object"
    root = cast("Schema", schema)
    if "type" in root and root["type"] != "object":
        return f"is of type {str(root['type'])[:40]!r} where a tool takes an object"
    return _fault_at(root, "", 0)


def repair_schema(schema: object) -> Schema:
    """Keep the valid parts of a faulty schema: parameters keep their names; a faulty one accepts any value."""
    if not isinstance(schema, dict):
        return ANY_OBJECT_SCHEMA
    root = cast("Schema", schema)
    properties = root.get("properties")
    if root.get("type", "object") != "object" or not isinstance(properties, dict):
        return ANY_OBJECT_SCHEMA
    kept = {name: _repair_part(value) for name, value in cast("Schema", properties).items()}
    required = root.get("required")
    names = [name for name in _as_list(required) if name in kept] if _fault_of_required(required) is None else []
    found = {"type": "object", "properties": kept, **({"required": names} if names else {})}
    # A part that refers to definitions of the whole schema is not valid without them.
    return ANY_OBJECT_SCHEMA if "$ref" in str(kept) else found


def schema_parameters(schema: Schema) -> tuple[str, ...]:
    """The names of a tool's parameters."""
    properties = schema.get("properties")
    return tuple(cast("Schema", properties)) if isinstance(properties, dict) else ()


def schema_texts(schema: Schema) -> str:
    """The descriptions and permitted values of a tool's parameters, as one text."""
    return " ".join(_walk_schema_texts(schema, 0))


def _walk_schema_texts(part: object, depth: int) -> Iterator[str]:
    if not isinstance(part, dict) or depth > DEEPEST_SCHEMA:
        return
    schema = cast("Schema", part)
    if depth:
        yield from (
            word for word in [schema.get("description"), *_as_list(schema.get("enum"))] if isinstance(word, str)
        )
    nested = [schema.get("items"), *(one for word in NESTED_LISTS for one in _as_list(schema.get(word)))]
    properties = schema.get("properties")
    for one in (*nested, *(cast("Schema", properties).values() if isinstance(properties, dict) else ())):
        yield from _walk_schema_texts(one, depth + 1)


def _repair_part(value: object) -> object:
    if _fault_at(value, "", 1) is None:
        return value
    told = cast("Schema", value).get("description") if isinstance(value, dict) else None
    return {"description": told} if isinstance(told, str) else {}


def _fault_at(schema: object, where: str, depth: int) -> str | None:
    if isinstance(schema, bool):
        return None
    if not isinstance(schema, dict):
        return f"has no schema at {where or 'its root'}"
    if depth > DEEPEST_SCHEMA:
        return "nests too deep"
    found = cast("Schema", schema)
    return _fault_of_keywords(found, where) or _fault_in_nested(found, where, depth)


def _fault_in_nested(schema: Schema, where: str, depth: int) -> str | None:
    for word in NESTED_MAPS:
        if word in schema and not isinstance(schema[word], dict):
            return f"has {where}{word} that is no object"
    for word in NESTED_LISTS:
        if word in schema and not (isinstance(schema[word], list) and schema[word]):
            return f"has {where}{word} that is no list of schemas"
    nested = [(f"{where}{word}", schema[word]) for word in NESTED_SCHEMAS if word in schema]
    for word in NESTED_LISTS:
        nested += [(f"{where}{word}.{number}", part) for number, part in enumerate(_as_list(schema.get(word)))]
    for word in NESTED_MAPS:
        nested += [(f"{where}{word}.{str(name)[:40]}", part) for name, part in schema.get(word, {}).items()]
    return next((told for at, part in nested if (told := _fault_at(part, f"{at}.", depth + 1))), None)


def _fault_of_keywords(schema: Schema, where: str) -> str | None:
    kinds = schema.get("type", [])
    for kind in _as_list(kinds, [kinds]):
        if not isinstance(kind, str) or kind not in JSON_TYPES:
            return f"has {where}type {str(kind)[:40]!r}, which there is not"
    if "$ref" in schema and not str(schema["$ref"]).startswith("#"):
        return f"points at another document in {where}$ref"
    if "enum" in schema and not isinstance(schema["enum"], list):
        return f"has {where}enum that is no list"
    for words, kind in ((NUMBER_KEYWORDS, (int, float)), (COUNT_KEYWORDS, int)):
        for word in words:
            if word in schema and (not isinstance(schema[word], kind) or isinstance(schema[word], bool)):
                return f"has {where}{word} that is no number"
    return _fault_of_required(schema.get("required"), where) or _fault_of_pattern(schema.get("pattern"), where)


def _fault_of_required(required: object, where: str = "") -> str | None:
    if required is None or all(isinstance(name, str) for name in _as_list(required, (None,))):
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


def _as_list(value: object, otherwise: Sequence[Any] = ()) -> Sequence[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else otherwise


MOST_TOOLS = 20_000
LONGEST_NAME = 200
LONGEST_DESCRIPTION = 20_000
LONGEST_SCHEMA = 100_000
LONGEST_INPUT_TEXTS = 4_000
LONGEST_ANNOTATIONS = 10_000
# How many faulty schemas of one listing are examined.
MOST_FAULTS = 500
MOST_PROBLEMS = 50
SEAL_PART_LENGTH = 24
# Characters that no database stores, and characters that a model sees but a reader does not: control, direction and tag
# characters, zero-width spaces, and selectors of variants that do not exist. Emoji and Persian need some other
# invisible characters.
HIDDEN_CHARACTERS = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\ufe00-\ufe0d\ufeff\ud800-\udfff\U000e0000-\U000e01ef]"
)
# The same characters as JSON escapes them.
ESCAPED_CHARACTERS = re.compile(r"\\(?:u00|[bfnrt])")

JsonObject = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ListedTool:
    """A listed tool that can be kept. `parameters` and `annotations` are JSON; `seal` differs between versions."""

    name: str
    api_name: str
    description: str
    parameters: str
    annotations: str
    inputs: tuple[str, ...]
    input_texts: str
    seal: str
    digest: str


@dataclass(frozen=True, slots=True)
class CleanedListing:
    """The usable part of a listing, and the problems found in it."""

    tools: Sequence[ListedTool]
    problems: Sequence[str]


def clean_listing(server: str, tools: Sequence[RemoteTool], sound: Collection[str] = ()) -> CleanedListing:
    """Keep each name once. `sound` has digests of schemas that are known to be good, see `schema_digest_in_seal`."""
    return _ListingCleaner(server, sound).clean(tools)


def schema_digest_in_seal(seal: str) -> str:
    """The digest of the schema in a seal."""
    return seal.split(":")[1]


def describe_differences(one: str, other: str) -> str:
    """Say which parts differ between two seals: "description and schema"."""
    parts = zip(("description", "schema", "annotations"), one.split(":"), other.split(":"), strict=False)
    return " and ".join(word for word, left, right in parts if left != right)


def remove_hidden_characters(text: str) -> str:
    """Remove the characters that cannot be stored or seen."""
    return HIDDEN_CHARACTERS.sub("", text)


class _ListingCleaner:
    """Cleans one listing and collects its problems."""

    def __init__(self, server: str, sound: Collection[str]) -> None:
        self._server = server
        self._sound = sound
        self._faults = 0
        self._problems: list[str] = []
        self._kept: dict[str, ListedTool] = {}
        self._api_names: dict[str, str] = {}

    def clean(self, tools: Sequence[RemoteTool]) -> CleanedListing:
        if len(tools) > MOST_TOOLS:
            self._problems.append(f"lists {len(tools)} tools; the first {MOST_TOOLS} are taken")
        for tool in tools[:MOST_TOOLS]:
            if self._can_be_named(tool.name):
                self._kept[tool.name] = self._listed(tool)
        more = len(self._problems) - MOST_PROBLEMS
        problems = [remove_hidden_characters(told) for told in self._problems[:MOST_PROBLEMS]] + (
            [f"and {more} more"] if more > 0 else []
        )
        return CleanedListing(tuple(self._kept.values()), tuple(problems))

    def _can_be_named(self, name: str) -> bool:
        shown = repr(remove_hidden_characters(name)[:60])
        # A line break in a name would forge lines in every list of tools.
        if (
            not name.strip()
            or not name.isprintable()
            or name != remove_hidden_characters(name)
            or len(name) > LONGEST_NAME
        ):
            self._problems.append(f"tool {shown} is left out: its name is empty, too long or holds hidden characters")
            return False
        if name in self._kept:
            self._problems.append(f"tool {shown} is listed twice; the first counts")
            return False
        other = self._api_names.setdefault(api_name(self._server, name, {}), name)
        if other != name:
            self._problems.append(f"tool {shown} is left out: models could not tell it from {other!r}")
            return False
        return True

    def _listed(self, tool: RemoteTool) -> ListedTool:
        description = self._description(tool)
        schema, schema_digest = self._schema(tool)
        inputs = tuple(" ".join(remove_hidden_characters(name).split()) for name in schema_parameters(schema))
        annotations = _dump_json(_without_hidden(tool.annotations)) or "{}"
        if len(annotations) > LONGEST_ANNOTATIONS:
            self._problems.append(f"tool {tool.name!r}: its annotations of {len(annotations)} characters were left out")
            annotations = "{}"
        return ListedTool(
            tool.name,
            api_name(self._server, tool.name, {}),
            description,
            _dump_json(schema) or "{}",
            annotations,
            inputs,
            remove_hidden_characters(schema_texts(schema))[:LONGEST_INPUT_TEXTS],
            f"{_digest(description)}:{schema_digest}:{_digest(annotations)}",
            digest_embedded_text(self._server, tool.name, description, inputs),
        )

    def _description(self, tool: RemoteTool) -> str:
        found = remove_hidden_characters(tool.description)
        if len(found) != len(tool.description):
            self._problems.append(f"tool {tool.name!r}: hidden characters were taken out of its description")
        if len(found) > LONGEST_DESCRIPTION:
            self._problems.append(f"tool {tool.name!r}: its description of {len(found)} characters was cut")
        return found[:LONGEST_DESCRIPTION]

    def _schema(self, tool: RemoteTool) -> tuple[Mapping[str, Any], str]:
        """The valid part of the schema, and its digest, which does not depend on the order of keys."""
        schema = _without_hidden(tool.parameters)
        if schema is not tool.parameters:
            self._problems.append(f"tool {tool.name!r}: hidden characters were taken out of its schema")
        in_order = _dump_json(schema, in_order=True)
        if in_order is None or len(in_order) > LONGEST_SCHEMA:
            self._problems.append(f"tool {tool.name!r}: its schema is too large or no JSON; any arguments are taken")
            schema, in_order = ANY_OBJECT_SCHEMA, _dump_json(ANY_OBJECT_SCHEMA, in_order=True)
        elif _digest(in_order) not in self._sound and (fault := self._fault(schema)):
            self._problems.append(f"tool {tool.name!r}: its schema {fault}; it was mended")
            schema = repair_schema(schema) if self._faults <= MOST_FAULTS else ANY_OBJECT_SCHEMA
            in_order = _dump_json(schema, in_order=True)
        return schema, _digest(in_order or "")

    def _fault(self, schema: object) -> str | None:
        if self._faults > MOST_FAULTS:
            return "was not looked into, for so many others are faulty"
        found = find_schema_fault(schema)
        self._faults += found is not None
        return found


def digest_embedded_text(server: str, name: str, description: str, inputs: Sequence[str]) -> str:
    """The key of a tool's embedded text: two tools with the same text share a vector."""
    return hashlib.sha256(tool_text(server, name, description, inputs).encode(errors="replace")).hexdigest()[:32]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:SEAL_PART_LENGTH]


def _without_hidden(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """The value without hidden characters in its texts; the same object if it has none or is not JSON."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        found = _clean_json(value) if HIDDEN_CHARACTERS.search(text) or ESCAPED_CHARACTERS.search(text) else value
        same = found == value
    except (ValueError, TypeError, RecursionError):
        return value
    return value if same else found


def _clean_json(value: Any) -> Any:  # noqa: ANN401 - any JSON
    match value:
        case str():
            return remove_hidden_characters(value)
        case dict():
            return {_clean_key(key): _clean_json(one) for key, one in cast("JsonObject", value).items()}
        case list():
            return [_clean_json(one) for one in cast("list[Any]", value)]
        case _:
            return value


def _clean_key(name: str) -> str:
    """Make a parameter's name fit on one line."""
    return name if name.isprintable() else " ".join(remove_hidden_characters(name).split())


def _dump_json(value: object, *, in_order: bool = False) -> str | None:
    try:
        return json.dumps(value, sort_keys=in_order, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        return None
