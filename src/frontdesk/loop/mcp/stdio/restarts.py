"""How long to wait before a program that ended unasked is started again; pure, time is an argument."""

from dataclasses import dataclass, replace

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
# A program that ran so long before it ended was no failure to begin with.
STEADY_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Restarts:
    """Once at once, then after pauses that double."""

    crashes: int = 0
    not_before: float = 0.0

    def wait(self, now: float) -> float:
        """The seconds until it may be started."""
        return max(0.0, self.not_before - now)

    def crashed(self, started: float, now: float) -> "Restarts":
        crashes = 1 if now - started >= STEADY_SECONDS else self.crashes + 1
        pause = 0.0 if crashes == 1 else min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(crashes - 2, 16))
        return replace(self, crashes=crashes, not_before=now + pause)
