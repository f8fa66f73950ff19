"""Records one call in the journal: started, ended, and with which outcome."""

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
from frontdesk.identity.inbound import trace_refusal
from frontdesk.identity.model import AgentIdSource, Caller, ClaimedIds, RefusalTrace, Signals
from frontdesk.journal.model import EntryKind, JournalEntry, Outcome
from frontdesk.journal.service import Journal

MAX_ACTION_LENGTH = 200
NO_CLAIMS = ClaimedIds()
DENIED_OUTCOMES = frozenset({Outcome.DENIED, Outcome.LIMITED})


def outcome_of_error(error: BaseException) -> Outcome:
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
class CallRecord:
    """Filled in as the call goes along, and written at its end; one that says nothing has failed.

    As a context it is written however the work within ends, which is well unless something else was said.
    """

    journal: Journal
    surface: str
    action: str
    caller: Caller
    kind: EntryKind = EntryKind.CALL
    outcome: Outcome | None = None
    reason: str | None = None
    claimed: ClaimedIds | None = None
    # What the request said of its sender, once it is known; a call that is let in may still be refused.
    signals: Signals | None = None
    started: int = field(default_factory=time.perf_counter_ns)
    at: datetime = field(default_factory=partial(datetime.now, UTC))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, Exception):
            self.fail(error)
        elif error is None and self.outcome is None:
            self.outcome = Outcome.OK
        self.write()

    def fail(self, error: Exception) -> None:
        self.outcome, self.reason = outcome_of_error(error), type(error).__name__
        if isinstance(error, FrontdeskError) and isinstance(error.trace, RefusalTrace):
            self.add_trace(error.trace)
        elif self.signals is not None and (self.outcome in DENIED_OUTCOMES or isinstance(error, IdentityError)):
            self.add_trace(trace_refusal(self.signals))

    def add_trace(self, trace: RefusalTrace) -> None:
        """Keep what a refused request claimed; a caller who was established stays."""
        self.claimed = trace.claimed
        if self.caller.agent_id is None:
            known = trace.caller if self.caller.user_id is None else self.caller
            self.caller = replace(known, source=trace.claimed.source) if known.agent_id is None else known

    def write(self) -> None:
        caller, outcome = self.caller, self.outcome or Outcome.FAILED
        # A call that was not let through is a denial.
        denied = self.kind is EntryKind.CALL and outcome in DENIED_OUTCOMES
        self.journal.record(
            JournalEntry(
                self.at,
                EntryKind.DENIAL if denied else self.kind,
                self.surface,
                self.action[:MAX_ACTION_LENGTH],
                outcome,
                (time.perf_counter_ns() - self.started) // 1000,
                self.reason,
                caller.agent_id,
                caller.user_id,
                AgentIdSource.OPERATOR if rights.is_operator(caller) else caller.source,
                caller.verified,
                caller.request_id,
                None if self.claimed == NO_CLAIMS else self.claimed,
            )
        )
