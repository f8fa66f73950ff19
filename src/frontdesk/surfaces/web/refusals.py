"""The one table from Frontdesk's errors to the statuses of pages."""

from frontdesk.errors import (
    Conflict,
    Denied,
    FrontdeskError,
    IdentityError,
    Invalid,
    NotFound,
    RateLimited,
    Unauthenticated,
    Unavailable,
    Unstorable,
)

# The narrower error stands first.
TABLE: tuple[tuple[type[FrontdeskError], int], ...] = (
    (Unauthenticated, 401),
    (Denied, 403),
    (RateLimited, 429),
    (NotFound, 404),
    (Conflict, 409),
    (Invalid, 400),
    (Unstorable, 400),
    (IdentityError, 400),
    (Unavailable, 503),
    (FrontdeskError, 500),
)


def status_of(error: FrontdeskError) -> int:
    return next(status for kind, status in TABLE if isinstance(error, kind))
