"""A server is killed while an agent takes a scheduled turn: the next one goes on with it, and nothing is said twice."""

from pathlib import Path

import anyio
import pytest

from frontdesk.app import App, open_app
from frontdesk.llm.events import UserText
from frontdesk.schedules.model import RunRecord, RunStatus
from frontdesk.schedules.requests import ListRuns, NewSchedule
from tests.hosts.conftest import BUILT_IN, KEY
from tests.hosts.lab import SECONDS, Lab, of_kind, script
from tests.requirements import shows
from tests.support.desk import Desk, open_desk
from tests.support.scheduling import OPERATOR
from tests.support.waiting import until

pytestmark = pytest.mark.anyio
SLOWLY = script({"text": "word " * 20, "chunk_delay": 0.05})


@shows("SCHEDULE-ONCE")
@pytest.mark.parametrize("lab", BUILT_IN, indirect=True)
async def test_a_turn_that_died_with_its_server_is_finished_by_the_next_under_the_same_id(
    lab: Lab, tmp_path: Path
) -> None:
    reach = reached(lab)
    async with open_app(lab.settings) as app:
        agent = await lab.agent(app.host)
        with open_desk(tmp_path / "data", **reach) as desk:
            added = await app.schedules.add(OPERATOR, NewSchedule(f"Report. {SLOWLY}", agent.id, time="in 2 hours"))
            run = await app.schedules.run_now(OPERATOR, added.schedule.id)
            await killed_at_work(desk, lab)
        with open_desk(tmp_path / "data", **reach):
            past = await delivered(app, added.schedule.id)
        assert past.id == run
        assert past.answer == ("word " * 20).strip()
        assert past.earlier, "the attempt that was lost is told"
        told = of_kind([one.event for one in await app.host.history(agent.id)], UserText)
        assert [run in one.text for one in told] == [True]


async def killed_at_work(desk: Desk, lab: Lab) -> None:
    """Kill a server as soon as its model has been asked."""
    asked = len(lab.models.seen)
    await until(lambda: len(lab.models.seen) > asked, SECONDS)
    await anyio.to_thread.run_sync(desk.kill)


async def delivered(app: App, schedule_id: int) -> RunRecord:
    with anyio.fail_after(SECONDS):
        while True:
            [past] = (await app.schedules.queries.history(OPERATOR, ListRuns(schedule_id=schedule_id))).runs
            if past.standing is RunStatus.DELIVERED:
                return past
            await anyio.sleep(0.05)


def reached(lab: Lab) -> dict[str, str]:
    """The settings of a server on the same data."""
    shared = lab.settings.database_url
    database = {} if shared is None else {"FRONTDESK_DATABASE_URL": shared.get_secret_value()}
    return database | {
        "FRONTDESK_MODEL": "openai:fake-1",
        "OPENAI_BASE_URL": lab.models.openai_url,
        "OPENAI_API_KEY": KEY,
    }
