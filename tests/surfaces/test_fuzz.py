"""Whatever is sent: never a 500, and never a secret or a body in the log."""

import io
import json
import logging
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import structlog
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frontdesk.app import open_app, running
from frontdesk.identity import keys
from frontdesk.interfaces import logs
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.http.context import ASGIApp
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.wire import ERAS, Answer, Era, call, send

SECRET = "S3CRET"
ISSUER = {"issuer": "https://id.example", "hs256_secret": f"{SECRET}-of-the-issuer-0123456789", "algorithms": ["HS256"]}

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just(SECRET)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4)
)
objects = st.dictionaries(
    st.sampled_from(["agent_id", "agentId", "agent", "metadata", "progressToken", "x"]) | st.text(max_size=10),
    values,
    max_size=5,
)
header_text = st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=60)
parts = st.lists(st.from_regex(r"[A-Za-z0-9_-]{0,40}", fullmatch=True), max_size=5)
tokens = st.one_of(
    header_text,
    header_text.map(lambda text: f"Bearer {text}{SECRET}"),
    parts.map(lambda found: "Bearer " + ".".join(found)),
    st.just(f"Bearer {keys.generate_key()[2]}"),
)
names = (
    "x-agent-id",
    "x-agent-name",
    "x-agent-capabilities",
    "x-request-id",
    "x-user-auth-token",
    "mcp-session-id",
    "origin",
    "mcp-name",
    "x-forwarded-for",
)
headers = st.dictionaries(st.sampled_from(names), header_text, max_size=4)
# The same examples on every run: a test that fails here says something of the code, and says it again.
fuzzed = settings(
    max_examples=200, deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)


class Target:
    """An open server in process, with its log; hypothesis' examples are sent to it one by one."""

    def __init__(self, portal: BlockingPortal, asgi: ASGIApp, log: io.StringIO) -> None:
        self._portal = portal
        self._asgi = asgi
        self._log = log

    def check(self, said: dict[str, str], body: bytes) -> Answer:
        answer = self._portal.call(send, self._asgi, said, body)
        assert answer.status < 500, answer.body
        assert b"Internal server error" not in answer.body
        assert SECRET not in self._log.getvalue()
        return answer


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with _logged() as log, start_blocking_portal() as portal:
        folder: Path = tmp_path_factory.mktemp("fuzz")
        given_settings = settings_with(FRONTDESK_DATA=folder, FRONTDESK_ISSUERS=[ISSUER])
        with (
            portal.wrap_async_context_manager(open_app(given_settings)) as app,
            portal.wrap_async_context_manager(running(app)),
        ):
            yield Target(portal, build_application(app), log)


@contextmanager
def _logged() -> Generator[io.StringIO]:
    """The log of a server at its default level, libraries' records included."""
    sink = io.StringIO()
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    logs.configure_logs(settings_with())
    structlog.configure(logger_factory=structlog.WriteLoggerFactory(sink), cache_logger_on_first_use=False)
    yield sink
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)


@shows("FUZZ")
@fuzzed
@given(era=st.sampled_from(ERAS), said=headers, arguments=objects, meta=objects, token=st.none() | tokens)
def test_no_headers_arguments_metadata_or_token_break_a_call(
    target: Target,
    era: Era,
    said: dict[str, str],
    arguments: dict[str, object],
    meta: dict[str, object],
    token: str | None,
) -> None:
    base, body = call(era, arguments=arguments, meta={key: value for key, value in meta.items() if "/" not in key})
    target.check(base | said | ({"authorization": token} if token is not None else {}), body)


@fuzzed
@given(era=st.sampled_from(ERAS), frame=values | objects | st.lists(objects, max_size=3))
def test_no_frame_breaks_the_endpoint(target: Target, era: Era, frame: object) -> None:
    base, _ = call(era)
    target.check(base, json.dumps(frame).encode())


@fuzzed
@given(
    era=st.sampled_from(ERAS),
    method=st.sampled_from(["tools/call", "tools/list", "initialize", "ping", "server/discover", "nope", ""])
    | st.text(),
    number=scalars,
    params=values,
)
def test_no_method_id_or_params_break_the_endpoint(
    target: Target, era: Era, method: str, number: object, params: object
) -> None:
    base, _ = call(era)
    frame = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    target.check(base | {"mcp-method": "tools/call"}, json.dumps(frame).encode())


@fuzzed
@given(
    era=st.sampled_from(ERAS),
    body=st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")),
)
def test_no_bytes_break_the_endpoint(target: Target, era: Era, body: bytes) -> None:
    base, _ = call(era)
    answer = target.check(base, body)
    assert answer.status in (200, 202, 400, 404)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"whoami","arguments":{"agent_id":NaN}}}',
        b'{"jsonrpc":"2.0","id":"\\ud800","method":"tools/call","params":{"name":"\\ud800"}}',
        b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"ping"}',
        b'{"jsonrpc":"2.0","id":null,"method":"ping"}',
        b"",
        b"\xff\xfe",
    ],
    ids=["deep", "nan", "surrogate", "huge number", "null id", "empty", "not utf-8"],
)
def test_known_traps_are_answered(target: Target, era: Era, body: bytes) -> None:
    base, _ = call(era)
    assert target.check(base, body).json["error"]["code"] < 0


def test_a_body_that_is_too_large_is_refused(target: Target) -> None:
    base, _ = call("2026-07-28")
    assert target.check(base, b" " * (5 * 1024 * 1024)).status == 413
