"""Finds the scripted step that a conversation has come to, whichever API it is told in."""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from frontdesk.llm.script import SCRIPT_MARK, ScriptStep, parse_script

ECHOED = 200
DONE = ScriptStep(text="script done")


def next_step(messages: Sequence[Mapping[str, Any]]) -> ScriptStep:
    """What to do now: the step after as many as there are assistant messages since the person spoke."""
    taken = 0
    for message in reversed(messages):
        if message["role"] == "assistant":
            taken += 1
        elif message["role"] == "user" and (text := _text(message["content"])):
            return _step(text, taken)
    return _step("", taken)


def _text(content: str | Sequence[Mapping[str, Any]]) -> str:
    """What the person said; Anthropic's tool results come as a user message too, but as one without text parts."""
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in content if part["type"] == "text")


def _step(text: str, taken: int) -> ScriptStep:
    script = _script(text)
    if script is None:
        return ScriptStep(text=f"echo: {text[-ECHOED:]}")
    return script[taken] if taken < len(script) else DONE


@lru_cache(256)
def _script(text: str) -> Sequence[ScriptStep] | None:
    script = parse_script(text)
    return parse_script(_unpacked(text)) if script is None else script


def _unpacked(text: str) -> str:
    """The marked part, unescaped: Letta packs a person's words into a JSON string within a JSON object."""
    found = SCRIPT_MARK.search(text)
    try:
        return json.loads(f'"{found[0]}"', strict=False) if found else ""
    except ValueError:
        return ""
