"""Tests notifications: in this process, to other processes on the same file, and between machines on PostgreSQL."""

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
from tests.stores.schedules.conftest import NOW, Lab
from tests.support.postgres import Postgres

PATIENCE = 30


class Listener:
    """The received notifications."""

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
async def listening(notifier: WakeupNotifier, listener: Listener) -> AsyncGenerator[None]:
    async with anyio.create_task_group() as tasks:
        with notifier.subscribed(listener):
            tasks.start_soon(notifier.run)
            yield
            tasks.cancel_scope.cancel()


@pytest.fixture
def place() -> Iterator[Path]:
    """The folder of the sockets; a socket's path must be short, so it is not pytest's."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


async def test_a_notifier_tells_its_own_process_what_comes_soon(lab: Lab) -> None:
    listener = Listener()
    with lab.notifier.subscribed(listener):
        await lab.add(at_us=NOW + SOON_US + 1)
        assert listener.heard == []
        await lab.add(at_us=NOW + 5)
        assert listener.heard == [NOW + 5]
    await lab.add(at_us=NOW + 6)
    assert listener.heard == [NOW + 5]


async def test_whatever_makes_a_prompt_due_notifies(lab: Lab) -> None:
    schedule = await lab.add()
    [claimed] = await lab.claim()
    listener = Listener()
    with lab.notifier.subscribed(listener):
        await lab.schedules.pause(schedule, NOW)
        assert listener.heard == []
        await lab.schedules.run_now(schedule, NOW + 1)
        await lab.schedules.cancel(schedule, NOW + 2)
        assert listener.heard == [NOW + 1, NOW + 2]
    assert claimed.schedule_id == schedule


async def test_a_notifier_tells_other_processes_on_the_same_database(settings: Settings) -> None:
    here, there = await Database.open(settings), await Database.open(settings)
    notifier, listener, other_listener = WakeupNotifier(there), Listener(), Listener()
    # A third listener is no problem.
    third = WakeupNotifier(there)
    async with listening(notifier, listener), listening(third, other_listener):
        lab, number = Lab(here), 0
        # A process that is not listening yet receives nothing, and would poll by itself.
        with anyio.fail_after(PATIENCE):
            while not (set(listener.heard) - {0} and set(other_listener.heard) - {0}):
                number += 1
                await lab.add(at_us=NOW + number)
                await anyio.sleep(0.01)
    assert {*listener.heard, *other_listener.heard} <= {0, *range(NOW + 1, NOW + number + 1)}, (
        "and nothing but what was added"
    )
    await here.close()
    await there.close()


async def test_a_notifier_on_postgresql_works_again_after_its_connection_was_lost(
    postgres: Postgres, tmp_path: Path
) -> None:
    url = postgres.create_database()
    database = await Database.open(settings_with(FRONTDESK_DATA=tmp_path, FRONTDESK_DATABASE_URL=url))
    lab, listener = Lab(database), Listener()
    async with listening(WakeupNotifier(database), listener):
        await listener.hears(0)
        listener.heard.clear()
        async with database.transaction() as connection:
            ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'"
            await connection.execute(text(ended))
        await listener.hears(0)
        await lab.add(at_us=NOW + 7)
        await listener.hears(NOW + 7)
    assert {*listener.heard} == {0, NOW + 7}
    await database.close()


async def test_a_worker_on_postgresql_goes_on_whatever_is_said_on_its_channel(
    postgres: Postgres, tmp_path: Path
) -> None:
    url = postgres.create_database()
    database = await Database.open(settings_with(FRONTDESK_DATA=tmp_path, FRONTDESK_DATABASE_URL=url))
    lab, listener = Lab(database), Listener()
    async with listening(WakeupNotifier(database), listener):
        await listener.hears(0)
        listener.heard.clear()
        async with database.transaction() as connection:
            for payload in ("x", "", "9" * 5000):
                await connection.execute(
                    text("SELECT pg_notify(:channel, :said)"), {"channel": WAKEUP_CHANNEL, "said": payload}
                )
        await lab.add(at_us=NOW + 7)
        await listener.hears(NOW + 7)
    assert listener.heard == [NOW + 7], "the connection was kept"
    await database.close()


KNOCK = """
import sys
from pathlib import Path
from frontdesk.schedules.wakeup import SocketNotifier
SocketNotifier(sys.argv[1], Path(sys.argv[2])).send(42)
"""


async def test_another_process_notifies_through_the_socket(place: Path) -> None:
    file, listener = place / "desk.db", Listener()
    socket_notifier = SocketNotifier(str(file), place)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(socket_notifier.listen, listener)
        with anyio.fail_after(PATIENCE):
            while not listener.heard:
                command = [sys.executable, "-c", KNOCK, str(file), str(place)]
                await anyio.run_process(command, stderr=subprocess.STDOUT)
        tasks.cancel_scope.cancel()
    assert set(listener.heard) == {42}


async def test_a_socket_that_a_killed_process_left_is_removed(place: Path) -> None:
    file, listener = str(place / "desk.db"), Listener()
    left = SocketNotifier(file, place)._open()
    [left_socket] = SocketNotifier(file, place).folder.iterdir()
    left.close()
    SocketNotifier(file, place).send(1)
    assert not left_socket.exists()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(SocketNotifier(file, place).listen, listener)
        await anyio.wait_all_tasks_blocked()
        SocketNotifier(file, place).send(2)
        await listener.hears(2)
        tasks.cancel_scope.cancel()
    assert not SocketNotifier(file, place).folder.exists(), "the last to leave takes the folder away"


async def test_a_folder_that_others_can_write_to_gets_no_socket(place: Path) -> None:
    socket_notifier = SocketNotifier(str(place / "desk.db"), place)
    socket_notifier.folder.mkdir(parents=True)
    socket_notifier.folder.parent.chmod(0o700)
    socket_notifier.folder.chmod(0o777)
    with pytest.raises(PermissionError):
        socket_notifier._open()
    socket_notifier.send(1)


async def test_where_no_socket_can_be_made_work_goes_on(place: Path) -> None:
    listener = Listener()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(SocketNotifier(str(place / "desk.db"), place / ("x" * 200)).listen, listener)
        await anyio.wait_all_tasks_blocked()
        SocketNotifier(str(place / "desk.db"), place / ("x" * 200)).send(1)
        tasks.cancel_scope.cancel()
    assert listener.heard == []
