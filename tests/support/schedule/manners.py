"""How a receiver answers: what it was told to do with the next deliveries of an agent, or chance by a seed."""

import random
from collections import deque
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class How(StrEnum):
    """What becomes of one delivery. All but the refusals (error, busy, later, unknown) have their effect."""

    WELL = "well"
    ERROR = "error"
    BUSY = "busy"
    LATER = "later"
    UNKNOWN = "unknown"
    HANG = "hang"
    CUT = "cut"
    DROP = "drop"


REFUSALS = {How.ERROR: 500, How.BUSY: 409, How.LATER: 429, How.UNKNOWN: 404}
EVERYBODY = "*"


@dataclass(frozen=True, slots=True)
class Manner:
    """One way to answer: how, after how many seconds, and what it says of when to come again."""

    how: How = How.WELL
    seconds: float = 0
    retry_after: str = ""


@dataclass(slots=True)
class Manners:
    """What is to be done next, for each agent; what nobody was told about goes well."""

    queues: dict[str, deque[Manner]] = field(default_factory=dict[str, deque[Manner]])
    always: dict[str, Manner] = field(default_factory=dict[str, Manner])
    seed: int = 0
    slowest: float = 0
    shares: dict[How, float] = field(default_factory=dict[How, float])

    def tell(self, said: dict[str, Any]) -> None:
        """From now on: `next` ones in order and then `always` for an agent, or chance: `shares` and `slowest`."""
        agent = said.get("agent", EVERYBODY)
        if "next" in said:
            self.queues[agent] = deque(_manner(one) for one in said["next"])
        if "always" in said:
            self.always[agent] = _manner(said["always"])
        if "shares" in said:
            self.seed, self.slowest = said["seed"], said["slowest"]
            self.shares = {How(how): share for how, share in said["shares"].items()}

    def choose(self, agent: str, delivery: str, fence: int) -> Manner:
        for name in (agent, EVERYBODY):
            if self.queues.get(name):
                return self.queues[name].popleft()
        for name in (agent, EVERYBODY):
            if name in self.always:
                return self.always[name]
        return self._chance(delivery, fence)

    def _chance(self, delivery: str, fence: int) -> Manner:
        """The same for the same try at the same delivery, whatever else happens in between."""
        dice = random.Random(f"{self.seed} {delivery} {fence}")
        seconds, roll = dice.random() ** 2 * self.slowest, dice.random()
        for how, share in self.shares.items():
            roll -= share
            if roll < 0:
                return Manner(how, seconds)
        return Manner(How.WELL, seconds)


def _manner(said: dict[str, Any]) -> Manner:
    return Manner(How(said["how"]), said["seconds"], said["retry_after"])
