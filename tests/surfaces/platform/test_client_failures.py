"""A platform that is away, slow, endless or rude, and how long anybody waits for it."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from types import SimpleNamespace

import anyio
import pytest

from frontdesk.agent365 import (
    ChatHistoryRefused,
    DiscoveryFailed,
    MCPServerConfig,
    McpToolServerConfigurationService,
    OperationResult,
    PlatformTimeout,
    PlatformUnreachable,
    PlatformUnreadable,
    http_requests,
)
from tests.requirements import shows
from tests.support.gateways import HANG_UP, HOLD, Answer, Gateway, chatting, head, opened, servers, whole
from tests.support.serving import listen
from tests.support.waiting import until

SECONDS = 20
SHORT = 0.1
AWAY = whole("not now", 503)
DRIBBLE = [head(transfer_encoding="chunked"), *itertools.repeat(b"1\r\n \r\n", 100_000)]


@dataclass
class Waits:
    """What was waited before trying again; meanwhile something may happen."""

    waited: list[float] = field(default_factory=list[float])
    meanwhile: Callable[[], Awaitable[object]] | None = None

    async def __call__(self, seconds: float) -> None:
        self.waited.append(seconds)
        if self.meanwhile is not None:
            await self.meanwhile()
        await asyncio.sleep(0)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Waits:
    """Waits that are noted instead of kept."""
    noted = Waits()
    monkeypatch.setattr(http_requests, "asyncio", SimpleNamespace(sleep=noted))
    return noted


async def listed(gateway: Gateway, timeout: float = SECONDS, retries: int = 2) -> list[MCPServerConfig]:
    service = McpToolServerConfigurationService(environ=gateway.environ(), timeout=timeout, retries=retries)
    with anyio.fail_after(SECONDS):
        return await service.list_tool_servers("app", "token")


async def told(gateway: Gateway, timeout: float = SECONDS) -> OperationResult:
    service = McpToolServerConfigurationService(environ=gateway.environ(), timeout=timeout)
    with anyio.fail_after(SECONDS):
        return await service.send_chat_history(chatting(), [])


def reason(result: OperationResult) -> BaseException:
    [error] = result.errors
    assert not result.succeeded
    return error.exception


@shows("A365-DISCOVER")
async def test_two_refusals_that_pass_are_one_result_of_three_requests(waits: Waits) -> None:
    async with opened(Gateway(AWAY, AWAY, servers("mail"))) as gateway:
        found = await listed(gateway)
    assert [server.mcp_server_name for server in found] == ["mail"]
    assert len(gateway.requests) == 3
    assert len({asked.headers["x-ms-correlation-id"] for asked in gateway.requests}) == 1


@shows("A365-DISCOVER")
async def test_a_platform_that_stays_away_is_told_after_three_requests(waits: Waits) -> None:
    async with opened(Gateway(AWAY)) as gateway:
        with pytest.raises(DiscoveryFailed, match="HTTP 503: not now"):
            await listed(gateway)
    assert len(gateway.requests) == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 500])
async def test_a_refusal_that_stands_is_not_asked_about_again(status: int, waits: Waits) -> None:
    async with opened(Gateway(whole("no", status))) as gateway:
        with pytest.raises(DiscoveryFailed):
            await listed(gateway)
    assert (len(gateway.requests), waits.waited) == (1, [])


@shows("A365-DISCOVER")
async def test_a_wait_that_the_platform_names_is_kept_or_the_question_given_up(waits: Waits) -> None:
    async with opened(Gateway(whole("", 429, Retry_After="3"), servers("mail"))) as gateway:
        assert len(await listed(gateway)) == 1
    assert waits.waited == [3.0]
    async with opened(Gateway(whole("busy", 503, Retry_After="60"), servers("mail"))) as gateway:
        with pytest.raises(DiscoveryFailed, match="busy"):
            await listed(gateway)
    assert (len(gateway.requests), waits.waited) == (1, [3.0])


async def test_a_wait_that_would_use_up_the_time_is_not_begun(waits: Waits) -> None:
    async with opened(Gateway(whole("busy", 503, Retry_After="3"), servers("mail"))) as gateway:
        with pytest.raises(DiscoveryFailed, match="busy"):
            await listed(gateway, timeout=6.0)
    assert waits.waited == []


@shows("A365-DISCOVER")
@pytest.mark.parametrize(
    "answer",
    [
        [HOLD],
        [head(content_length="100"), HOLD],
        [head(content_length="100"), b"[", HOLD],
        DRIBBLE,
    ],
)
async def test_the_whole_answer_has_one_time_limit(answer: Answer) -> None:
    async with opened(Gateway(answer)) as gateway:
        with pytest.raises(PlatformTimeout, match="Failed to read MCP servers from endpoint") as late:
            await listed(gateway, SHORT)
        assert isinstance(late.value, TimeoutError)
        assert len(gateway.requests) <= 1
        await until(lambda: gateway.open == 0)


@shows("A365-DISCOVER")
async def test_the_time_limit_holds_though_tries_are_left() -> None:
    async with opened(Gateway(AWAY)) as gateway:
        with pytest.raises(PlatformTimeout):
            await listed(gateway, SHORT, retries=1_000)
    assert len(gateway.requests) <= 1


@shows("A365-HOSTILE")
@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ([HANG_UP], PlatformUnreachable),
        ([b"HTTP/1.1 200 OK\r\ncont", HANG_UP], PlatformUnreachable),
        ([head(content_length="9"), b"[]", HANG_UP], PlatformUnreachable),
        ([b"SSH-2.0-OpenSSH_9.6\r\n"], PlatformUnreachable),
        ([b"HTTP/1.1 200 OK\r\n", *itertools.repeat(b"x: " + b"y" * 1000 + b"\r\n", 1_000)], PlatformUnreachable),
        (
            [head(transfer_encoding="chunked"), *itertools.repeat(b"100000\r\n" + b" " * 0x100000 + b"\r\n", 100)],
            PlatformUnreadable,
        ),
        ([head(content_length="999999999999"), *[b" " * 0x100000] * 100], PlatformUnreadable),
        (whole(b"\x1f\x8b\x08", Content_Encoding="gzip"), PlatformUnreadable),
        (whole(b"\xff\xfe\xfd"), PlatformUnreadable),
        ([head(101, upgrade="x", connection="upgrade")], DiscoveryFailed),
    ],
)
async def test_an_answer_that_is_none_or_without_end_is_told_by_type(
    answer: Answer, error: type[Exception], waits: Waits
) -> None:
    async with opened(Gateway(answer)) as gateway:
        with pytest.raises(error):
            await listed(gateway)
        await until(lambda: gateway.open == 0)


@shows("A365-DISCOVER")
async def test_who_hangs_up_on_a_question_is_asked_again(waits: Waits) -> None:
    async with opened(Gateway([HANG_UP], [head(content_length="9"), HANG_UP], servers("mail"))) as gateway:
        assert len(await listed(gateway)) == 1
    assert len(gateway.requests) == 3


@shows("A365-DISCOVER")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed_and_the_token_goes_nowhere_else(status: int, waits: Waits) -> None:
    async with (
        opened(Gateway()) as elsewhere,
        opened(Gateway(whole("", status, Location=f"{elsewhere.url}/x"))) as gateway,
    ):
        with pytest.raises(DiscoveryFailed) as moved:
            await listed(gateway)
        assert isinstance(reason(await told(gateway)), ChatHistoryRefused)
    assert moved.value.status == status
    assert elsewhere.connections == 0


@shows("A365-CHAT")
async def test_a_chat_that_nobody_heard_is_sent_once_somebody_is_there(waits: Waits) -> None:
    listener = listen()
    port = listener.getsockname()[1]
    listener.close()
    gateway = Gateway(whole(""))
    gateway.url = f"http://127.0.0.1:{port}"
    async with AsyncExitStack() as stack:
        waits.meanwhile = lambda: stack.enter_async_context(opened(gateway, port))
        assert await told(gateway) is OperationResult.success()
    assert (len(gateway.requests), len(waits.waited)) == (1, 1)


@shows("A365-CHAT")
@pytest.mark.parametrize("answer", [[HANG_UP], [b"HTTP/1.1 2", HANG_UP], AWAY, whole("", 429, Retry_After="0")])
async def test_a_chat_that_was_heard_is_never_sent_twice(answer: Answer, waits: Waits) -> None:
    async with opened(Gateway(answer)) as gateway:
        assert not (await told(gateway)).succeeded
    assert (len(gateway.requests), waits.waited) == (1, [])


@shows("A365-CHAT")
async def test_a_chat_is_not_waited_for_longer_than_the_limit() -> None:
    async with opened(Gateway([HOLD])) as gateway:
        assert isinstance(reason(await told(gateway, SHORT)), PlatformTimeout)
        await until(lambda: gateway.open == 0)
    assert len(gateway.requests) <= 1


async def test_who_asks_may_give_up_and_leaves_no_connection() -> None:
    async with opened(Gateway([HOLD])) as gateway:
        asking = asyncio.create_task(listed(gateway))
        await until(lambda: bool(gateway.requests))
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await until(lambda: gateway.open == 0)
