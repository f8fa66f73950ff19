"""kill -9 of workers at random moments: the whole history holds, on a shared SQLite file and on PostgreSQL."""

from pathlib import Path

import pytest

from frontdesk.settings import Settings
from tests.requirements import shows
from tests.support.schedule.history import History
from tests.support.schedule.house import open_installation
from tests.support.schedule.processes import Nursery
from tests.support.schedule.storm import Storm, blow

pytestmark = pytest.mark.anyio
GALE = Storm(seed=5, kills=30, workers=4, repetitions=4)
HURRICANE = Storm(seed=55, kills=200, workers=4, repetitions=30)


async def _weathered(storm: Storm, settings: Settings, nursery: Nursery, folder: Path) -> History:
    async with open_installation(folder, settings, nursery, changes=("quick retries",)) as installation:
        await blow(installation, storm)
        return installation.check()


@shows("SCHEDULE-KILL")
async def test_workers_killed_at_random_lose_nothing_and_repeat_only_what_they_could_not_tell(
    settings: Settings, nursery: Nursery, tmp_path: Path
) -> None:
    history = await _weathered(GALE, settings, nursery, tmp_path)
    assert len(history.diary.lost) == GALE.kills
    assert len({one.worker for one in history.arrivals}) > GALE.workers


@pytest.mark.slow
@shows("SCHEDULE-KILL")
async def test_two_hundred_kills(settings: Settings, nursery: Nursery, tmp_path: Path) -> None:
    history = await _weathered(HURRICANE, settings, nursery, tmp_path)
    assert len(history.diary.lost) == HURRICANE.kills
