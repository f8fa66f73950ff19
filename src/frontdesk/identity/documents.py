"""What issuers publish of themselves: JSON documents of a reasonable size."""

import json
from collections.abc import Mapping
from typing import cast

import httpx2

# Key sets and descriptions have some thousand bytes.
LARGEST = 1024 * 1024
DESCRIPTIONS = ("openid-configuration", "oauth-authorization-server")


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


async def read_object(response: httpx2.Response) -> Mapping[str, object]:
    """The JSON object that an answer holds, which is read no further than it may be long."""
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > LARGEST:
            raise ValueError(f"larger than {LARGEST} bytes")
    found: object = json.loads(body)
    if not isinstance(found, dict):
        raise TypeError("not a JSON object")
    return cast("dict[str, object]", found)
