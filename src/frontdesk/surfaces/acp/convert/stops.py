"""How a turn ended, and what went wrong, in the protocol's words: one table each."""

from collections.abc import Mapping

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
from frontdesk.loop.events import Failed, StopReason, Trouble
from frontdesk.loop.text import one_line
from frontdesk.surfaces.acp.wire.model import (
    AUTH_REQUIRED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    NOT_FOUND,
    RATE_LIMITED,
    TOO_LONG,
    UNAVAILABLE,
    Json,
    RpcError,
)
from frontdesk.surfaces.waits import seconds_to_wait

LONGEST = 500
NO_WORDS = "The turn failed; try again"
# A turn that waits for approval, or failed, ends here in another way; should one come, the agent is at least done.
STOPS: Mapping[StopReason, str] = {
    StopReason.END_TURN: "end_turn",
    StopReason.REQUIRES_APPROVAL: "end_turn",
    StopReason.MAX_STEPS: "max_turn_requests",
    StopReason.MAX_TOKENS: "max_tokens",
    StopReason.REFUSAL: "refusal",
    StopReason.CANCELLED: "cancelled",
    StopReason.INTERRUPTED: "cancelled",
    StopReason.ERROR: "end_turn",
}
TROUBLES: Mapping[Trouble, int] = {
    Trouble.UNAUTHENTICATED: AUTH_REQUIRED,
    Trouble.UNAVAILABLE: UNAVAILABLE,
    Trouble.BUSY: UNAVAILABLE,
    Trouble.RATE_LIMITED: RATE_LIMITED,
    Trouble.NOT_FOUND: NOT_FOUND,
    Trouble.TOO_LONG: TOO_LONG,
    Trouble.INVALID: INVALID_PARAMS,
    Trouble.INTERNAL: INTERNAL_ERROR,
}
# The narrower error stands first.
TABLE: tuple[tuple[type[FrontdeskError], int], ...] = (
    (Unauthenticated, AUTH_REQUIRED),
    (Denied, INVALID_REQUEST),
    (RateLimited, RATE_LIMITED),
    (NotFound, NOT_FOUND),
    (Conflict, INVALID_REQUEST),
    (Invalid, INVALID_PARAMS),
    (Unstorable, INVALID_PARAMS),
    (IdentityError, INVALID_PARAMS),
    (Unavailable, UNAVAILABLE),
    (FrontdeskError, INTERNAL_ERROR),
)


def stop_reason(stop: StopReason) -> str:
    return STOPS[stop]


def failure(failed: Failed) -> RpcError:
    """The answer to a prompt whose turn failed."""
    return RpcError(TROUBLES[failed.trouble], one_line(failed.message, LONGEST) or NO_WORDS, _wait(failed.retry_after))


def refusal(error: FrontdeskError) -> RpcError:
    """The answer that tells this error."""
    return RpcError(_code(error), one_line(error.public, LONGEST) or NO_WORDS, _wait(seconds_to_wait(error)))


def _code(error: FrontdeskError) -> int:
    # A host elsewhere says of what kind its trouble is, in the word of a turn.
    trouble: object = getattr(error, "trouble", None)
    if isinstance(trouble, Trouble):
        return TROUBLES[trouble]
    return next(found for kind, found in TABLE if isinstance(error, kind))


def _wait(seconds: float | None) -> Json | None:
    return None if seconds is None else {"retryAfter": seconds}
