"""Tests the PromptYoSelf contract with a real MCP client, in both eras."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from frontdesk.app import open_app
from frontdesk.journal.store import JournalQuery
from tests.conftest import settings_with
from tests.interfaces.schedules.conftest import NEXT_YEAR, SECONDS, Asking, connected, created, soon, utc
from tests.requirements import shows
from tests.support.desk import Desk, open_desk

# Every example of the PromptYoSelf contract, with a real MCP client, in both eras


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


# `promptyoself_execute`, and later reports of what it did


DELIVERED = {
    *("id", "agent_id", "delivered", "next_run", "repetition_count", "max_repetitions", "completed", "delivery_id"),
}


async def executed(ask: Asking, agent: str) -> list[dict[str, Any]]:
    """The runs of an agent, as soon as something is due."""
    with anyio.fail_after(SECONDS):
        while True:
            told = await ask("execute", agent_id=agent, loop=False)
            count = len(told["executed"])
            assert (told["status"], told["message"]) == ("success", f"{count} prompts executed")
            if count:
                return told["executed"]


@shows("SCHEDULE-SEED")
async def test_what_is_due_is_executed_once_and_said_with_the_contracts_fields(ask: Asking, stranger: str) -> None:
    number = (await ask("schedule_time", agent_id=stranger, prompt="Ping me once", time=soon(seconds=1)))["id"]
    [one] = await executed(ask, stranger)
    assert set(one) == DELIVERED
    assert (one["id"], one["agent_id"], one["delivered"]) == (number, stranger, True)
    assert (one["next_run"], one["repetition_count"]) == (None, 1)
    assert (one["max_repetitions"], one["completed"]) == (None, False)
    again = await ask("execute", agent_id=stranger)
    assert again == {"status": "success", "executed": [], "message": "0 prompts executed"}
    [run] = (await ask("history", agent_id=stranger, schedule_id=number))["runs"]
    assert (run["delivery_id"], run["standing"], run["attempt"]) == (one["delivery_id"], "delivered", 1)
    assert run["answer"]
    assert (await ask("list", agent_id=stranger))["count"] == 0
    [over] = (await ask("list", agent_id=stranger, include_cancelled=True))["schedules"]
    assert (over["state"], over["active"], over["repetition_count"]) == ("ended", False, 1)
    assert utc(over["last_run"]) <= datetime.now(UTC)


async def test_a_repeating_prompt_says_when_it_comes_next_and_when_it_is_over(ask: Asking, stranger: str) -> None:
    await ask("schedule_every", agent_id=stranger, prompt="Focus check", every="1s", max_repetitions=2)
    [first] = await executed(ask, stranger)
    assert (first["repetition_count"], first["max_repetitions"], first["completed"]) == (1, 2, False)
    assert first["next_run"] is not None
    [second] = await executed(ask, stranger)
    assert (second["repetition_count"], second["completed"], second["next_run"]) == (2, True, None)


@shows("SCHEDULE-SEED")
async def test_a_delivery_that_fails_is_told_with_its_error(ask: Asking, desk: Desk) -> None:
    agent = "agent-nobody-knows"
    made = await ask("register", agent_id=agent, prompt="x", time=soon(seconds=1), skip_validation=True, attempts=1)
    [one] = await executed(ask, agent)
    assert set(one) == {"id", "agent_id", "delivered", "error", "next_run", "delivery_id"}
    assert (one["id"], one["agent_id"], one["delivered"], one["next_run"]) == (made["id"], agent, False, None)
    assert agent in one["error"]
    [dead] = (await ask("history", agent_id=agent, schedule_id=made["id"], standing="dead"))["runs"]
    assert (dead["delivery_id"], dead["standing"]) == (one["delivery_id"], "dead")
    assert dead["reason"] == one["error"]


async def test_a_run_that_is_asked_for_is_made_besides_the_rule(ask: Asking, stranger: str) -> None:
    made = await ask("schedule_cron", agent_id=stranger, prompt="Daily report", cron="0 9 * * *")
    told = await ask("run_now", schedule_id=made["id"])
    [one] = await executed(ask, stranger)
    assert (one["delivery_id"], one["delivered"]) == (told["delivery_id"], True)
    [run] = (await ask("history", agent_id=stranger))["runs"]
    assert (run["manual"], run["standing"]) == (True, "delivered")
    [listed] = (await ask("list", agent_id=stranger))["schedules"]
    assert listed["next_run"] == made["next_run"]


@shows("SCHEDULE-LOOP")
async def test_a_loop_runs_what_comes_due_reports_progress_and_ends(ask: Asking, stranger: str) -> None:
    await ask("schedule_time", agent_id=stranger, prompt="Ping me once", time=soon(seconds=1))
    reported: list[tuple[float, str | None]] = []

    async def told(progress: float, total: float | None, message: str | None) -> None:
        reported.append((progress, message))

    arguments = {"agent_id": stranger, "loop": True, "interval": 1, "max_seconds": 4}
    result = await ask.client.call_tool("promptyoself_execute", arguments, progress_callback=told)
    assert result.structured_content == {"status": "success", "message": "Scheduler loop completed"}
    assert [done for done, _ in reported] == [float(number + 1) for number in range(len(reported))]
    assert (len(reported) >= 2, reported[-1][1]) == (True, "1 prompts executed")
    assert (await ask("history", agent_id=stranger))["runs"][0]["standing"] == "delivered"


@shows("SCHEDULE-LOOP")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_loop_holds_up_nobody_and_ends_when_its_client_goes(desk: Desk, stranger: str, mode: str) -> None:
    async with connected(desk, mode, agent=stranger) as other:
        begun, scope = anyio.Event(), anyio.CancelScope()

        async def told(progress: float, total: float | None, message: str | None) -> None:
            begun.set()

        async def loop() -> None:
            with scope:
                async with connected(desk, mode) as looping:
                    arguments = {"agent_id": stranger, "loop": True, "interval": 1}
                    await looping.client.call_tool("promptyoself_execute", arguments, progress_callback=told)

        with anyio.fail_after(SECONDS):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(loop)
                await begun.wait()
                assert (await other("list"))["status"] == "success"
                scope.cancel()
            await ended(desk, stranger)


async def ended(desk: Desk, agent: str) -> None:
    """Wait until the journal has the call, which it gets when the call is over."""
    async with open_app(settings_with(FRONTDESK_DATA=desk.data)) as app:
        while "promptyoself_execute" not in [
            row.action for _, row in await app.journal.read(JournalQuery(agent_id=agent))
        ]:
            await anyio.lowlevel.checkpoint()


async def test_an_agent_that_calls_for_itself_is_answered_at_once_and_prompted_afterwards(
    desk: Desk, stranger: str
) -> None:
    async with connected(desk, agent=stranger) as itself:
        number = (await itself("schedule_time", prompt="Ping me once", time=soon(seconds=1)))["id"]
        with anyio.fail_after(SECONDS):
            while not (told := await itself("execute"))["executed"]:
                assert told == {"status": "success", "executed": [], "message": "0 prompts executed"}
            [one] = told["executed"]
            while not (await itself("history", schedule_id=number, standing="delivered"))["runs"]:
                await anyio.lowlevel.checkpoint()
    assert told["message"].startswith("0 prompts executed; 1 handed to the worker")
    assert set(one) == {"id", "agent_id", "delivered", "error", "next_run", "delivery_id"}
    assert (one["id"], one["agent_id"], one["delivered"]) == (number, stranger, False)
    assert "when your present turn has ended" in one["error"]


async def test_history_comes_in_pages_that_lose_nothing(desk: Desk, stranger: str, ask: Asking) -> None:
    at = soon(seconds=1)
    for _ in range(3):
        await ask("schedule_time", agent_id=stranger, prompt="All at once", time=at)
    ran: set[str] = set()
    while len(ran) < 3:
        ran |= {one["delivery_id"] for one in await executed(ask, stranger)}
    async with connected(desk, agent=stranger) as itself:
        first = await itself("history", limit=2)
        second = await itself("history", limit=2, before=first["next"])
    assert (first["count"], second["count"], "next" in second) == (2, 1, False)
    assert {run["delivery_id"] for run in (*first["runs"], *second["runs"])} == ran


@shows("SCHEDULE-SELF")
async def test_a_desk_delivers_by_itself_what_comes_due(tmp_path: Path) -> None:
    with open_desk(tmp_path / "data", FRONTDESK_SCHEDULE_SHORTEST="1") as working:
        agent = await created(working, "Ada")
        async with connected(working, agent=agent) as ask:
            assert (await ask("executor_status"))["running"] is True
            number = (await ask("schedule_time", prompt="Ping me", time="in 1 second"))["id"]
            with anyio.fail_after(SECONDS):
                while not (runs := (await ask("history", schedule_id=number, standing="delivered"))["runs"]):
                    await anyio.lowlevel.checkpoint()
        assert runs[0]["answer"]
