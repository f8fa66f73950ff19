"""Tests the worker on the real clock: wakes in time, keeps its limits, stops in order, and starts with the server."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from sqlalchemy import update

from frontdesk.agents.host import NewAgent
from frontdesk.agents.turns.model import LeaseOwner
from frontdesk.app import App, open_app, running, running_worker
from frontdesk.db.engine import Database
from frontdesk.db.schema import occurrences
from frontdesk.errors import Unavailable
from frontdesk.schedules.delivery_store import DeliveryStore
from frontdesk.schedules.history_store import HistoryQuery
from frontdesk.schedules.model import (
    SECOND,
    AnswerForwarding,
    DeliveryFailed,
    Occurrence,
    OwnerFilter,
    RunRecord,
    RunStatus,
    ScheduleState,
    now_us,
)
from frontdesk.schedules.requests import ListRuns, NewSchedule
from frontdesk.schedules.store import ScheduleFilter
from frontdesk.schedules.webhook_store import WebhookStore
from frontdesk.schedules.webhooks import WebhookForwarder
from frontdesk.schedules.worker import ScheduleMetrics, Worker
from frontdesk.settings import Settings
from tests.conftest import settings_with
from tests.stores.schedules.conftest import Lab, every
from tests.support.scheduling import OPERATOR
from tests.support.waiting import until

# The worker on the real clock: wakes in time, keeps its limits, stops in order, survives errors


# Far longer than anything here takes on a busy machine.
PATIENCE = 30


@dataclass
class Agents:
    """Records deliveries, and gives the answers that a test sets."""

    begun: list[Occurrence] = field(default_factory=list[Occurrence])
    ended: list[Occurrence] = field(default_factory=list[Occurrence])
    most_at_once: int = 0
    holds: Callable[[Occurrence], bool] = lambda _: False
    fails: Callable[[Occurrence], Exception | None] = lambda _: None

    def __post_init__(self) -> None:
        self.release = anyio.Event()
        self._changed = anyio.Event()

    async def deliver(self, occurrence: Occurrence) -> str | None:
        self.begun.append(occurrence)
        self.most_at_once = max(self.most_at_once, len(self.begun) - len(self.ended))
        self._tell()
        try:
            if self.holds(occurrence):
                await self.release.wait()
            if error := self.fails(occurrence):
                raise error
        finally:
            self.ended.append(occurrence)
        return f"Did {occurrence.prompt}"

    async def see(self, number: int) -> None:
        """Wait until this many have begun."""
        while len(self.begun) < number:
            await self._changed.wait()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


class CountedForwarder(WebhookForwarder):
    """Counts how often the worker calls it, and sends nothing."""

    woken = 0

    def wake(self) -> None:
        self.woken += 1

    async def run(self) -> None:
        await anyio.sleep_forever()


@pytest.fixture
async def real(database: Database) -> AsyncGenerator[Lab]:
    with anyio.fail_after(PATIENCE * 2):
        yield Lab(database, now_us())


@asynccontextmanager
async def at_work(*workers: Worker) -> AsyncGenerator[None]:
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            for worker in workers:
                tasks.start_soon(worker.run)
            yield
            tasks.cancel_scope.cancel()


def worker(lab: Lab, agents: Agents, **more: Any) -> Worker:
    return Worker(lab.database, agents.deliver, lab.notifier, **more)


async def settled(lab: Lab, number: int, *standings: RunStatus) -> Sequence[str]:
    """The statuses, once this many runs have one of these."""
    while True:
        found = [row["standing"] for row in await lab.rows()]
        if sum(one in (standings or (RunStatus.DELIVERED,)) for one in found) >= number:
            return found
        await anyio.sleep(0.01)


async def leased(lab: Lab, until_us: int) -> None:
    while True:
        if (await lab.rows())[0]["leased_until_us"] >= until_us:
            return
        await anyio.sleep(0.05)


async def test_a_prompt_is_delivered_at_its_time_and_not_before(real: Lab) -> None:
    agents = Agents()
    due = now_us() + SECOND // 2
    async with at_work(worker(real, agents)):
        await real.add(at_us=due)
        await agents.see(1)
        assert now_us() >= due
        assert await settled(real, 1) == ["delivered"]
    [past] = await real.past.history(HistoryQuery())
    assert past.answer == "Did Hello"
    assert past.started_us is not None
    assert past.started_us >= due


async def test_a_worker_that_sleeps_is_woken_for_what_is_due_earlier(real: Lab) -> None:
    agents = Agents()
    await real.add("later", at_us=now_us() + 3600 * SECOND)
    mine = worker(real, agents)
    async with at_work(mine):
        await until(lambda: mine.status().next_us is not None)
        with anyio.fail_after(5):
            await real.add("sooner", at_us=now_us())
            await agents.see(1)
    assert [one.agent_id for one in agents.begun] == ["sooner"]


async def test_no_more_run_at_once_than_there_are_places(real: Lab) -> None:
    agents = Agents(holds=lambda _: True)
    for number in range(12):
        await real.add(f"agent-{number}")
    async with at_work(worker(real, agents, concurrency=5)):
        await agents.see(5)
        assert len(await real.rows()) == 5, "what has no place is not claimed"
        agents.release.set()
        await settled(real, 12)
    assert agents.most_at_once == 5


async def test_one_slow_agent_delays_nobody_else(real: Lab) -> None:
    agents = Agents(holds=lambda one: one.agent_id == "slow")
    for number in range(20):
        await real.add("slow", at_us=real.now_us - SECOND)
        await real.add(f"agent-{number}")
    async with at_work(worker(real, agents, concurrency=2, drain_s=0.1)):
        await settled(real, 20)
        assert sum(one.agent_id == "slow" for one in agents.begun) == 1


async def test_an_agents_prompts_keep_their_order_between_two_workers(real: Lab) -> None:
    agents = Agents()
    for number in range(20):
        await real.add(at_us=real.now_us - 20 + number, prompt=str(number))
    other = LeaseOwner()
    two = worker(real, agents, owner=replace(other, host="another-machine"))
    async with at_work(worker(real, agents), two):
        await settled(real, 20)
    assert [one.prompt for one in agents.begun] == [str(number) for number in range(20)]
    assert agents.most_at_once == 1


async def test_a_failure_is_tried_again_and_an_error_of_ours_is_one_too(real: Lab) -> None:
    errors: dict[tuple[str, int], Exception] = {
        ("ada", 1): DeliveryFailed("not yet", retry_after=0),
        ("bob", 1): ValueError("a fault of ours"),
        ("cleo", 1): DeliveryFailed("no such agent", permanent=True),
    }
    agents = Agents(fails=lambda one: errors.get((one.agent_id, one.attempt)))
    for agent in ("ada", "bob", "cleo"):
        await real.add(agent)
    async with at_work(worker(real, agents)):
        assert sorted(await settled(real, 3, RunStatus.DELIVERED, RunStatus.DEAD)) == ["dead", "delivered", "delivered"]
    [bob] = await real.past.history(HistoryQuery(OwnerFilter("bob")))
    assert [one.error for one in bob.earlier] == ["Frontdesk failed inside; its log says why"]
    assert [one.in_doubt for one in agents.begun if one.agent_id == "bob"] == [False, True]


async def test_what_takes_too_long_is_cut_off_and_in_doubt(real: Lab) -> None:
    agents = Agents(holds=lambda one: one.attempt == 1)
    await real.add()
    async with at_work(worker(real, agents, timeout_s=0.2)):
        await agents.see(2)
        await settled(real, 1)
    [past] = await real.past.history(HistoryQuery())
    assert [one.error for one in past.earlier] == ["The agent took longer than 0.2 s"]
    assert agents.begun[1].in_doubt


async def test_a_worker_that_stops_waits_for_what_runs(real: Lab) -> None:
    agents = Agents(holds=lambda _: True)
    await real.add()
    mine = worker(real, agents)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(mine.run)
        await agents.see(1)
        await until(lambda: mine.status().next_us is not None)
        tasks.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await real.add("bob")
            agents.release.set()
    assert [row["standing"] for row in await real.rows()] == ["delivered"], "and begins nothing new"
    assert not mine.status().running


async def test_what_does_not_end_in_time_is_handed_back_for_another_to_go_on_with_at_once(real: Lab) -> None:
    stuck, others = Agents(holds=lambda _: True), Agents()
    for number in range(3):
        await real.add(f"agent-{number}")
    async with at_work(worker(real, stuck, drain_s=0.1)):
        await stuck.see(3)
    assert [row["standing"] for row in await real.rows()] == ["waiting"] * 3
    async with at_work(worker(real, others)):
        await settled(real, 3)
    assert {(one.attempt, one.in_doubt) for one in others.begun} == {(1, True)}
    assert {one.id for one in others.begun} == {one.id for one in stuck.begun}


async def test_a_worker_keeps_what_takes_longer_than_a_lease(real: Lab) -> None:
    agents = Agents(holds=lambda _: True)
    await real.add()
    two = worker(real, agents, lease_s=0.6, owner=replace(LeaseOwner(), host="another-machine"))
    async with at_work(worker(real, agents, lease_s=0.6), two):
        await agents.see(1)
        [first] = [row["leased_until_us"] for row in await real.rows()]
        await leased(real, first + 2 * SECOND)
        agents.release.set()
        await settled(real, 1)
    assert len(agents.begun) == 1


async def test_a_worker_lets_go_of_what_was_taken_from_it(real: Lab) -> None:
    agents = Agents(holds=lambda _: True)
    await real.add()
    mine = worker(real, agents, lease_s=0.3)
    async with at_work(mine):
        await agents.see(1)
        async with real.database.transaction() as connection:
            taken = {"owner": "another:1:owner", "fence": 2, "leased_until_us": now_us() + 3600 * SECOND}
            await connection.execute(update(occurrences).values(taken))
        await until(lambda: mine.status().in_flight == 0)
        [row] = await real.rows()
        assert (row["standing"], row["owner"], row["fence"]) == ("running", "another:1:owner", 2)


async def test_what_a_killed_process_left_is_gone_on_with_at_once(real: Lab) -> None:
    dead = DeliveryStore(real.database, str(replace(LeaseOwner(), pid=2**22 + 1)), 3600 * SECOND)
    real.workers["dead"] = dead
    await real.add()
    [left] = await real.claim("dead")
    agents = Agents()
    async with at_work(worker(real, agents)):
        await settled(real, 1)
    assert [(one.id, one.attempt, one.in_doubt) for one in agents.begun] == [(left.id, 1, True)]


async def test_two_workers_of_one_process_do_not_take_each_other_for_dead(real: Lab) -> None:
    agents = Agents(holds=lambda _: True)
    await real.add()
    async with at_work(worker(real, agents)):
        await agents.see(1)
        assert await worker(real, agents).deliver_due() == []
        agents.release.set()
        await settled(real, 1)
    assert len(agents.begun) == 1


async def test_a_worker_goes_on_when_the_database_comes_back(real: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    agents = Agents()
    step, troubles = (
        DeliveryStore.settle_and_claim,
        [Unavailable("away"), Unavailable("away"), ValueError("a fault of ours")],
    )

    async def failing(self: DeliveryStore, *arguments: Any) -> Any:
        done = await step(self, *arguments)
        # The transaction was committed, and its confirmation was lost.
        if troubles and (arguments[0] or done.claimed):
            self.held_ids.difference_update(one.id for one in done.claimed)
            raise troubles.pop()
        return done

    monkeypatch.setattr(DeliveryStore, "settle_and_claim", failing)
    for number in range(3):
        await real.add(f"agent-{number}")
    async with at_work(worker(real, agents)):
        await settled(real, 3)
    assert troubles == []


@pytest.mark.parametrize("hurt", ["settle", "claim_batch"])
async def test_many_at_once_each_run_once_and_in_order_whatever_becomes_of_a_transaction(
    real: Lab, monkeypatch: pytest.MonkeyPatch, hurt: str
) -> None:
    """PostgreSQL settles runs and claims more at the same time: in two transactions, of which either may fail."""
    agents, whole, troubles = Agents(), getattr(DeliveryStore, hurt), [Unavailable("away"), Unavailable("away")]

    async def failing(self: DeliveryStore, given: Any) -> Any:
        if troubles:
            raise troubles.pop()
        return await whole(self, given)

    monkeypatch.setattr(DeliveryStore, hurt, failing)
    names = [f"agent-{number}" for number in range(60)]
    for number in range(3):
        for name in names:
            await real.add(name, at_us=real.now_us - 3 + number, prompt=str(number))
    async with at_work(worker(real, agents)):
        await settled(real, 180)
    for name in names:
        assert [one.prompt for one in agents.begun if one.agent_id == name] == ["0", "1", "2"]
    assert (troubles == []) is real.database.shared
    assert await real.schedules.list(ScheduleFilter()) == []


async def test_what_is_due_is_run_on_somebodys_word_and_told(real: Lab) -> None:
    agents = Agents(fails=lambda one: DeliveryFailed("no") if one.agent_id == "bob" else None)
    await real.add("ada", trigger=every("1h", real.now_us), user_id="u1")
    await real.add("ada", at_us=real.now_us - 1, prompt="first", user_id="u1")
    await real.add("bob", user_id="u1")
    await real.add("cleo", user_id="u2")
    await real.add("dora", at_us=now_us() + 3600 * SECOND, user_id="u1")
    done = await worker(real, agents).deliver_due(OwnerFilter(user_id="u1"))
    assert [(one.occurrence.agent_id, one.delivered, one.answer, one.error) for one in done if one.delivered] == [
        ("ada", True, "Did first", None),
        ("ada", True, "Did Hello", None),
    ]
    assert [(one.occurrence.agent_id, one.error) for one in done if not one.delivered] == [("bob", "no")]
    assert [one.occurrence.next_us for one in done if one.occurrence.recurring] == [real.now_us + 3600 * SECOND]
    assert await worker(real, agents).deliver_due(OwnerFilter("dora")) == []


async def test_a_call_that_is_given_up_hands_back_what_it_began(real: Lab) -> None:
    agents = Agents(holds=lambda _: True)
    await real.add()
    mine = worker(real, agents, drain_s=0.1)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(mine.deliver_due)
        await agents.see(1)
        tasks.cancel_scope.cancel()
    assert await real.standings() == ["waiting"]


async def test_the_worker_says_how_it_is_doing(real: Lab) -> None:
    registry = CollectorRegistry()
    metrics = ScheduleMetrics(registry)
    webhooks = CountedForwarder(WebhookStore(real.database), None)
    agents = Agents(fails=lambda one: DeliveryFailed("no", permanent=True) if one.agent_id == "bob" else None)
    await real.add("ada", forward=AnswerForwarding("https://example.org/hook"))
    await real.add("bob")
    later = await real.add("cleo", at_us=now_us() + 3600 * SECOND)
    mine = worker(real, agents, metrics=metrics, webhooks=webhooks)
    assert not mine.status().running
    async with at_work(mine):
        await settled(real, 2, RunStatus.DELIVERED, RunStatus.DEAD)
        await until(lambda: mine.status().failed + mine.status().delivered == 2)
        status = mine.status()
        assert (status.running, status.in_flight, status.delivered, status.failed) == (True, 0, 1, 1)
        assert status.last_us is not None
    assert webhooks.woken == 1
    metrics.set_figures(await real.past.figures(now_us()))
    text = generate_latest(registry).decode()
    for line in (
        'frontdesk_schedule_attempts_total{standing="delivered"} 1.0',
        'frontdesk_schedule_attempts_total{standing="dead"} 1.0',
        "frontdesk_schedule_lateness_seconds_count 2.0",
        "frontdesk_schedule_in_flight 0.0",
        "frontdesk_schedule_due 0.0",
        "frontdesk_schedule_dead_letters 1.0",
        "frontdesk_schedule_oldest_overdue_seconds 0.0",
    ):
        assert line in text
    stored = await real.schedules.get(later)
    assert stored is not None
    assert stored.state is ScheduleState.ACTIVE


# The worker in the installation: started with the server if settings say so, drained before the host closes


SECONDS = 30


async def told(app: App, enough: Callable[[list[RunRecord]], bool]) -> list[RunRecord]:
    """The history, once it has the expected entry."""
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
