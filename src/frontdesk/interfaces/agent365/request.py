"""Reads a request to the local platform, checks its token, and answers errors."""

import asyncio
import base64
import binascii
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, unquote, unquote_plus

from pydantic import ValidationError
from starlette.responses import JSONResponse, Response

from frontdesk.agent365.local_platform import NO_TOKEN, LocalPlatformState
from frontdesk.agent365.local_tokens import GrantRefused, TokenClaims, check_token, grant_token, read_claims
from frontdesk.interfaces.http.context import ASGIApp, Message, Receive, RequestContext, Scope, request_context
from frontdesk.interfaces.mcp.http import MAX_BODY
from frontdesk.text import storable

READ_SECONDS = 30
# Only requests with these methods have a body that is read.
METHODS_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
SHOWN_ERRORS = 10


@dataclass(slots=True)
class PlatformRequest:
    """A request with its whole body; the last fields are for the log, and are filled in when they become known."""

    scope: Scope
    body: bytes = b""
    token: str = NO_TOKEN
    claims: TokenClaims = field(default_factory=dict[str, object])
    server: str | None = None
    rpc_method: str | None = None
    tool: str | None = None
    status: int | None = None

    @property
    def context(self) -> RequestContext:
        return request_context(self.scope)

    @property
    def method(self) -> str:
        return self.scope["method"]

    @property
    def raw_path(self) -> str:
        """The path as it was sent, before decoding."""
        raw: bytes = self.scope.get("raw_path") or quote(self.scope["path"]).encode()
        return raw.decode("latin-1")

    @property
    def parts(self) -> list[str]:
        """The parts of the path, each decoded by itself, so that an encoded slash does not split a part."""
        return [unquote(part) for part in self.raw_path.split("/")[1:]]


async def read_body(receive: Receive) -> bytes | Response:
    """The whole body, or the refusal of one that is too large or too slow."""
    body, more = bytearray(), True
    try:
        async with asyncio.timeout(READ_SECONDS):
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return error_response(400, "cut_off", "The body was cut off")
                body += message.get("body", b"")
                more = message.get("more_body", False)
                if len(body) > MAX_BODY:
                    return error_response(413, "too_large", "The body is too large; 4 MiB is the limit")
    except TimeoutError:
        return error_response(408, "too_slow", f"The body did not arrive within {READ_SECONDS} s")
    return bytes(body)


def replay_body(body: bytes, receive: Receive) -> Receive:
    """Give the body to the next reader, and then pass on what the connection receives."""
    said = [body]

    async def receive_again() -> Message:
        if said:
            return {"type": "http.request", "body": said.pop(), "more_body": False}
        return await receive()

    return receive_again


def error_response(status: int, code: str, text: str, **more: object) -> JSONResponse:
    """A refusal: a code for programs and a sentence for people."""
    return JSONResponse({"error": code, "error_description": text, **more}, status)


def invalid_body_response(what: str, error: ValidationError) -> JSONResponse:
    """The refusal of a body; it repeats nothing of the request but the names of fields."""
    found = error.errors(include_url=False, include_input=False, include_context=False)
    lines = [f"{'.'.join(map(str, one['loc'])) or 'body'}: {one['msg'].removeprefix('Value error, ')}" for one in found]
    shown = lines[:SHOWN_ERRORS] + ([f"and {len(lines) - SHOWN_ERRORS} more"] if len(lines) > SHOWN_ERRORS else [])
    return error_response(400, "invalid_request", storable(f"{what}: {'; '.join(shown)}"), problems=shown)


MOST_FIELDS = 100
NO_STORE_HEADERS = {"cache-control": "no-store", "pragma": "no-cache"}


def refuse_token(standin: LocalPlatformState, request: PlatformRequest, audience: str) -> ASGIApp | None:
    """The 401 for a request whose token is not valid for this audience; None for a valid one."""
    checked = check_token(
        request.context.headers.get("authorization"), audience, standin.mode, standin.token_signer, standin.clock()
    )
    request.claims = checked.claims
    request.token = "none" if checked.failed == "none" else checked.why
    if checked.failed is None:
        return None
    code = "unauthorized" if checked.failed == "none" else "invalid_token"
    answer = error_response(401, code, checked.why, check=checked.failed, expected={"audience": audience})
    # Only the name of the check is sent: the token's own claims could break the header.
    answer.headers["www-authenticate"] = f'Bearer error="{code}", error_description="{checked.failed}"'
    return answer


def note_token(request: PlatformRequest) -> None:
    """Note the claims of a request's token, before it is checked or where it is not checked."""
    authorization = request.context.headers.get("authorization")
    request.claims = read_claims(authorization)
    request.token = "none" if authorization is None else "not checked"


async def issue_token(standin: LocalPlatformState, request: PlatformRequest) -> ASGIApp:
    """`POST …/oauth2/v2.0/token`."""
    try:
        form = dict(parse_qsl(request.body.decode(), max_num_fields=MOST_FIELDS))
        client = _basic_client(request.context.headers.get("authorization", ""))
        granted = grant_token(
            {**({"client_id": client} if client else {}), **form}, standin.token_signer, standin.clock()
        )
    except GrantRefused as error:
        return JSONResponse({"error": error.error_code, "error_description": str(error)}, 400, NO_STORE_HEADERS)
    except ValueError:
        told = "The body must be a form: application/x-www-form-urlencoded, in UTF-8"
        return JSONResponse({"error": "invalid_request", "error_description": told}, 400, NO_STORE_HEADERS)
    return JSONResponse(granted, headers=NO_STORE_HEADERS)


def _basic_client(authorization: str) -> str:
    """The client that a Basic login names; its secret is ignored, as there is none to compare it with."""
    scheme, _, coded = authorization.partition(" ")
    if scheme.lower() != "basic":
        return ""
    try:
        return unquote_plus(base64.b64decode(coded).decode().partition(":")[0])
    except (binascii.Error, ValueError):
        return ""
