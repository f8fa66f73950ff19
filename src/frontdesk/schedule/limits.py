"""How much an agent may plan: how many schedules, how often they run, how long a prompt is."""

from dataclasses import dataclass

from frontdesk.errors import Conflict, Invalid
from frontdesk.schedule.guard import recurs
from frontdesk.schedule.model import Trigger
from frontdesk.schedule.triggers.parse import closest_fires_s


@dataclass(frozen=True, slots=True)
class Limits:
    """Per agent, and the same for every caller."""

    count: int = 200
    shortest_s: int = 10
    longest_prompt: int = 20_000

    def check_count(self, agent_id: str, count: int) -> None:
        if count >= self.count:
            raise Conflict(f"Agent '{agent_id}' has {self.count} schedules, the most it may have; cancel some first")

    def check_prompt(self, prompt: str) -> None:
        if len(prompt) > self.longest_prompt:
            raise Invalid(f"The prompt has {len(prompt)} characters; at most {self.longest_prompt} are allowed")

    def check_pace(self, trigger: Trigger, max_repetitions: int | None) -> None:
        """Refuse a rule of which two fires come too close together."""
        closest = closest_fires_s(trigger)
        if recurs(trigger, max_repetitions) and closest < self.shortest_s:
            raise Invalid(
                f"It would run every {closest} s; runs must be at least {self.shortest_s} s apart "
                "(FRONTDESK_SCHEDULE_SHORTEST)"
            )
