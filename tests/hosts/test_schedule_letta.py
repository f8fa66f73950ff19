"""Scheduled prompts to a Letta server that is busy, slow, failing or cut off: what is told, retried and left alone."""

from collections.abc import AsyncGenerator, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest

from frontdesk.agents.host import AgentHost
from frontdesk.schedules.model import DeliveryFailed
from tests.conftest import settings_with
from tests.hosts.lab import SECONDS, opened
from tests.hosts.test_schedule_delivery import again, deliver, refused, run_of
from tests.requirements import shows
from tests.support.moody_letta import AGENT, RUN, Mood, MoodyLetta, a_run, open_moody_letta
from tests.support.waiting import until

pytestmark = pytest.mark.anyio


@pytest.fixture
def letta() -> Iterator[MoodyLetta]:
    with open_moody_letta() as server:
        yield server


@pytest.fixture
async def host(tmp_path: Path, letta: MoodyLetta) -> AsyncGenerator[AgentHost]:
    async with opened(settings_with(FRONTDESK_DATA=tmp_path / "data", LETTA_BASE_URL=letta.url)) as opened_host:
        yield opened_host


@shows("SCHEDULE-DELIVERY")
async def test_letta_is_told_whose_run_it_is_and_under_which_id(host: AgentHost, letta: MoodyLetta) -> None:
    run = run_of(AGENT, "Report.")
    assert await deliver(host, run) == "All is well."
    [asked], [headers] = letta.asked, letta.headers
    assert asked["messages"][0]["otid"] == run.id
    assert asked["messages"][0]["content"].endswith("\n\nReport.")
    assert (headers["x-agent-id"], headers["x-request-id"]) == (AGENT, run.id)


@shows("SCHEDULE-DELIVERY")
async def test_a_busy_agent_is_waited_for_and_what_it_does_is_left_alone(host: AgentHost, letta: MoodyLetta) -> None:
    letta.moods, letta.runs = [(409, {"detail": "The conversation is busy"}, {})], [[], [a_run(9)]]
    error = await refused(host, run_of(AGENT, "Report."))
    assert (error.permanent, error.counted, error.retry_after) == (False, False, 2.0)
    assert letta.cancelled == [], "what runs there is somebody else's"


async def test_an_agent_that_came_to_wait_for_approval_meanwhile_is_asked_again_later(
    host: AgentHost, letta: MoodyLetta
) -> None:
    letta.moods = [(409, {"detail": {"code": "PENDING_APPROVAL", "message": "waits"}}, {})]
    letta.runs = [[], [a_run(9)]]
    error = await refused(host, run_of(AGENT, "Report."))
    assert (error.permanent, error.counted) == (False, False)
    assert letta.cancelled == []


@shows("SCHEDULE-DELIVERY")
@pytest.mark.parametrize("status", [429, 503])
async def test_a_wait_that_letta_asks_for_is_kept(host: AgentHost, letta: MoodyLetta, status: int) -> None:
    letta.moods = [(status, {"detail": "Slow down"}, {"Retry-After": "7"})]
    error = await refused(host, run_of(AGENT, "Report."))
    assert (error.permanent, error.counted, error.retry_after) == (False, True, 7.0)


@shows("SCHEDULE-DELIVERY")
async def test_a_failing_server_counts_and_is_tried_again(host: AgentHost, letta: MoodyLetta) -> None:
    letta.moods = [(500, {"detail": "A database error occurred."}, {})]
    run = run_of(AGENT, "Report.")
    error = await refused(host, run)
    assert (error.permanent, error.counted, error.in_doubt) == (False, True, True)
    assert await deliver(host, again(run)) == "All is well."
    assert [asked["messages"][0]["otid"] for asked in letta.asked] == [run.id, run.id]


async def test_what_letta_will_never_take_is_not_sent_again(host: AgentHost, letta: MoodyLetta) -> None:
    letta.moods = [(400, {"detail": "The context window is exceeded"}, {})]
    assert (await refused(host, run_of(AGENT, "Report."))).permanent


@shows("SCHEDULE-ONCE")
@pytest.mark.parametrize("mood", [Mood.CUT, Mood.DROPS])
async def test_an_answer_that_was_cut_off_is_looked_up_and_nothing_is_said_twice(
    host: AgentHost, letta: MoodyLetta, mood: Mood
) -> None:
    letta.moods = [mood]
    run = run_of(AGENT, "Report.")
    error = await refused(host, run)
    assert (error.permanent, error.counted, error.in_doubt) == (False, True, True)
    assert letta.cancelled == [{"run_ids": [RUN]}], "the rest of it would be heard by nobody"
    assert await deliver(host, again(run)) == "All is well."
    assert len(letta.asked) == 1


@shows("SCHEDULE-DELIVERY")
async def test_a_server_that_hangs_is_left_when_the_worker_stops_and_its_run_is_stopped(
    host: AgentHost, letta: MoodyLetta
) -> None:
    letta.moods = [Mood.SILENT]
    run = run_of(AGENT, "Report.")
    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(deliver, host, run)
            await until(lambda: len(letta.asked) == 1)
            tasks.cancel_scope.cancel()
    assert letta.cancelled, "the turn is left tidy"
    assert await deliver(host, again(run)) == "All is well."


@shows("SCHEDULE-DELIVERY")
async def test_a_run_comes_after_what_was_begun_elsewhere(host: AgentHost, letta: MoodyLetta) -> None:
    letta.runs = [[a_run(1)], [a_run(1)], [a_run(1), a_run(2)], [a_run(2)]]
    assert await deliver(host, run_of(AGENT, "Report.")) == "All is well."
    assert letta.looks == 4, "the second began while we waited, and might be followed by a third"


async def test_a_run_that_a_dead_server_left_behind_is_not_waited_for(host: AgentHost, letta: MoodyLetta) -> None:
    letta.runs = [[a_run(1, datetime.now(UTC) - timedelta(hours=1))]]
    assert await deliver(host, run_of(AGENT, "Report.")) == "All is well."
    assert letta.looks == 1


@shows("SCHEDULE-ONCE")
async def test_a_run_in_doubt_is_looked_for_once_it_has_ended(host: AgentHost, letta: MoodyLetta) -> None:
    run = run_of(AGENT, "Report.")
    await deliver(host, run)
    # What a crash left: a request that had only just arrived, and so is not among the runs yet.
    said, letta.messages = letta.messages, []
    letta.runs = [[], [], [a_run(1)], [a_run(1)], []]
    waits = again(run)
    outcome: list[str | DeliveryFailed | None] = []

    async def wait() -> None:
        outcome.append(await deliver(host, waits))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await until(lambda: letta.looks >= 4)
        letta.messages = said
    assert outcome == ["All is well."]
    assert len(letta.asked) == 1


async def test_nobody_is_there_at_all(tmp_path: Path) -> None:
    nobody = settings_with(FRONTDESK_DATA=tmp_path / "data", LETTA_BASE_URL="http://127.0.0.1:9")
    async with opened(nobody) as host:
        error = await refused(host, replace(run_of(AGENT, "Report."), in_doubt=True))
    assert (error.permanent, error.counted, error.in_doubt) == (False, True, True)
