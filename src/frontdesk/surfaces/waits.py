"""How long a caller is asked to wait before it tries again, at every door."""

import math
from collections.abc import Mapping

from frontdesk.errors import FrontdeskError, RateLimited, Unavailable

RETRY_SECONDS = 2.0
# A part that asks for more than that may well be back before.
LONGEST_SECONDS = 3600.0


def seconds_to_wait(error: FrontdeskError) -> float | None:
    """None where waiting will not help."""
    match error:
        case RateLimited(retry_after=seconds):
            return seconds
        case Unavailable(retry_after=seconds):
            return min(seconds or RETRY_SECONDS, LONGEST_SECONDS)
        case _:
            return None


def retry_after(error: FrontdeskError) -> Mapping[str, str]:
    """The header that says so, or none."""
    seconds = seconds_to_wait(error)
    return {} if seconds is None else {"retry-after": str(math.ceil(seconds))}
