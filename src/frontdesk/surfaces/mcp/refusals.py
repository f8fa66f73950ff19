"""The one table from Frontdesk's errors to JSON-RPC codes and HTTP statuses."""

import math
from dataclasses import dataclass

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from frontdesk.errors import (
    Denied,
    FrontdeskError,
    IdentityError,
    MissingScope,
    RateLimited,
    Unauthenticated,
    Unavailable,
)
from frontdesk.journal.model import Outcome
from frontdesk.surfaces.visit import Visit

# MCP leaves -32000 to -32019 to implementations.
UNAUTHENTICATED = -32010
DENIED = -32011
RATE_LIMITED = -32012
UNAVAILABLE = -32013


@dataclass(frozen=True, slots=True)
class Refusal:
    """How one kind of error is told. Older clients read a JSON-RPC error only under 200, hence two statuses."""

    code: int
    outcome: Outcome
    status: int | None = None
    legacy_status: int | None = None


# The narrower error stands first.
TABLE: tuple[tuple[type[FrontdeskError], Refusal], ...] = (
    (IdentityError, Refusal(INVALID_PARAMS, Outcome.REFUSED)),
    (Unauthenticated, Refusal(UNAUTHENTICATED, Outcome.DENIED, 401, 401)),
    (MissingScope, Refusal(DENIED, Outcome.DENIED, 403, 403)),
    (Denied, Refusal(DENIED, Outcome.DENIED, 403)),
    (RateLimited, Refusal(RATE_LIMITED, Outcome.LIMITED, 429)),
    (Unavailable, Refusal(UNAVAILABLE, Outcome.FAILED, 503)),
)


def refusal(error: FrontdeskError) -> Refusal | None:
    """How to refuse, or None for a failure that is the tool's answer rather than the protocol's."""
    return next((found for kind, found in TABLE if isinstance(error, kind)), None)


def refuse(error: FrontdeskError, how: Refusal, visit: Visit, challenge: str, *, modern: bool) -> MCPError:
    """The error to raise, after telling the HTTP answer its status and headers."""
    headers: list[tuple[str, str]] = []
    data: dict[str, object] | None = None
    if isinstance(error, RateLimited):
        headers.append(("retry-after", str(math.ceil(error.retry_after))))
        data = {"retryAfterMs": math.ceil(error.retry_after * 1000)}
    if isinstance(error, MissingScope):
        text = f'{challenge}, error="insufficient_scope", scope="{error.scope}", error_description="{error}"'
        headers.append(("www-authenticate", text))
        data = {"scope": error.scope}
    visit.refuse(how.status if modern else how.legacy_status, headers)
    return MCPError(how.code, str(error), data)
