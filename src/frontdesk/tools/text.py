"""A tool as one line of text, in the very form the model was trained on."""

import re
from collections.abc import Iterable

_SEPARATORS = re.compile(r"[_\-./:\s]+")
_LOWER_THEN_UPPER = re.compile(r"([a-z0-9])([A-Z])")
_UPPER_THEN_WORD = re.compile(r"([A-Z]+)([A-Z][a-z])")


def tool_text(server: str, name: str, description: str, parameter_names: Iterable[str]) -> str:
    """`server | name as words: description (inputs: parameter, parameter)`; what is empty is left out."""
    heading = " | ".join(part for part in (spaced(server), spaced(name)) if part)
    inputs = ", ".join(spaced(parameter) for parameter in parameter_names)
    return f"{heading}: {description}" + (f" (inputs: {inputs})" if inputs else "")


def spaced(name: str) -> str:
    """`getHTTPStatus_v2` as `get HTTP Status v2`."""
    words = _SEPARATORS.sub(" ", name)
    words = _LOWER_THEN_UPPER.sub(r"\1 \2", words)
    return " ".join(_UPPER_THEN_WORD.sub(r"\1 \2", words).split())
