"""The bell: heard in this process, by other processes on the same file, and across machines on PostgreSQL."""

import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from sqlalchemy import text

from frontdesk.db.engine import Database
from frontdesk.schedules.wakeup import SOON_US, WAKEUP_CHANNEL, SocketNotifier, WakeupNotifier
from frontdesk.settings import Settings
from tests.conftest import settings_with
from tests.stores.schedule.lab import NOW, Lab
from tests.support.postgres import Postgres

pytestmark = pytest.mark.anyio
PATIENCE = 30


class Ear:
    """What was heard."""

    def __init__(self) -> None:
        self.heard: list[int] = []
        self._changed = anyio.Event()

    def __call__(self, due_us: int) -> None:
        self.heard.append(due_us)
        self._changed.set()
        self._changed = anyio.Event()

    async def hears(self, due_us: int) -> None:
        with anyio.fail_after(PATIENCE):
            while due_us not in self.heard:
                await self._changed.wait()


@asynccontextmanager
async def listening(bell: WakeupNotifier, ear: Ear) -> AsyncGenerator[None]:
    async with anyio.create_task_group() as tasks:
        with bell.subscribed(ear):
            tasks.start_soon(bell.run)
            yield
            tasks.cancel_scope.cancel()


@pytest.fixture
def place() -> Iterator[Path]:
    """Where doors are made; a socket's path must be short, so it is not pytest's."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


async def test_a_bell_is_heard_in_its_own_process_for_what_comes_soon(lab: Lab) -> None:
    ear = Ear()
    with lab.bell.subscribed(ear):
        await lab.add(at_us=NOW + SOON_US + 1)
        assert ear.heard == []
        await lab.add(at_us=NOW + 5)
        assert ear.heard == [NOW + 5]
    await lab.add(at_us=NOW + 6)
    assert ear.heard == [NOW + 5]


async def test_whatever_makes_a_prompt_due_rings(lab: Lab) -> None:
    schedule = await lab.add()
    [claimed] = await lab.claim()
    ear = Ear()
    with lab.bell.subscribed(ear):
        await lab.schedules.pause(schedule, NOW)
        assert ear.heard == []
        await lab.schedules.run_now(schedule, NOW + 1)
        await lab.schedules.cancel(schedule, NOW + 2)
        assert ear.heard == [NOW + 1, NOW + 2]
    assert claimed.schedule_id == schedule


async def test_a_bell_is_heard_by_others_on_the_same_database(settings: Settings) -> None:
    here, there = await Database.open(settings), await Database.open(settings)
    bell, ear, other_ear = WakeupNotifier(there), Ear(), Ear()
    # A third that listens as well is not in the way.
    third = WakeupNotifier(there)
    async with listening(bell, ear), listening(third, other_ear):
        lab, number = Lab(here), 0
        # One that is not listening yet hears nothing, and would look by itself.
        with anyio.fail_after(PATIENCE):
            while not (set(ear.heard) - {0} and set(other_ear.heard) - {0}):
                number += 1
                await lab.add(at_us=NOW + number)
                await anyio.sleep(0.01)
    assert {*ear.heard, *other_ear.heard} <= {0, *range(NOW + 1, NOW + number + 1)}, "and nothing but what was added"
    await here.close()
    await there.close()


async def test_a_bell_on_postgresql_is_heard_again_after_its_connection_was_lost(
    postgres: Postgres, tmp_path: Path
) -> None:
    url = postgres.create_database()
    database = await Database.open(settings_with(FRONTDESK_DATA=tmp_path, FRONTDESK_DATABASE_URL=url))
    lab, ear = Lab(database), Ear()
    async with listening(WakeupNotifier(database), ear):
        await ear.hears(0)
        ear.heard.clear()
        async with database.transaction() as connection:
            ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'"
            await connection.execute(text(ended))
        await ear.hears(0)
        await lab.add(at_us=NOW + 7)
        await ear.hears(NOW + 7)
    assert {*ear.heard} == {0, NOW + 7}
    await database.close()


async def test_a_worker_on_postgresql_goes_on_whatever_is_said_on_its_channel(
    postgres: Postgres, tmp_path: Path
) -> None:
    url = postgres.create_database()
    database = await Database.open(settings_with(FRONTDESK_DATA=tmp_path, FRONTDESK_DATABASE_URL=url))
    lab, ear = Lab(database), Ear()
    async with listening(WakeupNotifier(database), ear):
        await ear.hears(0)
        ear.heard.clear()
        async with database.transaction() as connection:
            for payload in ("x", "", "9" * 5000):
                await connection.execute(
                    text("SELECT pg_notify(:channel, :said)"), {"channel": WAKEUP_CHANNEL, "said": payload}
                )
        await lab.add(at_us=NOW + 7)
        await ear.hears(NOW + 7)
    assert ear.heard == [NOW + 7], "the connection was kept"
    await database.close()


KNOCK = """
import sys
from pathlib import Path
from frontdesk.schedules.wakeup import SocketNotifier
SocketNotifier(sys.argv[1], Path(sys.argv[2])).send(42)
"""


async def test_another_process_knocks_and_is_heard(place: Path) -> None:
    file, ear = place / "desk.db", Ear()
    knocker = SocketNotifier(str(file), place)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(knocker.listen, ear)
        with anyio.fail_after(PATIENCE):
            while not ear.heard:
                command = [sys.executable, "-c", KNOCK, str(file), str(place)]
                await anyio.run_process(command, stderr=subprocess.STDOUT)
        tasks.cancel_scope.cancel()
    assert set(ear.heard) == {42}


async def test_a_door_that_a_killed_process_left_is_cleared_away(place: Path) -> None:
    file, ear = str(place / "desk.db"), Ear()
    left = SocketNotifier(file, place)._open()
    [door] = SocketNotifier(file, place).folder.iterdir()
    left.close()
    SocketNotifier(file, place).send(1)
    assert not door.exists()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(SocketNotifier(file, place).listen, ear)
        await anyio.wait_all_tasks_blocked()
        SocketNotifier(file, place).send(2)
        await ear.hears(2)
        tasks.cancel_scope.cancel()
    assert not SocketNotifier(file, place).folder.exists(), "the last to leave takes the folder away"


async def test_a_folder_that_others_can_write_to_gets_no_door(place: Path) -> None:
    knocker = SocketNotifier(str(place / "desk.db"), place)
    knocker.folder.mkdir(parents=True)
    knocker.folder.parent.chmod(0o700)
    knocker.folder.chmod(0o777)
    with pytest.raises(PermissionError):
        knocker._open()
    knocker.send(1)


async def test_where_no_door_can_be_made_nobody_is_in_the_way(place: Path) -> None:
    ear = Ear()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(SocketNotifier(str(place / "desk.db"), place / ("x" * 200)).listen, ear)
        await anyio.wait_all_tasks_blocked()
        SocketNotifier(str(place / "desk.db"), place / ("x" * 200)).send(1)
        tasks.cancel_scope.cancel()
    assert ear.heard == []
