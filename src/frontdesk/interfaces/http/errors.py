"""Maps errors to HTTP statuses, and computes how long a caller should wait before a retry."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from frontdesk.errors import (
    Conflict,
    Denied,
    FrontdeskError,
    IdentityError,
    Invalid,
    MissingScope,
    NotFound,
    RateLimited,
    Unauthenticated,
    Unavailable,
    Unstorable,
)

DEFAULT_RETRY_SECONDS = 2.0
# The upper limit for the wait that an unavailable part asks for.
MAX_RETRY_SECONDS = 3600.0


def retry_seconds(error: FrontdeskError) -> float | None:
    """The seconds to wait before a retry. None if a retry will not help."""
    match error:
        case RateLimited(retry_after=seconds):
            return seconds
        case Unavailable(retry_after=seconds):
            return min(seconds or DEFAULT_RETRY_SECONDS, MAX_RETRY_SECONDS)
        case _:
            return None


def retry_after_header(error: FrontdeskError) -> Mapping[str, str]:
    """The `retry-after` header, or no header."""
    seconds = retry_seconds(error)
    return {} if seconds is None else {"retry-after": str(math.ceil(seconds))}


# Names the class of an error in `frontdesk.errors`, for our own client: a status or a tool's result does not tell it.
ERROR_NAME_HEADER = "x-frontdesk-error"


def error_name_header(error: FrontdeskError) -> Mapping[str, str]:
    name = next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == FrontdeskError.__module__)
    return {ERROR_NAME_HEADER: name}


@dataclass(frozen=True, slots=True)
class HttpErrorRule:
    """The response for one kind of error. With a `headline`, the message becomes a detail."""

    status: int
    headline: str | None = None


# Narrower errors come first.
HTTP_ERROR_RULES: tuple[tuple[type[FrontdeskError], HttpErrorRule], ...] = (
    (Unauthenticated, HttpErrorRule(401)),
    (MissingScope, HttpErrorRule(403, "Insufficient permissions")),
    (Denied, HttpErrorRule(403)),
    (RateLimited, HttpErrorRule(429, "Too many requests")),
    (NotFound, HttpErrorRule(404)),
    (Conflict, HttpErrorRule(409)),
    (Invalid, HttpErrorRule(400)),
    (Unstorable, HttpErrorRule(400)),
    (IdentityError, HttpErrorRule(400)),
    (Unavailable, HttpErrorRule(503)),
    (FrontdeskError, HttpErrorRule(500)),
)
