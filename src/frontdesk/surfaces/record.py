"""What the journal will say of one call, whichever door it came through."""

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime

from frontdesk.app import App
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
