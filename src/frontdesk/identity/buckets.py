"""The arithmetic of a token bucket."""

from dataclasses import dataclass

from frontdesk.settings import Rate

# So far the clocks of replicas may differ; one that is further back was set back.
APART_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Bucket:
    """What was left, and when, in seconds since the epoch."""

    tokens: float
    at: float

    def take_up_to(self, rate: Rate, count: int, now: float) -> tuple["Bucket", int, float]:
        """(the bucket afterwards, tokens granted, seconds until the next one when none was)."""
        per_second = rate.limit / rate.seconds
        # A clock that steps back refills nothing and takes nothing away; from then on it counts by the new time.
        tokens = min(rate.limit, self.tokens + max(0.0, now - self.at) * per_second)
        granted = min(count, int(tokens))
        wait = 0.0 if granted else (1 - tokens) / per_second
        at = now if self.at - now > APART_SECONDS else max(now, self.at)
        return Bucket(tokens - granted, at), granted, wait
