"""What the journal will say of one call, whichever door it came through."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from frontdesk.app import App
from frontdesk.errors import Denied, FrontdeskError, RateLimited, Unauthenticated, Unavailable
from frontdesk.identity.model import Caller
from frontdesk.journal.model import Outcome, entry


@dataclass(slots=True)
class Record:
    """Filled in as the call goes along, and written at its end; one that says nothing has failed."""

    app: App
    surface: str
    action: str
    caller: Caller
    outcome: Outcome = Outcome.FAILED
    reason: str | None = None
    started: int = field(default_factory=time.perf_counter_ns)
    at: datetime = field(default_factory=lambda: datetime.now(UTC))

    @contextmanager
    def kept(self) -> Generator[None]:
        """Written however the work within ends, for a door that hands errors on as they are."""
        try:
            yield
            self.outcome = Outcome.OK
        except Exception as error:
            self.outcome, self.reason = _outcome(error), type(error).__name__
            raise
        finally:
            self.write()

    def write(self) -> None:
        row = entry(
            self.caller,
            at=self.at,
            surface=self.surface,
            action=self.action,
            outcome=self.outcome,
            duration_us=(time.perf_counter_ns() - self.started) // 1000,
            reason=self.reason,
        )
        self.app.journal.record(row)


def _outcome(error: Exception) -> Outcome:
    match error:
        case Denied() | Unauthenticated():
            return Outcome.DENIED
        case RateLimited():
            return Outcome.LIMITED
        case Unavailable():
            return Outcome.FAILED
        case FrontdeskError():
            return Outcome.REFUSED
        case _:
            return Outcome.FAILED
