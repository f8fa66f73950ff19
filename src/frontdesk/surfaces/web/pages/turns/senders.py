"""Who sent a turn, in the words of every page that tells of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from frontdesk.agents.turns.model import TurnRecord
from frontdesk.schedule.overview.model import Sent
from frontdesk.surfaces.web.marks import short
from frontdesk.surfaces.web.model import Asked


@dataclass(frozen=True, slots=True)
class Sender:
    """A schedule, somebody by name, or somebody; `page` is theirs, and `run_id` the run that sent the turn."""

    name: str = "Somebody"
    page: str = ""
    run_id: str = ""

    @property
    def run(self) -> str:
        """The page of the run."""
        return f"/schedule/runs/{quote(self.run_id, safe='')}" if self.run_id else ""

    def of(self, text: str) -> "Sender":
        """Who said this: a run tells its agent its id, and a host that keeps no turns tells others' words with it."""
        return self if self.run_id in text else SOMEBODY


SOMEBODY = Sender()


async def senders(asked: Asked, turns: Sequence[TurnRecord]) -> Mapping[str, Sender]:
    """Who sent each of these, by the turns' ids."""
    names = {turn.otid for turn in turns if turn.otid is not None}
    runs = await asked.app.schedules.overview.sent(asked.caller, names)
    return {turn.id: _sender(turn, runs.get(turn.otid or "")) for turn in turns}


def _sender(turn: TurnRecord, run: Sent | None) -> Sender:
    # Whoever sends a turn names it as they like: with a run of another agent's it has nothing to do.
    if run is not None and run.agent_id == turn.agent_id:
        number = run.schedule_id
        return Sender(f"Schedule {number}", f"/schedule/{number}", run.run_id)
    if turn.user_id:
        return Sender(short(turn.user_id, 60), f"/people/{quote(turn.user_id, safe='')}")
    return SOMEBODY
