"""The journal's background work, on both databases."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from structlog.testing import capture_logs

from frontdesk.db.engine import Database
from frontdesk.journal.metrics import Metrics
from frontdesk.journal.model import JournalEntry
from frontdesk.journal.service import QUEUE_SIZE, Journal
from frontdesk.journal.store import PRUNE_BATCH, JournalQuery, JournalStore
from tests.stores.test_journal_store import an_entry

pytestmark = pytest.mark.anyio


def a_journal(database: Database) -> Journal:
    return Journal(JournalStore(database), Metrics(), timedelta(days=30))


async def test_one_entry_that_cannot_be_stored_does_not_keep_the_others_out(database: Database) -> None:
    journal = a_journal(database)
    rows: list[JournalEntry] = [replace(an_entry(minute), at=datetime.now(UTC)) for minute in range(7)]
    rows[3] = replace(rows[3], user_id="a\x00" * 500)
    for row in rows:
        journal.record(row)
    with capture_logs() as logged:
        await journal.flush()
    stored = [entry for _, entry in await journal.read(JournalQuery())]
    assert len(stored) + [line["event"] for line in logged].count("journal_entry_unstorable") == len(rows)
    assert [row for row in stored if row.user_id is None] == [row for row in rows if row.user_id is None]
    journal.record(rows[0])
    await journal.flush()
    assert len(await journal.read(JournalQuery())) == len(stored) + 1


async def test_a_full_queue_drops_the_newest_and_counts_it(database: Database) -> None:
    journal = a_journal(database)
    for _ in range(QUEUE_SIZE + 2):
        journal.record(an_entry())
    assert b"frontdesk_journal_lost_total 2.0" in journal.render_metrics()


async def test_what_is_older_than_we_keep_is_forgotten(database: Database) -> None:
    journal = a_journal(database)
    now = datetime.now(UTC)
    for days in (40, 31, 29, 0):
        journal.record(replace(an_entry(), at=now - timedelta(days=days)))
    await journal.flush()
    await journal.prune()
    assert len(await journal.read(JournalQuery())) == 2


async def test_a_person_is_told_of_and_forgotten_also_in_what_waits_to_be_written(database: Database) -> None:
    journal = a_journal(database)
    many = [replace(an_entry(minute % 60), user_id="ann") for minute in range(PRUNE_BATCH + 3)]
    await JournalStore(database).append([*many, replace(an_entry(), user_id="bob"), an_entry()])
    last = replace(an_entry(59), user_id="ann")
    journal.record(last)
    assert await journal.entries_of_person("ann") == [*many, last]
    journal.record(last)
    assert await journal.delete_person("ann") == len(many) + 2
    assert await journal.entries_of_person("ann") == []
    assert [entry.user_id for _, entry in await journal.read(JournalQuery())] == ["bob", None]
    assert await journal.delete_person("ann") == 0
