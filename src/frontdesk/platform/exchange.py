"""One exchange with the platform: bounded in time and size, and tried again where that can do no harm."""

import asyncio
import codecs
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from frontdesk.loop.mcp.http import Failure, Http
from frontdesk.platform.errors import PlatformUnreadable

if TYPE_CHECKING:
    from frontdesk.loop.mcp.connections import Answer

OK = 200
LARGEST = 8 * 1024 * 1024
RETRIES = 2
FIRST_WAIT = 0.2
# A platform that names a longer wait means that the caller should do something else meanwhile.
LONGEST_WAIT = 10.0
PASSING = frozenset({429, 502, 503, 504})
# No connection was made, so nothing of the request was heard.
UNHEARD = frozenset({"ConnectError", "ConnectTimeout"})
# Python knows many more; some of them take minutes for a text of a megabyte, or are none for texts.
CODECS = frozenset({"utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "ascii", "iso8859-1", "cp1252"})
CHARSET = re.compile(r"charset=\"?([A-Za-z0-9._-]+)", re.IGNORECASE)

Ask = Callable[[], Awaitable["Reply"]]


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, whole."""

    status: int
    text: str
    retry_after: float | None = None


async def ask(http: Http, method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> Reply:
    """Send one request; raises `Failure` where there is no answer."""
    sent = {**{name.lower(): value for name, value in headers.items()}, "accept-encoding": "identity"}
    async with http.send(method, url, sent, body) as answer:
        return Reply(answer.status, await _said(method, answer), _seconds(answer.headers.get("retry-after")))


async def get(request: Ask, retries: int = RETRIES, longest_wait: float = LONGEST_WAIT) -> Reply:
    """Ask until there is an answer that stands: a failure that may pass is waited out, a few times."""
    for wait in _waits(retries):
        try:
            reply = await request()
        except Failure:
            await asyncio.sleep(wait)
            continue
        if reply.status not in PASSING or (reply.retry_after or 0) > longest_wait:
            return reply
        await asyncio.sleep(wait if reply.retry_after is None else reply.retry_after)
    return await request()


async def post(request: Ask, retries: int = RETRIES) -> Reply:
    """Ask again only where nobody heard the request."""
    for wait in _waits(retries):
        try:
            return await request()
        except Failure as failure:
            if str(failure) not in UNHEARD:
                raise
            await asyncio.sleep(wait)
    return await request()


def _waits(retries: int) -> list[float]:
    return [FIRST_WAIT * 2**number for number in range(retries)]


async def _said(method: str, answer: "Answer") -> str:
    # What was taken is taken, whatever is said about it and however that goes on.
    if method == "POST" and answer.status == OK:
        return ""
    try:
        return _text(await _body(answer), answer)
    except PlatformUnreadable as error:
        if answer.status == OK:
            raise
        return f"({error})"


async def _body(answer: "Answer") -> bytes:
    if answer.headers.get("content-encoding", "identity").lower() != "identity":
        raise PlatformUnreadable(
            "the platform sends a compressed answer though asked not to; check what stands between"
        )
    body = bytearray()
    async for chunk in answer.chunks():
        body += chunk
        if len(body) > LARGEST:
            raise PlatformUnreadable(
                f"the answer is larger than {LARGEST // 1024**2} MiB; check the platform's address"
            )
    return bytes(body)


def _text(body: bytes, answer: "Answer") -> str:
    named = CHARSET.search(answer.headers.get("content-type", ""))
    return body.decode(_codec(named[1]) if named else "utf-8", errors="replace").removeprefix("\ufeff")


def _codec(charset: str) -> str:
    try:
        found = codecs.lookup(charset).name
    except LookupError:
        return "utf-8"
    return found if found in CODECS else "utf-8"


def _seconds(said: str | None) -> float | None:
    """A wait in seconds; a date is not worth reading, as clocks differ."""
    return float(said) if said and re.fullmatch(r"[0-9]{1,6}", said.strip()) else None
