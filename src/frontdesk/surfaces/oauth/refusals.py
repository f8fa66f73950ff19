"""The one table from Frontdesk's errors to OAuth's error codes and HTTP statuses."""

from dataclasses import dataclass

from starlette.responses import JSONResponse

from frontdesk.errors import Denied, FrontdeskError, LoginRefused, RateLimited, Unauthenticated, Unavailable, Unstorable
from frontdesk.identity.oauth.model import Fault
from frontdesk.surfaces.waits import retry_after

NO_STORE = {"cache-control": "no-store", "pragma": "no-cache"}
BASIC = {"www-authenticate": 'Basic realm="frontdesk", charset="UTF-8"'}


@dataclass(frozen=True, slots=True)
class Refusal:
    """How one kind of error is told."""

    status: int
    code: str


# The narrower error stands first; a login that is refused brings its own code.
TABLE: tuple[tuple[type[FrontdeskError], Refusal], ...] = (
    (LoginRefused, Refusal(400, Fault.INVALID_REQUEST)),
    (Unstorable, Refusal(400, Fault.INVALID_REQUEST)),
    (Unauthenticated, Refusal(401, "Unauthorized")),
    (Denied, Refusal(403, Fault.ACCESS_DENIED)),
    (RateLimited, Refusal(429, "slow_down")),
    (Unavailable, Refusal(503, "temporarily_unavailable")),
    (FrontdeskError, Refusal(500, "server_error")),
)


def status_of(error: FrontdeskError) -> int:
    if isinstance(error, LoginRefused) and error.fault == Fault.INVALID_CLIENT:
        return 401
    return _refusal(error).status


def refuse(error: FrontdeskError) -> JSONResponse:
    """The answer to a program."""
    code = error.fault if isinstance(error, LoginRefused) else _refusal(error).code
    headers = {**NO_STORE, **retry_after(error), **(BASIC if code == Fault.INVALID_CLIENT else {})}
    return JSONResponse({"error": code, "error_description": error.public}, status_of(error), headers)


def broken() -> JSONResponse:
    told = {"error": "server_error", "error_description": "Something went wrong here; try again"}
    return JSONResponse(told, 500, NO_STORE)


def _refusal(error: FrontdeskError) -> Refusal:
    return next(found for kind, found in TABLE if isinstance(error, kind))
