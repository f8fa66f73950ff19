"""Whatever the interfaces of the tools capability are given: a mistake is told as one, and nothing fails."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frontdesk.app import open_app
from frontdesk.interfaces.http.application import build_application
from frontdesk.tools.servers import ServerSpec
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.tool_servers import open_tool_server, tools
from tests.support.wire import ERAS, Answer, Era, call, send

Send = Callable[[str, str, dict[str, str], bytes], Answer]
STRANGE = ("shop::mow", "mow", "agent-1", "\ud800", "\0", "*", "agent:a", "user:\0", "{", "[1,", "nope\ud800")
texts = st.text(max_size=8) | st.sampled_from(STRANGE)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
# Right often enough to get past the first look.
NEEDED = {
    **dict.fromkeys(("query", "user_prompt", "name", "tool", "subject", "pattern"), texts),
    "accept": st.booleans(),
    "effect": st.sampled_from(["allow", "deny"]),
}
OPTIONAL = dict.fromkeys(
    (
        *("limit", "min_score", "servers", "agent_id", "keep_tools", "dry_run", "drop_rate", "keep_tool_ids"),
        *("arguments", "request_heartbeat", "detailed_response", "apply_rules"),
    ),
    values,
)
bodies = st.fixed_dictionaries(NEEDED, optional=OPTIONAL)
OF_TOOL = {"find_tools": ("query",), "call_tool": ("name",)}
ROUTES = ("search", "attach", "prune", "call", "pick", "explain", "forget", "rights", "rights/x", "usage", "servers")
paths = st.sampled_from(["", *(f"/{route}" for route in ROUTES), "/shop::mow", "/shop::mow/review", "/refresh"])
fuzzed = settings(
    max_examples=150, deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Send]:
    """Asks an installation of its own, from outside its event loop."""
    data = tmp_path_factory.mktemp("fuzz") / "data"
    opened = open_app(settings_with(FRONTDESK_DATA=data, FRONTDESK_EMBEDDINGS="off"))
    with (
        open_tool_server("shop", tools(["mow"])) as shop,
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(opened) as app,
    ):
        portal.call(app.tools.catalogue.add, ServerSpec("shop", url=shop.url))
        asgi = build_application(app)
        yield lambda method, path, headers, body: portal.call(
            lambda: send(asgi, headers, body, path=path, method=method)
        )


@shows("FUZZ")
@fuzzed
@given(method=st.sampled_from(["POST", "GET", "DELETE"]), path=paths, body=bodies | values)
def test_no_body_leads_to_a_failure(ask: Send, method: str, path: str, body: Any) -> None:
    said = {"content-type": "application/json"}
    answer = ask(method, f"/api/v1/tools{path}", said, json.dumps(body).encode())
    assert answer.status < 500, answer.body
    assert answer.status == 200 or set(answer.json) >= {"error"}


@shows("FUZZ")
@fuzzed
@given(tool=st.sampled_from(["find_tools", "call_tool"]), era=st.sampled_from(ERAS), arguments=bodies)
def test_no_arguments_lead_to_a_failure(ask: Send, tool: str, era: Era, arguments: dict[str, Any]) -> None:
    known = {name: value for name, value in arguments.items() if name in OPTIONAL or name in OF_TOOL[tool]}
    headers, body = call(era, tool, known)
    answer = ask("POST", "/mcp/tools", {"x-agent-id": "agent-1", **headers}, body)
    assert answer.status < 500, answer.body
    # What is no JSON, as NaN, is refused before a tool sees it.
    assert answer.status == 400 or "error" not in answer.json or answer.json["error"]["code"] in (-32602, -32011)
