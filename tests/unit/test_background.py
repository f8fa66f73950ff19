"""Work behind the scenes: what goes wrong with it ends nothing else, and is told."""

from itertools import islice

import anyio
import pytest
import structlog
from anyio.abc import TaskGroup
from structlog.testing import capture_logs

from frontdesk.background import BackgroundJob, background_group, retry_delays
from frontdesk.errors import Unavailable, Unstorable

pytestmark = pytest.mark.anyio
CHORE = BackgroundJob(structlog.get_logger("test"), "it_waits", "it_failed")
PATIENCE = 10


class Work:
    """Raises these one by one, and then goes well."""

    def __init__(self, *errors: Exception) -> None:
        self._errors = list(errors)
        self.done = 0
        self.well = anyio.Event()

    async def __call__(self) -> None:
        self.done += 1
        if self._errors:
            raise self._errors.pop(0)
        self.well.set()


async def test_what_is_known_to_happen_is_a_warning_and_what_is_not_comes_with_its_traceback() -> None:
    work = Work(Unavailable("the database is away"), Unstorable("a value"), ZeroDivisionError())
    with capture_logs() as logged:
        assert [await CHORE.attempt(work, part="one") for _ in range(4)] == [False, False, False, True]
    assert [(line["event"], line["log_level"], line["part"]) for line in logged] == [
        ("it_waits", "warning", "one"),
        ("it_waits", "warning", "one"),
        ("it_failed", "error", "one"),
    ]
    assert logged[0]["error"] == "the database is away"
    assert logged[2]["exc_info"]


async def test_a_stop_that_looks_like_trouble_is_a_stop() -> None:
    async def cut_off() -> None:
        raise Unavailable("the connection was closed")

    with capture_logs() as logged, anyio.CancelScope() as scope:
        scope.cancel()
        await CHORE.attempt(cut_off)
    assert (scope.cancelled_caught, logged) == (True, [])


@pytest.mark.parametrize("at_once", [True, False])
async def test_work_is_done_again_whatever_goes_wrong_with_it(*, at_once: bool) -> None:
    work = Work(ZeroDivisionError(), Unavailable("away"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: CHORE.run_every(0.001, work, at_once=at_once))
        with anyio.fail_after(PATIENCE):
            await work.well.wait()
        tasks.cancel_scope.cancel()
    assert work.done >= 3


async def test_what_is_done_rarely_is_done_first_at_once() -> None:
    rare, later = Work(), Work()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: CHORE.run_every(3600, rare, at_once=True))
        tasks.start_soon(lambda: CHORE.run_every(3600, later))
        with anyio.fail_after(PATIENCE):
            await rare.well.wait()
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert (rare.done, later.done) == (1, 0)


async def test_what_waits_is_written_when_it_ends() -> None:
    flush = Work()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(CHORE.flush_every, 3600, flush, PATIENCE)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert flush.done == 1


async def test_a_group_hands_on_an_error_as_it_is_and_ends_what_runs_in_it() -> None:
    ended = anyio.Event()

    async def runs() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    async def fails(tasks: TaskGroup) -> None:
        tasks.start_soon(runs)
        await anyio.wait_all_tasks_blocked()
        raise Unavailable("away")

    with pytest.raises(Unavailable, match="away"):
        async with background_group() as tasks:
            await fails(tasks)
    assert ended.is_set()


def test_the_last_pause_is_kept_for_ever() -> None:
    assert list(islice(retry_delays(0.1, 0.5), 4)) == [0.1, 0.5, 0.5, 0.5]
