"""When to stop asking a server that fails, and when to try again; pure, time is an argument."""

from dataclasses import dataclass, replace

FAILURES_TO_OPEN = 5
FIRST_PAUSE = 10.0
LONGEST_PAUSE = 120.0


@dataclass(frozen=True, slots=True)
class Breaker:
    """What is known of one server: failures in a row, and since they were too many, when the next try is due.

    While there is no `retry_at` it is closed, and lets every call through; open it lets none, and then one that tries.
    Every method gives the breaker as it is afterwards; one that changes nothing gives the same.
    """

    failures: int = 0
    retry_at: float | None = None
    pause: float = FIRST_PAUSE
    trying: bool = False

    def wait(self, now: float) -> float:
        """The seconds until a call is let through; 0 where one is."""
        if self.retry_at is None:
            return 0.0
        # Somebody's try is under way; how it ends decides, so a short while is as good a guess as any.
        return 1.0 if self.trying and now >= self.retry_at else max(0.0, self.retry_at - now)

    def admitted(self) -> "Breaker":
        """A call was let through: where the breaker is not closed, it is the one try."""
        return self if self.retry_at is None else replace(self, trying=True)

    def succeeded(self) -> "Breaker":
        """The server answered, be it with an error."""
        return self if self == CLOSED else CLOSED

    def failed(self, now: float, *, was_try: bool) -> "Breaker":
        """The server did not answer, or with nothing that could be used."""
        failures = self.failures + 1
        if was_try:
            pause = min(LONGEST_PAUSE, self.pause * 2)
            return Breaker(failures, now + pause, pause)
        if self.retry_at is None and failures >= FAILURES_TO_OPEN:
            return Breaker(failures, now + FIRST_PAUSE)
        # A call from before it opened tells nothing new.
        return replace(self, failures=failures)

    def given_up(self, *, was_try: bool) -> "Breaker":
        """The caller left before the server had shown anything."""
        return replace(self, trying=False) if was_try else self


CLOSED = Breaker()
