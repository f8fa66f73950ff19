"""Tests the journal's rows and its background work, on both databases."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from structlog.testing import capture_logs

from frontdesk.agents.chat.service import ChatService
from frontdesk.app import open_app
from frontdesk.db.engine import Database
from frontdesk.identity.model import AgentIdSource
from frontdesk.journal.metrics import Metrics
from frontdesk.journal.model import EntryKind, JournalEntry, Outcome
from frontdesk.journal.service import QUEUE_SIZE, Journal
from frontdesk.journal.store import PRUNE_BATCH, JournalQuery, JournalStore, ToolUse, ToolUseQuery
from frontdesk.settings import Settings

# The journal's rows


NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def an_entry(minute: int = 0, agent_id: str = "agent-1", outcome: Outcome = Outcome.OK) -> JournalEntry:
    return JournalEntry(
        at=NOW + timedelta(minutes=minute),
        kind=EntryKind.CALL,
        surface="mcp",
        action="whoami",
        outcome=outcome,
        duration_us=42,
        agent_id=agent_id,
        source=AgentIdSource.HEADER,
        request_id="r",
    )


async def test_rows_come_back_in_order_and_whole(database: Database) -> None:
    store = JournalStore(database)
    rows = [an_entry(minute) for minute in range(3)]
    await store.append(rows)
    assert [entry for _, entry in await store.read(JournalQuery())] == rows


async def test_a_reader_gets_the_newest_and_can_go_on_from_there(database: Database) -> None:
    store = JournalStore(database)
    await store.append([an_entry(minute) for minute in range(5)])
    newest = await store.read(JournalQuery(limit=2))
    assert [entry.at.minute for _, entry in newest] == [3, 4]
    await store.append([an_entry(9)])
    assert [entry.at.minute for _, entry in await store.read(JournalQuery(after_id=newest[-1][0]))] == [9]
    first = (await store.read(JournalQuery()))[0][0]
    assert [entry.at.minute for _, entry in await store.read(JournalQuery(after_id=first, limit=2))] == [1, 2]


async def test_rows_are_found_by_agent_outcome_and_time(database: Database) -> None:
    store = JournalStore(database)
    await store.append([an_entry(0), an_entry(1, "agent-2"), an_entry(2, outcome=Outcome.DENIED)])
    assert [entry.at.minute for _, entry in await store.read(JournalQuery(agent_id="agent-2"))] == [1]
    assert [entry.at.minute for _, entry in await store.read(JournalQuery(outcome=Outcome.DENIED))] == [2]
    assert [entry.at.minute for _, entry in await store.read(JournalQuery(since=NOW + timedelta(minutes=1)))] == [1, 2]


async def test_what_is_old_is_forgotten_and_the_rest_is_kept(database: Database) -> None:
    store = JournalStore(database)
    await store.append([an_entry(minute % 60) for minute in range(PRUNE_BATCH + 10)])
    await store.append([an_entry(600)])
    assert await store.prune(NOW + timedelta(minutes=300)) == PRUNE_BATCH + 10
    assert await store.count() == 1


async def test_the_use_of_tools_is_summed_up_by_agent_and_tool(database: Database) -> None:
    store = JournalStore(database)
    calls = [
        replace(an_entry(0), kind=EntryKind.TOOL, action="files::read", duration_us=10),
        replace(an_entry(3, outcome=Outcome.FAILED), kind=EntryKind.TOOL, action="files::read", duration_us=30),
        replace(an_entry(1, "agent-2"), kind=EntryKind.TOOL, action="files::read", user_id="ann"),
        replace(an_entry(2, "agent-2"), kind=EntryKind.TOOL, action="mail::send"),
    ]
    await store.append([*calls, an_entry(5)])
    used = await store.tool_use(ToolUseQuery())
    assert used[0] == ToolUse("agent-1", "files::read", 2, 1, 20, NOW + timedelta(minutes=3))
    assert [(use.agent_id, use.tool) for use in used[1:]] == [("agent-2", "files::read"), ("agent-2", "mail::send")]
    assert [use.tool for use in await store.tool_use(ToolUseQuery(agent_id="agent-2", tool="mail::send"))] == [
        "mail::send"
    ]
    assert [use.agent_id for use in await store.tool_use(ToolUseQuery(user_id="ann"))] == ["agent-2"]
    assert len(await store.tool_use(ToolUseQuery(since=NOW + timedelta(minutes=2)))) == 2
    assert len(await store.tool_use(ToolUseQuery(limit=1))) == 1


# The journal's background work


def a_journal(database: Database) -> Journal:
    return Journal(JournalStore(database), Metrics, timedelta(days=30))


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


async def test_a_service_that_fails_as_it_closes_loses_no_entry(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_chat: ChatService) -> None:
        raise RuntimeError("it does not close")

    async def use() -> None:
        async with open_app(settings, tools=False) as app:
            app.journal.record(replace(an_entry(), action="before the end"))
            assert app.chat
            monkeypatch.setattr(ChatService, "close", fail)

    with pytest.raises(RuntimeError):
        await use()
    monkeypatch.undo()
    async with open_app(settings, tools=False) as app:
        assert "before the end" in [one.action for _, one in await app.journal.read(JournalQuery())]
