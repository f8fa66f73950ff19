"""Defines a journal entry."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from frontdesk.identity.model import AgentIdSource, ClaimedIds

# The journal's name for the pages. Looking at figures there must not change them.
PAGES_SURFACE = "web"


class Outcome(StrEnum):
    """How a call ended."""

    OK = "ok"
    FAILED = "failed"
    REFUSED = "refused"
    DENIED = "denied"
    LIMITED = "limited"


class EntryKind(StrEnum):
    """What a row records."""

    CALL = "call"
    DENIAL = "denial"
    TURN = "turn"
    TOOL = "tool"
    DELIVERY = "delivery"


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """What happened, to whom, how long it took. Never what was said: no arguments, no answers, no secrets.

    `claimed`: whom a request said it was from, where it was refused.
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
    """Of an entry, what figures are made from."""

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
    """What failed since a moment: how many requests did, or so many `at_least`, and the newest of them first."""

    count: int = 0
    at_least: bool = False
    rows: Sequence[tuple[int, JournalEntry]] = ()
