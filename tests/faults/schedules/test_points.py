"""Tests kill -9 at every point of a worker between claim and settlement, one after the other."""

import re
import signal
import time
from pathlib import Path

from frontdesk.settings import Settings
from tests.requirements import shows
from tests.support.schedules.history import Lost
from tests.support.schedules.installation import Installation, once, open_installation
from tests.support.schedules.processes import Nursery

MOST_POINTS = 200


@shows("SCHEDULE-KILL")
async def test_a_worker_killed_at_any_point_from_claim_to_settlement(
    settings: Settings, nursery: Nursery, tmp_path: Path
) -> None:
    async with open_installation(tmp_path, settings, nursery) as installation:
        point = 1
        while await _dies_at(installation, point):
            # The next worker finds what this one left behind, and dies at the same point; the last one lives.
            await _dies_at(installation, point)
            point += 1
            assert point < MOST_POINTS
            if point % 4 == 0:
                await _finish(installation)
        await _finish(installation)
        history = installation.check()
        assert {row["standing"] for row in history.occurrences} == {"delivered"}
        assert len(history.occurrences) == len(installation.made)
        _check_reached(installation.said_by_all(), point)


async def _finish(installation: Installation) -> None:
    [last] = installation.start()
    await installation.until(installation.is_over)
    installation.stop(last)


async def _dies_at(installation: Installation, point: int) -> bool:
    """Whether a worker that should die at a point reached it."""
    await installation.add(once(f"agent-{len(installation.made)}", installation.clock()))
    [worker] = installation.start(orders=installation.doomed(point))
    await installation.until(lambda: worker in installation.nursery.gone or installation.is_over())
    installation.nursery.signal(worker, signal.SIGTERM)
    died = installation.nursery.ended(worker) == -signal.SIGKILL
    if died:
        installation.diary.lost.append(Lost(worker, time.monotonic_ns()))
    return died


def _check_reached(said: str, points: int) -> None:
    """The points of the kills are all the points of a delivery."""
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
