"""What the journal will say of one call, whichever door it came through."""

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Self

from frontdesk.errors import (
    Conflict,
    Denied,
    IdentityError,
    Invalid,
    NotFound,
    RateLimited,
    Unauthenticated,
    Unstorable,
)
from frontdesk.identity.model import Caller
from frontdesk.journal.model import Kind, Outcome, entry
from frontdesk.journal.service import Journal


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


def _now() -> datetime:
    return datetime.now(UTC)


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
    started: int = field(default_factory=time.perf_counter_ns)
    at: datetime = field(default_factory=_now)

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

    def write(self) -> None:
        row = entry(
            self.caller,
            at=self.at,
            surface=self.surface,
            action=self.action,
            outcome=self.outcome or Outcome.FAILED,
            duration_us=(time.perf_counter_ns() - self.started) // 1000,
            reason=self.reason,
            kind=self.kind,
        )
        self.journal.record(row)
