"""`promptyoself_execute`, and what is told afterwards of what it did."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest

from frontdesk.app import open_app
from frontdesk.journal.store import JournalQuery
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.desk import Desk, open_desk
from tests.surfaces.schedule.conftest import SECONDS, Asking, connected, created, soon, utc

pytestmark = pytest.mark.anyio
DELIVERED = {
    *("id", "agent_id", "delivered", "next_run", "repetition_count", "max_repetitions", "completed", "delivery_id"),
}


async def executed(ask: Asking, agent: str) -> list[dict[str, Any]]:
    """What was run for an agent, as soon as something is due."""
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
