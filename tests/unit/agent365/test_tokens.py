"""Tests that each server gets the token that it needs."""

import asyncio
import copy
import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from frontdesk.agent365 import (
    InvalidArgument,
    McpConnectionsRequiredError,
    MCPServerConfig,
    PlatformTimeout,
    TokenContextMissing,
    TokenNotObtained,
    resolve_token_scope_for_server,
)
from frontdesk.agent365.headers import require_shared_tokens, tokens_by_exchange, tokens_from_environment, with_tokens
from frontdesk.agent365.model import is_v2_server
from tests.requirements import shows

LOG = logging.getLogger("frontdesk.agent365")
SHARED = "ea9ffc3e-8a23-4a7d-836d-234d7c7565c1/.default"
SECONDS = 10.0


@dataclass
class Exchange:
    """Answers with a token that names its scope; a test can set another answer or an action before it."""

    answers: dict[str, object] = field(default_factory=dict[str, object])
    first: Callable[[], Awaitable[object]] | None = None
    asked: list[tuple[object, list[str], str]] = field(default_factory=list[tuple[object, list[str], str]])

    async def exchange_token(self, context: object, scopes: list[str], auth_handler_id: str, /) -> object:
        self.asked.append((context, scopes, auth_handler_id))
        if self.first is not None:
            await self.first()
        return self.answers.get(scopes[0], SimpleNamespace(token=f"token-of-{scopes[0]}"))


def server(name: str, audience: str | None = None, **more: Any) -> MCPServerConfig:
    return MCPServerConfig(name, name, audience=audience, **more)


def bearers(servers: list[MCPServerConfig]) -> list[str | None]:
    return [(one.headers or {}).get("Authorization") for one in servers]


async def developed(*servers: MCPServerConfig, **environ: str) -> list[MCPServerConfig]:
    return await with_tokens(servers, tokens_from_environment(environ, LOG))


async def exchanged(exchange: Exchange, *servers: MCPServerConfig, seconds: float = SECONDS) -> list[MCPServerConfig]:
    return await with_tokens(servers, tokens_by_exchange(exchange, "handler", "turn", {}, seconds))


@shows("A365-TOKENS")
async def test_one_exchange_a_scope_in_the_order_of_the_servers() -> None:
    exchange = Exchange()
    found = await exchanged(
        exchange,
        server("a"),
        server("mail", "api://Mail", scope="Mail.Read"),
        server("b", "default"),
        server("post", "api://mail ", scope="Mail.Read"),
        server("files", "api://mail"),
    )
    assert exchange.asked == [
        ("turn", [SHARED], "handler"),
        ("turn", ["api://mail/Mail.Read"], "handler"),
        ("turn", ["api://mail/.default"], "handler"),
    ]
    assert bearers(found) == [
        f"Bearer token-of-{scope}"
        for scope in (SHARED, "api://mail/Mail.Read", SHARED, "api://mail/Mail.Read", "api://mail/.default")
    ]


@shows("A365-TOKENS")
@pytest.mark.parametrize("token", ["t", "Bearer t", "bearer  t\n"])
async def test_a_token_that_comes_with_the_word_gets_it_once(token: str) -> None:
    assert bearers(await exchanged(Exchange({SHARED: SimpleNamespace(token=token)}), server("a"))) == ["Bearer t"]


@shows("A365-TOKENS")
@pytest.mark.parametrize(
    "answer", [None, *(SimpleNamespace(token=token) for token in (None, "", "  ", "Bearer ", 5)), SimpleNamespace()]
)
async def test_an_exchange_without_a_token_names_server_and_scope(answer: object) -> None:
    exchange = Exchange({"api://mail/.default": answer})
    with pytest.raises(TokenNotObtained) as refused:
        await exchanged(exchange, server("a"), server("mail", "api://mail"))
    assert str(refused.value) == "Failed to obtain token for MCP server 'mail' (scope: api://mail/.default)"
    assert (refused.value.server, refused.value.scope) == ("mail", "api://mail/.default")


# A separate log line, colours and a title for a terminal, and text that runs backwards.
CRAFTED = "a\n2026 error \x1b[31m\x1b]0;x\x07\u202e\x85z"
WRITTEN_OUT = r"a\n2026 error \x1b[31m\x1b]0;x\x07\u202e\x85z"


@shows("A365-HOSTILE")
async def test_what_a_manifest_calls_a_server_or_a_scope_is_written_out_in_every_message(
    caplog: pytest.LogCaptureFixture,
) -> None:
    crafted = server(CRAFTED, f"api://{CRAFTED}")
    scope = f"api://{WRITTEN_OUT}/.default"
    with pytest.raises(TokenNotObtained) as refused:
        await exchanged(Exchange({f"api://{CRAFTED}/.default": None}), crafted)
    assert str(refused.value) == f"Failed to obtain token for MCP server '{WRITTEN_OUT}' (scope: {scope})"
    assert refused.value.server == CRAFTED, "whoever wants to know has it as it is"
    with pytest.raises(TokenContextMissing, match=re.escape(f"MCP servers [b, {WRITTEN_OUT}] require")):
        require_shared_tokens([server("b", "api://b"), crafted])
    with pytest.raises(PlatformTimeout, match=re.escape(f"'{WRITTEN_OUT}' (scope: {scope}) took")):
        await exchanged(Exchange(first=asyncio.Event().wait), crafted, seconds=0.01)
    with pytest.raises(InvalidArgument, match=re.escape(f"'{WRITTEN_OUT}' holds")):
        await exchanged(Exchange({f"api://{CRAFTED}/.default": SimpleNamespace(token="a\nb")}), crafted)
    await developed(crafted, BEARER_TOKEN="shared")
    assert f"wants a token for {scope}, and only" in caplog.text
    assert all(record.getMessage().isprintable() for record in caplog.records)
    variable = f"BEARER_TOKEN_{CRAFTED.upper()}"
    with pytest.raises(InvalidArgument) as unsent:
        await developed(crafted, **{variable: "a\nb"})
    waiting = McpConnectionsRequiredError(CRAFTED, CRAFTED, [CRAFTED])
    assert all(str(error).isprintable() for error in (unsent.value, waiting))


async def test_a_token_that_cannot_be_sent_is_refused_unquoted() -> None:
    exchange = Exchange({SHARED: SimpleNamespace(token="secret\r\nx: y")})
    with pytest.raises(InvalidArgument, match="the token for MCP server 'a'") as refused:
        await exchanged(exchange, server("a"))
    assert "secret" not in str(refused.value)


async def test_an_exchange_that_never_returns_is_given_up() -> None:
    with (
        anyio.fail_after(SECONDS),
        pytest.raises(PlatformTimeout, match=re.escape(f"'a' (scope: {SHARED}) took over 0.02 s")),
    ):
        await exchanged(Exchange(first=asyncio.Event().wait), server("a"), seconds=0.02)


async def test_what_an_exchange_itself_raises_comes_through() -> None:
    async def fail() -> object:
        raise LookupError("no such handler")

    with pytest.raises(LookupError, match="no such handler"):
        await exchanged(Exchange(first=fail), server("a"))


@shows("A365-TOKENS")
async def test_servers_stay_as_they_were_and_their_other_headers_are_kept() -> None:
    given = [server("a", headers={"X-Kept": "1", "authorization": "Bearer old"}), server("b")]
    before = copy.deepcopy(given)
    found = await exchanged(Exchange(), *given)
    assert given == before
    assert found[0].headers == {"X-Kept": "1", "Authorization": f"Bearer token-of-{SHARED}"}
    assert found[0] is not given[0]
    kept = await developed(*given)
    assert given == before == kept
    assert kept[0].headers is not given[0].headers


@shows("A365-TOKENS")
async def test_while_developing_each_server_has_its_own_variable_also_beside_others_of_its_kind() -> None:
    found = await developed(
        server("mail"),
        server("calendar"),
        server("mcp_Files-x"),
        BEARER_TOKEN="Bearer shared",
        BEARER_TOKEN_MAIL="bearer own",
        **{"BEARER_TOKEN_MCP_FILES-X": "files"},
    )
    assert bearers(found) == ["Bearer own", "Bearer shared", "Bearer files"]


async def test_while_developing_no_token_changes_nothing() -> None:
    given = server("mail", headers={"X-Kept": "1"})
    assert await developed(given, server("b"), BEARER_TOKEN="", BEARER_TOKEN_MAIL="") == [given, server("b")]


@shows("A365-TOKENS")
async def test_a_server_of_its_own_audience_with_only_the_shared_token_is_warned_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, LOG.name):
        found = await developed(
            server("mail", "api://mail"),
            server("files", "api://files"),
            server("calendar"),
            BEARER_TOKEN="secret",
            BEARER_TOKEN_FILES="secret-too",
        )
    assert bearers(found) == ["Bearer secret", "Bearer secret-too", "Bearer secret"]
    [warning] = caplog.messages
    assert all(word in warning for word in ("'mail'", "BEARER_TOKEN_MAIL", "401"))
    assert "secret" not in warning


async def test_a_variable_that_no_header_can_hold_is_refused_by_its_name() -> None:
    with pytest.raises(InvalidArgument, match="BEARER_TOKEN_MAIL holds characters") as refused:
        await developed(server("mail"), BEARER_TOKEN_MAIL="a\x00secret")
    assert "secret" not in str(refused.value)


@shows("A365-TOKENS")
def test_without_anything_to_exchange_with_only_servers_of_the_first_kind_are_good() -> None:
    given = [server("a"), server("b", "default")]
    assert require_shared_tokens(given) == given
    assert bearers(require_shared_tokens(given)) == [None, None]
    with pytest.raises(TokenContextMissing) as missing:
        require_shared_tokens([*given, server("mail", "api://mail"), server("files", "api://files")])
    assert missing.value.servers == ("mail", "files")
    assert all(
        word in str(missing.value) for word in ("[mail, files]", "authorization", "auth_handler_name", "turn_context")
    )


# Which token a server needs


SHARED_AUDIENCE = "ea9ffc3e-8a23-4a7d-836d-234d7c7565c1"


def server_for(audience: str | None, scope: str | None = None) -> MCPServerConfig:
    return MCPServerConfig("mail", "mail", audience=audience, scope=scope)


@shows("A365-TOKENS")
@pytest.mark.parametrize(
    "audience",
    [
        None,
        "default",
        " Default ",
        SHARED_AUDIENCE,
        SHARED_AUDIENCE.upper(),
        f" {SHARED_AUDIENCE}\n",
        f"api://{SHARED_AUDIENCE}",
        f"API://{SHARED_AUDIENCE}",
    ],
)
def test_servers_of_the_first_kind_share_a_scope(audience: str | None) -> None:
    assert not is_v2_server(server_for(audience, "Mail.Read"))
    assert resolve_token_scope_for_server(server_for(audience, "Mail.Read"), {}) == f"{SHARED_AUDIENCE}/.default"
    moved = {"MCP_PLATFORM_AUTHENTICATION_SCOPE": "elsewhere/.default"}
    assert resolve_token_scope_for_server(server_for(audience), moved) == "elsewhere/.default"


@shows("A365-TOKENS")
@pytest.mark.parametrize(
    ("audience", "scope", "wanted"),
    [
        (" API://Mail ", "Mail.Read", "api://mail/Mail.Read"),
        ("api://mail", None, "api://mail/.default"),
        ("api://mail", "", "api://mail/.default"),
        (f"{SHARED_AUDIENCE}x", None, f"{SHARED_AUDIENCE}x/.default"),
    ],
)
def test_any_other_audience_has_a_scope_of_its_own(audience: str, scope: str | None, wanted: str) -> None:
    assert is_v2_server(server_for(audience, scope))
    assert resolve_token_scope_for_server(server_for(audience, scope), {}) == wanted
