"""What became of runs, page by page, and of answers that went on to a webhook."""

import pytest

from frontdesk.errors import Invalid
from frontdesk.schedules.model import SECOND, WebhookStatus, from_us, now_us
from frontdesk.schedules.requests import ListRuns
from frontdesk.schedules.webhook_store import NewWebhookCall, WebhookStore, add_webhook_calls
from tests.stores.schedule_service.conftest import Installation, agent
from tests.support.scheduling import OPERATOR

pytestmark = pytest.mark.anyio


async def pages(installation: Installation, limit: int) -> list[str]:
    """The ids of all runs, gone through page by page."""
    found: list[str] = []
    before: str | None = None
    while True:
        listed = await installation.schedules.queries.history(OPERATOR, ListRuns(before=before, limit=limit))
        assert len(listed.runs) == limit or listed.next is None
        found += [run.id for run in listed.runs]
        if listed.next is None:
            return found
        before = listed.next


async def test_runs_that_were_due_at_one_moment_are_all_told_on_some_page(installation: Installation) -> None:
    due = now_us() - 10 * SECOND
    for at in (due, due, due, due, due + SECOND, due - SECOND):
        await installation.put(installation.ada, due_us=at)
    while await installation.schedules.executor.run_due(OPERATOR):
        pass
    runs = (await installation.schedules.queries.history(OPERATOR)).runs
    assert len(runs) == 6
    assert [run.intended_us for run in runs] == sorted((run.intended_us for run in runs), reverse=True)
    for limit in (1, 2, 3, 4, 6, 7):
        assert await pages(installation, limit) == [run.id for run in runs]
    since = (await installation.schedules.queries.history(OPERATOR, ListRuns(before=from_us(due).isoformat()))).runs
    assert [run.id for run in since] == [runs[-1].id]


@pytest.mark.parametrize("before", ["yesterday", "2026-03-04T12:00:00", "17.", "17", ".run-1-1", "17.run 1"])
async def test_a_place_in_the_history_that_is_none_is_told(installation: Installation, before: str) -> None:
    with pytest.raises(Invalid, match="`next` of the page before"):
        await installation.schedules.queries.history(OPERATOR, ListRuns(before=before))


async def test_an_answer_that_its_webhook_never_took_is_told_with_its_run(installation: Installation) -> None:
    await installation.put(installation.ada, due_us=now_us() - SECOND)
    (done,) = await installation.schedules.executor.run_due(OPERATOR)
    (run,) = (await installation.schedules.queries.history(agent(installation.ada))).runs
    assert run.forwarded is None
    forwards, now = WebhookStore(installation.app.database), now_us()
    new = [NewWebhookCall(done.delivery_id, "https://example.com/hook/secret", "{}")]
    await installation.app.database.write(lambda connection: add_webhook_calls(connection, new, now), small=True)
    (run,) = (await installation.schedules.queries.history(agent(installation.ada))).runs
    assert run.forwarded == WebhookStatus("waiting", 0)
    (due,) = await forwards.claim(1, now, now + SECOND)
    await forwards.failed(due, "example.com answered 410", None)
    (run,) = (await installation.schedules.queries.history(agent(installation.ada))).runs
    assert run.forwarded == WebhookStatus("dead", 1, "example.com answered 410")
