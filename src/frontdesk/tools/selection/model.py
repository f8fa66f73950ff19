"""The words of selection: what an agent holds, what it should get, and what becomes of both."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from frontdesk.tools.model import SEPARATOR, split_id


class Role(StrEnum):
    """What a tool is to an agent: of an MCP server, the host's own machinery, shipped with the host, or made there."""

    MCP = "mcp"
    CORE = "core"
    OFFICIAL = "official"
    HOST = "host"


@dataclass(frozen=True, slots=True)
class Held:
    """A tool that an agent holds; `value` tells which of two that were used at the same time is worth more."""

    name: str
    id: str | None = None
    role: Role = Role.MCP
    attached_at: datetime | None = None
    used_at: datetime | None = None
    protected: bool = False
    tags: frozenset[str] = frozenset()
    value: float = 0.0


@dataclass(frozen=True, slots=True)
class Match:
    """A tool that a search found, with its score from 0 to 100; `exact`: it was asked for by name."""

    id: str
    name: str
    score: float
    role: Role = Role.MCP
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Limits:
    """How many tools an agent may hold, and which of them are not ours to touch."""

    max_total: int = 30
    max_mcp: int = 20
    min_mcp: int = 7
    drop_rate: float = 0.6
    never_detach: frozenset[str] = frozenset({"find_tools"})
    manage_only_mcp: bool = False
    exclude_core: bool = False
    exclude_official: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """What is done with one tool, and why; a match also says how well it fits."""

    name: str
    id: str | None
    reason: str
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to become of an agent's tools. `keep` has all that stay, those that were wanted first."""

    attach: Sequence[Choice] = ()
    keep: Sequence[Choice] = ()
    detach: Sequence[Choice] = ()
    skipped: Sequence[Choice] = ()
    unknown: Sequence[str] = ()

    @property
    def changes(self) -> bool:
        return bool(self.attach or self.detach)


@dataclass(frozen=True, slots=True)
class Selection:
    """What came of a plan. A dry run says what would have been done; `failed` names what the host did not do.

    `unknown` says which of the tools that were to be kept the agent does not hold.
    """

    attached: Sequence[Choice] = ()
    kept: Sequence[Choice] = ()
    detached: Sequence[Choice] = ()
    skipped: Sequence[Choice] = ()
    failed: Sequence[Choice] = ()
    dry_run: bool = False
    unknown: Sequence[str] = ()


def names_of(name: str, tool_id: str | None) -> frozenset[str]:
    """Every name by which a person may mean a tool: its id, its own name, and the one the model sees."""
    if tool_id is None:
        return frozenset({name})
    return frozenset({name, tool_id, split_id(tool_id)[1]} if SEPARATOR in tool_id else {name, tool_id})
