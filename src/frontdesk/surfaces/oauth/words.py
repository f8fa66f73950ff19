"""What an OAuth request says: a form, a query or JSON, each name once, bounded in size and time."""

import base64
import binascii
from collections.abc import Iterable, Mapping
from urllib.parse import parse_qsl, unquote_plus

import anyio
from pydantic import TypeAdapter
from starlette.requests import ClientDisconnect, Request

from frontdesk.errors import LoginRefused
from frontdesk.identity.oauth.model import Fault

LARGEST = 64 * 1024
FIELDS = 100
READ_SECONDS = 30
JSON = "application/json"
BASIC = "basic "
TEXTS = TypeAdapter(dict[str, str | None])


def is_json(request: Request) -> bool:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() == JSON


def asked_in(request: Request) -> Mapping[str, str]:
    """What stands in the address."""
    return _once(request.query_params.multi_items())


async def said_in(request: Request) -> Mapping[str, str]:
    """What stands in the body, a form unless it says that it is JSON."""
    body = await _read(request)
    try:
        return _of_json(body) if is_json(request) else _once(parse_qsl(body.decode(), max_num_fields=FIELDS))
    except ValueError as error:
        raise _wrong("The body is neither a form nor a JSON object of texts") from error


def client_in(request: Request, said: Mapping[str, str]) -> tuple[str | None, str | None]:
    """(id, secret) of the client: in the header `Authorization: Basic`, or in the body; never in both."""
    authorization = request.headers.get("authorization", "")
    if authorization[: len(BASIC)].lower() != BASIC:
        return said.get("client_id"), said.get("client_secret")
    try:
        name, _, secret = base64.b64decode(authorization[len(BASIC) :], validate=True).decode().partition(":")
    except (binascii.Error, ValueError) as error:
        raise LoginRefused(Fault.INVALID_CLIENT, "The Authorization header is not well formed") from error
    if "client_secret" in said or said.get("client_id", unquote_plus(name)) != unquote_plus(name):
        raise _wrong("The client is named in two ways; use the header or the body")
    return unquote_plus(name), unquote_plus(secret)


def _once(pairs: Iterable[tuple[str, str]]) -> Mapping[str, str]:
    said: dict[str, str] = {}
    for name, value in pairs:
        if name in said:
            raise _wrong(f"{name[:40]} is said more than once")
        said[name] = value
    return said


def _of_json(body: bytes) -> Mapping[str, str]:
    return {name: value for name, value in TEXTS.validate_json(body, strict=True).items() if value is not None}


async def _read(request: Request) -> bytes:
    body = bytearray()
    try:
        with anyio.fail_after(READ_SECONDS):
            async for piece in request.stream():
                body += piece
                if len(body) > LARGEST:
                    raise _wrong(f"The body has more than {LARGEST} bytes")
    except (TimeoutError, ClientDisconnect) as error:
        raise _wrong(f"The body did not arrive within {READ_SECONDS} s") from error
    return bytes(body)


def _wrong(message: str) -> LoginRefused:
    return LoginRefused(Fault.INVALID_REQUEST, message)
