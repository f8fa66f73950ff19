"""An answer on its way to a webhook: what it says, when it is tried again, and when it is given up."""

import json
from dataclasses import dataclass

from frontdesk.schedule.model import Occurrence, moment
from frontdesk.schedule.prompt import told
from frontdesk.schedule.retry import backoff_s

WAITING = "waiting"
SENT = "sent"
DEAD = "dead"


@dataclass(frozen=True, slots=True)
class NewForward:
    """What is to be sent, and where to."""

    occurrence_id: str
    url: str
    body: str


@dataclass(frozen=True, slots=True)
class Due:
    """One that is to be tried now; the number of the attempt is also what tells a late word from the last one."""

    id: int
    occurrence_id: str
    url: str
    body: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Pace:
    """How patiently an answer is forwarded: for two hours or so in all. Whoever holds one has a minute for it."""

    attempts: int = 12
    first_seconds: float = 5.0
    longest_seconds: float = 3600.0
    lease_seconds: float = 60.0
    send_seconds: float = 15.0

    def wait(self, attempt: int, asked: float | None, chance: float) -> float:
        """Seconds until the next attempt: no less than was asked, and never longer than the longest."""
        pause = backoff_s(attempt, self.first_seconds, self.longest_seconds, chance)
        return min(max(pause, asked or 0.0), self.longest_seconds)


class Unsent(Exception):
    """The other side did not take it; the message names its host alone, as the rest of an address may be a secret.

    `permanent`: trying again will not help. `retry_after` is in seconds, where the other side named them.
    """

    def __init__(self, error: str, *, permanent: bool = False, retry_after: float | None = None) -> None:
        super().__init__(error)
        self.permanent = permanent
        self.retry_after = retry_after


def forward_of(occurrence: Occurrence, url: str, answer: str | None, delivered_us: int) -> NewForward:
    """What goes on to the webhook of a delivered occurrence."""
    body = {
        "delivery_id": occurrence.id,
        "schedule_id": occurrence.schedule_id,
        "agent_id": occurrence.agent_id,
        "number": occurrence.number,
        "intended": told(moment(occurrence.intended_us)),
        "delivered_at": told(moment(delivered_us)),
        "answer": answer,
    }
    return NewForward(occurrence.id, url, json.dumps(body))
