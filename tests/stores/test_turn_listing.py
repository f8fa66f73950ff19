"""Turns are found by what they wait for, however many there were."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import insert, text

from frontdesk.agents.turns.model import LeaseOwner, NewTurn, TurnQuery
from frontdesk.agents.turns.store import TurnStore, clear_pending
from frontdesk.db.engine import Database, Transaction
from frontdesk.db.schema import turns
from frontdesk.llm.events import ApprovalRequest, StopReason, TurnEnd

pytestmark = pytest.mark.anyio
NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
HERE = LeaseOwner()
WAITING = TurnEnd(StopReason.REQUIRES_APPROVAL, [ApprovalRequest("call-1", "buy", {})])
MANY = 20_000


async def taken(store: TurnStore, name: str, ending: TurnEnd, conversation: str = "conv-1") -> None:
    """A turn of Letta's from its beginning to its end: what waited before it is answered by it."""
    new = NewTurn(name, "letta:agent-1", "agent-1", conversation)

    async def begin(connection: Transaction) -> bool:
        await clear_pending(connection, new.lane, new.conversation_id)
        return True

    assert await store.claim(new, HERE, begin)
    assert await store.end(name, HERE, ending, NOW)


async def waiting(store: TurnStore, agent_id: str | None = None) -> list[str]:
    found = await store.list(TurnQuery(agent_id=agent_id, waiting=True))
    assert all(turn.waits for turn in found)
    return [turn.id for turn in found]


async def test_what_waited_is_answered_once_the_conversation_goes_on(database: Database) -> None:
    store = TurnStore(database)
    await taken(store, "asked", WAITING)
    await taken(store, "elsewhere", WAITING, "conv-2")
    assert await waiting(store) == await waiting(store, "agent-1") == ["elsewhere", "asked"]
    assert await waiting(store, "agent-2") == []
    await taken(store, "went on", TurnEnd(StopReason.END_TURN))
    assert await waiting(store) == ["elsewhere"]
    asked = await store.find("asked")
    assert asked is not None
    assert (asked.waits, asked.pending, asked.stop) == (False, (), StopReason.REQUIRES_APPROVAL)
    await store.settle("letta:agent-1", "conv-2")
    assert await waiting(store) == []


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "query",
    [
        TurnQuery(waiting=True),
        TurnQuery(waiting=True, agent_id="busy"),
        TurnQuery(agent_id="busy", stop=StopReason.END_TURN),
        TurnQuery(agent_id="busy", running=True),
    ],
    ids=["waiting", "waiting of an agent", "outcome of an agent", "running of an agent"],
)
async def test_what_is_rare_is_found_without_going_through_all_the_rest(database: Database, query: TurnQuery) -> None:
    """SQLite counts the steps of a query: many more than rows are found would be a scan of the table."""
    common = {"lane": "lane", "conversation_id": "conv", "running": False, "owner": str(HERE), "cancel_asked": False}
    spent = {"input_tokens": 1, "output_tokens": 1, "leased_until": NOW}
    rows = [
        {
            **common,
            **spent,
            "id": f"turn-{number}",
            "agent_id": "busy" if number % 2 else "other",
            "stop": StopReason.REQUIRES_APPROVAL if number % 2 else StopReason.END_TURN,
            "started_at": NOW + timedelta(seconds=number),
        }
        for number in range(MANY)
    ]
    async with database.transaction() as connection:
        await connection.execute(insert(turns), rows)
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    async with database.read_transaction() as connection:
        driver: Any = (await connection.get_raw_connection()).driver_connection
        await driver.set_progress_handler(count, 100)
        await connection.execute(text("SELECT count(*) FROM turns WHERE owner = 'nobody'"))
    through_all, steps = steps, 0
    assert await TurnStore(database).list(query) == []
    assert steps < through_all / 50
