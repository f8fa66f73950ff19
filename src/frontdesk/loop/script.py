"""Scripted turns: `@@[{"tool": "whoami"}, {"text": "done"}]@@` in a message says what the model will do."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

MARKED = re.compile(r"@@(\[.*\])@@", re.DOTALL)
PIECE = re.compile(r"\S+\s*")
ARGUMENTS_PIECE = 16


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """One tool call of a step; `raw` stands for arguments that are to be sent as they are, broken ones too."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    name: str
    args: Mapping[str, Any] = field(default_factory=dict[str, Any])
    raw: str | None = None

    @property
    def text(self) -> str:
        return json.dumps(self.args) if self.raw is None else self.raw


@dataclass(frozen=True, slots=True)
class Step:
    """What the model does when it is asked once: think, speak, call tools; or fail.

    `error` is the status of a refusal, `drop` breaks the connection off, and `cut` ends it without a finish reason.
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


SCRIPT = TypeAdapter(list[Step])


def steps(message: str) -> Sequence[Step] | None:
    """The script in a message, or None where there is none (or none that can be read)."""
    found = MARKED.search(message)
    if found is None:
        return None
    try:
        return SCRIPT.validate_json(found[1])
    except ValidationError:
        return None


def pieces(text: str) -> Sequence[str]:
    """A text word by word, as models stream it."""
    return PIECE.findall(text)


def argument_pieces(text: str) -> Sequence[str]:
    return [text[start : start + ARGUMENTS_PIECE] for start in range(0, len(text), ARGUMENTS_PIECE)]
