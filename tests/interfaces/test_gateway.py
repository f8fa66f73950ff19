"""Tests calls through the gateway to a real server: identity, cut answers, and the results of failing servers."""

import json
from collections.abc import AsyncGenerator, Iterator, Mapping
from dataclasses import replace
from typing import Any

import anyio
import pytest
import structlog
from pydantic import SecretStr

from frontdesk.errors import ConfigurationError, Invalid, Unavailable
from frontdesk.identity.model import Caller
from frontdesk.mcp_client.model import McpServer, OAuthConfig
from frontdesk.mcp_client.pool import KnownServers, McpClientPool
from frontdesk.tools.calls import (
    FAILURES_TO_OPEN,
    FIRST_BREAKER_PAUSE,
    CallPolicy,
    CallResult,
    ToolGateway,
    shorten_result,
)
from frontdesk.tools.model import CatalogueTool, ReviewStatus, ToolKind
from frontdesk.tools.token_exchange import TokenExchange
from tests.requirements import shows
from tests.support.upstreams import PARROT_TOOLS, SCHEMA, Upstream, open_parrot, open_upstream
from tests.support.waiting import until

ADA = Caller("req-1", agent_id="agent-1", user_id="ada")
ANYTHING: Mapping[str, Any] = {"type": "object"}
LIMIT = 4000
CLIENT_SECRET = "client secret: ü"


class Clock:
    """Waits until the event is set."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Installation:
    """A gateway with one server, `up`."""

    def __init__(self, upstream: Upstream) -> None:
        self.upstream = upstream
        self.clock = Clock()
        self.exchange = TokenExchange(self.clock)
        self.clients = McpClientPool(authorize=self.exchange.bearer)
        self.servers = KnownServers()
        manners = CallPolicy(at_once=4, queue_seconds=0.05, max_result=LIMIT, clock=self.clock)
        self.gateway = ToolGateway(self.servers, self.clients, "desk", manners)
        self.has()

    def has(self, **options: Any) -> McpServer:
        """Replace the definition of the server."""
        usual: dict[str, Any] = {"timeout": 10}
        server = McpServer("up", f"{self.upstream.url}/mcp", **{**usual, **options})
        self.servers.put(server)
        return server

    async def call(self, name: str, arguments: Mapping[str, Any] | None = None, **options: Any) -> CallResult:
        caller = options.pop("caller", ADA)
        return await self.gateway.call(caller, tool(name), arguments or {}, **options)


def tool(name: str, schema: Mapping[str, Any] = ANYTHING) -> CatalogueTool:
    return CatalogueTool(f"up::{name}", "up", name, "", schema)


@pytest.fixture(scope="module")
def running() -> Iterator[Upstream]:
    with open_upstream() as server:
        yield server


@pytest.fixture
async def installation(running: Upstream) -> AsyncGenerator[Installation]:
    for seen in (running.calls, running.notes, running.forms, running.logins, running.issued):
        seen.clear()
    running.down, running.guarded, running.refusal, running.expires_in = False, False, None, 3600
    installation = Installation(running)
    yield installation
    await installation.clients.close()
    await installation.exchange.close()


async def test_a_result_is_handed_on_as_it_came(installation: Installation) -> None:
    result = await installation.call("figures", {"size": 2})
    assert result == CallResult(
        ok=True, content=[{"type": "text", "text": "many"}], structured={"figures": [1, 1]}, error=None
    )
    assert (await installation.call("echo", {"a": "ü"})).text == '{"a": "\\u00fc"}'


async def test_the_server_is_told_who_calls_and_gets_no_token_that_is_not_for_it(installation: Installation) -> None:
    seen = json.loads((await installation.call("headers", token=SecretStr("token-of-ada"))).text)
    assert (seen["x-agent-id"], seen["x-request-id"]) == ("agent-1", "req-1")
    assert "x-ms-agentid" not in seen
    assert "token-of-ada" not in str(seen)
    installation.has(user_token=True)
    seen = json.loads((await installation.call("headers", token=SecretStr("token-of-ada"))).text)
    assert (seen["authorization"], seen["x-user-auth-token"]) == ("Bearer token-of-ada", "token-of-ada")
    seen = json.loads((await installation.call("headers")).text)
    assert "token-of-ada" not in str(seen), "nor does it stay for the next call"


async def test_arguments_that_do_not_fit_are_not_sent(installation: Installation) -> None:
    with pytest.raises(Invalid, match="did you mean 'city'"):
        await installation.gateway.call(ADA, tool("echo", SCHEMA), {"citty": "Rome"})
    assert installation.upstream.calls == []
    assert (await installation.gateway.call(ADA, tool("echo", SCHEMA), {"city": "Rome"})).ok


async def test_what_cannot_be_called_here_is_refused_in_words(installation: Installation) -> None:
    for wrong in (replace(tool("echo"), kind=ToolKind.HOST), replace(tool("echo"), standing=ReviewStatus.HELD)):
        with pytest.raises(Invalid):
            await installation.gateway.call(ADA, wrong, {})
    gone = await installation.gateway.call(ADA, replace(tool("echo"), server="gone"), {})
    assert (gone.ok, "not set up any more" in gone.text) == (False, True)


async def test_what_a_tool_says_of_its_failure_is_told_without_the_token(installation: Installation) -> None:
    installation.has(user_token=True)
    result = await installation.call("fails", token=SecretStr("token-of-ada"))
    assert (result.ok, result.error) == (False, "no such city; Bearer [token]")
    assert "token-of-ada" not in str(result)
    unknown = await installation.call("nothing")
    assert (unknown.ok, unknown.text) == (False, "Error calling nothing: No tool nothing")


@pytest.mark.parametrize("name", PARROT_TOOLS)
@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": "Bearer s3cret-of-the-house"},
        {"authorization": "Basic s3cret-of-the-house"},
        {"X-Api-Key": "s3cret-of-the-house"},
        {"cookie": "theme=dark; session=s3cret-of-the-house"},
    ],
)
async def test_no_failure_tells_a_credential_that_every_request_carries(
    installation: Installation, name: str, headers: Mapping[str, str]
) -> None:
    with open_parrot() as parrot:
        installation.servers.put(McpServer("up", parrot.url, headers, sends_agent_id=True))
        results: list[CallResult] = []
        # The cut of the answer may be in the middle of a token.
        for limit in range(2000, 2120, 7):
            installation.gateway = ToolGateway(
                installation.servers, installation.clients, "desk", CallPolicy(max_result=limit)
            )
            results.append(await installation.call(name))
    assert not any(result.ok for result in results)
    assert "s3cret" not in str(results)
    if name != "fails_at_length":
        assert all("[token]" in result.text for result in results)
        assert all('"x-ms-agentid": "desk"' in result.text.replace("\\", "") for result in results)


@pytest.mark.parametrize("off", ["lists", "greets"])
async def test_a_server_that_cannot_be_listed_does_not_get_a_credential_told(
    installation: Installation, off: str
) -> None:
    with open_parrot() as parrot:
        setattr(parrot, off, False)
        server = McpServer("up", parrot.url, {"Authorization": "Bearer s3cret-of-the-house"})
        with pytest.raises(Unavailable, match=r"Bearer \[token\]") as refused:
            await installation.clients.client(server, None, None).tools()
    assert "s3cret" not in repr(refused.value) + refused.value.public_message


async def test_a_token_that_was_renewed_meanwhile_is_not_told_either(installation: Installation) -> None:
    server = oauth(installation)
    assert (await installation.call("who")).ok
    client, [first] = installation.clients.client(server, ADA.user_id, None), installation.upstream.issued
    installation.upstream.issued.clear()
    assert (await installation.call("who")).ok
    assert client.redacted(f"{first} and {installation.upstream.issued}").count("[token]") == 2


async def test_a_long_text_is_cut_and_says_so(installation: Installation) -> None:
    result = await installation.call("big", {"size": 10_000})
    (block,) = result.content
    kept, _, note = block["text"].partition("\n")
    assert kept == "ü" * len(kept)
    assert note == f"[{10_000 - len(kept)} of 10000 characters left out: a result has at most {LIMIT} bytes]"
    assert LIMIT // 2 < len(json.dumps(block, ensure_ascii=False).encode()) <= LIMIT


async def test_a_large_picture_and_large_figures_give_way_to_a_note(installation: Installation) -> None:
    picture = await installation.call("picture", {"size": 10_000})
    assert [block["text"] for block in picture.content] == [
        "[image/png of 10054 bytes left out: a result has at most 4000 bytes]",
        "a picture",
    ]
    figures = await installation.call("figures", {"size": 3_000})
    assert (figures.structured, [block["text"] for block in figures.content]) == (
        None,
        ["many", "[structured content of 9013 bytes left out: a result has at most 4000 bytes]"],
    )


@pytest.mark.parametrize("text", ["x", "ü", "\n", "\x00", "😀", '"'])
def test_however_it_is_written_a_result_fits_in_the_end(text: str) -> None:
    blocks = [{"type": "text", "text": text * 3000}] * 20
    result = shorten_result(CallResult(ok=True, content=blocks, structured={"a": text}), LIMIT)
    assert len(json.dumps([*result.content, result.structured], ensure_ascii=False).encode()) <= LIMIT + 200
    assert "more blocks left out" in result.text


async def test_progress_is_handed_on_and_gives_a_call_more_time(installation: Installation) -> None:
    installation.has(timeout=0.6)
    steps: list[tuple[float, str | None]] = []

    async def progress(done: float, _total: float | None, message: str | None) -> None:
        steps.append((done, message))

    result = await installation.call("steps", {"steps": 6, "pace": 0.15}, progress=progress)
    assert (result.text, steps[-1], len(steps)) == ("done", (6, "step 6"), 6)
    slow = await installation.call("steps", {"steps": 6, "pace": 0.15})
    assert "takes longer than 0.6 s" in slow.text
    installation.has(timeout=0.05)
    endless = await installation.call("steps", {"steps": 1000, "pace": 0.02}, progress=progress)
    assert "takes longer" in endless.text


async def test_a_call_that_is_given_up_is_cancelled_at_the_server(installation: Installation) -> None:
    installation.has(timeout=0.5)
    assert (await installation.call("echo")).ok
    left = installation.upstream.left
    assert "takes longer than 0.5 s" in (await installation.call("hold")).text
    await until(lambda: installation.upstream.left > left)
    installation.has()
    installation.gateway = ToolGateway(
        installation.servers, installation.clients, "desk", CallPolicy(at_once=1, clock=installation.clock)
    )
    installation.upstream.notes.clear()
    held, left = installation.upstream.held, installation.upstream.left
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(installation.call, "hold")
        await until(lambda: installation.upstream.held > held)
        tasks.cancel_scope.cancel()
    await until(lambda: installation.upstream.left > left)
    await until(lambda: len(installation.upstream.notes) >= 2)
    assert (await installation.call("echo")).ok, "and its place is free again"


async def test_a_failing_server_is_left_alone_and_tried_again_later(installation: Installation) -> None:
    installation.upstream.down = True
    texts = [(await installation.call("echo")).text for _ in range(FAILURES_TO_OPEN)]
    assert all("HTTP 503" in text for text in texts)
    installation.upstream.down = False
    held = await installation.call("echo")
    assert (held.ok, "try again in 10 s" in held.text) == (False, True)
    assert f"'up' failed {FAILURES_TO_OPEN} times in a row" in held.text
    installation.clock.now += FIRST_BREAKER_PAUSE - 1
    assert not (await installation.call("echo")).ok
    installation.clock.now += 1
    assert (await installation.call("echo")).ok
    assert await at_once(installation, 4) == [True] * 4, "then all are let through again"


async def at_once(installation: Installation, calls: int) -> list[bool]:
    """Which of this many concurrent calls succeeded."""
    results: list[bool] = []

    async def one() -> None:
        results.append((await installation.call("echo")).ok)

    async with anyio.create_task_group() as tasks:
        for _ in range(calls):
            tasks.start_soon(one)
    return results


async def test_only_one_call_tries_a_server_that_failed(installation: Installation) -> None:
    installation.upstream.down = True
    for _ in range(FAILURES_TO_OPEN):
        await installation.call("echo")
    installation.upstream.down = False
    installation.clock.now += FIRST_BREAKER_PAUSE
    assert sorted(await at_once(installation, 4)) == [False, False, False, True]


async def test_a_server_that_says_no_is_not_a_failing_one(installation: Installation) -> None:
    for _ in range(FAILURES_TO_OPEN):
        assert not (await installation.call("fails")).ok
        assert not (await installation.call("nothing")).ok
    installation.upstream.guarded = True
    for _ in range(FAILURES_TO_OPEN):
        assert "HTTP 401" in (await installation.call("echo")).text
    installation.upstream.guarded = False
    assert await at_once(installation, 4) == [True] * 4


async def test_more_calls_than_there_is_room_for_wait_and_then_are_told(installation: Installation) -> None:
    results: list[CallResult] = []

    async def one() -> None:
        results.append(await installation.call("hold"))

    held = installation.upstream.held
    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(one)
        await until(lambda: installation.upstream.held == held + 4)
        assert "has 4 calls under way already" in (await installation.call("echo")).text
        tasks.cancel_scope.cancel()
    assert (await installation.call("echo")).ok


async def test_a_server_defined_anew_begins_anew(installation: Installation) -> None:
    installation.upstream.down = True
    for _ in range(FAILURES_TO_OPEN):
        await installation.call("echo")
    installation.upstream.down = False
    installation.has(headers={"x-key": "new"})
    assert (await installation.call("echo")).ok
    installation.servers.remove("up")
    assert len(installation.clients) == 0


def oauth(installation: Installation, **options: Any) -> McpServer:
    installation.upstream.guarded = True
    settings: dict[str, Any] = {"client_id": "desk id", "client_secret": SecretStr(CLIENT_SECRET), **options}
    return installation.has(oauth=OAuthConfig(f"{installation.upstream.url}/token", **settings))


async def test_a_token_of_our_own_is_fetched_once_and_shown(installation: Installation) -> None:
    oauth(installation, audience="up", resource="https://up", scope="a b")

    async def one() -> None:
        assert (await installation.call("who", caller=replace(ADA, user_id=None))).text == "desk"

    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(one)
    assert installation.upstream.forms == [
        {"grant_type": "client_credentials", "audience": "up", "resource": "https://up", "scope": "a b"}
    ]
    assert installation.upstream.logins == ["desk+id:client+secret%3A+%C3%BC"]


async def test_the_users_token_is_exchanged_never_sent_and_never_mixed_up(installation: Installation) -> None:
    oauth(installation, grant="token_exchange")
    wrong: list[str] = []

    async def one(user: str) -> None:
        token = SecretStr(f"token-of-{user}")
        result = await installation.call("who", caller=Caller("req", user_id=user), token=token)
        wrong.extend([] if result.text == user else [result.text])

    for _ in range(10):
        async with anyio.create_task_group() as tasks:
            for user in ("ada", "ben"):
                tasks.start_soon(one, user)
    assert wrong == []
    assert sorted(form["subject_token"] for form in installation.upstream.forms) == ["token-of-ada", "token-of-ben"]
    assert {form["grant_type"] for form in installation.upstream.forms} == {
        "urn:ietf:params:oauth:grant-type:token-exchange"
    }
    seen = (await installation.call("headers", token=SecretStr("token-of-ada"))).text
    assert "token-of-ada" not in seen


async def test_servers_that_want_the_same_share_a_token_and_those_that_want_another_do_not(
    installation: Installation,
) -> None:
    installation.upstream.guarded = True
    for name, scope in (("up", "mail/.default"), ("two", "mail/.default"), ("other", "files/.default")):
        settings = OAuthConfig(f"{installation.upstream.url}/token", "desk", scope=scope)
        installation.servers.put(McpServer(name, f"{installation.upstream.url}/mcp", oauth=settings))
    for user in ("ada", "ben"):
        for name in installation.servers.names():
            asked = replace(tool("who"), server=name)
            assert (await installation.gateway.call(Caller("req", user_id=user), asked, {})).text == "desk"
    assert [form["scope"] for form in installation.upstream.forms] == ["mail/.default", "files/.default"]


@shows("A365-TOKENS")
async def test_entra_gives_a_token_on_behalf_of_a_person_and_for_ourselves_one_of_the_whole_resource(
    installation: Installation,
) -> None:
    server = oauth(installation, grant="on_behalf_of", scope="api://mail/Mail.Send")
    assert "acts for a person" in (await installation.call("who")).text
    for _ in range(2):
        assert (await installation.call("who", token=SecretStr("token-of-ada"))).ok
    assert await installation.clients.client(server, None, None).tools()
    behalf, ourselves = installation.upstream.forms
    assert behalf == {
        "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
        "assertion": "token-of-ada",
        "requested_token_use": "on_behalf_of",
        "scope": "api://mail/Mail.Send",
    }
    assert ourselves == {"grant_type": "client_credentials", "scope": "api://mail/.default"}
    assert "token-of-ada" not in (await installation.call("headers", token=SecretStr("token-of-ada"))).text


async def test_without_a_users_token_nothing_is_done_in_anybodys_name(installation: Installation) -> None:
    server = oauth(installation, grant="token_exchange")
    result = await installation.call("who")
    assert (result.ok, "acts for a person" in result.text, installation.upstream.calls) == (False, True, [])
    assert await installation.clients.client(server, None, None).tools()
    assert installation.upstream.forms[0]["grant_type"] == "client_credentials"


async def test_a_token_that_the_server_refuses_is_renewed_once(installation: Installation) -> None:
    oauth(installation)
    assert (await installation.call("who")).ok
    installation.upstream.issued.clear()
    assert (await installation.call("who")).text == "desk"
    assert len(installation.upstream.forms) == 2
    installation.upstream.guarded = False
    installation.upstream.issued.clear()
    assert (await installation.call("who")).text == "nobody"
    assert len(installation.upstream.forms) == 2


@pytest.mark.parametrize(("expires_in", "kept"), [(3600, 3570), (100, 90), (None, 270)])
async def test_a_token_is_renewed_shortly_before_it_ends(
    installation: Installation, expires_in: int | None, kept: float
) -> None:
    oauth(installation)
    installation.upstream.expires_in = expires_in
    for seconds, fetched in ((0, 1), (kept - 1, 1), (2, 2)):
        installation.clock.now += seconds
        assert (await installation.call("who")).ok
        assert len(installation.upstream.forms) == fetched


@pytest.mark.parametrize(
    ("status", "told", "reason"),
    [
        (400, {"error": "invalid_grant", "error_description": "token-of-ada"}, "(HTTP 400, invalid_grant)"),
        (400, {"error": "token-of-ada is bad"}, "(HTTP 400, no token in its answer)"),
        (200, {"access_token": "a\r\nb"}, "no token in its answer"),
        (503, {}, "HTTP 503"),
    ],
)
async def test_a_token_endpoint_that_refuses_is_told_of_without_a_secret(
    installation: Installation, status: int, told: dict[str, str], reason: str
) -> None:
    oauth(installation, grant="token_exchange")
    installation.upstream.refusal = (status, told)
    with structlog.testing.capture_logs() as logged:
        result = await installation.call("who", token=SecretStr("token-of-ada"))
    assert reason in result.text
    assert not any(
        secret in f"{result}{logged}{installation.servers.all()}" for secret in ("token-of-ada", CLIENT_SECRET)
    )


async def test_a_token_endpoint_that_is_away_is_told_of(installation: Installation) -> None:
    oauth(installation)
    installation.has(oauth=OAuthConfig("http://127.0.0.1:1/token", "desk"))
    assert "The token endpoint of MCP server 'up'" in (await installation.call("who")).text


def test_a_server_has_the_users_token_or_one_by_oauth_not_both() -> None:
    with pytest.raises(ConfigurationError, match="not both"):
        McpServer("up", "https://up/mcp", user_token=True, oauth=OAuthConfig("https://issuer/token", "desk"))
    with pytest.raises(ConfigurationError, match="token_url"):
        McpServer("up", "https://up/mcp", oauth=OAuthConfig("ftp://issuer/token", "desk"))


async def test_a_call_that_waited_while_its_server_moved_is_not_made_at_the_old_place(
    installation: Installation,
) -> None:
    installation.gateway = ToolGateway(
        installation.servers, installation.clients, "desk", CallPolicy(at_once=1, clock=installation.clock)
    )
    held, letting_go, results = installation.upstream.held, anyio.CancelScope(), list[CallResult]()

    async def hold() -> None:
        with letting_go:
            await installation.call("hold")

    async def wait() -> None:
        results.append(await installation.call("echo"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hold)
        await until(lambda: installation.upstream.held == held + 1)
        tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        installation.has(headers={"x-key": "new"})
        letting_go.cancel()
    assert "defined anew meanwhile" in results[0].text
    assert len(installation.clients) == 0
