"""What is asked again, after which wait, and how an answer is read."""

import asyncio
from collections.abc import AsyncGenerator
from types import SimpleNamespace

import pytest

from frontdesk.agent365 import PlatformUnreadable, http_requests
from frontdesk.agent365.http_requests import PlatformReply, get_with_retries, post_with_retries, send_request
from frontdesk.mcp_client.http import HttpClient, HttpFailure
from tests.requirements import shows
from tests.support.gateways import HANG_UP, Gateway, head, opened, whole


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits, none of which is kept."""
    waited: list[float] = []

    async def wait(seconds: float) -> None:
        waited.append(seconds)
        await asyncio.sleep(0)

    monkeypatch.setattr(http_requests, "asyncio", SimpleNamespace(sleep=wait))
    return waited


@pytest.fixture
async def http() -> AsyncGenerator[HttpClient]:
    opened_http = HttpClient()
    yield opened_http
    await opened_http.close()


class Asking:
    """Gives the next answer, and counts."""

    def __init__(self, *answers: PlatformReply | Exception) -> None:
        self.answers = list(answers)
        self.count = 0

    async def __call__(self) -> PlatformReply:
        self.count += 1
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


OK = PlatformReply(200, "ok")
CUT = HttpFailure("the connection broke off")
REFUSED = HttpFailure("ConnectError")


@shows("A365-DISCOVER")
@pytest.mark.parametrize(
    "passing",
    [PlatformReply(429, ""), PlatformReply(502, ""), PlatformReply(503, ""), PlatformReply(504, ""), CUT, REFUSED],
)
async def test_a_question_is_asked_again_after_what_may_pass(
    passing: PlatformReply | Exception, waits: list[float]
) -> None:
    asking = Asking(passing, passing, OK)
    assert await get_with_retries(asking) == OK
    assert waits == [0.2, 0.4]


@pytest.mark.parametrize("status", [200, 201, 204, 301, 400, 401, 403, 404, 500, 501])
async def test_any_other_answer_stands(status: int, waits: list[float]) -> None:
    asking = Asking(PlatformReply(status, ""))
    assert (await get_with_retries(asking)).status == status
    assert waits == []


async def test_after_the_last_time_what_came_is_told(waits: list[float]) -> None:
    assert await get_with_retries(Asking(CUT, CUT, PlatformReply(503, "last")), 2) == PlatformReply(503, "last")
    with pytest.raises(HttpFailure, match="ConnectError"):
        await get_with_retries(Asking(CUT, CUT, REFUSED), 2)
    with pytest.raises(HttpFailure, match="broke off"):
        await get_with_retries(Asking(CUT), 0)
    assert waits == [0.2, 0.4] * 2


@shows("A365-DISCOVER")
async def test_a_wait_that_is_named_is_kept_unless_it_is_too_long(waits: list[float]) -> None:
    assert await get_with_retries(Asking(PlatformReply(503, "", 0.0), PlatformReply(429, "", 7.0), OK)) == OK
    assert waits == [0.0, 7.0]
    assert await get_with_retries(Asking(PlatformReply(503, "", 11.0), OK)) == PlatformReply(503, "", 11.0)
    assert await get_with_retries(Asking(PlatformReply(503, "", 3.0), OK), longest_wait=2) == PlatformReply(
        503, "", 3.0
    )
    assert waits == [0.0, 7.0]


@shows("A365-CHAT")
@pytest.mark.parametrize("unheard", ["ConnectError", "ConnectTimeout"])
async def test_a_message_is_sent_again_only_where_nobody_heard_it(unheard: str, waits: list[float]) -> None:
    asking = Asking(HttpFailure(unheard), HttpFailure(unheard), OK)
    assert await post_with_retries(asking) == OK
    assert waits == [0.2, 0.4]
    for heard in (CUT, HttpFailure("ReadError")):
        asking = Asking(heard, OK)
        with pytest.raises(HttpFailure):
            await post_with_retries(asking)
        assert asking.count == 1
    asking = Asking(PlatformReply(503, "", 0.0), OK)
    assert (await post_with_retries(asking)).status == 503
    with pytest.raises(HttpFailure, match="ConnectError"):
        await post_with_retries(Asking(REFUSED, REFUSED, REFUSED))


@pytest.mark.parametrize(
    ("said", "seconds"),
    [("5", 5.0), (" 0 ", 0.0), ("-1", None), ("1.5", None), ("Fri, 31 Dec 1999 23:59:59 GMT", None), ("9" * 9, None)],
)
async def test_a_wait_is_read_in_whole_seconds(said: str, seconds: float | None, http: HttpClient) -> None:
    async with opened(Gateway(whole("", 503, Retry_After=said))) as gateway:
        assert (await send_request(http, "GET", gateway.url, {}, None)).retry_after == seconds


@pytest.mark.parametrize(
    ("body", "kind", "text"),
    [
        ("ü".encode(), "application/json", "ü"),
        (b"\xef\xbb\xbf1", "application/json", "1"),
        ("ü".encode("utf-16"), "application/json; charset=UTF-16", "ü"),
        ("ü".encode("latin-1"), 'text/plain; charset="iso-8859-1"', "ü"),
        (b"\xff", "application/json", "\ufffd"),
        ("ü".encode(), "application/json; charset=no-such", "ü"),
        *((b"a-bb", f"a/b; charset={odd}", "a-bb") for odd in ("punycode", "idna", "undefined", "hex", "zip", "rot13")),
        (b"\\q", "a/b; charset=unicode_escape", "\\q"),
    ],
)
async def test_a_text_is_read_by_the_charset_it_names_if_that_is_one_for_texts(
    body: bytes, kind: str, text: str, http: HttpClient
) -> None:
    async with opened(Gateway(whole(body, Content_Type=kind))) as gateway:
        assert (await send_request(http, "GET", gateway.url, {}, None)).text == text


async def test_no_compressed_answer_is_asked_for_nor_taken(http: HttpClient) -> None:
    async with opened(
        Gateway(whole(b"\x1f\x8b", Content_Encoding="gzip"), whole("", 500, Content_Encoding="gzip"))
    ) as gateway:
        with pytest.raises(PlatformUnreadable, match="compressed"):
            await send_request(http, "GET", gateway.url, {}, None)
        assert (await send_request(http, "GET", gateway.url, {}, None)).status == 500
    assert gateway.requests[0].headers["accept-encoding"] == "identity"


async def test_an_answer_that_is_too_large_is_left_where_it_is(http: HttpClient) -> None:
    async with opened(Gateway([head(content_length=str(10**9)), *[b"x" * 1024**2] * 20, HANG_UP])) as gateway:
        with pytest.raises(PlatformUnreadable, match="larger than 8 MiB"):
            await send_request(http, "GET", gateway.url, {}, None)


async def test_of_a_message_that_was_taken_the_answer_is_not_waited_for(http: HttpClient) -> None:
    async with opened(Gateway([head(content_length="9"), HANG_UP])) as gateway:
        assert (await send_request(http, "POST", gateway.url, {}, b"{}")).status == 200
