"""Maps errors to the bodies of the HTTP API, and describes them for OpenAPI."""

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import to_jsonable_python
from starlette.responses import JSONResponse

from frontdesk.errors import FrontdeskError, MissingScope, PendingApproval
from frontdesk.interfaces.http.errors import HTTP_ERROR_RULES, retry_after_header
from frontdesk.memory.model import TimeEntry
from frontdesk.memory.time_tracking import TimerRunning

NOT_AN_OBJECT = "must be a JSON object, sent as application/json"
# The names that clients know for the place of an invalid value.
PLACE_NAMES = {"body": "body", "query": "query", "path": "params", "header": "headers"}


def error_response(error: FrontdeskError) -> JSONResponse:
    """The response for this error."""
    how = next(found for kind, found in HTTP_ERROR_RULES if isinstance(error, kind))
    body: dict[str, Any] = (
        {"error": how.headline, "details": error.public_message} if how.headline else {"error": error.public_message}
    )
    headers = dict(retry_after_header(error))
    match error:
        case MissingScope(scope=scope):
            body |= {"required_scopes": [scope], "success": False}
            headers["www-authenticate"] = f'Bearer error="insufficient_scope", scope="{scope}"'
        case PendingApproval(call_ids=call_ids):
            body["pending"] = list(call_ids)
        case TimerRunning(running=running):
            body["running"] = to_jsonable_python(running)
        case _:
            pass
    return JSONResponse(body, how.status, headers)


def problem_response(status: int, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """A response for a general error of a request."""
    return JSONResponse({"error": message}, status, headers)


def validation_response(error: RequestValidationError) -> JSONResponse:
    """The response to a request that does not match its schema; it repeats nothing of the request."""
    problems: Sequence[Any] = error.errors()
    if any(one["type"] == "json_invalid" for one in problems):
        return problem_response(400, "The body is not valid JSON")
    found: dict[str, list[str]] = {}
    for one in problems:
        place, *path = [str(part) for part in one["loc"]]
        told = f"{'.'.join(path)}: {one['msg'].removeprefix('Value error, ')}" if path else NOT_AN_OBJECT
        found.setdefault(PLACE_NAMES.get(place, place), []).append(told)
    details = [{"field": field, "errors": errors} for field, errors in found.items()]
    return JSONResponse({"error": "Validation failed", "details": details}, 400)


ResponseDocs = dict[int | str, dict[str, Any]]


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


class TimerProblem(Problem):
    """Another timer is running."""

    running: TimeEntry | None = Field(None, description="The entry of the timer that runs.")


def _error_doc(status: int) -> dict[str, Any]:
    """Documents an error by reference to the schema: a model at each status of each route takes seconds to set up."""
    says, example = ERROR_EXAMPLES[status]
    return {"description": says, "content": {"application/json": {"schema": PROBLEM_REFERENCE, "example": example}}}


# For every route.
ERROR_RESPONSES: dict[int | str, dict[str, Any]] = {"4XX": {"model": Problem}, "5XX": {"model": Problem}}

# For every route of the capability.
MEMORY_ERROR_RESPONSES: ResponseDocs = {**ERROR_RESPONSES, **{status: _error_doc(status) for status in ERROR_EXAMPLES}}
TIMER_ERROR_RESPONSES: ResponseDocs = {
    409: {"model": TimerProblem, "description": "Another timer runs: `running` says which."}
}
