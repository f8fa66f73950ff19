"""What a live schema takes otherwise than a declared one says: calls that follow the declaration would go wrong."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, cast

from frontdesk.platform.declared.saying import quoted

Schema = Mapping[str, Any]

DEEPEST = 8
# With one of these a schema says elsewhere which properties it has.
COMPOSED = ("$ref", "allOf", "anyOf", "oneOf", "if", "patternProperties", "dependentSchemas")


def drift(declared: Schema, live: Schema, most: int) -> list[str]:
    """The differences that matter to a caller, at most so many; a declaration without properties says nothing."""
    return list(islice(_differences(declared, live, "", DEEPEST), most))


def _differences(declared: Schema, live: Schema, where: str, depth: int) -> Iterator[str]:
    ours, theirs = _properties(declared), _properties(live)
    if ours is None or depth == 0:
        return
    required, open_ended = _required(declared), any(word in live for word in COMPOSED)
    for name, part in ours.items():
        path = f"{where}{name}"
        if theirs is not None and name in theirs:
            yield from _parts(part, theirs[name], path, depth)
        elif not open_ended:
            also = ", though the declaration requires it" if name in required else ""
            yield f"the server has no argument {quoted(path)}{also}"
    for name in _required(live):
        if name not in required:
            how = "declared as optional" if name in ours else "not declared"
            yield f"the server requires {quoted(where + name)}, which is {how}"


def _parts(declared: object, live: object, path: str, depth: int) -> Iterator[str]:
    if not isinstance(declared, dict) or not isinstance(live, dict):
        return
    ours, theirs = cast("Schema", declared), cast("Schema", live)
    said, taken = _types(ours, DEEPEST), _types(theirs, DEEPEST)
    if said and taken and not all(kind in taken or (kind == "integer" and "number" in taken) for kind in said):
        yield f"{quoted(path)} is {_either(taken)} there, and declared as {_either(said)}"
        return
    yield from _differences(ours, theirs, f"{path}.", depth - 1)
    if depth > 1:
        yield from _parts(ours.get("items"), theirs.get("items"), f"{path}[]", depth - 1)


def _types(schema: Schema, depth: int) -> frozenset[str]:
    """The kinds of value that a part takes; none where that cannot be told. Null is nobody's difference."""
    kind: object = schema.get("type")
    if isinstance(kind, str):
        return frozenset({kind}) - {"null"}
    if isinstance(kind, list):
        return frozenset(one for one in cast("list[object]", kind) if isinstance(one, str)) - {"null"}
    choices: object = schema.get("anyOf") or schema.get("oneOf")
    if depth == 0 or not isinstance(choices, list):
        return frozenset()
    parts = [
        _types(cast("Schema", one), depth - 1)
        for one in cast("list[object]", choices)
        if isinstance(one, dict) and cast("Schema", one).get("type") != "null"
    ]
    return frozenset[str]().union(*parts) if all(parts) else frozenset()


def _properties(schema: Schema) -> Mapping[str, object] | None:
    found: object = schema.get("properties")
    return cast("dict[str, object]", found) if isinstance(found, dict) else None


def _required(schema: Schema) -> Sequence[str]:
    found: object = schema.get("required")
    named = cast("list[object]", found) if isinstance(found, list) else []
    return [name for name in named if isinstance(name, str)]


def _either(kinds: frozenset[str]) -> str:
    return " or ".join(sorted(kinds))
