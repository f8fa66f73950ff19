"""Turns in the database: one at a time in a lane, found again when their owner is gone, cancelled from afar."""

from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import anyio
import pytest
from sqlalchemy import select, update

from frontdesk.agents.host import NewAgent, Prompt
from frontdesk.agents.turns.model import LEASE, LeaseOwner, NewTurn
from frontdesk.agents.turns.service import END_PAUSES
from frontdesk.agents.turns.store import TurnStore
from frontdesk.app import open_app
from frontdesk.db.engine import Database, Transaction
from frontdesk.db.schema import messages, turns
from frontdesk.errors import Unavailable
from frontdesk.llm.events import Done, Event, StopReason, TextChunk, ToolReturn, ToolStatus, TurnEnd, Usage
from frontdesk.llm.tools import Tool, ToolOutcome
from frontdesk.settings import Settings
from tests.hosts.lab import CALLER, of_kind, said, script, take
from tests.support.clocks import age, set_clock_ahead

pytestmark = pytest.mark.anyio
NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
ELSEWHERE = replace(LeaseOwner(), host="another-machine")
HERE = LeaseOwner()


async def nothing(_connection: Transaction) -> bool:
    return True


async def rows(database: Database) -> list[tuple[object, ...]]:
    async with database.read_transaction() as connection:
        found = await connection.execute(select(turns.c.id, turns.c.running, turns.c.stop).order_by(turns.c.id))
        return [tuple(row) for row in found.all()]


def turn(name: str, lane: str = "lane") -> NewTurn:
    return NewTurn(name, lane, "agent-1", "conv-1")


async def test_a_lock_takes_one_turn_at_a_time(database: Database) -> None:
    store = TurnStore(database)
    assert await store.claim(turn("one"), ELSEWHERE, nothing)
    assert await store.claim(turn("two"), HERE, nothing) is None
    assert await store.claim(turn("elsewhere", "another lane"), HERE, nothing)
    assert await store.end("one", ELSEWHERE, TurnEnd(StopReason.END_TURN, usage=Usage(3, 4, cost_usd=0.5)), NOW)
    assert await store.claim(turn("two"), HERE, nothing)


async def test_of_many_that_want_a_lock_at_once_one_gets_it(database: Database) -> None:
    store = TurnStore(database)
    got: list[bool] = []

    async def claim(number: int) -> None:
        owner = replace(ELSEWHERE, host=f"machine-{number}")
        got.append(await store.claim(turn(f"turn-{number}"), owner, nothing) is not None)

    async with anyio.create_task_group() as tasks:
        for number in range(8):
            tasks.start_soon(claim, number)
    assert sorted(got) == [False] * 7 + [True]


async def test_what_an_owner_elsewhere_left_is_taken_over_only_when_its_lease_is_over(database: Database) -> None:
    store, almost = TurnStore(database), LEASE - timedelta(seconds=10)
    assert await store.claim(turn("theirs"), ELSEWHERE, nothing)
    await age(database, turns.c.leased_until, almost)
    assert await store.claim(turn("ours"), HERE, nothing) is None
    assert await store.renew(ELSEWHERE, ["theirs"]) == ({"theirs"}, set())
    await age(database, turns.c.leased_until, almost)
    assert await store.claim(turn("ours"), HERE, nothing) is None
    await age(database, turns.c.leased_until, timedelta(seconds=11))
    assert await store.claim(turn("ours"), HERE, nothing)
    assert await store.renew(ELSEWHERE, ["theirs"]) == (set(), set())
    assert not await store.end("theirs", ELSEWHERE, TurnEnd(StopReason.END_TURN), NOW), "it is theirs no longer"


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
async def test_a_replica_whose_clock_is_ahead_takes_no_living_turn_over(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = TurnStore(database)
    assert await store.claim(turn("theirs"), ELSEWHERE, nothing)
    set_clock_ahead(monkeypatch)
    assert await store.claim(turn("ours"), HERE, nothing) is None
    assert await store.recover(HERE, "lane", ()) == 0
    assert await store.renew(ELSEWHERE, ["theirs"]) == ({"theirs"}, set())
    await age(database, turns.c.leased_until, LEASE + timedelta(seconds=1))
    assert await store.claim(turn("ours"), HERE, nothing), "what is renewed by a clock that is ahead lasts no longer"


@pytest.mark.parametrize("dead", [replace(HERE, pid=2**22 + 1), replace(HERE, token="an earlier start")])
async def test_what_a_dead_process_of_this_machine_left_is_marked_at_once(database: Database, dead: LeaseOwner) -> None:
    store = TurnStore(database)
    assert await store.claim(turn("left"), dead, nothing)
    assert await store.recover(HERE, "lane", ()) == 1
    assert await rows(database) == [("left", False, StopReason.INTERRUPTED)]


async def test_what_lives_is_left_alone(database: Database) -> None:
    store = TurnStore(database)
    alive = replace(HERE, pid=1, token="init")
    for lane, owner in (("ours", HERE), ("neighbour's", alive), ("elsewhere", ELSEWHERE)):
        assert await store.claim(turn(lane, lane), owner, nothing)
    for lane, underway in (("ours", ["ours"]), ("neighbour's", []), ("elsewhere", [])):
        assert await store.recover(HERE, lane, underway) == 0
    assert await store.recover(HERE, "ours", []) == 1, "what we no longer run is left behind"


async def test_what_cannot_begin_leaves_no_turn_behind(database: Database) -> None:
    store = TurnStore(database)

    async def refuse(_connection: Transaction) -> bool:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        await store.claim(turn("one"), HERE, refuse)
    assert await rows(database) == []


async def test_a_turn_is_cancelled_from_another_process(settings: Settings) -> None:
    async with open_app(settings) as app, open_app(settings) as other:
        agent = await app.host.create(NewAgent("Ada"))
        prompt = Prompt(agent.id, CALLER, script({"text": "word " * 2000, "chunk_delay": 0.01}))
        seen: list[object] = []
        with anyio.fail_after(60):
            async with aclosing(app.host.send(prompt)) as events:
                async for event in events:
                    seen.append(event)
                    if isinstance(event, TextChunk) and len(seen) == 5:
                        assert await other.host.cancel(agent.id)
        assert seen[-1] == Done(StopReason.CANCELLED)
        assert len(seen) < 1500


async def test_turns_of_two_processes_in_one_conversation_follow_each_other(settings: Settings) -> None:
    async with open_app(settings) as app, open_app(settings) as other:
        agent = await app.host.create(NewAgent("Ada"))

        async def talk(host_number: int) -> None:
            host = (app, other)[host_number].host
            for number in range(3):
                await take(host, agent.id, script({"text": f"{host_number} {number}", "chunk_delay": 0.005}))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(talk, 0)
            tasks.start_soon(talk, 1)
        told = await app.host.history(agent.id)
        ids = [one.turn_id for one in told]
        assert len(set(ids)) == 6
        assert sum(one != two for one, two in pairwise(ids)) == 5, "no two are mixed"


class WaitingTool:
    """A tool that says when it runs, and answers when it is let."""

    def __init__(self) -> None:
        self.runs = anyio.Event()
        self.opens = anyio.Event()

    def tool(self) -> Tool:
        async def run(_arguments: Mapping[str, Any]) -> ToolOutcome:
            self.runs.set()
            await self.opens.wait()
            return ToolOutcome("through")

        return Tool("gate", "Waits.", {"type": "object", "properties": {}}, run)


TWO_STEPS = script({"tool": "gate", "args": {}}, {"text": "after the gate"})


async def test_a_turn_that_was_taken_over_stores_nothing_more(settings: Settings) -> None:
    gate = WaitingTool()
    seen: list[list[Event]] = []
    async with open_app(settings) as app:
        agent = await app.host.create(NewAgent("Ada"))

        async def talk() -> None:
            seen.append(await take(app.host, agent.id, TWO_STEPS, tools=[gate.tool()]))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(talk)
            await gate.runs.wait()
            async with app.database.transaction() as connection:
                await connection.execute(
                    update(turns).values(owner="another:1:owner", running=False, stop="interrupted")
                )
            gate.opens.set()
        [events] = seen
        assert events[-1] == Done(StopReason.ERROR)
        assert "after the gate" not in said(events)
        told = [one.event for one in await app.host.history(agent.id)]
        assert [back.status for back in of_kind(told, ToolReturn)] == [ToolStatus.INTERRUPTED]
        assert told[-1] == Done(StopReason.INTERRUPTED)


async def test_deleting_an_agent_ends_its_turn_and_leaves_nothing(settings: Settings) -> None:
    gate = WaitingTool()
    async with open_app(settings) as app:
        agent = await app.host.create(NewAgent("Ada"))

        async def talk() -> None:
            await take(app.host, agent.id, TWO_STEPS, tools=[gate.tool()])

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(talk)
            await gate.runs.wait()
            told = [one.event for one in await app.host.history(agent.id)]
            assert of_kind(told, ToolReturn) == [], "what runs is not told as interrupted"
            await app.host.delete(agent.id)
        async with app.database.read_transaction() as connection:
            assert (await connection.execute(select(messages.c.id))).all() == []
            assert (await connection.execute(select(turns.c.id))).all() == []


async def test_an_answer_whose_end_cannot_be_recorded_at_once_is_recorded_later(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, failures = TurnStore.end, iter([Unavailable("away"), Unavailable("away")])

    async def end(self: TurnStore, *arguments: Any) -> bool:
        for failure in failures:
            raise failure
        return await real(self, *arguments)

    monkeypatch.setattr(TurnStore, "end", end)
    async with open_app(settings) as app:
        agent = await app.host.create(NewAgent("Ada"))
        assert (await take(app.host, agent.id, script({"text": "kept"})))[-1] == Done(StopReason.END_TURN)
        told = [one.event for one in await app.host.history(agent.id)]
        assert said(told) == "kept"
        assert told[-1] == Done(StopReason.END_TURN)


async def test_an_end_that_a_fault_keeps_from_being_recorded_is_tried_again_after_a_pause(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, faults, tried = TurnStore.end, iter([RuntimeError("a fault"), RuntimeError("a fault")]), list[float]()

    async def end(self: TurnStore, *arguments: Any) -> bool:
        tried.append(anyio.current_time())
        for fault in faults:
            raise fault
        return await real(self, *arguments)

    monkeypatch.setattr(TurnStore, "end", end)
    async with open_app(settings) as app:
        agent = await app.host.create(NewAgent("Ada"))
        assert (await take(app.host, agent.id, script({"text": "lost"})))[-1] == Done(StopReason.ERROR)
        waited = [later - earlier for earlier, later in pairwise(tried)]
        # A clock may be read a little before a sleep is over, never half of it.
        assert [wait > pause / 2 for wait, pause in zip(waited, END_PAUSES, strict=False)] == [True, True]


async def test_a_lock_that_this_process_left_behind_is_free_at_once(settings: Settings) -> None:
    async with open_app(settings) as app:
        agent = await app.host.create(NewAgent("Ada"))
        await take(app.host, agent.id, script({"text": "one"}))
        async with app.database.transaction() as connection:
            later = datetime.now(UTC) + LEASE
            await connection.execute(
                update(turns).values(running=True, stop=None, owner=str(app.turns.owner), leased_until=later)
            )
        with anyio.fail_after(LEASE.total_seconds() / 2):
            assert said(await take(app.host, agent.id, script({"text": "two"}))) == "two"
        stops = [event.stop for event in of_kind([one.event for one in await app.host.history(agent.id)], Done)]
        assert stops == [StopReason.INTERRUPTED, StopReason.END_TURN]


def test_two_machines_do_not_take_each_other_for_dead() -> None:
    assert not ELSEWHERE.knows_ended(str(HERE))
    assert not HERE.knows_ended(str(replace(ELSEWHERE, pid=HERE.pid, token="x")))
    assert HERE.knows_ended(str(replace(HERE, token="an earlier process with our number")))
    assert len(str(HERE)) <= 200
