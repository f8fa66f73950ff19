"""The one table from Frontdesk's errors to HTTP statuses and bodies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi.exceptions import RequestValidationError
from pydantic_core import to_jsonable_python
from starlette.responses import JSONResponse

from frontdesk.errors import (
    Conflict,
    Denied,
    FrontdeskError,
    IdentityError,
    Invalid,
    MissingScope,
    NotFound,
    PendingApproval,
    RateLimited,
    Unauthenticated,
    Unavailable,
    Unstorable,
)
from frontdesk.memory.timing.model import TimerRunning
from frontdesk.surfaces.waits import retry_after

NO_OBJECT = "must be a JSON object, sent as application/json"
# Where FastAPI found what does not fit, in the words that clients know.
PLACES = {"body": "body", "query": "query", "path": "params", "header": "headers"}


@dataclass(frozen=True, slots=True)
class Refusal:
    """How one kind of error is told; with a `headline`, that is the error and what happened is a detail."""

    status: int
    headline: str | None = None


# The narrower error stands first.
TABLE: tuple[tuple[type[FrontdeskError], Refusal], ...] = (
    (Unauthenticated, Refusal(401)),
    (MissingScope, Refusal(403, "Insufficient permissions")),
    (Denied, Refusal(403)),
    (RateLimited, Refusal(429, "Too many requests")),
    (NotFound, Refusal(404)),
    (Conflict, Refusal(409)),
    (Invalid, Refusal(400)),
    (Unstorable, Refusal(400)),
    (IdentityError, Refusal(400)),
    (Unavailable, Refusal(503)),
    (FrontdeskError, Refusal(500)),
)


def refuse(error: FrontdeskError) -> JSONResponse:
    """The answer that tells this error."""
    how = next(found for kind, found in TABLE if isinstance(error, kind))
    body: dict[str, Any] = {"error": how.headline, "details": error.public} if how.headline else {"error": error.public}
    headers = dict(retry_after(error))
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


def problem(status: int, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """An answer that says what is wrong with a request in general."""
    return JSONResponse({"error": message}, status, headers)


def invalid(error: RequestValidationError) -> JSONResponse:
    """The answer to what does not fit its schema; nothing that was sent is repeated."""
    problems: Sequence[Any] = error.errors()
    if any(one["type"] == "json_invalid" for one in problems):
        return problem(400, "The body is not valid JSON")
    found: dict[str, list[str]] = {}
    for one in problems:
        place, *path = [str(part) for part in one["loc"]]
        told = f"{'.'.join(path)}: {one['msg'].removeprefix('Value error, ')}" if path else NO_OBJECT
        found.setdefault(PLACES.get(place, place), []).append(told)
    details = [{"field": field, "errors": errors} for field, errors in found.items()]
    return JSONResponse({"error": "Validation failed", "details": details}, 400)
