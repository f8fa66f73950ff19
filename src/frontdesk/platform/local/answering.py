"""How a stand-in answers a call: which answer counts in the present state, what it says, and where it leads."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from frontdesk.platform.declared.model import FIRST_STATE, Answer, DeclaredTool
from frontdesk.platform.local.templates import fill

# Whoever calls under ever new names makes the oldest states be forgotten, and nothing grow.
MOST_STATES = 10_000
MOST_MS = 60_000


@dataclass(frozen=True, slots=True)
class Told:
    """What a tool says, and the state that its server is in from then on."""

    text: str
    state: str
    is_error: bool = False
    template: str | None = None
    missing: tuple[str, ...] = ()


class States:
    """The state of each server, for each agent that calls it: what one does changes nothing for another."""

    def __init__(self) -> None:
        self._now: OrderedDict[tuple[str, str], str] = OrderedDict()

    def of(self, server: str, agent: str) -> str:
        return self._now.get((server, agent), FIRST_STATE)

    def move(self, server: str, agent: str, state: str) -> None:
        self._now[server, agent] = state
        self._now.move_to_end((server, agent))
        if len(self._now) > MOST_STATES:
            self._now.popitem(last=False)


def tell(tool: DeclaredTool, state: str, arguments: Mapping[str, Any], luck: float) -> Told:
    """The answer to one call; `luck`, from 0 to 1, is held against the tool's error rate."""
    if luck < tool.error_rate:
        return Told(f"{tool.name} failed on purpose: its errorRate is {tool.error_rate:g}", state, is_error=True)
    answer = _answer(tool, state)
    if answer is None:
        return _speechless(tool, state)
    filled = fill(answer.template, arguments)
    return Told(filled.text, answer.next_state or state, answer.is_error, answer.template, filled.missing)


def delay_seconds(milliseconds: int) -> float:
    """How long to wait, a minute at most."""
    return max(0, min(milliseconds, MOST_MS)) / 1000


def _answer(tool: DeclaredTool, state: str) -> Answer | None:
    return next((answer for answer in tool.answers if answer.state is None or answer.state == state), None)


def _speechless(tool: DeclaredTool, state: str) -> Told:
    if not tool.answers:
        return Told(f"{tool.name} was called; the manifest says nothing about what it answers", state)
    known = ", ".join(dict.fromkeys(answer.state or "" for answer in tool.answers))
    return Told(f"{tool.name} has no answer in the state '{state}', only in: {known}", state, is_error=True)
