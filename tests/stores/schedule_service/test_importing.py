"""A PromptYoSelf file taken over into either database."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from frontdesk.errors import Denied, Invalid
from frontdesk.schedule.asked import Wanted
from tests.requirements import shows
from tests.stores.schedule_service.conftest import House, agent
from tests.support.promptyoself import reminder, schedule, write
from tests.support.scheduling import OPERATOR

pytestmark = pytest.mark.anyio


def soon() -> str:
    return f"{datetime.now(UTC) + timedelta(hours=1):%Y-%m-%d %H:%M:%S}"


@shows("SCHEDULE-IMPORT")
async def test_a_file_is_taken_over_once_however_often_it_is_read(house: House, tmp_path: Path) -> None:
    good = [
        reminder(),
        reminder(
            schedule_type="interval", schedule_value="30m", next_run=soon(), max_repetitions=5, repetition_count=2
        ),
        reminder(schedule_type="once", schedule_value=soon(), next_run=soon()),
    ]
    file = write(tmp_path / "old.db", [*good, reminder(active=0)], [schedule(prompt_text="From before")])
    first = await house.schedules.import_file(OPERATOR, file)
    assert (len(first.made), first.known) == (4, 0)
    assert first.left_out == [("unified_reminders 4", "it is not active any more")]
    found = (await house.schedules.list(OPERATOR)).schedules
    assert [one.id for one in found] == list(first.made)
    assert [one.what.max_repetitions for one in found] == [None, 3, None, None]
    await house.schedules.cancel(OPERATOR, first.made[0])

    moved = file.rename(tmp_path / "moved.db")
    again = await house.schedules.import_file(OPERATOR, moved)
    assert (list(again.made), again.known) == ([], 4)
    everything = await house.schedules.list(OPERATOR, Wanted(include_cancelled=True))
    assert len(everything.schedules) == 4


@shows("SCHEDULE-IMPORT")
async def test_a_damaged_file_changes_nothing(house: House, tmp_path: Path) -> None:
    file = write(tmp_path / "old.db", [reminder(message="Long " * 200) for _ in range(100)])
    content = bytearray(file.read_bytes())
    content[len(content) // 2 :] = b"\xff" * (len(content) - len(content) // 2)
    file.write_bytes(content)
    with pytest.raises(Invalid, match="damaged"):
        await house.schedules.import_file(OPERATOR, file)
    assert (await house.schedules.list(OPERATOR)).schedules == []


async def test_only_an_admin_takes_files_over(house: House, tmp_path: Path) -> None:
    with pytest.raises(Denied, match="An import"):
        await house.schedules.import_file(agent(house.ada), write(tmp_path / "old.db", [reminder()]))
