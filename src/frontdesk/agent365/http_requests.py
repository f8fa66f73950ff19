"""Sends one request to the platform within limits of time and size, and retries where that is safe."""

import asyncio
import codecs
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from frontdesk.agent365.errors import PlatformUnreadable
from frontdesk.mcp_client.http import HttpClient, HttpFailure

if TYPE_CHECKING:
    from frontdesk.mcp_client.connections import HttpResponse

OK = 200
LARGEST_ANSWER = 8 * 1024 * 1024
RETRIES = 2
FIRST_WAIT = 0.2
# If the platform names a longer wait, the caller should do something else meanwhile.
LONGEST_WAIT = 10.0
TEMPORARY_STATUSES = frozenset({429, 502, 503, 504})
# No connection was made, so the platform received nothing of the request.
NOT_SENT_ERRORS = frozenset({"ConnectError", "ConnectTimeout"})
# Python knows many more codecs; some take minutes for a megabyte of text, or are not for text.
CODECS = frozenset({"utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "ascii", "iso8859-1", "cp1252"})
CHARSET = re.compile(r"charset=\"?([A-Za-z0-9._-]+)", re.IGNORECASE)

SendRequest = Callable[[], Awaitable["PlatformReply"]]


@dataclass(frozen=True, slots=True)
class PlatformReply:
    """A whole answer."""

    status: int
    text: str
    retry_after: float | None = None


async def send_request(
    http: HttpClient, method: str, url: str, headers: Mapping[str, str], body: bytes | None
) -> PlatformReply:
    """Send one request; raises `HttpFailure` where there is no answer."""
    sent = {**{name.lower(): value for name, value in headers.items()}, "accept-encoding": "identity"}
    async with http.send(method, url, sent, body) as answer:
        return PlatformReply(
            answer.status, await _read_text(method, answer), _parse_retry_after(answer.headers.get("retry-after"))
        )


async def get_with_retries(
    request: SendRequest, retries: int = RETRIES, longest_wait: float = LONGEST_WAIT
) -> PlatformReply:
    """Repeat the request until its answer is final: a failure that may pass is waited out, a few times."""
    for wait in _retry_waits(retries):
        try:
            reply = await request()
        except HttpFailure:
            await asyncio.sleep(wait)
            continue
        if reply.status not in TEMPORARY_STATUSES or (reply.retry_after or 0) > longest_wait:
            return reply
        await asyncio.sleep(wait if reply.retry_after is None else reply.retry_after)
    return await request()


async def post_with_retries(request: SendRequest, retries: int = RETRIES) -> PlatformReply:
    """Repeat the request only where the platform did not receive it."""
    for wait in _retry_waits(retries):
        try:
            return await request()
        except HttpFailure as failure:
            if str(failure) not in NOT_SENT_ERRORS:
                raise
            await asyncio.sleep(wait)
    return await request()


def _retry_waits(retries: int) -> list[float]:
    return [FIRST_WAIT * 2**number for number in range(retries)]


async def _read_text(method: str, answer: "HttpResponse") -> str:
    # A chat that was accepted stays accepted, whatever the rest of the answer is.
    if method == "POST" and answer.status == OK:
        return ""
    try:
        return _decode(await _read_body(answer), answer)
    except PlatformUnreadable as error:
        if answer.status == OK:
            raise
        return f"({error})"


async def _read_body(answer: "HttpResponse") -> bytes:
    if answer.headers.get("content-encoding", "identity").lower() != "identity":
        raise PlatformUnreadable(
            "the platform sends a compressed answer though asked not to; check what stands between"
        )
    body = bytearray()
    async for chunk in answer.chunks():
        body += chunk
        if len(body) > LARGEST_ANSWER:
            raise PlatformUnreadable(
                f"the answer is larger than {LARGEST_ANSWER // 1024**2} MiB; check the platform's address"
            )
    return bytes(body)


def _decode(body: bytes, answer: "HttpResponse") -> str:
    named = CHARSET.search(answer.headers.get("content-type", ""))
    return body.decode(_codec(named[1]) if named else "utf-8", errors="replace").removeprefix("\ufeff")


def _codec(charset: str) -> str:
    try:
        found = codecs.lookup(charset).name
    except LookupError:
        return "utf-8"
    return found if found in CODECS else "utf-8"


def _parse_retry_after(text: str | None) -> float | None:
    """A wait in seconds; a date is ignored, as clocks differ."""
    return float(text) if text and re.fullmatch(r"[0-9]{1,6}", text.strip()) else None
