"""Maps errors to JSON-RPC codes and HTTP statuses, in one table."""

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
from frontdesk.interfaces.http.context import RequestContext
from frontdesk.interfaces.http.errors import retry_after_header, retry_seconds
from frontdesk.operations import ErrorFormat

# MCP leaves -32000 to -32019 to implementations.
UNAUTHENTICATED = -32010
DENIED = -32011
RATE_LIMITED = -32012
UNAVAILABLE = -32013
AUTHENTICATION_REQUIRED = "Authentication required"


@dataclass(frozen=True, slots=True)
class McpErrorRule:
    """How to report one kind of error: as a JSON-RPC error with a code, or, without a code, as the tool's result.

    `legacy_status` is for older clients, which read a JSON-RPC error only with status 200.
    """

    code: int | None = None
    status: int | None = None
    legacy_status: int | None = None
    message: str | None = None


# The narrower errors come first.
ERROR_RULES: tuple[tuple[type[FrontdeskError], McpErrorRule], ...] = (
    (IdentityError, McpErrorRule(INVALID_PARAMS)),
    # In both eras the status shows a client that it must log in, or request more scopes.
    (Unauthenticated, McpErrorRule(UNAUTHENTICATED, 401, 401)),
    (MissingScope, McpErrorRule(DENIED, 403, 403)),
    (Denied, McpErrorRule(DENIED, 403)),
    (RateLimited, McpErrorRule(RATE_LIMITED, 429)),
    (Unavailable, McpErrorRule(UNAVAILABLE, 503)),
    (FrontdeskError, McpErrorRule()),
)
AS_TOOL_RESULT = McpErrorRule()
CANNOT_INFER = McpErrorRule(message="agent_id is required and could not be inferred")


def error_rule(error: FrontdeskError, shape: ErrorFormat) -> McpErrorRule:
    """The rule for an error of a tool with this error format."""
    if shape is not ErrorFormat.RPC and isinstance(error, MissingAgentId):
        return CANNOT_INFER
    if shape is ErrorFormat.ANSWER and isinstance(error, IdentityError):
        return AS_TOOL_RESULT
    return next(found for kind, found in ERROR_RULES if isinstance(error, kind))


def build_error(
    error: FrontdeskError, rule: McpErrorRule, request: RequestContext, challenge: str, *, modern: bool
) -> MCPError:
    """The error to raise. Also sets status and headers of the HTTP answer; AuthMiddleware adds a challenge to a 401.

    Clients of zmemory read nothing of an answer that is not 200.
    """
    headers = list(retry_after_header(error).items())
    seconds = retry_seconds(error)
    data: dict[str, object] | None = None if seconds is None else {"retryAfterMs": math.ceil(seconds * 1000)}
    if isinstance(error, MissingScope):
        text = f'{challenge}, error="insufficient_scope", scope="{error.scope}", error_description="{error}"'
        headers.append(("www-authenticate", text))
        data = {"scope": error.scope}
    status = rule.status if modern else None if request.errors_in_result else rule.legacy_status
    request.set_answer_status(status, headers)
    return MCPError(rule.code or INTERNAL_ERROR, _message(error, request), data)


def _message(error: FrontdeskError, request: RequestContext) -> str:
    """The error's text. Clients of zmemory recognize only by it that they must send the token again and repeat the
    call."""
    if not (request.errors_in_result and isinstance(error, Unauthenticated)) or error.public_message.startswith(
        AUTHENTICATION_REQUIRED
    ):
        return error.public_message
    return f"{AUTHENTICATION_REQUIRED}: {error.public_message}"
