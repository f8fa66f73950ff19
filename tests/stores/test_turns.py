"""Turns in the database: one at a time in a lane, found again when their owner is gone, cancelled from afar."""

from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import anyio
import pytest
from sqlalchemy.ext.asyncio import AsyncConnection

from frontdesk.agents.events import Done, Ending, StopReason, TextChunk, Usage
from frontdesk.agents.host import NewAgent, Prompt
from frontdesk.agents.turns.model import LEASE, NewTurn, Owner
from frontdesk.agents.turns.store import TurnStore
from frontdesk.app import open_app
from frontdesk.db.engine import Database
from frontdesk.settings import Settings
from tests.hosts.lab import CALLER, script, take

pytestmark = pytest.mark.anyio
NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
ELSEWHERE = replace(Owner(), host="another-machine")
HERE = Owner()


async def nothing(_connection: AsyncConnection) -> bool:
    return True


def turn(name: str, lane: str = "lane") -> NewTurn:
    return NewTurn(name, lane, "agent-1", "conv-1")


async def test_a_lane_takes_one_turn_at_a_time(database: Database) -> None:
    store = TurnStore(database)
    assert await store.claim(turn("one"), HERE, NOW, nothing)
    assert await store.claim(turn("two"), HERE, NOW, nothing) is None
    assert await store.claim(turn("elsewhere", "another lane"), HERE, NOW, nothing)
    assert await store.end("one", HERE, Ending(StopReason.END_TURN, usage=Usage(3, 4, cost_usd=0.5)), NOW)
    assert await store.claim(turn("two"), HERE, NOW, nothing)


async def test_of_many_that_want_a_lane_at_once_one_gets_it(database: Database) -> None:
    store = TurnStore(database)
    got: list[bool] = []

    async def claim(number: int) -> None:
        got.append(await store.claim(turn(f"turn-{number}"), HERE, NOW, nothing) is not None)

    async with anyio.create_task_group() as tasks:
        for number in range(8):
            tasks.start_soon(claim, number)
    assert sorted(got) == [False] * 7 + [True]


async def test_what_an_owner_elsewhere_left_is_taken_over_only_when_its_lease_is_over(database: Database) -> None:
    store = TurnStore(database)
    assert await store.claim(turn("theirs"), ELSEWHERE, NOW, nothing)
    later = NOW + LEASE - timedelta(seconds=1)
    assert await store.claim(turn("ours"), HERE, later, nothing) is None
    assert await store.renew(ELSEWHERE, ["theirs"], later) == ({"theirs"}, set())
    assert await store.claim(turn("ours"), HERE, later + LEASE - timedelta(seconds=1), nothing) is None
    assert await store.claim(turn("ours"), HERE, later + LEASE + timedelta(seconds=1), nothing)
    assert await store.renew(ELSEWHERE, ["theirs"], later) == (set(), set())
    assert not await store.end("theirs", ELSEWHERE, Ending(StopReason.END_TURN), later), "it is theirs no longer"


@pytest.mark.parametrize("dead", [replace(HERE, pid=2**22 + 1), replace(HERE, token="an earlier start")])
async def test_what_a_dead_process_of_this_machine_left_is_marked_at_once(database: Database, dead: Owner) -> None:
    store = TurnStore(database)
    assert await store.claim(turn("left"), dead, NOW, nothing)
    assert await store.recover(HERE, NOW, "lane") == 1
    last = await store.last("lane")
    assert last is not None
    assert (last.id, last.running, last.stop) == ("left", False, StopReason.INTERRUPTED)


async def test_what_lives_is_left_alone(database: Database) -> None:
    store = TurnStore(database)
    alive = replace(HERE, pid=1, token="init")
    for lane, owner in (("ours", HERE), ("neighbour's", alive), ("elsewhere", ELSEWHERE)):
        assert await store.claim(turn(lane, lane), owner, NOW, nothing)
    assert await store.recover(HERE, NOW) == 0


async def test_what_cannot_begin_leaves_no_turn_behind(database: Database) -> None:
    store = TurnStore(database)

    async def refuse(_connection: AsyncConnection) -> bool:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        await store.claim(turn("one"), HERE, NOW, refuse)
    assert await store.last("lane") is None


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
        turns = [one.turn_id for one in told]
        assert len(set(turns)) == 6
        assert sum(one != two for one, two in pairwise(turns)) == 5, "no two are mixed"
