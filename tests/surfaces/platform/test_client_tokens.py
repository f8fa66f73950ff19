"""Servers with their tokens, as an agent gets them; and where no token may ever show."""

import asyncio
import json
import logging
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import anyio
import pytest

from frontdesk.agent365 import (
    DiscoveryFailed,
    InvalidArgument,
    MCPServerConfig,
    McpToolServerConfigurationService,
    PlatformTimeout,
    PlatformUnreadable,
    TokenContextMissing,
    TokenNotObtained,
    ToolOptions,
)
from frontdesk.agent365.headers import server_headers
from tests.requirements import shows
from tests.support.gateways import HANG_UP, Answer, Gateway, head, jwt, opened, servers, turn, whole

SHARED = "ea9ffc3e-8a23-4a7d-836d-234d7c7565c1/.default"
MAIL = {"mcpServerName": "mail", "audience": "api://Mail", "scope": "Mail.Read"}
FILES = {"mcpServerName": "files", "audience": "api://files", "scope": "null"}
SECRET = jwt(appid="application", secret="the-secret-part")
TURN = turn(id="turn-1")
SECONDS = 20


@dataclass
class Exchange:
    """Gives tokens that say what they are for; an event, where there is one, has to come first."""

    after: asyncio.Event | None = None
    token: str | None = "token-of-"
    asked: list[tuple[object, list[str], str]] = field(default_factory=list[tuple[object, list[str], str]])

    async def exchange_token(self, context: object, scopes: list[str], auth_handler_id: str, /) -> object:
        self.asked.append((context, scopes, auth_handler_id))
        if self.after is not None:
            await self.after.wait()
        return None if self.token is None else SimpleNamespace(token=f"{self.token}{scopes[0]}")


async def listed(gateway: Gateway, exchange: Exchange | None, timeout: float = SECONDS) -> list[MCPServerConfig]:
    service = McpToolServerConfigurationService(environ=gateway.environ(), timeout=timeout, retries=0)
    return await service.list_tool_servers("app", SECRET, None, exchange, "agentic", TURN)


@shows("A365-TOKENS")
async def test_each_server_comes_with_the_token_of_its_audience_by_one_exchange_a_scope() -> None:
    exchange = Exchange()
    async with opened(Gateway(servers("a", MAIL, "b", {**MAIL, "mcpServerName": "post"}, FILES))) as gateway:
        found = await listed(gateway, exchange)
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
        assert await listed(gateway, exchange) == []
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
            await listed(gateway, Exchange(token=None))


@shows("A365-TOKENS")
async def test_an_exchange_that_never_returns_is_given_up() -> None:
    async with opened(Gateway(servers("a"))) as gateway:
        with anyio.fail_after(SECONDS), pytest.raises(PlatformTimeout, match="The token for MCP server 'a'"):
            await listed(gateway, Exchange(after=asyncio.Event()), timeout=1.0)


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
        found = await listed(gateway, exchange)
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
                found = await listed(gateway, Exchange(token=SECRET))
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
            await listed(gateway, None)
        assert refused.value.body == "the token [token] has expired"
        with pytest.raises(PlatformUnreadable):
            await listed(gateway, None)
