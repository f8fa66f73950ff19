"""The arithmetic of a token bucket."""

from dataclasses import dataclass

from frontdesk.settings import Rate


@dataclass(frozen=True, slots=True)
class Bucket:
    """What was left, and when, in seconds since the epoch."""

    tokens: float
    at: float

    def take_up_to(self, rate: Rate, count: int, now: float) -> tuple["Bucket", int, float]:
        """(the bucket afterwards, tokens granted, seconds until the next one when none was)."""
        per_second = rate.limit / rate.seconds
        # A clock that steps back refills nothing and takes nothing away.
        tokens = min(rate.limit, self.tokens + max(0.0, now - self.at) * per_second)
        granted = min(count, int(tokens))
        wait = 0.0 if granted else (1 - tokens) / per_second
        return Bucket(tokens - granted, max(now, self.at)), granted, wait
