"""Maps errors and failed turns to the codes of the protocol, one table each."""

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
from frontdesk.interfaces.acp.jsonrpc import (
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
from frontdesk.interfaces.http.errors import retry_seconds
from frontdesk.llm.events import Failed, FailureKind, StopReason
from frontdesk.text import one_line

MAX_MESSAGE_CHARACTERS = 500
NO_MESSAGE = "The turn failed; try again"
# A turn that waits for approval or failed is answered in another way, so its entries here are not used.
STOP_REASONS: Mapping[StopReason, str] = {
    StopReason.END_TURN: "end_turn",
    StopReason.REQUIRES_APPROVAL: "end_turn",
    StopReason.MAX_STEPS: "max_turn_requests",
    StopReason.MAX_TOKENS: "max_tokens",
    StopReason.REFUSAL: "refusal",
    StopReason.CANCELLED: "cancelled",
    StopReason.INTERRUPTED: "cancelled",
    StopReason.ERROR: "end_turn",
}
FAILURE_CODES: Mapping[FailureKind, int] = {
    FailureKind.UNAUTHENTICATED: AUTH_REQUIRED,
    FailureKind.UNAVAILABLE: UNAVAILABLE,
    FailureKind.BUSY: UNAVAILABLE,
    FailureKind.RATE_LIMITED: RATE_LIMITED,
    FailureKind.NOT_FOUND: NOT_FOUND,
    FailureKind.TOO_LONG: TOO_LONG,
    FailureKind.INVALID: INVALID_PARAMS,
    FailureKind.INTERNAL: INTERNAL_ERROR,
}
# The narrower error stands first.
ERROR_CODES: tuple[tuple[type[FrontdeskError], int], ...] = (
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
    return STOP_REASONS[stop]


def turn_error(failed: Failed) -> RpcError:
    """The error response for a prompt whose turn failed."""
    return RpcError(
        FAILURE_CODES[failed.trouble],
        one_line(failed.message, MAX_MESSAGE_CHARACTERS) or NO_MESSAGE,
        _retry_data(failed.retry_after),
    )


def rpc_error(error: FrontdeskError) -> RpcError:
    """The error response for this error."""
    return RpcError(
        _error_code(error),
        one_line(error.public_message, MAX_MESSAGE_CHARACTERS) or NO_MESSAGE,
        _retry_data(retry_seconds(error)),
    )


def _error_code(error: FrontdeskError) -> int:
    # An agent host on another server says which kind of failure it is.
    trouble: object = getattr(error, "trouble", None)
    if isinstance(trouble, FailureKind):
        return FAILURE_CODES[trouble]
    return next(found for kind, found in ERROR_CODES if isinstance(error, kind))


def _retry_data(seconds: float | None) -> Json | None:
    return None if seconds is None else {"retryAfter": seconds}
