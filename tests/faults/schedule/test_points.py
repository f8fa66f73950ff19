"""kill -9 at every point of a worker's way from claim to settlement, one after the other."""

import re
import signal
import time
from pathlib import Path

import pytest

from frontdesk.settings import Settings
from tests.requirements import shows
from tests.support.schedule.history import Lost
from tests.support.schedule.house import House, open_house
from tests.support.schedule.making import once
from tests.support.schedule.processes import Nursery

pytestmark = pytest.mark.anyio
MOST_POINTS = 200


@shows("SCHEDULE-KILL")
async def test_a_worker_killed_at_any_point_from_claim_to_settlement(
    settings: Settings, nursery: Nursery, tmp_path: Path
) -> None:
    async with open_house(tmp_path, settings, nursery) as house:
        point = 1
        while await _dies_at(house, point):
            # The next one finds what this one left behind, and dies as far along; in the end somebody lives.
            await _dies_at(house, point)
            point += 1
            assert point < MOST_POINTS
            if point % 4 == 0:
                await _finish(house)
        await _finish(house)
        history = house.check()
        assert {row["standing"] for row in history.occurrences} == {"delivered"}
        assert len(history.occurrences) == len(house.made)
        _check_reached(house.said_by_all(), point)


async def _finish(house: House) -> None:
    [last] = house.start()
    await house.until(house.is_over)
    house.stop(last)


async def _dies_at(house: House, point: int) -> bool:
    """Whether a worker, told to die at a point, came that far."""
    await house.add(once(f"agent-{len(house.made)}", house.clock()))
    [worker] = house.start(orders=house.doomed(point))
    await house.until(lambda: worker in house.nursery.gone or house.is_over())
    house.nursery.signal(worker, signal.SIGTERM)
    died = house.nursery.ended(worker) == -signal.SIGKILL
    if died:
        house.diary.lost.append(Lost(worker, time.monotonic_ns()))
    return died


def _check_reached(said: str, points: int) -> None:
    """The points that were died at are those of the whole way."""
    names = re.findall(r"^point \d+: (.*)$", said, re.MULTILINE)
    assert points > 15
    for part in (
        "INSERT INTO occurrences",
        "UPDATE occurrences",
        "COMMIT",
        "deliver",
        "delivered",
        "INSERT INTO journal",
    ):
        assert any(name.startswith(part) for name in names), (part, sorted(set(names)))
