"""The placeholders of an answer: `{{name}}` stands for the argument of that name, in any case."""

import re
from collections.abc import Mapping
from typing import Any, cast

PLACEHOLDER = re.compile(r"\{\{([^{}]*)\}\}")
# With one of these a schema takes arguments that its properties do not name.
OPEN = ("$ref", "allOf", "anyOf", "oneOf", "if", "patternProperties", "dependentSchemas", "additionalProperties")


def placeholders(template: str) -> tuple[str, ...]:
    """The names that stand in a template, each once, in order."""
    return tuple(dict.fromkeys(found[1].strip() for found in PLACEHOLDER.finditer(template)))


def unprovided(template: str, schema: Mapping[str, Any]) -> tuple[str, ...]:
    """Placeholders that no argument can fill, as far as the schema tells which there are."""
    properties = schema.get("properties")
    if not isinstance(properties, dict) or any(schema.get(word) for word in OPEN):
        return ()
    names = {name.strip().casefold() for name in cast("dict[str, object]", properties)}
    return tuple(name for name in placeholders(template) if name.casefold() not in names)
