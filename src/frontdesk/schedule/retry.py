"""What comes after an attempt: whether there is another one, and when."""

from frontdesk.loop.text import storable
from frontdesk.schedule.due.model import Settled
from frontdesk.schedule.model import SECOND, Delivered, Occurrence, Standing, Undelivered

FIRST_S = 2.0
LONGEST_S = 300.0
BUSY_S = 1.0
BUSY_LONGEST_S = 30.0
# However long the other side says that we are to wait.
ASKED_LONGEST_S = 3600.0
# Longer than this nobody waits for an agent that is always busy.
PATIENCE_US = 24 * 3600 * SECOND
ERROR_LENGTH = 2_000
STOPPED = "The worker stopped before this ended"


def settled(
    occurrence: Occurrence, outcome: Delivered | Undelivered, now_us: int, took_us: int, chance: float
) -> Settled:
    """How an attempt is recorded; `chance`, from 0 to 1, spreads those that failed together."""
    if isinstance(outcome, Delivered):
        answer = None if outcome.answer is None else storable(outcome.answer)
        return Settled(occurrence, Standing.DELIVERED, took_us, answer=answer)
    error = storable(str(outcome))[:ERROR_LENGTH]
    counted = outcome.counted or now_us - occurrence.created_us > PATIENCE_US
    if outcome.permanent or (counted and occurrence.attempt >= occurrence.attempts):
        return Settled(occurrence, Standing.DEAD, took_us, error=error, in_doubt=outcome.in_doubt)
    wait_us = int(wait_s(occurrence, outcome, chance, counted=counted) * SECOND)
    # A doubt stays: nobody knows how far an attempt that failed had looked into it.
    in_doubt = outcome.in_doubt or occurrence.in_doubt
    return Settled(
        occurrence, Standing.WAITING, took_us, error=error, wait_us=wait_us, counted=counted, in_doubt=in_doubt
    )


def handed_back(occurrence: Occurrence, took_us: int) -> Settled:
    """For somebody else to go on with at once."""
    return Settled(occurrence, Standing.WAITING, took_us, error=STOPPED, counted=False, in_doubt=True)


def wait_s(occurrence: Occurrence, outcome: Undelivered, chance: float, *, counted: bool) -> float:
    """Never sooner than the other side says."""
    first, longest, times = (FIRST_S, LONGEST_S, occurrence.attempt) if counted else _busy(occurrence)
    pause = backoff_s(times, first, longest, chance)
    if outcome.retry_after is None:
        return pause
    return max(pause, min(outcome.retry_after, ASKED_LONGEST_S) + chance)


def backoff_s(times: int, first_s: float, longest_s: float, chance: float) -> float:
    """Twice as long each time, up to a limit; less up to half by `chance`, so that not all come back together."""
    return min(longest_s, first_s * 2 ** min(times - 1, 30)) * (1 - chance / 2)


def _busy(occurrence: Occurrence) -> tuple[float, float, int]:
    """Each start raises the fence, and only those that count the attempt."""
    return BUSY_S, BUSY_LONGEST_S, max(1, occurrence.fence - occurrence.attempt + 1)
