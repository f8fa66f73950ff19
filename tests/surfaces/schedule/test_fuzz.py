"""Whatever the scheduler's endpoints are given: a mistake is told as one, and nothing fails."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frontdesk.app import open_app
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.mcp.schedule_tools import SCHEDULE_TOOLS
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.wire import ERAS, Answer, Era, call, send

Send = Callable[[str, str, dict[str, str], bytes], Answer]
STRANGE = (
    *("\ud800", "\0", "none", "", " ", "5m", "0s", "-1", "45", "0 9 * * *", "* * * * * *", "@daily", "@reboot"),
    *("in two minutes", "every weekday at 9 Berlin time", "every", "9999-12-31T23:59:59Z", "2099-01-01", "1e400"),
    *("0001-01-01T00:00:00+14:00", "Europe/Berlin", "../etc/passwd", "queue", "all", "http://127.0.0.1/", "dead"),
)
texts = st.text(max_size=8) | st.sampled_from(STRANGE)
numbers = st.integers() | st.sampled_from([0, -1, 1, 2**31, 2**63, 10**400]) | st.floats(allow_nan=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=4,
)
FIELDS = {
    tool.name: [name for name in tool.arguments.model_fields if name not in ("loop", "source_code")]
    for tool in SCHEDULE_TOOLS
}
OPTIONS = [name for name in FIELDS["promptyoself_register"] if name not in ("prompt", "skip_validation")]
ROUTES = ("", "/preview", "/runs", "/status", "/1", "/1/pause", "/1/resume", "/1/run", "/1/history", "/runs/x/redrive")
fuzzed = settings(
    max_examples=200, deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Send]:
    """Asks an installation of its own, from outside its event loop."""
    data = tmp_path_factory.mktemp("fuzz") / "data"
    opened = open_app(settings_with(FRONTDESK_DATA=data, FRONTDESK_EMBEDDINGS="off"))
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(opened) as app:
        asgi = build_application(app)
        yield lambda method, path, headers, body: portal.call(
            lambda: send(asgi, headers, body, path=path, method=method)
        )


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    name = draw(st.sampled_from(sorted(FIELDS)))
    return name, draw(st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS[name], values)))


@shows("FUZZ")
@fuzzed
@given(asked=calls(), era=st.sampled_from(ERAS), skip=st.booleans())
def test_no_arguments_lead_to_a_failure(ask: Send, asked: tuple[str, dict[str, Any]], era: Era, skip: bool) -> None:
    tool, arguments = asked
    if skip and "skip_validation" in FIELDS[tool]:
        arguments |= {"skip_validation": True, "prompt": "x"}
    headers, body = call(era, tool, arguments)
    answer = ask("POST", "/mcp/schedule", {"x-agent-id": "agent-1", **headers}, body)
    assert answer.status < 500, answer.body
    assert b"Internal server error" not in answer.body
    assert answer.status == 400 or "error" not in answer.json or answer.json["error"]["code"] in (-32602, -32011)


@shows("FUZZ")
@fuzzed
@given(
    method=st.sampled_from(["POST", "GET", "DELETE", "PATCH"]),
    path=st.sampled_from(ROUTES),
    body=values
    | st.fixed_dictionaries(
        {"prompt": texts, "skip_validation": st.just(True), "agent_id": st.just("agent-1")},
        optional=dict.fromkeys(OPTIONS, values),
    ),
)
def test_no_body_leads_to_a_failure(ask: Send, method: str, path: str, body: Any) -> None:
    answer = ask(method, f"/api/v1/schedules{path}", {"content-type": "application/json"}, json.dumps(body).encode())
    assert answer.status < 500, answer.body
    assert answer.status in (200, 201) or set(answer.json) >= {"error"}
