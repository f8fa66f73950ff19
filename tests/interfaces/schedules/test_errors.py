"""Tests every error of the PromptYoSelf contract, and that no input makes a request fail."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from anyio.from_thread import start_blocking_portal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp_types import RequestParamsMeta
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from frontdesk.app import App, open_app
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.mcp.tools import tool_name, tool_request
from frontdesk.schedules.create import NO_TIMELINE
from frontdesk.schedules.operations import SCHEDULE_OPERATIONS
from tests.conftest import settings_with
from tests.e2e.test_server import closed
from tests.interfaces.schedules.conftest import NEXT_YEAR, Asking, connected
from tests.requirements import shows
from tests.support.desk import Desk, open_desk
from tests.support.postgres import Postgres
from tests.support.serving import serve
from tests.support.wire import ERAS, Answer, Era, call, frames, send

# Every error of the PromptYoSelf contract, with its cause and the contract's wording


LATER = f"{NEXT_YEAR}-12-25T10:00:00Z"
TIME_FORMAT = (
    "Invalid time format. Use ISO 8601 like 2025-12-25T10:00:00Z or include offset, e.g. 2025-12-25T10:00:00-05:00"
)
MISSING = "Missing required arguments: agent-id and prompt"
NO_OPTION = "Must specify one of --time, --cron, or --every"
INTERVAL = "Invalid interval format: {}. Use formats like '30s', '5m', '1h'"
POSITIVE = "max-repetitions must be a positive integer"
WHOLE = "max-repetitions must be a valid integer"
CAUSES: list[tuple[str, dict[str, Any], str]] = [
    ("schedule_time", {"time": LATER}, MISSING),
    ("schedule_time", {"time": LATER, "prompt": "  "}, MISSING),
    ("schedule_cron", {"cron": "0 9 * * *", "prompt": ""}, MISSING),
    ("register", {"prompt": "x"}, NO_OPTION),
    ("schedule_time", {"prompt": "x"}, NO_OPTION),
    ("schedule_every", {"prompt": "x", "every": ""}, NO_OPTION),
    ("register", {"prompt": "x", "cron": "0 9 * * *", "every": "5m"}, "Cannot specify multiple scheduling options"),
    ("schedule_time", {"prompt": "x", "time": "2025-08-31T09:50:22Z"}, "Scheduled time must be in the future"),
    ("schedule_time", {"prompt": "x", "time": "2025-08-31 09:50:22 UTC"}, "Scheduled time must be in the future"),
    ("schedule_time", {"prompt": "x", "time": "28"}, TIME_FORMAT),
    ("schedule_time", {"prompt": "x", "time": 28}, TIME_FORMAT),
    ("schedule_time", {"prompt": "x", "time": f"{NEXT_YEAR}-08-31T09:50:22"}, TIME_FORMAT),
    ("schedule_time", {"prompt": "x", "time": "when the cows come home"}, TIME_FORMAT),
    (
        "schedule_every",
        {"prompt": "x", "every": "5m", "start_at": "2025-01-02T15:00:00Z"},
        "Start time must be in the future",
    ),
    ("schedule_every", {"prompt": "x", "every": "5m", "start_at": "28"}, TIME_FORMAT),
    (
        "schedule_cron",
        {"prompt": "x", "cron": "0 9 * *"},
        "Invalid cron expression: 0 9 * *",
    ),
    (
        "schedule_time",
        {"prompt": "x", "time": "in 1000000 days"},
        '"in 1000000 days" is too far ahead; write a time within a hundred years',
    ),
    (
        "schedule_cron",
        {"prompt": "x", "cron": "0 9 * * *", "zone": "Berlin"},
        "Unknown time zone: Berlin. Use Europe/Berlin",
    ),
    ("schedule_cron", {"prompt": "x", "cron": "61 9 * * *"}, "Invalid cron expression: 61 9 * * *"),
    ("schedule_every", {"prompt": "x", "every": "0s"}, INTERVAL.format("0s")),
    ("schedule_every", {"prompt": "x", "every": 0}, INTERVAL.format("0")),
    ("schedule_every", {"prompt": "x", "every": "-5m"}, INTERVAL.format("-5m")),
    ("schedule_every", {"prompt": "x", "every": "5x"}, INTERVAL.format("5x")),
    ("schedule_every", {"prompt": "x", "every": "5m", "max_repetitions": 0}, POSITIVE),
    ("schedule_every", {"prompt": "x", "every": "5m", "max_repetitions": -1}, POSITIVE),
    ("schedule_every", {"prompt": "x", "every": "5m", "max_repetitions": "many"}, WHOLE),
    ("schedule_every", {"prompt": "x", "every": "5m", "max_repetitions": 1.5}, WHOLE),
    ("register", {"prompt": "x", "every": "5m", "timeline": "true"}, NO_TIMELINE),
    ("cancel", {"schedule_id": "forty-two"}, "Schedule ID must be a number"),
    ("cancel", {"schedule_id": None}, "Schedule ID must be a number"),
    ("cancel", {"schedule_id": [42]}, "Schedule ID must be a number"),
    ("cancel", {}, "Schedule ID must be a number"),
    ("cancel", {"schedule_id": 999_999_999}, "Schedule 999999999 not found or already cancelled"),
    ("pause", {"schedule_id": 999_999_999}, "Schedule 999999999 not found"),
    ("run_now", {"schedule_id": "x"}, "Schedule ID must be a number"),
    ("execute", {"loop": True, "interval": "often"}, "Interval must be a number (seconds)"),
    ("execute", {"loop": True, "interval": 0}, "Interval must be a number (seconds)"),
    ("execute", {"loop": True, "max_seconds": "x"}, "max_seconds must be a whole number from 1 to 300"),
    ("execute", {"loop": True, "max_seconds": 301}, "max_seconds must be a whole number from 1 to 300"),
    ("list", {"limit": 0}, "limit must be a whole number from 1 to 1000"),
    ("list", {"limit": "all"}, "limit must be a whole number from 1 to 1000"),
    ("list", {"after": -1}, "after must be a whole number from 0 to 2147483647"),
    ("history", {"limit": 100_000}, "limit must be a whole number from 1 to 1000"),
    ("preview", {"cron": "0 9 * * *", "count": 0}, "count must be a whole number from 1 to 100"),
    ("preview", {"cron": "0 9 * * *", "count": 100_000}, "count must be a whole number from 1 to 100"),
    ("upload", {"source_code": "def f() -> None:\n    '''F.'''\n"}, "Missing LETTA_API_KEY or LETTA_SERVER_PASSWORD"),
]


@shows("SCHEDULE-ERRORS")
@pytest.mark.parametrize(("tool", "arguments", "said"), CAUSES)
async def test_a_mistake_is_told_in_the_words_of_the_contract(
    ask: Asking, agent: str, tool: str, arguments: dict[str, Any], said: str
) -> None:
    assert await ask.error(tool, agent_id=agent, **arguments) == said


@shows("SCHEDULE-ERRORS")
async def test_an_agent_that_the_host_does_not_know_is_refused_unless_it_need_not_be_known(ask: Asking) -> None:
    given = {"agent_id": "agt_abc123", "prompt": "Ping me once", "time": LATER}
    refused = await ask.error("schedule_time", **given)
    assert refused.startswith("Agent validation failed: ")
    assert "agt_abc123" in refused
    assert (await ask("schedule_time", **given, skip_validation=True))["status"] == "success"


@shows("SCHEDULE-ERRORS")
@pytest.mark.parametrize("nobody", [{}, {"agent_id": "none"}, {"agent_id": "null"}, {"agent_id": ""}])
async def test_nobody_to_prompt_is_told_so(ask: Asking, nobody: dict[str, str]) -> None:
    said = await ask.error("schedule_time", prompt="x", time=LATER, **nobody)
    assert said == "agent_id is required and could not be inferred"


@shows("KEPT-14")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("tool", ["schedule_time", "list", "cancel", "execute", "agents", "inference_diagnostics"])
@pytest.mark.parametrize("odd", ["no such id!", 7, ["agent-1"], "x" * 200])
async def test_a_client_that_looks_for_error_finds_it_whatever_id_it_sends(
    desk: Desk, mode: str, tool: str, odd: object
) -> None:
    given: dict[str, Any] = {"schedule_time": {"prompt": "x", "time": LATER}, "cancel": {"schedule_id": 1}}.get(
        tool, {}
    )
    async with connected(desk, mode) as ask:
        told = await ask(tool, agent_id=odd, **given)
    if tool == "inference_diagnostics":
        assert (told["status"], told["inferred_agent_id"]) == ("ok", None)
        told = told["inference_debug"]
    assert told["error"].startswith("Invalid agent id format: ") or told["error"].startswith(
        "Invalid agent ID format: "
    )


@shows("KEPT-14")
@pytest.mark.parametrize("header", ["agent-1", "no such id!"])
async def test_health_and_diagnostics_answer_whatever_ids_are_sent(desk: Desk, header: str) -> None:
    async with connected(desk, agent=header) as ask:
        health = (await ask.client.call_tool("health", {"agent_id": "another one"})).structured_content
        told = await ask("inference_diagnostics", agent_id="another one")
    assert health is not None
    assert (health["status"], health["letta_base_url"]) == ("healthy", "http://localhost:8283")
    assert told["status"] == "ok"
    assert told["inference_debug"]["source"] == "none"


@shows("KEPT-14")
@pytest.mark.parametrize("form", [" {} ", "\t{}\n", "{}\u00a0"])
async def test_space_around_an_id_is_not_part_of_it(ask: Asking, agent: str, form: str) -> None:
    told = await ask("inference_diagnostics", agent_id=form.format(agent))
    assert (told["inferred_agent_id"], told["inference_debug"]["source"]) == (agent, "parameter")
    assert (await ask("schedule_time", agent_id=form.format(agent), prompt="x", time=LATER))["status"] == "success"
    meta = await ask.client.call_tool(
        "promptyoself_inference_diagnostics", {}, meta=cast("RequestParamsMeta", {"agent_id": form.format(agent)})
    )
    assert meta.structured_content is not None
    assert meta.structured_content["inferred_agent_id"] == agent


@shows("KEPT-14")
@pytest.mark.parametrize("blank", [" ", "\t", "  none ", "Null"])
async def test_a_blank_id_is_no_id(ask: Asking, blank: str) -> None:
    said = await ask.error("schedule_time", prompt="x", time=LATER, agent_id=blank)
    assert said == "agent_id is required and could not be inferred"


@shows("KEPT-14")
@pytest.mark.parametrize(
    ("tool", "arguments", "advice"),
    [
        ("schedule_time", {"time": "every day at 9"}, "Give it as cron, not as time"),
        ("schedule_time", {"time": "every 5 minutes"}, "Give it as every, not as time"),
        ("schedule_cron", {"cron": "tomorrow at 9"}, "Give it as time, not as cron"),
        ("schedule_cron", {"cron": "every 5 minutes"}, "Give it as every, not as cron"),
        ("schedule_every", {"every": "weekday at 9"}, "Give it as cron, not as every"),
        ("schedule_every", {"every": "in two minutes"}, "Give it as time, not as every"),
    ],
)
async def test_each_tool_takes_the_kind_of_rule_that_it_is_named_after(
    ask: Asking, agent: str, tool: str, arguments: dict[str, Any], advice: str
) -> None:
    assert (await ask.error(tool, agent_id=agent, prompt="x", **arguments)).endswith(advice)


@shows("SCHEDULE-ERRORS")
async def test_a_second_cancel_is_told_as_such(ask: Asking, agent: str) -> None:
    number = (await ask("schedule_time", agent_id=agent, prompt="x", time=LATER))["id"]
    assert (await ask("cancel", schedule_id=number))["status"] == "success"
    assert await ask.error("cancel", schedule_id=number) == f"Schedule {number} not found or already cancelled"


async def test_a_misspelt_argument_is_refused_and_not_dropped(ask: Asking, agent: str) -> None:
    said = await ask.error("schedule_every", agent_id=agent, prompt="x", every="5m", max_repetition=3)
    assert "max_repetition: Extra inputs are not permitted" in said


async def test_a_change_of_nothing_and_two_things_to_preview_are_refused(ask: Asking, agent: str) -> None:
    number = (await ask("schedule_time", agent_id=agent, prompt="x", time=LATER))["id"]
    for nothing in ({}, {"prompt": ""}, {"zone": "none"}):
        assert (await ask.error("update", schedule_id=number, **nothing)).startswith("Say what is to be different")
    assert "not both" in await ask.error("preview", schedule_id=number, cron="0 9 * * *")


async def test_interval_is_looked_at_in_a_loop_alone(ask: Asking, stranger: str) -> None:
    told = await ask("execute", agent_id=stranger, loop=False, interval="often")
    assert told == {"status": "success", "executed": [], "message": "0 prompts executed"}


@pytest.fixture(scope="module")
def astray(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A server whose Letta server is down."""
    data = tmp_path_factory.mktemp("astray") / "data"
    with open_desk(data, LETTA_BASE_URL="http://127.0.0.1:1", LETTA_API_KEY="key", FRONTDESK_WORKER="false") as desk:
        yield desk


@shows("SCHEDULE-ERRORS")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("test", {}, "Failed to test connection: "),
        ("agents", {}, "Failed to list agents: "),
        ("upload", {"source_code": "def f() -> None:\n    '''F.'''\n"}, "Upload failed: "),
        ("schedule_time", {"agent_id": "a", "prompt": "x", "time": LATER}, "Agent validation failed: "),
    ],
)
async def test_an_agent_host_that_is_away_is_told_in_the_words_of_each_tool(
    astray: Desk, mode: str, tool: str, arguments: dict[str, Any], said: str
) -> None:
    async with connected(astray, mode) as ask:
        told = await ask.error(tool, **arguments)
    assert told.startswith(said)
    assert len(told) > len(said)


@shows("SCHEDULE-ERRORS")
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("list", {}, "Failed to list prompts: "),
        ("cancel", {"schedule_id": 42}, "Failed to cancel prompt: "),
        ("execute", {}, "Failed to execute prompts: "),
        ("execute", {"agent_id": "agent-1"}, "Failed to execute prompts: "),
    ],
)
async def test_a_database_that_is_away_is_told_in_the_words_of_each_tool(
    away: App, era: Era, tool: str, arguments: dict[str, Any], said: str
) -> None:
    headers, body = call(era, f"promptyoself_{tool}", arguments)
    named = {} if "agent_id" in arguments else {"x-agent-id": "agent-1"}
    answer = await send(build_application(away), headers | named, body, path="/mcp/schedule")
    result = frames(answer)[-1]["result"]
    assert result["structuredContent"]["error"].startswith(said)
    assert "isError" not in result


@pytest.fixture(params=[400, 401, 409, 422, 500])
def refusing(request: pytest.FixtureRequest) -> Iterator[str]:
    """A Letta server that accepts no tool."""

    async def upsert(_: Request) -> JSONResponse:
        return JSONResponse({"detail": "Tool source is no function"}, request.param)

    with serve(Starlette(routes=[Route("/v1/tools/", upsert, methods=["PUT"])])) as url:
        yield url


@shows("KEPT-14")
async def test_a_tool_that_letta_refuses_is_told_as_a_failed_upload(refusing: str, tmp_path: Path) -> None:
    settings = settings_with(FRONTDESK_DATA=tmp_path / "data", LETTA_BASE_URL=refusing, LETTA_API_KEY="key")
    async with open_app(settings) as app:
        for era in ERAS:
            headers, body = call(era, "promptyoself_upload", {"source_code": "this is no python("})
            result = frames(await send(build_application(app), headers, body, path="/mcp/schedule"))[-1]["result"]
            assert re.match(r"Upload failed: (The Letta server|this tool)", result["structuredContent"]["error"])
            assert "isError" not in result


@pytest.fixture
async def away(tmp_path: Path, postgres: Postgres) -> Any:
    """An installation whose database has closed its connections."""
    url = postgres.create_database()
    settings = settings_with(FRONTDESK_DATA=tmp_path / "data", FRONTDESK_DATABASE_URL=url)
    async with open_app(settings) as app:
        with closed(postgres, url.rpartition("?")[0].rpartition("/")[2]):
            yield app


# Any input to the scheduler's endpoints: a mistake is reported as one, and nothing fails


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
    tool_name(operation): [name for name in tool_request(operation).model_fields if name not in ("loop", "source_code")]
    for operation in SCHEDULE_OPERATIONS
    if operation.mcp is not None
}
OPTIONS = [name for name in FIELDS["promptyoself_register"] if name not in ("prompt", "skip_validation")]
ROUTES = ("", "/preview", "/runs", "/status", "/1", "/1/pause", "/1/resume", "/1/run", "/1/history", "/runs/x/redrive")
fuzzed = settings(
    max_examples=200, deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)


@pytest.fixture(scope="module")
def fuzz_ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Send]:
    """Sends requests to an installation of its own, from outside its event loop."""
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
def test_no_arguments_lead_to_a_failure(
    fuzz_ask: Send, asked: tuple[str, dict[str, Any]], era: Era, skip: bool
) -> None:
    tool, arguments = asked
    if skip and "skip_validation" in FIELDS[tool]:
        arguments |= {"skip_validation": True, "prompt": "x"}
    headers, body = call(era, tool, arguments)
    answer = fuzz_ask("POST", "/mcp/schedule", {"x-agent-id": "agent-1", **headers}, body)
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
def test_no_body_leads_to_a_failure(fuzz_ask: Send, method: str, path: str, body: Any) -> None:
    answer = fuzz_ask(
        method, f"/api/v1/schedules{path}", {"content-type": "application/json"}, json.dumps(body).encode()
    )
    assert answer.status < 500, answer.body
    assert answer.status in (200, 201) or set(answer.json) >= {"error"}
