"""What became of looking for the tools of a manifest on their servers."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """How a declared tool and a live one go together; an UNDECLARED one is told, and no harm."""

    FOUND = "found"
    DRIFTED = "drifted"
    MISSING = "missing"
    UNDECLARED = "undeclared"


@dataclass(frozen=True, slots=True)
class Finding:
    """One tool, and what differs."""

    state: State
    tool: str
    what: str = ""


@dataclass(frozen=True, slots=True)
class Verified:
    """One server that was asked; `failure` says why it gave no listing, and what to do."""

    server: str
    url: str
    findings: Sequence[Finding] = ()
    failure: str | None = None

    @property
    def ok(self) -> bool:
        return self.failure is None and not any(one.state in (State.DRIFTED, State.MISSING) for one in self.findings)

    def named(self, state: State) -> Sequence[str]:
        """The tools in this state."""
        return [one.tool for one in self.findings if one.state is state]
