"""The journal's rows, on both databases."""

from datetime import UTC, datetime, timedelta

import pytest

from frontdesk.db.engine import Database
from frontdesk.identity.model import Source
from frontdesk.journal.model import Entry, Kind, Outcome
from frontdesk.journal.store import PRUNE_BATCH, JournalStore, Query

pytestmark = pytest.mark.anyio
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def an_entry(minute: int = 0, agent_id: str = "agent-1", outcome: Outcome = Outcome.OK) -> Entry:
    return Entry(
        at=NOW + timedelta(minutes=minute),
        kind=Kind.CALL,
        surface="mcp",
        action="whoami",
        outcome=outcome,
        duration_us=42,
        agent_id=agent_id,
        source=Source.HEADER,
        request_id="r",
    )


async def test_rows_come_back_in_order_and_whole(database: Database) -> None:
    store = JournalStore(database)
    rows = [an_entry(minute) for minute in range(3)]
    await store.append(rows)
    assert [entry for _, entry in await store.read(Query())] == rows


async def test_a_reader_gets_the_newest_and_can_go_on_from_there(database: Database) -> None:
    store = JournalStore(database)
    await store.append([an_entry(minute) for minute in range(5)])
    newest = await store.read(Query(limit=2))
    assert [entry.at.minute for _, entry in newest] == [3, 4]
    await store.append([an_entry(9)])
    assert [entry.at.minute for _, entry in await store.read(Query(after_id=newest[-1][0]))] == [9]
    first = (await store.read(Query()))[0][0]
    assert [entry.at.minute for _, entry in await store.read(Query(after_id=first, limit=2))] == [1, 2]


async def test_rows_are_found_by_agent_outcome_and_time(database: Database) -> None:
    store = JournalStore(database)
    await store.append([an_entry(0), an_entry(1, "agent-2"), an_entry(2, outcome=Outcome.DENIED)])
    assert [entry.at.minute for _, entry in await store.read(Query(agent_id="agent-2"))] == [1]
    assert [entry.at.minute for _, entry in await store.read(Query(outcome=Outcome.DENIED))] == [2]
    assert [entry.at.minute for _, entry in await store.read(Query(since=NOW + timedelta(minutes=1)))] == [1, 2]


async def test_what_is_old_is_forgotten_and_the_rest_is_kept(database: Database) -> None:
    store = JournalStore(database)
    await store.append([an_entry(minute % 60) for minute in range(PRUNE_BATCH + 10)])
    await store.append([an_entry(600)])
    assert await store.prune(NOW + timedelta(minutes=300)) == PRUNE_BATCH + 10
    assert await store.count() == 1
