"""A PromptYoSelf file taken over into either database."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from frontdesk.errors import Denied, Invalid
from frontdesk.schedules.requests import ListSchedules, ScheduleChange
from tests.requirements import shows
from tests.stores.schedule_service.conftest import Installation, agent
from tests.support.promptyoself import reminder, schedule, write
from tests.support.scheduling import OPERATOR

pytestmark = pytest.mark.anyio


def soon() -> str:
    return f"{datetime.now(UTC) + timedelta(hours=1):%Y-%m-%d %H:%M:%S}"


@shows("SCHEDULE-IMPORT")
async def test_a_file_is_taken_over_once_however_often_it_is_read(installation: Installation, tmp_path: Path) -> None:
    good = [
        reminder(),
        reminder(
            schedule_type="interval", schedule_value="30m", next_run=soon(), max_repetitions=5, repetition_count=2
        ),
        reminder(schedule_type="once", schedule_value=soon(), next_run=soon()),
    ]
    file = write(tmp_path / "old.db", [*good, reminder(active=0)], [schedule(prompt_text="From before")])
    first = await installation.schedules.importer.import_file(OPERATOR, file)
    assert (len(first.made), first.known) == (4, 0)
    assert first.left_out == [("unified_reminders 4", "it is not active any more")]
    found = (await installation.schedules.queries.list(OPERATOR)).schedules
    assert [one.id for one in found] == list(first.made)
    assert [(one.fired, one.what.max_repetitions) for one in found] == [(0, None), (2, 5), (0, None), (0, None)]
    await installation.schedules.cancel(OPERATOR, first.made[0])

    moved = file.rename(tmp_path / "moved.db")
    again = await installation.schedules.importer.import_file(OPERATOR, moved)
    assert (list(again.made), again.known) == ([], 4)
    everything = await installation.schedules.queries.list(OPERATOR, ListSchedules(include_cancelled=True))
    assert len(everything.schedules) == 4


@shows("SCHEDULE-IMPORT")
async def test_a_damaged_file_changes_nothing(installation: Installation, tmp_path: Path) -> None:
    file = write(tmp_path / "old.db", [reminder(message="Long " * 200) for _ in range(100)])
    content = bytearray(file.read_bytes())
    content[len(content) // 2 :] = b"\xff" * (len(content) - len(content) // 2)
    file.write_bytes(content)
    with pytest.raises(Invalid, match="damaged"):
        await installation.schedules.importer.import_file(OPERATOR, file)
    assert (await installation.schedules.queries.list(OPERATOR)).schedules == []


async def test_only_an_admin_takes_files_over(installation: Installation, tmp_path: Path) -> None:
    with pytest.raises(Denied, match="An import"):
        await installation.schedules.importer.import_file(
            agent(installation.ada), write(tmp_path / "old.db", [reminder()])
        )


async def test_a_count_that_was_kept_over_there_goes_on_here(installation: Installation, tmp_path: Path) -> None:
    hourly = {"schedule_type": "interval", "schedule_value": "1h", "agent_id": installation.ada}
    rows = [
        reminder(**hourly, next_run=soon(), max_repetitions=4, repetition_count=3),
        reminder(**hourly, next_run=soon(), repetition_count=7),
    ]
    done = await installation.schedules.importer.import_file(OPERATOR, write(tmp_path / "old.db", rows))
    last, endless = done.made
    assert done.warnings == []
    assert len((await installation.schedules.queries.preview(OPERATOR, last)).times) == 1
    assert [(await installation.schedules.queries.get(OPERATOR, one)).fired for one in done.made] == [3, 7]
    run = await installation.schedules.update(OPERATOR, endless, ScheduleChange(max_repetitions=8))
    assert (run.schedule.fired, run.schedule.what.max_repetitions) == (7, 8)


async def test_agents_that_the_host_does_not_know_are_named(installation: Installation, tmp_path: Path) -> None:
    rows = [reminder(agent_id=installation.ada), reminder(), reminder(message="Another")]
    done = await installation.schedules.importer.import_file(OPERATOR, write(tmp_path / "old.db", rows))
    assert len(done.made) == 3
    (warning,) = done.warnings
    assert warning.startswith("Agent 'agent-1', of 2 of these, is not known to the agent host")
