"""Takes in what a server says of its tools: keeps what can be kept, and reports the rest instead of failing on it."""

import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from frontdesk.loop.mcp.model import RemoteTool
from frontdesk.loop.mcp.names import api_name
from frontdesk.tools.catalogue import schemas
from frontdesk.tools.text import tool_text

MOST_TOOLS = 20_000
LONGEST_NAME = 200
LONGEST_DESCRIPTION = 20_000
LONGEST_SCHEMA = 100_000
LONGEST_INPUT_TEXTS = 4_000
LONGEST_ANNOTATIONS = 10_000
# How many faulty schemas are looked into; a server with more of them has other worries.
MOST_FAULTS = 500
MOST_PROBLEMS = 50
PART = 24
# What no database takes, and what a reader cannot see while a model does: control, direction and tag characters, blanks
# without a width, and variants of characters that there are not. Emoji and Persian need some others that do not show.
HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\ufe00-\ufe0d\ufeff\ud800-\udfff\U000e0000-\U000e01ef]"
)
# Such characters as JSON writes them.
ESCAPED = re.compile(r"\\(?:u00|[bfnrt])")

JsonObject = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Listed:
    """A tool of a listing that can be kept. `parameters` and `annotations` are JSON; `seal` tells versions apart."""

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
class Sifted:
    """What is left of a listing, and what was wrong with it."""

    tools: Sequence[Listed]
    problems: Sequence[str]


def sift(server: str, tools: Sequence[RemoteTool], sound: Collection[str] = ()) -> Sifted:
    """Keep each name once. `sound` are digests of schemas that were found good before, see `schema_part`."""
    return _Sieve(server, sound).sift(tools)


def schema_part(seal: str) -> str:
    """The digest of the schema in a seal."""
    return seal.split(":")[1]


def differences(one: str, other: str) -> str:
    """What two seals say has changed: "description and schema"."""
    parts = zip(("description", "schema", "annotations"), one.split(":"), other.split(":"), strict=False)
    return " and ".join(word for word, left, right in parts if left != right)


def clean(text: str) -> str:
    """The text without what cannot be stored or seen."""
    return HIDDEN.sub("", text)


class _Sieve:
    """One listing on its way through."""

    def __init__(self, server: str, sound: Collection[str]) -> None:
        self._server = server
        self._sound = sound
        self._faults = 0
        self._problems: list[str] = []
        self._kept: dict[str, Listed] = {}
        self._api_names: dict[str, str] = {}

    def sift(self, tools: Sequence[RemoteTool]) -> Sifted:
        if len(tools) > MOST_TOOLS:
            self._problems.append(f"lists {len(tools)} tools; the first {MOST_TOOLS} are taken")
        for tool in tools[:MOST_TOOLS]:
            if self._can_be_named(tool.name):
                self._kept[tool.name] = self._listed(tool)
        more = len(self._problems) - MOST_PROBLEMS
        problems = [clean(told) for told in self._problems[:MOST_PROBLEMS]] + ([f"and {more} more"] if more > 0 else [])
        return Sifted(tuple(self._kept.values()), tuple(problems))

    def _can_be_named(self, name: str) -> bool:
        shown = repr(clean(name)[:60])
        # A line break in a name would forge lines wherever tools are listed.
        if not name.strip() or not name.isprintable() or name != clean(name) or len(name) > LONGEST_NAME:
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

    def _listed(self, tool: RemoteTool) -> Listed:
        description = self._description(tool)
        schema, schema_digest = self._schema(tool)
        inputs = tuple(" ".join(clean(name).split()) for name in schemas.inputs(schema))
        annotations = _dumped(_visible(tool.annotations)) or "{}"
        if len(annotations) > LONGEST_ANNOTATIONS:
            self._problems.append(f"tool {tool.name!r}: its annotations of {len(annotations)} characters were left out")
            annotations = "{}"
        return Listed(
            tool.name,
            api_name(self._server, tool.name, {}),
            description,
            _dumped(schema) or "{}",
            annotations,
            inputs,
            clean(schemas.texts(schema))[:LONGEST_INPUT_TEXTS],
            f"{_digest(description)}:{schema_digest}:{_digest(annotations)}",
            digest_of(self._server, tool.name, description, inputs),
        )

    def _description(self, tool: RemoteTool) -> str:
        found = clean(tool.description)
        if len(found) != len(tool.description):
            self._problems.append(f"tool {tool.name!r}: hidden characters were taken out of its description")
        if len(found) > LONGEST_DESCRIPTION:
            self._problems.append(f"tool {tool.name!r}: its description of {len(found)} characters was cut")
        return found[:LONGEST_DESCRIPTION]

    def _schema(self, tool: RemoteTool) -> tuple[Mapping[str, Any], str]:
        """The schema as far as it holds, and its digest whatever the order of its words."""
        schema = _visible(tool.parameters)
        if schema is not tool.parameters:
            self._problems.append(f"tool {tool.name!r}: hidden characters were taken out of its schema")
        in_order = _dumped(schema, in_order=True)
        if in_order is None or len(in_order) > LONGEST_SCHEMA:
            self._problems.append(f"tool {tool.name!r}: its schema is too large or no JSON; any arguments are taken")
            schema, in_order = schemas.ANYTHING, _dumped(schemas.ANYTHING, in_order=True)
        elif _digest(in_order) not in self._sound and (fault := self._fault(schema)):
            self._problems.append(f"tool {tool.name!r}: its schema {fault}; it was mended")
            schema = schemas.mended(schema) if self._faults <= MOST_FAULTS else schemas.ANYTHING
            in_order = _dumped(schema, in_order=True)
        return schema, _digest(in_order or "")

    def _fault(self, schema: object) -> str | None:
        if self._faults > MOST_FAULTS:
            return "was not looked into, for so many others are faulty"
        found = schemas.fault(schema)
        self._faults += found is not None
        return found


def digest_of(server: str, name: str, description: str, inputs: Sequence[str]) -> str:
    """Names the text that is embedded for a tool: two tools of one text share a vector."""
    return hashlib.sha256(tool_text(server, name, description, inputs).encode(errors="replace")).hexdigest()[:32]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:PART]


def _visible(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same without hidden characters in any of its texts; itself, where there are none or it is no JSON."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        found = _cleaned(value) if HIDDEN.search(text) or ESCAPED.search(text) else value
        same = found == value
    except (ValueError, TypeError, RecursionError):
        return value
    return value if same else found


def _cleaned(value: Any) -> Any:  # noqa: ANN401 - any JSON
    match value:
        case str():
            return clean(value)
        case dict():
            return {_key(key): _cleaned(one) for key, one in cast("JsonObject", value).items()}
        case list():
            return [_cleaned(one) for one in cast("list[Any]", value)]
        case _:
            return value


def _key(name: str) -> str:
    """A parameter's name is shown on one line."""
    return name if name.isprintable() else " ".join(clean(name).split())


def _dumped(value: object, *, in_order: bool = False) -> str | None:
    try:
        return json.dumps(value, sort_keys=in_order, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        return None
