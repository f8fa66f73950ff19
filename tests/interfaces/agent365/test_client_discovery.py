"""Tests which servers an agent gets with which tokens, from a real server that may fail."""

import asyncio
import itertools
import json
import logging
import platform
import re
import traceback
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from uuid import UUID

import anyio
import pytest

from frontdesk.agent365 import (
    ChatHistoryRefused,
    DiscoveryFailed,
    InvalidArgument,
    MCPServerConfig,
    McpToolServerConfigurationService,
    OperationResult,
    PlatformTimeout,
    PlatformUnreachable,
    PlatformUnreadable,
    TokenContextMissing,
    TokenNotObtained,
    ToolOptions,
    http_requests,
)
from frontdesk.agent365.headers import server_headers
from frontdesk.errors import FrontdeskError
from tests.requirements import shows
from tests.support.agent365 import HANG_UP, HOLD, Answer, Gateway, chatting, head, jwt, opened, servers, turn, whole
from tests.support.serving import listen
from tests.support.waiting import until

# The servers of an agent, from a real server: the request, and the result of each answer


TOKEN = jwt(appid="application", azp="other")
PRODUCTION = {"PYTHON_ENVIRONMENT": "Production"}


async def listed(gateway: Gateway, token: str = TOKEN, **more: str) -> list[MCPServerConfig]:
    service = McpToolServerConfigurationService(environ=gateway.environ(**more), retries=0)
    return await service.list_tool_servers("app", token)


@shows("A365-DISCOVER")
async def test_the_platform_is_asked_as_it_expects() -> None:
    context = turn(id="turn-1", channel_id="msteams:copilot", from_=SimpleNamespace(agentic_app_blueprint_id="blue"))
    async with opened(Gateway()) as gateway:
        service = McpToolServerConfigurationService(environ=gateway.environ())
        await service.list_tool_servers("app", TOKEN, ToolOptions("OpenAI"), turn_context=context)
    [asked] = gateway.requests
    assert (asked.method, asked.target, asked.body) == ("GET", "/agents/v2/app/mcpServers", b"")
    agent = asked.headers["user-agent"]
    assert re.fullmatch(r"Agent365SDK/\S+ \(\w+; Python [^;]+; OpenAI\)", agent)
    assert platform.python_version() in agent
    assert {name: value for name, value in asked.headers.items() if name not in {"user-agent", "host"}} == {
        "authorization": f"Bearer {TOKEN}",
        "x-ms-agentid": "blue",
        "x-ms-correlation-id": "turn-1",
        "x-ms-channel-id": "msteams",
        "x-ms-subchannel-id": "copilot",
        "accept-encoding": "identity",
    }


@shows("A365-AGENTID")
@pytest.mark.parametrize(
    ("token", "environ", "agent"),
    [
        (jwt(xms_par_app_azp="blueprint", appid="app"), {}, "blueprint"),
        (f"Bearer {jwt(appid='app')}", {}, "app"),
        ("opaque", {"AGENT365_APPLICATION_NAME": "Zoë\u2019s desk"}, "Zoe's desk"),
        ("opaque", {}, None),
    ],
)
async def test_discovery_names_the_agent_by_the_best_that_is_known(
    token: str, environ: Mapping[str, str], agent: str | None
) -> None:
    async with opened(Gateway()) as gateway:
        await listed(gateway, token, **environ)
    [asked] = gateway.requests
    assert asked.headers.get("x-ms-agentid") == agent
    assert asked.headers["authorization"] == f"Bearer {token.removeprefix('Bearer ')}"
    assert UUID(asked.headers["x-ms-correlation-id"]).version == 4


@shows("A365-HOSTILE")
@pytest.mark.parametrize("app_id", ["../x?y=1", "a/b#c", "ü\r\nx: y", "%2e%2e", " "])
async def test_an_app_id_stays_one_part_of_the_path(app_id: str) -> None:
    async with opened(Gateway()) as gateway:
        await McpToolServerConfigurationService(environ=gateway.environ()).list_tool_servers(app_id, "t")
    [asked] = gateway.requests
    assert re.fullmatch(r"/agents/v2/[^/?#]+/mcpServers", asked.target)


@shows("A365-DISCOVER")
@pytest.mark.parametrize("kind", ["application/json", "text/html"])
async def test_servers_are_read_wrapped_or_bare_whatever_the_answer_calls_itself(kind: str) -> None:
    entries = [{"mcpServerName": "mail", "url": "http://host/mail"}, 5, {"mcpServerUniqueName": "mcp_files"}]
    async with opened(Gateway(whole({"mcpServers": entries}, Content_Type=kind), whole(entries))) as gateway:
        first, second = await listed(gateway), await listed(gateway)
        built = f"{gateway.url}/agents/servers/mcp_files"
    assert first == second
    assert [(server.mcp_server_name, server.url) for server in first] == [
        ("mail", "http://host/mail"),
        ("mcp_files", built),
    ]


@shows("A365-DISCOVER")
@pytest.mark.parametrize("document", ["{}", '{"mcpServers": {}}', "null", "5", '"x"', "", "  ", '{"error": "no"}'])
async def test_any_other_answer_is_no_servers_and_a_warning(document: str, caplog: pytest.LogCaptureFixture) -> None:
    async with opened(Gateway(whole(document))) as gateway:
        with caplog.at_level(logging.WARNING, "frontdesk.agent365"):
            assert await listed(gateway) == []
    assert "no list of MCP servers" in caplog.text


@shows("A365-DISCOVER")
@pytest.mark.parametrize("status", [201, 202, 204, 206, 301, 304, 400, 401, 403, 404, 429, 500, 503])
async def test_any_status_but_200_is_told_with_the_body(status: int) -> None:
    empty = status in {204, 304}
    async with opened(Gateway(whole("" if empty else "why not", status))) as gateway:
        with pytest.raises(DiscoveryFailed) as failed:
            await listed(gateway)
    body = "" if empty else "why not"
    assert (failed.value.status, failed.value.body) == (status, body)
    assert str(failed.value) == f"Failed to read MCP servers from endpoint: HTTP {status}: {body}"
    assert isinstance(failed.value, FrontdeskError)


async def test_of_a_long_refusal_as_much_is_told_as_somebody_reads() -> None:
    async with opened(Gateway(whole("x" * 100_000, 500))) as gateway:
        with pytest.raises(DiscoveryFailed) as failed:
            await listed(gateway)
    assert failed.value.body == "x" * 2_000


@shows("A365-DISCOVER")
@pytest.mark.parametrize("body", ["<html>", "{", '{"mcpServers": [}', "[1,]"])
async def test_an_answer_that_is_no_json_is_unreadable(body: str) -> None:
    async with opened(Gateway(whole(body))) as gateway:
        with pytest.raises(PlatformUnreadable, match="Failed to parse MCP server configuration response: "):
            await listed(gateway)


@pytest.mark.parametrize("body", ["[" * 100_000, "9" * 5_000])
async def test_json_that_nobody_can_hold_is_unreadable(body: str) -> None:
    async with opened(Gateway(whole(body))) as gateway:
        with pytest.raises(PlatformUnreadable, match=r"Failed to (parse|read) MCP server"):
            await listed(gateway)


@shows("A365-DISCOVER")
async def test_nobody_there_is_told_as_a_connection_error() -> None:
    async with opened(Gateway()) as gateway:
        pass
    with pytest.raises(
        PlatformUnreachable, match="Failed to connect to MCP configuration endpoint: ConnectError"
    ) as away:
        await listed(gateway)
    assert isinstance(away.value, ConnectionError)


@shows("A365-DISCOVER")
@pytest.mark.parametrize("nothing", ["", None])
async def test_in_production_app_and_token_are_needed(nothing: str | None) -> None:
    service = McpToolServerConfigurationService(environ=PRODUCTION)
    with pytest.raises(ValueError, match=r"^agentic_app_id cannot be empty or None$"):
        await service.list_tool_servers(nothing or "", "token")
    with pytest.raises(ValueError, match=r"^auth_token cannot be empty or None$"):
        await service.list_tool_servers("app", nothing)


@pytest.mark.parametrize(("app_id", "token"), [("..", "t"), ("x" * 257, "t"), ("app", "a\r\nb"), ("app", "   ")])
async def test_what_cannot_be_sent_is_refused_before_anything_is(app_id: str, token: str) -> None:
    async with opened(Gateway()) as gateway:
        with pytest.raises(InvalidArgument):
            await McpToolServerConfigurationService(environ=gateway.environ()).list_tool_servers(app_id, token)
    assert gateway.connections == 0


async def test_an_address_that_is_none_is_refused() -> None:
    service = McpToolServerConfigurationService(environ={**PRODUCTION, "MCP_PLATFORM_ENDPOINT": "nowhere"})
    with pytest.raises(InvalidArgument, match="MCP_PLATFORM_ENDPOINT"):
        await service.list_tool_servers("app", "t")


@shows("A365-DISCOVER")
async def test_while_developing_the_platform_is_not_asked() -> None:
    async with opened(Gateway(servers("mail"))) as gateway:
        service = McpToolServerConfigurationService(environ=gateway.environ(PYTHON_ENVIRONMENT="Development"))
        assert await service.list_tool_servers("", None) == []
    assert gateway.connections == 0


# Servers with their tokens, as an agent gets them; and places where a token must never appear


SHARED = "ea9ffc3e-8a23-4a7d-836d-234d7c7565c1/.default"
MAIL = {"mcpServerName": "mail", "audience": "api://Mail", "scope": "Mail.Read"}
FILES = {"mcpServerName": "files", "audience": "api://files", "scope": "null"}
SECRET = jwt(appid="application", secret="the-secret-part")
TURN = turn(id="turn-1")
SECONDS = 20


@dataclass
class Exchange:
    """Gives tokens that name their purpose; an event, if there is one, has to come first."""

    after: asyncio.Event | None = None
    token: str | None = "token-of-"
    asked: list[tuple[object, list[str], str]] = field(default_factory=list[tuple[object, list[str], str]])

    async def exchange_token(self, context: object, scopes: list[str], auth_handler_id: str, /) -> object:
        self.asked.append((context, scopes, auth_handler_id))
        if self.after is not None:
            await self.after.wait()
        return None if self.token is None else SimpleNamespace(token=f"{self.token}{scopes[0]}")


async def tokens_listed(gateway: Gateway, exchange: Exchange | None, timeout: float = SECONDS) -> list[MCPServerConfig]:
    service = McpToolServerConfigurationService(environ=gateway.environ(), timeout=timeout, retries=0)
    return await service.list_tool_servers("app", SECRET, None, exchange, "agentic", TURN)


@shows("A365-TOKENS")
async def test_each_server_comes_with_the_token_of_its_audience_by_one_exchange_a_scope() -> None:
    exchange = Exchange()
    async with opened(Gateway(servers("a", MAIL, "b", {**MAIL, "mcpServerName": "post"}, FILES))) as gateway:
        found = await tokens_listed(gateway, exchange)
    assert exchange.asked == [
        (TURN, [SHARED], "agentic"),
        (TURN, ["api://mail/Mail.Read"], "agentic"),
        (TURN, ["api://files/.default"], "agentic"),
    ]
    assert {server.mcp_server_name: server.headers for server in found} == {
        name: {"Authorization": f"Bearer token-of-{scope}"}
        for name, scope in {
            "a": SHARED,
            "mail": "api://mail/Mail.Read",
            "b": SHARED,
            "post": "api://mail/Mail.Read",
            "files": "api://files/.default",
        }.items()
    }
    assert len(gateway.requests) == 1


@shows("A365-TOKENS")
async def test_nothing_is_exchanged_where_there_are_no_servers() -> None:
    exchange = Exchange()
    async with opened(Gateway(servers())) as gateway:
        assert await tokens_listed(gateway, exchange) == []
    assert exchange.asked == []


@shows("A365-TOKENS")
async def test_without_the_three_arguments_only_servers_of_the_first_kind_are_given() -> None:
    async with opened(Gateway(servers("a", "b"), servers("a", MAIL, FILES))) as gateway:
        service = McpToolServerConfigurationService(environ=gateway.environ())
        found = await service.list_tool_servers("app", SECRET, authorization=Exchange(), turn_context=TURN)
        assert [server.headers for server in found] == [None, None]
        for authorization, context in ((None, TURN), (Exchange(), None)):
            with pytest.raises(TokenContextMissing, match=r"\[mail, files\]") as wanting:
                await service.list_tool_servers("app", SECRET, None, authorization, "agentic", context)
            assert wanting.value.servers == ("mail", "files")


@shows("A365-TOKENS")
async def test_an_exchange_that_gives_nothing_names_server_and_scope() -> None:
    async with opened(Gateway(servers(MAIL))) as gateway:
        with pytest.raises(TokenNotObtained, match=r"'mail' \(scope: api://mail/Mail.Read\)"):
            await tokens_listed(gateway, Exchange(token=None))


@shows("A365-TOKENS")
async def test_an_exchange_that_never_returns_is_given_up() -> None:
    async with opened(Gateway(servers("a"))) as gateway:
        with anyio.fail_after(SECONDS), pytest.raises(PlatformTimeout, match="The token for MCP server 'a'"):
            await tokens_listed(gateway, Exchange(after=asyncio.Event()), timeout=1.0)


@shows("A365-TOKENS")
async def test_while_developing_servers_of_one_kind_have_their_own_variables_and_nothing_is_exchanged(
    tmp_path: Path,
) -> None:
    tmp_path.joinpath("ToolingManifest.json").write_text(
        json.dumps({"mcpServers": [{"mcpServerName": "Mail"}, {"mcpServerName": "Calendar"}, FILES]})
    )
    exchange, environ = Exchange(), {"BEARER_TOKEN_MAIL": "Bearer m", "BEARER_TOKEN": "s", "BEARER_TOKEN_FILES": "f"}
    service = McpToolServerConfigurationService(environ=environ)
    found = await service.list_tool_servers("", None, None, exchange, "agentic", TURN)
    assert [server.headers for server in found] == [{"Authorization": f"Bearer {token}"} for token in "msf"]
    assert exchange.asked == []


@shows("A365-AGENTID")
async def test_what_is_sent_to_a_server_carries_its_own_token_and_that_tokens_agent() -> None:
    own = jwt(appid="of-the-exchange")
    exchange = Exchange(token=f"{own}.")
    async with opened(Gateway(servers(MAIL, FILES))) as gateway:
        found = await tokens_listed(gateway, exchange)
    said = [server_headers(server, SECRET, ToolOptions(), environ={}) for server in found]
    assert [headers["Authorization"] for headers in said] == [
        (server.headers or {})["Authorization"] for server in found
    ]
    assert all(SECRET not in headers["Authorization"] for headers in said)


@shows("A365-TOKENS")
@pytest.mark.parametrize(
    "answer",
    [
        servers("a", MAIL),
        whole(f"you sent Bearer {SECRET}", 401),
        whole("x" * (2_000 - len(SECRET) // 2) + SECRET, 500),
        whole(f"<html>{SECRET}"),
        whole({"error": SECRET}),
        whole("", 302, Location=f"/?token={SECRET}"),
        whole("", 200, Content_Encoding=SECRET),
        [b"HTTP/1.1 200 " + SECRET.encode() + b"\r\nnonsense\r\n\r\n"],
        [head(content_length="5000"), SECRET.encode(), HANG_UP],
    ],
)
async def test_no_token_is_logged_shown_or_told_also_when_the_platform_says_it_back(
    answer: Answer, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[str] = []
    async with opened(Gateway(answer)) as gateway:
        with caplog.at_level(logging.DEBUG):
            try:
                found = await tokens_listed(gateway, Exchange(token=SECRET))
                told.append(f"{found} {found!r}")
            except Exception as error:  # noqa: BLE001 - whatever it is, it must not show the token
                told += [str(error), repr(error), "".join(traceback.format_exception(error)), repr(vars(error))]
    told += [caplog.text, *(repr(vars(record)) for record in caplog.records)]
    parts = (SECRET, SECRET[: len(SECRET) // 3], SECRET.split(".")[1])
    assert not [text for text in told if any(part in text for part in parts)]


@pytest.mark.parametrize("token", [f"{SECRET}\n{SECRET}", f"{SECRET}\x00", f"{SECRET}ü"])
async def test_a_token_that_cannot_be_sent_is_not_quoted(token: str, caplog: pytest.LogCaptureFixture) -> None:
    async with opened(Gateway()) as gateway:
        with caplog.at_level(logging.DEBUG), pytest.raises(InvalidArgument) as refused:
            await McpToolServerConfigurationService(environ=gateway.environ()).list_tool_servers("app", token)
    told = "".join([*traceback.format_exception(refused.value), caplog.text])
    assert "the-secret" not in told
    assert SECRET.split(".")[1] not in told


async def test_a_refusal_is_still_told_in_its_words_around_the_token() -> None:
    async with opened(Gateway(whole(f"the token {SECRET} has expired", 401), whole(f"{SECRET}<"))) as gateway:
        with pytest.raises(DiscoveryFailed) as refused:
            await tokens_listed(gateway, None)
        assert refused.value.body == "the token [token] has expired"
        with pytest.raises(PlatformUnreadable):
            await tokens_listed(gateway, None)


# A platform that is down, slow, endless or broken, and how long the client waits for it


SHORT = 0.1
AWAY = whole("not now", 503)
DRIBBLE = [head(transfer_encoding="chunked"), *itertools.repeat(b"1\r\n \r\n", 100_000)]


@dataclass
class Waits:
    """The waits before retries; something may happen during them."""

    waited: list[float] = field(default_factory=list[float])
    meanwhile: Callable[[], Awaitable[object]] | None = None

    async def __call__(self, seconds: float) -> None:
        self.waited.append(seconds)
        if self.meanwhile is not None:
            await self.meanwhile()
        await asyncio.sleep(0)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Waits:
    """Waits that are recorded and skipped."""
    noted = Waits()
    monkeypatch.setattr(http_requests, "asyncio", SimpleNamespace(sleep=noted))
    return noted


async def failures_listed(gateway: Gateway, timeout: float = SECONDS, retries: int = 2) -> list[MCPServerConfig]:
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
        found = await failures_listed(gateway)
    assert [server.mcp_server_name for server in found] == ["mail"]
    assert len(gateway.requests) == 3
    assert len({asked.headers["x-ms-correlation-id"] for asked in gateway.requests}) == 1


@shows("A365-DISCOVER")
async def test_a_platform_that_stays_away_is_told_after_three_requests(waits: Waits) -> None:
    async with opened(Gateway(AWAY)) as gateway:
        with pytest.raises(DiscoveryFailed, match="HTTP 503: not now"):
            await failures_listed(gateway)
    assert len(gateway.requests) == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 500])
async def test_a_refusal_that_stands_is_not_asked_about_again(status: int, waits: Waits) -> None:
    async with opened(Gateway(whole("no", status))) as gateway:
        with pytest.raises(DiscoveryFailed):
            await failures_listed(gateway)
    assert (len(gateway.requests), waits.waited) == (1, [])


@shows("A365-DISCOVER")
async def test_a_wait_that_the_platform_names_is_kept_or_the_question_given_up(waits: Waits) -> None:
    async with opened(Gateway(whole("", 429, Retry_After="3"), servers("mail"))) as gateway:
        assert len(await failures_listed(gateway)) == 1
    assert waits.waited == [3.0]
    async with opened(Gateway(whole("busy", 503, Retry_After="60"), servers("mail"))) as gateway:
        with pytest.raises(DiscoveryFailed, match="busy"):
            await failures_listed(gateway)
    assert (len(gateway.requests), waits.waited) == (1, [3.0])


async def test_a_wait_that_would_use_up_the_time_is_not_begun(waits: Waits) -> None:
    async with opened(Gateway(whole("busy", 503, Retry_After="3"), servers("mail"))) as gateway:
        with pytest.raises(DiscoveryFailed, match="busy"):
            await failures_listed(gateway, timeout=6.0)
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
            await failures_listed(gateway, SHORT)
        assert isinstance(late.value, TimeoutError)
        assert len(gateway.requests) <= 1
        await until(lambda: gateway.open == 0)


@shows("A365-DISCOVER")
async def test_the_time_limit_holds_though_tries_are_left() -> None:
    async with opened(Gateway(AWAY)) as gateway:
        with pytest.raises(PlatformTimeout):
            await failures_listed(gateway, SHORT, retries=1_000)
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
            await failures_listed(gateway)
        await until(lambda: gateway.open == 0)


@shows("A365-DISCOVER")
async def test_who_hangs_up_on_a_question_is_asked_again(waits: Waits) -> None:
    async with opened(Gateway([HANG_UP], [head(content_length="9"), HANG_UP], servers("mail"))) as gateway:
        assert len(await failures_listed(gateway)) == 1
    assert len(gateway.requests) == 3


@shows("A365-DISCOVER")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed_and_the_token_goes_nowhere_else(status: int, waits: Waits) -> None:
    async with (
        opened(Gateway()) as elsewhere,
        opened(Gateway(whole("", status, Location=f"{elsewhere.url}/x"))) as gateway,
    ):
        with pytest.raises(DiscoveryFailed) as moved:
            await failures_listed(gateway)
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
        asking = asyncio.create_task(failures_listed(gateway))
        await until(lambda: bool(gateway.requests))
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await until(lambda: gateway.open == 0)
