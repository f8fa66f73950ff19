"""The one table from Frontdesk's errors to JSON-RPC codes and HTTP statuses."""

import math
from dataclasses import dataclass

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from frontdesk.errors import (
    Denied,
    FrontdeskError,
    IdentityError,
    MissingAgentId,
    MissingScope,
    RateLimited,
    Unauthenticated,
    Unavailable,
)
from frontdesk.surfaces.mcp.tool import ErrorShape
from frontdesk.surfaces.visit import Visit
from frontdesk.surfaces.waits import retry_after, seconds_to_wait

# MCP leaves -32000 to -32019 to implementations.
UNAUTHENTICATED = -32010
DENIED = -32011
RATE_LIMITED = -32012
UNAVAILABLE = -32013
UNAUTHORIZED = "Authentication required"


@dataclass(frozen=True, slots=True)
class Refusal:
    """How one kind of error is told: as a JSON-RPC error with a code, or, without one, as the tool's own result.

    Older clients read a JSON-RPC error only under 200, hence two statuses.
    """

    code: int | None = None
    status: int | None = None
    legacy_status: int | None = None
    message: str | None = None


# The narrower error stands first.
TABLE: tuple[tuple[type[FrontdeskError], Refusal], ...] = (
    (IdentityError, Refusal(INVALID_PARAMS)),
    # In both eras it is by the status that a client knows it has to log in, or to ask for more.
    (Unauthenticated, Refusal(UNAUTHENTICATED, 401, 401)),
    (MissingScope, Refusal(DENIED, 403, 403)),
    (Denied, Refusal(DENIED, 403)),
    (RateLimited, Refusal(RATE_LIMITED, 429)),
    (Unavailable, Refusal(UNAVAILABLE, 503)),
    (FrontdeskError, Refusal()),
)
AS_IT_IS = Refusal()
CANNOT_INFER = Refusal(message="agent_id is required and could not be inferred")


def refusal(error: FrontdeskError, shape: ErrorShape) -> Refusal:
    """How to tell this error to callers of a tool of this shape."""
    if shape is not ErrorShape.RPC and isinstance(error, MissingAgentId):
        return CANNOT_INFER
    if shape is ErrorShape.ANSWER and isinstance(error, IdentityError):
        return AS_IT_IS
    return next(found for kind, found in TABLE if isinstance(error, kind))


def refuse(error: FrontdeskError, how: Refusal, visit: Visit, challenge: str, *, modern: bool) -> MCPError:
    """The error to raise, after telling the HTTP answer its status and headers; the gate adds a challenge to a 401.

    Clients of zmemory read nothing of an answer that is not 200.
    """
    headers = list(retry_after(error).items())
    seconds = seconds_to_wait(error)
    data: dict[str, object] | None = None if seconds is None else {"retryAfterMs": math.ceil(seconds * 1000)}
    if isinstance(error, MissingScope):
        text = f'{challenge}, error="insufficient_scope", scope="{error.scope}", error_description="{error}"'
        headers.append(("www-authenticate", text))
        data = {"scope": error.scope}
    status = how.status if modern else None if visit.told_inside else how.legacy_status
    visit.refuse(status, headers)
    return MCPError(how.code or INTERNAL_ERROR, _message(error, visit), data)


def _message(error: FrontdeskError, visit: Visit) -> str:
    """Clients of zmemory know by the words alone that they have to show a token anew, and then repeat the call."""
    if not (visit.told_inside and isinstance(error, Unauthenticated)) or error.public.startswith(UNAUTHORIZED):
        return error.public
    return f"{UNAUTHORIZED}: {error.public}"
