"""The headers of requests to the platform and to its servers, whatever they are made of."""

import re
from types import SimpleNamespace
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typing_extensions import override

from frontdesk.agent365 import InvalidArgument, MCPServerConfig, McpToolServerConfigurationService, ToolOptions
from frontdesk.agent365.headers import chat_headers, server_headers
from frontdesk.mcp_client.model import HEADER_NAME
from tests.requirements import shows
from tests.support.gateways import jwt, turn

VISIBLE = re.compile(r"[!-~](?:[ -~]*[!-~])?")
LONGEST = 512
OPTIONS = ToolOptions("OpenAI")
NOWHERE: dict[str, str] = {}


class Sly(str):
    """Text that says something else of itself than it is."""

    __slots__ = ()

    @override
    def __str__(self) -> str:
        return "one\r\ntwo: three"

    @override
    def __format__(self, spec: str, /) -> str:
        return "one\r\ntwo: three"


class Everything:
    """Has each attribute that anybody asks for, as stand-ins in tests do."""

    def __getattr__(self, name: str) -> "Everything":
        return self

    def __call__(self, *_: object) -> "Everything":
        return self


class Touchy:
    """Takes each question amiss."""

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
    """Each value is one line of visible characters, under a name that a header can have, given once."""
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
