"""What is asked again, after which wait, and how an answer is read."""

import asyncio
from collections.abc import AsyncGenerator
from types import SimpleNamespace

import pytest

from frontdesk.loop.mcp.http import Failure, Http
from frontdesk.platform import PlatformUnreadable, exchange
from frontdesk.platform.exchange import Reply
from tests.requirements import shows
from tests.support.gateways import HANG_UP, Gateway, head, opened, whole


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits, none of which is kept."""
    waited: list[float] = []

    async def wait(seconds: float) -> None:
        waited.append(seconds)
        await asyncio.sleep(0)

    monkeypatch.setattr(exchange, "asyncio", SimpleNamespace(sleep=wait))
    return waited


@pytest.fixture
async def http() -> AsyncGenerator[Http]:
    opened_http = Http()
    yield opened_http
    await opened_http.close()


class Asking:
    """Gives the next answer, and counts."""

    def __init__(self, *answers: Reply | Exception) -> None:
        self.answers = list(answers)
        self.count = 0

    async def __call__(self) -> Reply:
        self.count += 1
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


OK = Reply(200, "ok")
CUT = Failure("the connection broke off")
REFUSED = Failure("ConnectError")


@shows("A365-DISCOVER")
@pytest.mark.parametrize("passing", [Reply(429, ""), Reply(502, ""), Reply(503, ""), Reply(504, ""), CUT, REFUSED])
async def test_a_question_is_asked_again_after_what_may_pass(passing: Reply | Exception, waits: list[float]) -> None:
    asking = Asking(passing, passing, OK)
    assert await exchange.get(asking) == OK
    assert waits == [0.2, 0.4]


@pytest.mark.parametrize("status", [200, 201, 204, 301, 400, 401, 403, 404, 500, 501])
async def test_any_other_answer_stands(status: int, waits: list[float]) -> None:
    asking = Asking(Reply(status, ""))
    assert (await exchange.get(asking)).status == status
    assert waits == []


async def test_after_the_last_time_what_came_is_told(waits: list[float]) -> None:
    assert await exchange.get(Asking(CUT, CUT, Reply(503, "last")), 2) == Reply(503, "last")
    with pytest.raises(Failure, match="ConnectError"):
        await exchange.get(Asking(CUT, CUT, REFUSED), 2)
    with pytest.raises(Failure, match="broke off"):
        await exchange.get(Asking(CUT), 0)
    assert waits == [0.2, 0.4] * 2


@shows("A365-DISCOVER")
async def test_a_wait_that_is_named_is_kept_unless_it_is_too_long(waits: list[float]) -> None:
    assert await exchange.get(Asking(Reply(503, "", 0.0), Reply(429, "", 7.0), OK)) == OK
    assert waits == [0.0, 7.0]
    assert await exchange.get(Asking(Reply(503, "", 11.0), OK)) == Reply(503, "", 11.0)
    assert await exchange.get(Asking(Reply(503, "", 3.0), OK), longest_wait=2) == Reply(503, "", 3.0)
    assert waits == [0.0, 7.0]


@shows("A365-CHAT")
@pytest.mark.parametrize("unheard", ["ConnectError", "ConnectTimeout"])
async def test_a_message_is_sent_again_only_where_nobody_heard_it(unheard: str, waits: list[float]) -> None:
    asking = Asking(Failure(unheard), Failure(unheard), OK)
    assert await exchange.post(asking) == OK
    assert waits == [0.2, 0.4]
    for heard in (CUT, Failure("ReadError")):
        asking = Asking(heard, OK)
        with pytest.raises(Failure):
            await exchange.post(asking)
        assert asking.count == 1
    asking = Asking(Reply(503, "", 0.0), OK)
    assert (await exchange.post(asking)).status == 503
    with pytest.raises(Failure, match="ConnectError"):
        await exchange.post(Asking(REFUSED, REFUSED, REFUSED))


@pytest.mark.parametrize(
    ("said", "seconds"),
    [("5", 5.0), (" 0 ", 0.0), ("-1", None), ("1.5", None), ("Fri, 31 Dec 1999 23:59:59 GMT", None), ("9" * 9, None)],
)
async def test_a_wait_is_read_in_whole_seconds(said: str, seconds: float | None, http: Http) -> None:
    async with opened(Gateway(whole("", 503, Retry_After=said))) as gateway:
        assert (await exchange.ask(http, "GET", gateway.url, {}, None)).retry_after == seconds


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
    body: bytes, kind: str, text: str, http: Http
) -> None:
    async with opened(Gateway(whole(body, Content_Type=kind))) as gateway:
        assert (await exchange.ask(http, "GET", gateway.url, {}, None)).text == text


async def test_no_compressed_answer_is_asked_for_nor_taken(http: Http) -> None:
    async with opened(
        Gateway(whole(b"\x1f\x8b", Content_Encoding="gzip"), whole("", 500, Content_Encoding="gzip"))
    ) as gateway:
        with pytest.raises(PlatformUnreadable, match="compressed"):
            await exchange.ask(http, "GET", gateway.url, {}, None)
        assert (await exchange.ask(http, "GET", gateway.url, {}, None)).status == 500
    assert gateway.requests[0].headers["accept-encoding"] == "identity"


async def test_an_answer_that_is_too_large_is_left_where_it_is(http: Http) -> None:
    async with opened(Gateway([head(content_length=str(10**9)), *[b"x" * 1024**2] * 20, HANG_UP])) as gateway:
        with pytest.raises(PlatformUnreadable, match="larger than 8 MiB"):
            await exchange.ask(http, "GET", gateway.url, {}, None)


async def test_of_a_message_that_was_taken_the_answer_is_not_waited_for(http: Http) -> None:
    async with opened(Gateway([head(content_length="9"), HANG_UP])) as gateway:
        assert (await exchange.ask(http, "POST", gateway.url, {}, b"{}")).status == 200
