"""One row of the journal."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from frontdesk.identity.model import Caller, Source

ACTION_LENGTH = 200


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


def entry(
    caller: Caller,
    *,
    at: datetime,
    surface: str,
    action: str,
    outcome: Outcome,
    duration_us: int,
    reason: str | None = None,
    kind: Kind = Kind.CALL,
) -> Entry:
    """The row for something that a caller did; a call that was not let through is a denial."""
    denied = kind is Kind.CALL and outcome in (Outcome.DENIED, Outcome.LIMITED)
    return Entry(
        at=at,
        kind=Kind.DENIAL if denied else kind,
        surface=surface,
        action=action[:ACTION_LENGTH],
        outcome=outcome,
        duration_us=duration_us,
        reason=reason,
        agent_id=caller.agent_id,
        user_id=caller.user_id,
        source=caller.source,
        verified=caller.verified,
        request_id=caller.request_id,
    )
