"""Parses scripted turns: `@@[{"tool": "whoami"}, {"text": "done"}]@@` in a message."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

SCRIPT_MARK = re.compile(r"@@(\[.*\])@@", re.DOTALL)
WORD = re.compile(r"\S+\s*")
ARGUMENTS_CHUNK = 16


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """One tool call of a step; `raw` are arguments that are sent unchanged, even if they are broken."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    name: str
    args: Mapping[str, Any] = field(default_factory=dict[str, Any])
    raw: str | None = None

    @property
    def text(self) -> str:
        return json.dumps(self.args) if self.raw is None else self.raw


@dataclass(frozen=True, slots=True)
class ScriptStep:
    """One response of the model: thoughts, text and tool calls, or a failure.

    `error` is the status of a refusal, `drop` breaks off the connection, and `cut` ends it without a finish reason.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    text: str = ""
    reasoning: str = ""
    tool: str = ""
    args: Mapping[str, Any] = field(default_factory=dict[str, Any])
    tools: Sequence[ScriptedCall] = ()
    delay: float = 0.0
    chunk_delay: float = 0.0
    error: int = 0
    drop: bool = False
    cut: bool = False

    @property
    def calls(self) -> Sequence[ScriptedCall]:
        return self.tools or ([ScriptedCall(self.tool, self.args)] if self.tool else [])


SCRIPT_ADAPTER = TypeAdapter(list[ScriptStep])


def parse_script(message: str) -> Sequence[ScriptStep] | None:
    """The script in a message; None if there is none, or it cannot be parsed."""
    found = SCRIPT_MARK.search(message)
    if found is None:
        return None
    try:
        return SCRIPT_ADAPTER.validate_json(found[1])
    except ValidationError:
        return None


def split_words(text: str) -> Sequence[str]:
    """Split a text into words, as models stream it."""
    return WORD.findall(text)


def split_arguments(text: str) -> Sequence[str]:
    return [text[start : start + ARGUMENTS_CHUNK] for start in range(0, len(text), ARGUMENTS_CHUNK)]
