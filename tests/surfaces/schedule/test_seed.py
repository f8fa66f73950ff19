"""Every example of the PromptYoSelf contract, through a real MCP client, in both eras."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.requirements import shows
from tests.support.desk import Desk
from tests.surfaces.schedule.conftest import NEXT_YEAR, Asking, connected, utc

pytestmark = pytest.mark.anyio
CHRISTMAS = datetime(NEXT_YEAR, 12, 25, 10, tzinfo=UTC)
LISTED = {
    *("id", "agent_id", "prompt_text", "schedule_type", "schedule_value", "next_run", "active", "created_at"),
    *("last_run", "max_repetitions", "repetition_count"),
}
TOOLS = {
    *("list", "schedule_time", "schedule_cron", "schedule_every", "cancel", "execute", "test", "agents", "upload"),
    *("inference_diagnostics", "register", "executor_status", "set_default_agent", "set_scoped_default_agent"),
    *("get_scoped_default_agent", "pause", "resume", "update", "run_now", "history", "preview"),
}
IGNORED = {"mcp_server_id": "m", "mcp_server_name": "n", "request_heartbeat": True, "heartbeat": 1}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("endpoint", ["/mcp", "/mcp/schedule"])
async def test_every_tool_is_at_both_endpoints_with_an_example_that_a_model_can_follow(
    desk: Desk, mode: str, endpoint: str
) -> None:
    async with connected(desk, mode, endpoint=endpoint) as ask:
        tools = {tool.name: tool for tool in (await ask.client.list_tools()).tools}
    assert {"health", *(f"promptyoself_{name}" for name in TOOLS)} <= set(tools)
    for name in ("schedule_time", "schedule_cron", "schedule_every", "register", "preview"):
        described = tools[f"promptyoself_{name}"].description or ""
        assert "Example: {" in described
        assert "plain words" in described.lower() or name == "preview"
    cron = tools["promptyoself_schedule_cron"].input_schema
    assert cron["required"] == ["prompt", "cron"]
    assert cron["properties"]["agent_id"]["type"] == "string"


@shows("SCHEDULE-SEED")
@pytest.mark.parametrize(
    "form",
    ["{}-12-25T10:00:00Z", "{}-12-25T10:00:00+00:00", "{}-12-25 10:00:00 UTC", "{}-12-25T15:30:00+05:30"],
)
async def test_a_prompt_is_scheduled_once_at_an_exact_time(ask: Asking, agent: str, form: str) -> None:
    told = await ask("schedule_time", agent_id=agent, prompt="Ping me once", time=form.format(NEXT_YEAR), **IGNORED)
    number = told["id"]
    assert (told["status"], told["message"]) == ("success", f"Prompt scheduled with ID {number}")
    assert utc(told["next_run"]) == CHRISTMAS
    assert (told["schedule_type"], utc(told["schedule_value"])) == ("once", CHRISTMAS)
    assert isinstance(number, int)


@shows("SCHEDULE-SEED")
@pytest.mark.parametrize("cron", ["0 9 * * *", "*/15 * * * *", "0 9 * * MON-FRI"])
async def test_a_prompt_is_scheduled_by_a_cron_rule(ask: Asking, agent: str, cron: str) -> None:
    told = await ask("schedule_cron", agent_id=agent, prompt="Daily standup", cron=cron, **IGNORED)
    assert (told["status"], told["message"]) == ("success", f"Prompt scheduled with ID {told['id']}")
    assert (told["schedule_type"], told["schedule_value"]) == ("cron", cron)
    assert utc(told["next_run"]) > datetime.now(UTC)
    assert told["rule"]["zone"] == "UTC"


@shows("SCHEDULE-SEED")
@pytest.mark.parametrize(("every", "seconds"), [("30s", 30), ("5m", 300), ("1h", 3600), ("45", 45), (45, 45)])
async def test_a_prompt_is_scheduled_at_an_interval(ask: Asking, agent: str, every: object, seconds: int) -> None:
    before = datetime.now(UTC)
    told = await ask("schedule_every", agent_id=agent, prompt="Focus check", every=every, **IGNORED)
    assert (told["schedule_type"], told["status"]) == ("interval", "success")
    assert timedelta(0) <= utc(told["next_run"]) - before - timedelta(seconds=seconds) < timedelta(seconds=20)


@shows("SCHEDULE-SEED")
async def test_an_interval_has_a_start_and_an_end(ask: Asking, agent: str) -> None:
    start = f"{NEXT_YEAR}-01-02T15:00:00Z"
    told = await ask(
        "schedule_every", agent_id=agent, prompt="Focus check", every="30m", start_at=start, max_repetitions=10
    )
    assert utc(told["next_run"]) == datetime(NEXT_YEAR, 1, 2, 15, tzinfo=UTC)
    [listed] = [one for one in (await ask("list", agent_id=agent, limit=1000))["schedules"] if one["id"] == told["id"]]
    assert (listed["max_repetitions"], listed["repetition_count"]) == (10, 0)


@shows("SCHEDULE-SEED")
async def test_two_minutes_from_now_is_an_interval_that_comes_once(ask: Asking, agent: str) -> None:
    told = await ask("schedule_every", agent_id=agent, prompt="Ping me in two minutes", every="2m", max_repetitions=1)
    assert abs(utc(told["next_run"]) - datetime.now(UTC) - timedelta(minutes=2)) < timedelta(seconds=20)


@shows("SCHEDULE-SEED")
async def test_schedules_are_listed_with_every_field_of_the_contract(ask: Asking, stranger: str) -> None:
    empty = await ask("list", agent_id=stranger)
    assert empty == {"status": "success", "schedules": [], "count": 0}
    made = await ask("schedule_cron", agent_id=stranger, prompt="Daily report", cron="0 9 * * *")
    told = await ask("list", agent_id=stranger, include_cancelled=False, **IGNORED)
    [one] = told["schedules"]
    assert (told["status"], told["count"]) == ("success", 1)
    assert set(one) >= LISTED
    assert {name: one[name] for name in LISTED - {"created_at", "next_run"}} == {
        "id": made["id"],
        "agent_id": stranger,
        "prompt_text": "Daily report",
        "schedule_type": "cron",
        "schedule_value": "0 9 * * *",
        "active": True,
        "last_run": None,
        "max_repetitions": None,
        "repetition_count": 0,
    }
    assert one["next_run"].endswith("T09:00:00+00:00")
    assert utc(one["created_at"]) <= datetime.now(UTC)


@shows("SCHEDULE-SEED")
async def test_a_cancelled_schedule_is_listed_only_where_it_is_asked_for(ask: Asking, stranger: str) -> None:
    number = (await ask("schedule_cron", agent_id=stranger, prompt="Daily report", cron="0 9 * * *"))["id"]
    told = await ask("cancel", schedule_id=number, **IGNORED)
    assert told == {"status": "success", "cancelled_id": number, "message": f"Schedule {number} cancelled"}
    assert (await ask("list", agent_id=stranger))["count"] == 0
    [one] = (await ask("list", agent_id=stranger, include_cancelled=True))["schedules"]
    assert (one["id"], one["active"], one["next_run"]) == (number, False, None)


async def test_a_number_may_come_as_text(ask: Asking, stranger: str) -> None:
    number = (await ask("schedule_every", agent_id=stranger, prompt="x", every="1h", max_repetitions="3"))["id"]
    assert (await ask("cancel", schedule_id=str(number)))["cancelled_id"] == number


@shows("SCHEDULE-SEED")
@pytest.mark.parametrize(
    ("rule", "kind"),
    [
        ({"cron": "0 9 * * *"}, "cron"),
        ({"every": "5m", "max_repetitions": 10, "start_at": f"{NEXT_YEAR}-01-02T15:00:00Z"}, "interval"),
        ({"time": f"{NEXT_YEAR}-12-25T10:00:00Z"}, "once"),
    ],
)
async def test_register_takes_any_rule(ask: Asking, agent: str, rule: dict[str, Any], kind: str) -> None:
    told = await ask("register", agent_id=agent, prompt="Daily report", **rule, **IGNORED)
    assert (told["status"], told["schedule_type"]) == ("success", kind)
    assert set(told) >= {"id", "next_run", "message"}


@shows("SCHEDULE-WORDS")
@pytest.mark.parametrize(
    ("tool", "argument", "words", "value"),
    [
        ("schedule_cron", "cron", "every weekday at 9 Berlin time", "0 9 * * MON-FRI"),
        ("schedule_every", "every", "every two hours", "2h"),
        ("register", "time", "every weekday at 9 Berlin time", "0 9 * * MON-FRI"),
    ],
)
async def test_plain_words_are_taken_and_said_back_as_the_exact_rule(
    ask: Asking, stranger: str, tool: str, argument: str, words: str, value: str
) -> None:
    told = await ask(tool, agent_id=stranger, prompt="x", **{argument: words})
    assert told["schedule_value"] == value
    assert value in told["rule"]["rule"]
    assert utc(told["rule"]["next_local"]) == utc(told["rule"]["next_utc"]) == utc(told["next_run"])
    [one] = (await ask("list", agent_id=stranger))["schedules"]
    assert one["words"] == words


@shows("SCHEDULE-WORDS")
async def test_in_two_minutes_is_an_exact_time(ask: Asking, agent: str) -> None:
    told = await ask("schedule_time", agent_id=agent, prompt="Ping me in two minutes", time="in two minutes")
    assert told["schedule_type"] == "once"
    assert abs(utc(told["next_run"]) - datetime.now(UTC) - timedelta(minutes=2)) < timedelta(seconds=20)


async def test_a_local_time_is_read_in_the_zone_that_is_given(ask: Asking, agent: str) -> None:
    told = await ask(
        "schedule_time", agent_id=agent, prompt="x", time=f"{NEXT_YEAR}-07-01T09:00:00", zone="Europe/Berlin"
    )
    assert utc(told["next_run"]) == datetime(NEXT_YEAR, 7, 1, 7, tzinfo=UTC)
    assert told["rule"]["zone"] == "Europe/Berlin"


@shows("SCHEDULE-SEED")
async def test_health_says_what_is_set(ask: Asking, desk: Desk) -> None:
    told = (await ask.client.call_tool("health", {})).structured_content
    assert told is not None
    assert set(told) == {"status", "letta_base_url", "db", "auth_set"}
    assert (told["status"], told["auth_set"]) == ("healthy", False)


@shows("SCHEDULE-SEED")
async def test_the_agent_host_is_tested_and_its_agents_are_listed(ask: Asking, agent: str) -> None:
    tested = await ask("test", **IGNORED)
    assert (tested["status"], tested["message"]) == ("success", "Connected")
    assert isinstance(tested["details"], dict)
    told = await ask("agents", **IGNORED)
    assert told["status"] == "success"
    assert {"id": agent, "name": "Ada", "description": ""} in told["agents"]


async def test_the_executor_says_how_it_is_doing(ask: Asking) -> None:
    told = await ask("executor_status", **IGNORED)
    assert (told["status"], told["running"], told["autostart"]) == ("success", False, False)
    assert told["dead"] >= 0
    assert told["oldest_overdue"] is None or told["oldest_overdue"] > 0


async def test_a_schedule_is_paused_changed_resumed_and_previewed(ask: Asking, agent: str) -> None:
    number = (await ask("schedule_cron", agent_id=agent, prompt="Daily report", cron="0 9 * * *"))["id"]
    paused = await ask("pause", schedule_id=number)
    assert (paused["id"], paused["state"], paused["next_run"]) == (number, "paused", None)
    assert f"Schedule {number}" in await ask.error("pause", schedule_id=number)
    [one] = [one for one in (await ask("list", agent_id=agent, limit=1000))["schedules"] if one["id"] == number]
    assert (one["state"], one["next_run"], one["rule"]["next_utc"]) == ("paused", None, None)
    assert one["rule"]["sentence"] == "cron 0 9 * * *, UTC; paused"
    resumed = await ask("resume", schedule_id=number)
    assert (resumed["state"], utc(resumed["next_run"]).hour) == ("active", 9)
    changed = await ask("update", schedule_id=number, prompt="Weekly report", cron="0 10 * * MON", max_repetitions=4)
    assert (changed["id"], changed["schedule_value"]) == (number, "0 10 * * MON")
    told = await ask("preview", schedule_id=number, count=3)
    times = [utc(one["utc"]) for one in told["times"]]
    assert [(at.hour, at.weekday()) for at in times] == [(10, 0)] * 3
    [one] = [one for one in (await ask("list", agent_id=agent, limit=1000))["schedules"] if one["id"] == number]
    assert (one["prompt_text"], one["max_repetitions"]) == ("Weekly report", 4)
    await ask("update", schedule_id=number, clear=["max_repetitions"])
    [one] = [one for one in (await ask("list", agent_id=agent, limit=1000))["schedules"] if one["id"] == number]
    assert one["max_repetitions"] is None


async def test_a_rule_is_tried_without_making_anything(ask: Asking, stranger: str) -> None:
    told = await ask("preview", agent_id=stranger, cron="every weekday at 9 Berlin time", count=2)
    assert [one["local"][11:16] for one in told["times"]] == ["09:00", "09:00"]
    assert told["zone"] == "Europe/Berlin"
    assert (await ask("list", agent_id=stranger))["count"] == 0


async def test_a_long_list_comes_in_pages(ask: Asking, stranger: str) -> None:
    made = [(await ask("schedule_every", agent_id=stranger, prompt="x", every="1h"))["id"] for _ in range(3)]
    first = await ask("list", agent_id=stranger, limit=2)
    assert ([one["id"] for one in first["schedules"]], first["next"]) == (made[:2], made[1])
    rest = await ask("list", agent_id=stranger, after=first["next"])
    assert [one["id"] for one in rest["schedules"]] == made[2:]
    assert "next" not in rest
