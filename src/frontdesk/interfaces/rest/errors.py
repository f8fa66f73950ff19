"""Maps errors to the bodies of the HTTP API, and describes them for OpenAPI."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict
from pydantic_core import to_jsonable_python
from starlette.responses import JSONResponse

from frontdesk.errors import FrontdeskError, Invalid, InvalidArguments, MissingScope, PendingApproval
from frontdesk.interfaces.http.errors import HTTP_ERROR_RULES, error_name_header, retry_after_header
from frontdesk.memory.time_tracking import TimerRunning

NOT_AN_OBJECT = "must be a JSON object, sent as application/json"


def error_response(error: FrontdeskError) -> JSONResponse:
    """The response for this error."""
    how = next(found for kind, found in HTTP_ERROR_RULES if isinstance(error, kind))
    body: dict[str, Any] = (
        {"error": how.headline, "details": error.public_message} if how.headline else {"error": error.public_message}
    )
    headers = {**retry_after_header(error), **error_name_header(error)}
    match error:
        case MissingScope(scope=scope):
            body |= {"required_scopes": [scope], "success": False}
            headers["www-authenticate"] = f'Bearer error="insufficient_scope", scope="{scope}"'
        case PendingApproval(call_ids=call_ids):
            body["pending"] = list(call_ids)
        case BodyRefused(status=status):
            return JSONResponse(body, status, headers)
        case TimerRunning(running=running):
            body["running"] = to_jsonable_python(running)
        case _:
            pass
    return JSONResponse(body, how.status, headers)


def problem_response(status: int, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """A response for a general error of a request."""
    return JSONResponse({"error": message}, status, headers)


class BodyRefused(Invalid):
    """A body that is too large, or comes too slowly."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def invalid_response(error: InvalidArguments) -> JSONResponse:
    """The response to a request that does not match its schema; it repeats nothing of the request."""
    if not error.problems:
        return problem_response(400, str(error), error_name_header(error))
    found: dict[str, list[str]] = {}
    for one in error.problems:
        place = ".".join(map(str, one.place))
        text = f"{place}: {one.message.removeprefix('Value error, ')}" if place else NOT_AN_OBJECT
        found.setdefault(one.part, []).append(text)
    details = [{"field": field, "errors": errors} for field, errors in found.items()]
    return JSONResponse({"error": str(error), "details": details}, 400, error_name_header(error))


class Problem(BaseModel):
    """An error."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"error": "Session not found"}]})

    error: str
    details: Any = None


PROBLEM_REFERENCE = {"$ref": f"#/components/schemas/{Problem.__name__}"}
ERROR_EXAMPLES: Mapping[int, tuple[str, Mapping[str, Any]]] = {
    400: (
        "What was sent does not fit, or cannot be done so.",
        {"error": "Validation failed", "details": [{"field": "body", "errors": ["content.title: Field required"]}]},
    ),
    401: ("No credential, or one that does not hold.", {"error": "Authentication required"}),
    403: (
        "The credential may not do this.",
        {"error": "Insufficient permissions", "required_scopes": ["tasks.read"], "success": False},
    ),
    404: ("It is not there, or is somebody else's.", {"error": "Task not found"}),
    408: ("The body did not arrive in time.", {"error": "The body did not arrive within 30 s"}),
    409: ("It cannot be done as things stand.", {"error": "There is a category 'Work' already"}),
    413: ("The body is too large.", {"error": "The body is too large; 4 MiB is the limit"}),
    429: ("Too many requests; `Retry-After` says when to come again.", {"error": "Too many requests"}),
    503: ("A part that this depends on does not answer.", {"error": "The database does not answer"}),
}


def _error_doc(status: int) -> dict[str, Any]:
    says, example = ERROR_EXAMPLES[status]
    return {"description": says, "content": {"application/json": {"schema": PROBLEM_REFERENCE, "example": example}}}


def _error_range_doc(says: str) -> dict[str, Any]:
    return {"description": says, "content": {"application/json": {"schema": PROBLEM_REFERENCE}}}


# For every route.
ERROR_RESPONSES = {"4XX": _error_range_doc("Client Error"), "5XX": _error_range_doc("Server Error")}
# For routes whose description has every error.
DETAILED_ERROR_RESPONSES = {str(status): _error_doc(status) for status in ERROR_EXAMPLES}
