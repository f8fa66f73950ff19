"""Tokens at the local platform's doors: refused in words that say what was expected, and handed out to anybody."""

import base64
import binascii
from urllib.parse import parse_qsl, unquote_plus

from starlette.responses import JSONResponse

from frontdesk.platform.local.checking import check, claims_of
from frontdesk.platform.local.granting import Refused, grant
from frontdesk.platform.local.standin import StandIn
from frontdesk.surfaces.gate import ASGIApp
from frontdesk.surfaces.platform.asked import Asked, problem

MOST_FIELDS = 100
NOT_STORED = {"cache-control": "no-store", "pragma": "no-cache"}


def refused(standin: StandIn, asked: Asked, audience: str) -> ASGIApp | None:
    """The 401 for a request whose token is not good for this audience; None for one that is."""
    checked = check(asked.visit.said.get("authorization"), audience, standin.mode, standin.mint, standin.clock())
    asked.claims = checked.claims
    asked.token = "none" if checked.failed == "none" else checked.why
    if checked.failed is None:
        return None
    code = "unauthorized" if checked.failed == "none" else "invalid_token"
    answer = problem(401, code, checked.why, check=checked.failed, expected={"audience": audience})
    # By the name of the check alone: what a token says of itself could break the header.
    answer.headers["www-authenticate"] = f'Bearer error="{code}", error_description="{checked.failed}"'
    return answer


def look(asked: Asked) -> None:
    """Note what the token of a request says, before it is checked or where it is not."""
    authorization = asked.visit.said.get("authorization")
    asked.claims = claims_of(authorization)
    asked.token = "none" if authorization is None else "not checked"


async def issue(standin: StandIn, asked: Asked) -> ASGIApp:
    """`POST …/oauth2/v2.0/token`."""
    try:
        form = dict(parse_qsl(asked.body.decode(), max_num_fields=MOST_FIELDS))
        client = _basic(asked.visit.said.get("authorization", ""))
        granted = grant({**({"client_id": client} if client else {}), **form}, standin.mint, standin.clock())
    except Refused as error:
        return JSONResponse({"error": error.fault, "error_description": str(error)}, 400, NOT_STORED)
    except ValueError:
        told = "The body must be a form: application/x-www-form-urlencoded, in UTF-8"
        return JSONResponse({"error": "invalid_request", "error_description": told}, 400, NOT_STORED)
    return JSONResponse(granted, headers=NOT_STORED)


def _basic(authorization: str) -> str:
    """The client that a Basic login names; its secret is not looked at, as there is none to compare it with."""
    scheme, _, coded = authorization.partition(" ")
    if scheme.lower() != "basic":
        return ""
    try:
        return unquote_plus(base64.b64decode(coded).decode().partition(":")[0])
    except (binascii.Error, ValueError):
        return ""
