"""Tests headers of requests to the platform, retries, and how answers are read."""

import asyncio
import platform
import re
from collections.abc import AsyncGenerator
from importlib import metadata
from types import SimpleNamespace
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typing_extensions import override

from frontdesk.agent365 import (
    InvalidArgument,
    MCPServerConfig,
    McpToolServerConfigurationService,
    OperationError,
    OperationResult,
    PlatformUnreadable,
    ToolOptions,
    Utility,
    agent_identity,
    get_user_agent_header,
    http_requests,
)
from frontdesk.agent365.agent_identity import _sdk_product
from frontdesk.agent365.headers import chat_headers, server_headers
from frontdesk.agent365.http_requests import PlatformReply, get_with_retries, post_with_retries, send_request
from frontdesk.mcp_client.http import HttpClient, HttpFailure
from frontdesk.mcp_client.model import HEADER_NAME
from tests.requirements import shows
from tests.support.agent365 import HANG_UP, Gateway, head, jwt, opened, turn, whole

# The headers of requests to the platform and to its servers, from any input


VISIBLE = re.compile(r"[!-~](?:[ -~]*[!-~])?")
LONGEST = 512
OPTIONS = ToolOptions("OpenAI")
NOWHERE: dict[str, str] = {}


class Sly(str):
    """Text whose own methods describe it wrongly."""

    __slots__ = ()

    @override
    def __str__(self) -> str:
        return "one\r\ntwo: three"

    @override
    def __format__(self, spec: str, /) -> str:
        return "one\r\ntwo: three"


class Everything:
    """Has every attribute that is read, as mock objects in tests do."""

    def __getattr__(self, name: str) -> "Everything":
        return self

    def __call__(self, *_: object) -> "Everything":
        return self


class Touchy:
    """Raises at each use."""

    def __getattribute__(self, name: str) -> object:
        if name.startswith("__"):
            return object.__getattribute__(self, name)
        raise TypeError(name)


TEXT = st.text(st.characters()) | st.sampled_from(
    ["a\r\nx-evil: 1", "a\x00b", "\u2028", "\ud800", "x" * 5_000, "naïve “quotes”", " ", "\t", "\x7f", "()\\"]
)
VALUE = (
    TEXT | TEXT.map(Sly) | st.none() | st.integers() | st.binary() | st.sampled_from([Everything(), Touchy(), object()])
)
SENDER = st.builds(SimpleNamespace, agentic_app_blueprint_id=VALUE) | VALUE
ACTIVITY = st.builds(SimpleNamespace, from_=SENDER, from_property=SENDER, id=VALUE, channel_id=VALUE) | VALUE
TURN = st.builds(SimpleNamespace, activity=ACTIVITY) | VALUE
CLAIMS = st.dictionaries(st.sampled_from(["xms_par_app_azp", "appid", "azp"]), TEXT | st.integers() | st.lists(TEXT))
TOKEN = TEXT | TEXT.map(Sly) | CLAIMS.map(jwt) | TEXT.map(lambda text: f"Bearer {text}")


def check(headers: dict[str, str], token: str = "") -> None:
    """Each value is one line of visible characters, under a valid header name, and occurs once."""
    for name, value in headers.items():
        assert HEADER_NAME.fullmatch(name), name
        assert type(value) is str
        assert VISIBLE.fullmatch(value), (name, value)
        assert len(value) <= LONGEST + (len(token) if name == "Authorization" else 0)
    assert len({name.lower() for name in headers}) == len(headers)


@shows("A365-HOSTILE")
@given(TOKEN, TURN, TEXT | TEXT.map(Sly) | st.none(), TEXT)
@settings(deadline=None)
def test_whatever_is_known_the_request_can_be_sent_or_the_token_is_refused_unquoted(
    token: str, context: object, orchestrator: str | None, application: str
) -> None:
    service = McpToolServerConfigurationService(environ={"AGENT365_APPLICATION_NAME": application})
    check(chat_headers(ToolOptions(orchestrator), context))
    try:
        headers = service._prepare_gateway_headers(token, ToolOptions(orchestrator), context)
    except InvalidArgument as error:
        refused = error
    else:
        check(headers, token)
        assert headers["Authorization"].startswith("Bearer ")
        return
    secret = str.__str__(token).strip()
    assert len(secret) < 12 or secret not in f"{refused} {refused!r}"
    assert refused.__cause__ is refused.__context__ is None


@shows("A365-HOSTILE")
@given(
    TOKEN | st.none(),
    TURN,
    TEXT,
    st.dictionaries(st.sampled_from(["X-Own", "user-agent", "X-MS-AgentId"]), st.just("own")),
)
@settings(deadline=None)
def test_a_tool_call_can_be_sent_whatever_is_known(
    token: str | None, context: object, application: str, own: dict[str, str]
) -> None:
    server = MCPServerConfig("mail", "mail", headers=own)
    try:
        headers = server_headers(server, token, OPTIONS, context, {"AGENT365_APPLICATION_NAME": application})
    except InvalidArgument:
        return
    check(headers, token or "")
    assert own.items() <= headers.items()


@shows("A365-AGENTID")
@pytest.mark.parametrize("token", ["opaque", "Bearer opaque", "bearer  opaque ", "BEARER opaque"])
def test_the_word_before_a_token_is_there_once(token: str) -> None:
    service = McpToolServerConfigurationService(environ=NOWHERE)
    assert service._prepare_gateway_headers(token, OPTIONS)["Authorization"] == "Bearer opaque"
    server = MCPServerConfig("mail", "mail")
    assert server_headers(server, token, OPTIONS, environ=NOWHERE)["Authorization"] == "Bearer opaque"


@pytest.mark.parametrize("token", ["a\r\nb", "a\nb", "a\x00b", "tökén", "a\x7fb"])
def test_a_token_that_no_header_can_hold_is_refused_by_name(token: str) -> None:
    service = McpToolServerConfigurationService(environ=NOWHERE)
    with pytest.raises(InvalidArgument, match="auth_token holds characters that no header can"):
        service._prepare_gateway_headers(token, OPTIONS)


@pytest.mark.parametrize("token", ["", "   ", "Bearer "])
def test_a_token_of_nothing_is_refused_by_name(token: str) -> None:
    service = McpToolServerConfigurationService(environ=NOWHERE)
    with pytest.raises(InvalidArgument, match="auth_token cannot be empty or None"):
        service._prepare_gateway_headers(token, OPTIONS)


def test_a_request_is_known_by_the_turn_or_by_an_id_of_its_own() -> None:
    service = McpToolServerConfigurationService(environ=NOWHERE)
    assert service._prepare_gateway_headers("t", OPTIONS, turn(id="turn-1"))["x-ms-correlation-id"] == "turn-1"
    made = {service._prepare_gateway_headers("t", OPTIONS, turn(id=""))["x-ms-correlation-id"] for _ in range(5)}
    assert {UUID(one).version for one in made} == {4}
    assert len(made) == 5


def test_the_channels_of_the_turn_go_along_on_every_request() -> None:
    context = turn(channel_id="msteams:copilot", id="1")
    expected = {"x-ms-channel-id": "msteams", "x-ms-subchannel-id": "copilot"}
    service = McpToolServerConfigurationService(environ=NOWHERE)
    assert expected.items() <= service._prepare_gateway_headers("t", OPTIONS, context).items()
    assert expected.items() <= chat_headers(OPTIONS, context).items()
    server = MCPServerConfig("mail", "mail")
    assert expected.items() <= server_headers(server, None, OPTIONS, context, NOWHERE).items()


@shows("A365-AGENTID")
def test_a_tool_call_names_the_agent_where_it_carries_a_token_and_else_does_not() -> None:
    server, shared = MCPServerConfig("mail", "mail"), jwt(appid="shared")
    assert server_headers(server, shared, OPTIONS, environ=NOWHERE)["x-ms-agentid"] == "shared"
    own = MCPServerConfig("mail", "mail", headers={"authorization": f"Bearer {jwt(appid='own')}", "X-Kept": "1"})
    headers = server_headers(own, shared, OPTIONS, environ=NOWHERE)
    assert (headers["x-ms-agentid"], headers["Authorization"]) == ("own", f"Bearer {jwt(appid='own')}")
    assert headers["X-Kept"] == "1"
    named = {"AGENT365_APPLICATION_NAME": "desk"}
    assert set(server_headers(server, None, OPTIONS, turn(id="1"), named)) == {"User-Agent"}


@shows("A365-AGENTID")
def test_a_chat_carries_neither_a_token_nor_the_agents_name() -> None:
    context = turn(from_=SimpleNamespace(agentic_app_blueprint_id="blueprint"), id="1")
    assert set(chat_headers(OPTIONS, context)) == {"User-Agent", "Content-Type"}


def test_headers_of_a_server_replace_ours_whatever_their_case() -> None:
    server = MCPServerConfig("mail", "mail", headers={"user-agent": "own", "X-MS-AgentId": "own"})
    headers = server_headers(server, jwt(appid="app"), OPTIONS, environ=NOWHERE)
    assert {name for name in headers if name.lower() != "authorization"} == {"user-agent", "X-MS-AgentId"}


# The User-Agent of requests


FORM = re.compile(r"Agent365SDK/[!-~]+ \([^()\\]+; Python [0-9.a-z+]+(?:; ([ -~]+))?\)")


@pytest.fixture
def unknown() -> None:
    _sdk_product.cache_clear()


@pytest.mark.usefixtures("unknown")
def test_it_has_the_form_that_the_platform_knows() -> None:
    version = metadata.version("microsoft-agents-a365-runtime")
    start = f"Agent365SDK/{version} ({platform.system()}; Python {platform.python_version()}"
    assert get_user_agent_header() == get_user_agent_header("") == f"{start})"
    assert Utility.get_user_agent_header("OpenAI") == f"{start}; OpenAI)"


@pytest.mark.usefixtures("unknown")
def test_without_the_sdk_the_version_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_identity, "SDK_PACKAGE", "no-such-package")
    assert get_user_agent_header().startswith("Agent365SDK/unknown (")
    _sdk_product.cache_clear()


@pytest.mark.usefixtures("unknown")
@shows("A365-HOSTILE")
@given(st.text(st.characters()))
@settings(deadline=None)
def test_whatever_the_orchestrator_is_called_the_form_stays(name: str) -> None:
    found = FORM.fullmatch(get_user_agent_header(name))
    assert found
    assert len(found[1] or "") <= 256


@pytest.mark.usefixtures("unknown")
@pytest.mark.parametrize(
    ("name", "shown"),
    [("a)(b\\c", "abc"), ("naïve\r\nname", "naive name"), ("()", None), (" ", None), ("中", None), ("a ()", "a")],
)
def test_what_would_end_the_comment_is_left_out(name: str, shown: str | None) -> None:
    found = FORM.fullmatch(get_user_agent_header(name))
    assert found
    assert found[1] == shown


# Which requests are retried, after which wait, and how an answer is read


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits, which are all skipped."""
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


# Results of operations that do not raise


def failed(*messages: str) -> OperationResult:
    return OperationResult.failed(*(OperationError(ValueError(message)) for message in messages))


@shows("A365-CHAT")
def test_every_success_is_the_same_one() -> None:
    assert OperationResult.success() is OperationResult.success()
    assert OperationResult.success().succeeded is True
    assert OperationResult.success().errors == []


def test_who_changes_the_errors_changes_nothing() -> None:
    error = OperationError(ValueError("a"))
    given = [error]
    results = [OperationResult.success(), OperationResult.failed(error), OperationResult(False, given)]
    before = [result.errors for result in results]
    for result in results:
        result.errors.append(OperationError(ValueError("b")))
    given.clear()
    assert [result.errors for result in results] == before == [[], [error], [error]]


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (OperationResult.success(), "Succeeded"),
        (OperationResult(True, [OperationError(ValueError("a"))]), "Succeeded"),
        (failed(), "Failed"),
        (OperationResult(False), "Failed"),
        (failed("one"), "Failed: one"),
        (failed("one", "two"), "Failed: one, two"),
        (failed(""), "Failed"),
    ],
)
def test_it_says_in_words_how_it_went(result: OperationResult, text: str) -> None:
    assert str(result) == text


def test_a_failure_has_not_succeeded_and_is_its_own() -> None:
    assert failed().succeeded is False
    assert failed() is not failed()


def test_an_error_is_the_exception_that_says_it() -> None:
    cause = RuntimeError("what happened")
    error = OperationError(cause)
    assert error.exception is cause
    assert error.message == str(error) == "what happened"


def test_an_error_without_an_exception_is_none() -> None:
    with pytest.raises(InvalidArgument, match="exception cannot be None"):
        OperationError(None)


def test_what_is_told_is_not_changed_afterwards() -> None:
    for thing, name in ((OperationResult.success(), "succeeded"), (OperationError(ValueError()), "exception")):
        with pytest.raises(AttributeError):
            setattr(thing, name, None)
