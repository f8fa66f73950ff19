"""How turns end, in the words of the page and of its addresses."""

from dataclasses import dataclass

from frontdesk.agents.turns.model import TurnQuery, TurnRecord
from frontdesk.errors import Invalid
from frontdesk.loop.events import StopReason

RUNNING = "running"
WAITING = "waiting"
# What a person reads; the address has the word of the record.
ENDINGS = {
    StopReason.END_TURN: "done",
    StopReason.REQUIRES_APPROVAL: "asked for approval",
    StopReason.MAX_STEPS: "out of steps",
    StopReason.MAX_TOKENS: "out of tokens",
    StopReason.REFUSAL: "refused",
    StopReason.CANCELLED: "cancelled",
    StopReason.INTERRUPTED: "interrupted",
    StopReason.ERROR: "failed",
}
CHOICES = (
    ("", "Any"),
    (RUNNING, "Running"),
    (WAITING, "Waiting for a word"),
    *((str(stop), name.capitalize()) for stop, name in ENDINGS.items()),
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the address of the list asks for."""

    agent: str = ""
    outcome: str = ""
    before: str = ""
    after: str = ""

    @property
    def newest(self) -> bool:
        """Whether the list begins with the newest, so that what is new belongs on it."""
        return not self.before and not self.after

    def query(self, limit: int) -> TurnQuery:
        known = {value for value, _ in CHOICES}
        if self.outcome not in known:
            raise Invalid(f"No turn ends as '{self.outcome}'; take one of {', '.join(sorted(known - {''}))}")
        stops = {str(stop): stop for stop in ENDINGS}
        return TurnQuery(
            agent_id=self.agent or None,
            stop=stops.get(self.outcome),
            running=self.outcome == RUNNING,
            waiting=self.outcome == WAITING,
            before=self.before or None,
            after=self.after or None,
            limit=limit,
        )


def outcome(turn: TurnRecord) -> str:
    """How a turn ended, or how it stands."""
    if turn.running or turn.stop is None:
        return RUNNING
    return WAITING if turn.waits else ENDINGS[turn.stop]
