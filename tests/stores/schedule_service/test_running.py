"""The worker in the installation: started with the server where settings say so, drained before the host closes."""

from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from frontdesk.agents.host import NewAgent
from frontdesk.app import App, open_app, running, running_worker
from frontdesk.schedules.model import RunRecord, RunStatus
from frontdesk.schedules.requests import ListRuns, NewSchedule
from frontdesk.settings import Settings
from tests.conftest import settings_with
from tests.support.scheduling import OPERATOR

pytestmark = pytest.mark.anyio
SECONDS = 30


async def told(app: App, enough: Callable[[list[RunRecord]], bool]) -> list[RunRecord]:
    """The history, once it shows what is waited for."""
    with anyio.fail_after(SECONDS):
        while True:
            past = list((await app.schedules.queries.history(OPERATOR, ListRuns())).runs)
            if enough(past):
                return past
            await anyio.sleep(0.02)


async def due_soon(app: App, prompt: str = "Ping", times: int = 1) -> str:
    agent = await app.host.create(NewAgent("Ada"))
    asked = NewSchedule(prompt, agent.id, every="1s", max_repetitions=1)
    for _ in range(times):
        await app.schedules.add(OPERATOR, asked)
    return agent.id


async def test_a_running_server_delivers_what_is_due(settings: Settings) -> None:
    async with open_app(settings) as app, running(app):
        await due_soon(app)
        (past,) = await told(app, lambda past: bool(past) and past[0].standing is RunStatus.DELIVERED)
        assert past.answer
        assert app.worker.status().running
        assert app.worker.status().delivered == 1
    assert not app.worker.status().running


async def test_a_process_for_deliveries_alone_delivers_too(settings: Settings) -> None:
    async with open_app(settings) as app:
        await due_soon(app)
        async with running_worker(app):
            await told(app, lambda past: bool(past) and past[0].standing is RunStatus.DELIVERED)
        assert app.worker.status().delivered == 1


@pytest.mark.parametrize("switch", ["FRONTDESK_WORKER", "PROMPTYOSELF_EXECUTOR_AUTOSTART"])
async def test_a_server_without_a_worker_leaves_what_is_due_to_others(tmp_path: Path, switch: str) -> None:
    async with open_app(settings_with(FRONTDESK_DATA=tmp_path / "data", **{switch: False})) as app, running(app):
        assert not app.worker.status().running
        assert not (await app.schedules.executor.state(OPERATOR)).autostart
        await due_soon(app)
        async with open_app(settings_with(FRONTDESK_DATA=tmp_path / "data")) as other, running_worker(other):
            await told(other, lambda past: bool(past) and past[0].standing is RunStatus.DELIVERED)


async def test_what_is_under_way_when_the_server_stops_is_let_end(tmp_path: Path) -> None:
    async with open_app(settings_with(FRONTDESK_DATA=tmp_path / "data")) as app:
        async with running(app):
            await due_soon(app, '@@[{"text": "Slowly but surely", "delay": 1}]@@')
            await told(app, lambda past: bool(past) and past[0].standing is RunStatus.RUNNING)
        (past,) = (await app.schedules.queries.history(OPERATOR)).runs
        assert (past.standing, past.answer) == (RunStatus.DELIVERED, "Slowly but surely")
