"""What a form says, if it is one of ours: bounded in size and time, and with the token that its page was given."""

from collections.abc import Mapping
from urllib.parse import parse_qsl

import anyio
from starlette.requests import ClientDisconnect, Request

from frontdesk.errors import Denied, Invalid
from frontdesk.surfaces.web.cookies import same_token

TOKEN = "form_token"  # noqa: S105 - the name of a field
MAX_BYTES = 1024 * 1024
MAX_FIELDS = 1000
READ_SECONDS = 20
NOTHING: Mapping[str, str] = {}
UNREADABLE = "The form cannot be read; load the page again and repeat it"
FORGED = "This form is too old, or was not made here; load the page again and repeat it"


async def read(request: Request, token: str | None, most: int = MAX_BYTES) -> Mapping[str, str]:
    """Its fields by name, without the token, which has to be the one that the browser keeps."""
    try:
        with anyio.fail_after(READ_SECONDS):
            body = await _body(request, most)
        said = dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MAX_FIELDS))
    except (TimeoutError, ClientDisconnect, ValueError) as error:
        raise Invalid(UNREADABLE) from error
    if not same_token(said.pop(TOKEN, None), token):
        raise Denied(FORGED)
    return said


async def _body(request: Request, most: int) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise Invalid(f"The form is too large; {most // 1024} KiB is the limit")
    return bytes(body)
