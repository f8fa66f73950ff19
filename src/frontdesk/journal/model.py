"""Defines a journal entry."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from frontdesk.identity.model import AgentIdSource, ClaimedIds

# The interface name of the pages. Views of the figures must not change the figures.
PAGES_SURFACE = "web"


class Outcome(StrEnum):
    """How a call ended."""

    OK = "ok"
    FAILED = "failed"
    REFUSED = "refused"
    DENIED = "denied"
    LIMITED = "limited"


class EntryKind(StrEnum):
    """The kind of event that an entry records."""

    CALL = "call"
    DENIAL = "denial"
    TURN = "turn"
    TOOL = "tool"
    DELIVERY = "delivery"


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One event: what happened, who caused it, how long it took. It contains no arguments, answers or secrets.

    `claimed`: the ids that a refused request claimed.
    """

    at: datetime
    kind: EntryKind
    surface: str
    action: str
    outcome: Outcome
    duration_us: int
    reason: str | None = None
    agent_id: str | None = None
    user_id: str | None = None
    source: AgentIdSource = AgentIdSource.NONE
    verified: bool = False
    request_id: str | None = None
    claimed: ClaimedIds | None = None


@dataclass(frozen=True, slots=True)
class EntryTiming:
    """The fields of an entry from which figures are computed."""

    id: int
    at: datetime
    kind: EntryKind
    surface: str
    outcome: Outcome
    duration_us: int

    @property
    def ended(self) -> datetime:
        return self.at + timedelta(microseconds=self.duration_us)


@dataclass(frozen=True, slots=True)
class FailureSummary:
    """How many requests failed since a time (at least `at_least`), and the newest of them, newest first."""

    count: int = 0
    at_least: bool = False
    rows: Sequence[tuple[int, JournalEntry]] = ()
