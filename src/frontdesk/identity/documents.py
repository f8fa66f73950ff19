"""What issuers publish of themselves: JSON documents of a reasonable size."""

import json
from collections.abc import Mapping
from typing import cast
from urllib.parse import urlsplit

import httpx2
from joserfc.errors import JoseError

# Key sets and descriptions have some thousand bytes.
LARGEST = 1024 * 1024
DESCRIPTIONS = ("openid-configuration", "oauth-authorization-server")
# What a request to an issuer, or the reading of what it published, can fail with.
TROUBLES = (
    httpx2.HTTPError,
    httpx2.InvalidURL,
    JoseError,
    OSError,
    ValueError,
    LookupError,
    TypeError,
    ArithmeticError,
)


async def described(client: httpx2.AsyncClient, issuer: str) -> Mapping[str, object]:
    """An issuer's description of itself, or ValueError where it has none."""
    for name in DESCRIPTIONS:
        found = await read_document(client, f"{issuer.rstrip('/')}/.well-known/{name}")
        if found is not None:
            return found
    raise ValueError(f"{issuer} does not describe itself")


async def read_document(client: httpx2.AsyncClient, url: str) -> Mapping[str, object] | None:
    """The object at an address, or None where there is nothing."""
    async with client.stream("GET", url) as response:
        return await read_object(response) if response.is_success else None


def address(said: object) -> str:
    """An address in a document, if it is one that can be asked."""
    if not isinstance(said, str):
        raise TypeError("an address that is no text")
    url = urlsplit(said)
    # The port is checked as it is read.
    if url.scheme not in ("http", "https") or not url.hostname or (url.port is not None and url.port == 0):
        raise ValueError("an address that cannot be asked")
    return said


async def read_object(response: httpx2.Response) -> Mapping[str, object]:
    """The JSON object that an answer holds, which is read no further than it may be long."""
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > LARGEST:
            raise ValueError(f"larger than {LARGEST} bytes")
    try:
        found: object = json.loads(body)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(found, dict):
        raise TypeError("not a JSON object")
    return cast("dict[str, object]", found)
