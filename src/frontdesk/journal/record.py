"""What the journal will say of one call, whichever door it came through."""

import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Self

from frontdesk.errors import (
    Conflict,
    Denied,
    FrontdeskError,
    IdentityError,
    Invalid,
    NotFound,
    RateLimited,
    Unauthenticated,
    Unstorable,
)
from frontdesk.identity import rights
from frontdesk.identity.inbound import traced
from frontdesk.identity.model import Caller, Claimed, Signals, Source, Trace
from frontdesk.journal.model import Entry, Kind, Outcome
from frontdesk.journal.service import Journal

ACTION_LENGTH = 200
NOTHING_CLAIMED = Claimed()
TURNED_AWAY = frozenset({Outcome.DENIED, Outcome.LIMITED})


def outcome_of(error: BaseException) -> Outcome:
    """How a call ended that raised this: what was asked for was not right, or not allowed, or we could not do it."""
    match error:
        case Denied() | Unauthenticated():
            return Outcome.DENIED
        case RateLimited():
            return Outcome.LIMITED
        case NotFound() | Invalid() | Conflict() | IdentityError() | Unstorable():
            return Outcome.REFUSED
        case _:
            return Outcome.FAILED


@dataclass(slots=True)
class Record:
    """Filled in as the call goes along, and written at its end; one that says nothing has failed.

    As a context it is written however the work within ends, which is well unless something else was said.
    """

    journal: Journal
    surface: str
    action: str
    caller: Caller
    kind: Kind = Kind.CALL
    outcome: Outcome | None = None
    reason: str | None = None
    claimed: Claimed | None = None
    # What the request said of its sender, once it is known; a call that is let in may still be refused.
    signals: Signals | None = None
    started: int = field(default_factory=time.perf_counter_ns)
    at: datetime = field(default_factory=partial(datetime.now, UTC))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, Exception):
            self.ended_by(error)
        elif error is None and self.outcome is None:
            self.outcome = Outcome.OK
        self.write()

    def ended_by(self, error: Exception) -> None:
        self.outcome, self.reason = outcome_of(error), type(error).__name__
        if isinstance(error, FrontdeskError) and isinstance(error.trace, Trace):
            self.trace(error.trace)
        elif self.signals is not None and (self.outcome in TURNED_AWAY or isinstance(error, IdentityError)):
            self.trace(traced(self.signals))

    def trace(self, trace: Trace) -> None:
        """Keep what a refused request claimed; a caller who was established stays."""
        self.claimed = trace.claimed
        if self.caller.agent_id is None:
            known = trace.caller if self.caller.user_id is None else self.caller
            self.caller = replace(known, source=trace.claimed.source) if known.agent_id is None else known

    def write(self) -> None:
        caller, outcome = self.caller, self.outcome or Outcome.FAILED
        # A call that was not let through is a denial.
        denied = self.kind is Kind.CALL and outcome in TURNED_AWAY
        self.journal.record(
            Entry(
                self.at,
                Kind.DENIAL if denied else self.kind,
                self.surface,
                self.action[:ACTION_LENGTH],
                outcome,
                (time.perf_counter_ns() - self.started) // 1000,
                self.reason,
                caller.agent_id,
                caller.user_id,
                Source.OPERATOR if rights.is_operator(caller) else caller.source,
                caller.verified,
                caller.request_id,
                None if self.claimed == NOTHING_CLAIMED else self.claimed,
            )
        )
