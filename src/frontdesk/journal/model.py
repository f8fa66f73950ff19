"""One row of the journal."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from frontdesk.identity.model import Source


class Outcome(StrEnum):
    """How a call ended."""

    OK = "ok"
    FAILED = "failed"
    REFUSED = "refused"
    DENIED = "denied"
    LIMITED = "limited"


class Kind(StrEnum):
    """What a row records."""

    CALL = "call"
    DENIAL = "denial"
    TURN = "turn"
    TOOL = "tool"
    DELIVERY = "delivery"


@dataclass(frozen=True, slots=True)
class Entry:
    """What happened, to whom, how long it took. Never what was said: no arguments, no answers, no secrets."""

    at: datetime
    kind: Kind
    surface: str
    action: str
    outcome: Outcome
    duration_us: int
    reason: str | None = None
    agent_id: str | None = None
    user_id: str | None = None
    source: Source = Source.NONE
    verified: bool = False
    request_id: str | None = None
