"""Tests export, import and erasure of a person's data, and the row security of PostgreSQL."""

import json
from collections.abc import AsyncGenerator, Callable
from copy import deepcopy
from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection, func, select, text

from frontdesk.db.engine import Database
from frontdesk.db.row_security import PERSON_ROLE, set_person
from frontdesk.db.schema import metadata, people
from frontdesk.errors import Conflict, Invalid, MissingScope, Unavailable
from frontdesk.identity import rights
from frontdesk.identity.model import Caller
from frontdesk.journal.metrics import Metrics
from frontdesk.journal.service import Journal
from frontdesk.journal.store import JournalQuery, JournalStore
from frontdesk.memory.activities import ActivityService
from frontdesk.memory.categories import CategoryService
from frontdesk.memory.items_store import insert_category, insert_item
from frontdesk.memory.memories import MemoryService
from frontdesk.memory.memories_rules import MemoryFilter
from frontdesk.memory.model import Category, ItemType, PersonScope, TimelineFilter, TimelineItem
from frontdesk.memory.people import OtherPersonData, PeopleDirectory, PersonDataService
from frontdesk.memory.people_store import PERSON_TABLES
from frontdesk.memory.store import PersonDatabase, PersonTransaction
from frontdesk.memory.tasks import TaskService
from frontdesk.memory.time_tracking import TimeTrackingService
from frontdesk.memory.timeline import TimelineService
from frontdesk.memory.validation import new_id
from frontdesk.memory.work_queue import WorkQueueService
from tests.conftest import settings_with
from tests.requirements import shows
from tests.stores.memory.conftest import NOON
from tests.stores.test_journal import an_entry
from tests.support.postgres import Postgres, Ready

# A person's data: exported, imported, erased to the last row, on both databases


ANN, BOB, EVE = PersonScope("ann"), PersonScope("bob"), PersonScope("eve")


async def named(agent_id: str) -> str | None:
    return f"Agent {agent_id}"


async def fill(records: PersonDatabase, scope: PersonScope) -> None:
    """Add a row to every table."""
    await PersonDataService(records).set_zone(scope, "europe/berlin")
    tasks, memories = TaskService(records), MemoryService(records)
    await CategoryService(records).create(scope, {"name": "Größe", "icon": "📏"})
    root = await tasks.create(
        scope, {"title": "root", "category": "größe", "tags": ["a", "b c"], "due_date": "2026-05-05"}
    )
    child = await tasks.create(
        scope, {"title": "child", "parent_task_id": root.id, "metadata": {"x": {"y": [1, None]}}}
    )
    await tasks.create(scope, {"title": "later", "dependencies": [child.id], "status": "on_hold"})
    old = await memories.create(
        scope, {"note": "Sun\nand sea", "latitude": 1.5, "longitude": -2, "salience_score": 0.1}
    )
    new = await memories.create(scope, {"note": "Rain", "supersedes": old.id, "expires_at": "2099-01-01"})
    await memories.anchor(scope, new.id, {"anchor_item_id": root.id, "weight": 2.5, "notes": "why"})
    gone = await memories.create(scope, {"note": "gone"})
    await memories.delete(scope, gone.id)
    await ActivityService(records).create(
        scope, {"title": "Run", "activity_type": "exercise", "duration_minutes": 5, "companions": ["Zoë"]}
    )
    await TimelineService(records, tasks).create(scope, {"type": "habit", "title": "Floss"})
    await TimeTrackingService(records).start(scope, root.id, "at it")
    work = {"objective": "o", "task_type": "coding", "task_id": child.id, "agent_id": "agent-1"}
    await WorkQueueService(records, named).create(scope, {**work, "guardrails": {"dataScopes": ["mail"]}})


async def rows_of(database: Database, person: str) -> dict[str, int]:
    """The number of a person's rows, in each table with an owner column."""
    async with database.read_transaction() as connection:
        tables = [table for table in metadata.sorted_tables if "user_id" in table.c]
        counted = {
            table.name: await connection.scalar(select(func.count()).where(table.c.user_id == person))
            for table in tables
        }
    return {name: number for name, number in counted.items() if number}


def without_time(document: Any) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name not in ("exported_at", "user_id")}


async def test_a_person_has_a_zone_of_their_own(records: PersonDatabase) -> None:
    people = PersonDataService(records)
    assert await people.zone(ANN) == "UTC"
    assert await people.set_zone(ANN, "america/new_york") == "America/New_York"
    assert (await people.zone(ANN), await people.zone(BOB)) == ("America/New_York", "UTC")
    with pytest.raises(Invalid, match="Unknown time zone"):
        await people.set_zone(ANN, "Mars/Olympus")


async def test_an_export_has_everything_and_can_be_taken_in_as_it_was(
    records: PersonDatabase, database: Database
) -> None:
    people = PersonDataService(records)
    await fill(records, ANN)
    exported = await people.export(ANN)
    document = json.loads(json.dumps(exported))
    assert document == exported
    assert {name for name, rows in document["records"].items() if rows} == {table.name for table in PERSON_TABLES}
    assert (document["format"], document["version"], document["zone"]) == ("frontdesk-memory", 1, "Europe/Berlin")
    assert document["records"]["timeline_items"][0]["tags"] == ["a", "b c"]
    before = await rows_of(database, "ann")
    taken = await people.import_(BOB, document)
    assert taken == {name: len(rows) for name, rows in document["records"].items()}
    assert await rows_of(database, "bob") == before
    assert without_time(await people.export(BOB)) == without_time(document)
    memories, tasks = MemoryService(records), TaskService(records)
    wanted = MemoryFilter(include_superseded=True)
    assert (await memories.list(BOB, wanted)).items == (await memories.list(ANN, wanted)).items
    root = document["records"]["tasks"][0]["id"]
    assert await tasks.tree(BOB, root) == await tasks.tree(ANN, root)
    await tasks.delete(BOB, root)
    assert await rows_of(database, "ann") == before
    assert without_time(await people.export(ANN)) == without_time(document)


async def test_an_export_goes_into_an_empty_account_only(records: PersonDatabase) -> None:
    people = PersonDataService(records)
    await fill(records, ANN)
    document = await people.export(ANN)
    await CategoryService(records).create(BOB, {"name": "kept"})
    for scope in (ANN, BOB):
        before = await people.export(scope)
        with pytest.raises(Conflict, match="erase them first"):
            await people.import_(scope, document)
        assert without_time(await people.export(scope)) == without_time(before)


Spoil = Callable[[dict[str, Any]], object]
WRONG: list[tuple[Spoil, str]] = [
    (lambda it: it.update(format="zip"), "format must be frontdesk-memory"),
    (lambda it: it.update(version=2), "version 1"),
    (lambda it: it.update(zone="Nowhere"), "Unknown time zone"),
    (lambda it: it.update(zone=None), "zone is missing"),
    (lambda it: it.update(records=[]), "has no records"),
    (lambda it: it["records"].update(secrets=[]), "not known here: secrets"),
    (lambda it: it["records"].update(tasks={}), "tasks must be a list"),
    (lambda it: it["records"].update(categories=["x"]), r"categories\[0\] must be a record"),
    (lambda it: it["records"]["memories"][0].update(user_id="bob"), r"memories\[0\] has fields .*: user_id"),
    (lambda it: it["records"]["memories"][0].pop("note"), r"memories\[0\].note is missing"),
    (lambda it: it["records"]["memories"][0].update(note=3), "must be a text"),
    (lambda it: it["records"]["memories"][0].update(note="a\0"), "must be a text"),
    (lambda it: it["records"]["memories"][0].update(id="1"), "must be an id"),
    (lambda it: it["records"]["memories"][0].update(memory_type="dream"), "must be one of note, link"),
    (lambda it: it["records"]["memories"][0].update(place_name="p" * 301), "at most 300"),
    (lambda it: it["records"]["memories"][0].update(emotion_valence=1.5), "must be a whole number"),
    (lambda it: it["records"]["memories"][0].update(emotion_valence=2**31), "must be a whole number"),
    (lambda it: it["records"]["memories"][0].update(salience_score=float("inf")), "must be a number"),
    (lambda it: it["records"]["memories"][0].update(is_highlight=1), "true or false"),
    (lambda it: it["records"]["memories"][0].update(captured_at="soon"), "ISO 8601"),
    (lambda it: it["records"]["memories"][0].update(captured_at=None), "captured_at is missing"),
    (lambda it: it["records"]["timeline_items"][0].update(tags="a"), "list of texts"),
    (lambda it: it["records"]["timeline_items"][0].update(tags=[1]), "list of texts"),
    (lambda it: it["records"]["timeline_items"][0].update(metadata=[]), "JSON object"),
    (lambda it: it["records"]["memories"].pop(), "is not in both"),
    (lambda it: it["records"]["timeline_items"][0].update(type="habit"), "is not in both"),
    (lambda it: it["records"]["memories"][0].update(superseded_by=None), "does not say so too"),
    (lambda it: it["records"]["tasks"][1].update(hierarchy_level=4), "does not stand where"),
    (lambda it: it["records"]["tasks"][1].update(parent_task_id=None), "does not stand where"),
    (lambda it: it["records"]["categories"].clear(), "timeline_items contradict"),
    (lambda it: it["records"]["categories"].append(it["records"]["categories"][0]), "categories contradict"),
    (
        lambda it: it["records"]["time_entries"][0].update(timeline_item_id=it["records"]["categories"][0]["id"]),
        "time_en",
    ),
]


async def test_what_does_not_fit_is_refused_with_where_and_why_and_nothing_is_taken_in(
    records: PersonDatabase, database: Database
) -> None:
    people = PersonDataService(records)
    await fill(records, ANN)
    document = json.loads(json.dumps(await people.export(ANN)))
    for spoil, said in WRONG:
        spoiled = deepcopy(document)
        spoil(spoiled)
        with pytest.raises(Invalid, match=said):
            await people.import_(EVE, spoiled)
    assert await rows_of(database, "eve") == {}


# Tables by person that are not records: those of editors (`db/person_data.py`) and the search index, made from records.
OTHER_TABLES = {"workspaces", "permissions", *(name for name in metadata.tables if name.startswith("recall_"))}


def test_every_memory_table_is_exported_and_erased() -> None:
    by_person = {table.name for table in metadata.sorted_tables if next(iter(table.primary_key)).name == "user_id"}
    assert by_person - OTHER_TABLES == {table.name for table in PERSON_TABLES}


async def test_erasing_leaves_nothing_of_a_person_and_everything_of_others(
    records: PersonDatabase, database: Database
) -> None:
    journal = Journal(JournalStore(database), Metrics, timedelta(days=30))
    chats = {"ann": 2, "bob": 1}

    async def entries(user_id: str) -> list[dict[str, Any]]:
        return [asdict(entry) for entry in await journal.entries_of_person(user_id)]

    async def forget_chats(user_id: str) -> int:
        return chats.pop(user_id, 0)

    elsewhere = [
        OtherPersonData("journal", export=entries, delete=journal.delete_person),
        OtherPersonData("chat_sessions", delete=forget_chats),
    ]
    people = PersonDataService(records, elsewhere)
    for person in ("ann", "bob"):
        await fill(records, PersonScope(person))
        journal.record(replace(an_entry(), user_id=person))
    document = await people.export(ANN)
    assert [entry["user_id"] for entry in document["elsewhere"]["journal"]] == ["ann"]
    assert set(document["elsewhere"]) == {"journal"}
    journal.record(replace(an_entry(), user_id="ann"))
    bobs = without_time(await people.export(BOB))
    erased = await people.erase(ANN)
    assert erased.counts == {
        **{name: len(rows) for name, rows in document["records"].items()},
        "journal": 2,
        "chat_sessions": 2,
    }
    assert erased.total == sum(erased.counts.values())
    assert await rows_of(database, "ann") == {}
    assert [entry.user_id for _, entry in await journal.read(JournalQuery())] == ["bob"]
    assert chats == {"bob": 1}
    assert without_time(await people.export(BOB)) == bobs
    assert await people.zone(ANN) == "UTC"
    assert (await TimelineService(records, TaskService(records)).list(ANN, TimelineFilter())).total == 0
    assert (await people.erase(ANN)).total == 0
    await people.import_(ANN, document)
    assert (await people.export(ANN))["records"] == document["records"]


async def test_only_who_may_do_everything_hands_out_takes_in_and_erases(records: PersonDatabase) -> None:
    people = PersonDataService(records)
    almost = PersonScope("ann", None, frozenset(rights.MEMORY_SCOPES) - {rights.MEMORY_ADMIN})
    admin = PersonScope("ann", None, frozenset({rights.MEMORY_ADMIN}))
    for attempt in (
        people.export(almost),
        people.import_(almost, {}),
        people.erase(almost),
        people.set_zone(almost, "UTC"),
    ):
        with pytest.raises(MissingScope, match="'admin'"):
            await attempt
    assert await people.zone(almost) == "UTC"
    assert (await people.export(admin))["records"]["tasks"] == []


# Row-level security behind the interfaces: whatever a statement selects, PostgreSQL returns one person's rows only


BEN = PersonScope("ben")
EVERYTHING = text("SELECT user_id, name FROM categories")
# Keys and the journal belong to the installation; they name people, and are queried in other ways.
NOT_THEIRS = {"people", "api_keys", "oauth_grants", "journal", "schedules", "occurrences", "turns"} | {
    "chat_replies",
    "chat_sessions",
    "block_versions",
    "conversations",
    "editor_sessions",
    "letta_agents",
    "permissions",
    "person_blocks",
    "workspaces",
}


@pytest.fixture
async def shared(tmp_path: Path, postgres: Postgres, ready: Ready) -> AsyncGenerator[Database]:
    opened = await Database.open(settings_with(FRONTDESK_DATA=tmp_path, FRONTDESK_DATABASE_URL=ready.on(postgres)))
    records = PersonDatabase(opened)
    for scope in (ANN, BEN):
        await records.change(scope, _make)
    yield opened
    await opened.close()


def _make(mine: PersonTransaction) -> None:
    named = Category(id=new_id(mine.now), name=f"of {mine.user_id}", created_at=mine.now, updated_at=mine.now)
    insert_category(mine, named)


def _put(mine: PersonTransaction) -> None:
    insert_item(
        mine, TimelineItem(id="1" * 36, type=ItemType.ROUTINE, title="Walk", created_at=NOON, updated_at=NOON), "walk"
    )


def _all(mine: PersonTransaction) -> list[str]:
    return [row.user_id for row in mine.connection.execute(EVERYTHING)]


@shows("MEMORY-WALLS")
async def test_a_raw_query_in_another_scope_returns_nothing_of_the_first(shared: Database) -> None:
    records = PersonDatabase(shared)
    assert await records.read(ANN, _all) == ["ann"]
    assert await records.read(BEN, _all) == ["ben"]
    assert await records.read(PersonScope("nobody"), _all) == []
    async with shared.read_transaction() as connection:
        rows = (await connection.execute(EVERYTHING)).all()
    assert len(rows) == 2, "the superuser of the tests, who has not stepped in, is held back by nothing"


async def test_what_belongs_to_somebody_else_can_be_neither_written_changed_nor_deleted(shared: Database) -> None:
    records = PersonDatabase(shared)

    def spoil(mine: PersonTransaction) -> tuple[int, int]:
        changed = mine.connection.execute(text("UPDATE categories SET name = 'mine' WHERE user_id = 'ann'")).rowcount
        return changed, mine.connection.execute(text("DELETE FROM categories WHERE user_id = 'ann'")).rowcount

    assert await records.change(BEN, spoil) == (0, 0)

    def plant(mine: PersonTransaction) -> None:
        mine.connection.execute(text("UPDATE categories SET user_id = 'ann' WHERE user_id = 'ben'"))

    with pytest.raises(Unavailable, match="row-level security"):
        await records.change(BEN, plant)
    assert await records.read(ANN, _all) == ["ann"]


async def test_every_table_that_holds_somebodys_rows_stands_behind_the_wall(shared: Database) -> None:
    holding = {table.name for table in metadata.tables.values() if "user_id" in table.c} - NOT_THEIRS

    def walled(connection: Connection) -> set[str]:
        found = "SELECT relname FROM pg_class WHERE relrowsecurity AND relforcerowsecurity"
        return {row.relname for row in connection.execute(text(found))}

    async with shared.read_transaction() as connection:
        assert holding
        assert holding <= await connection.run_sync(walled)


async def test_who_owns_the_tables_is_held_back_too_where_the_role_cannot_be_made(
    tmp_path: Path, postgres: Postgres
) -> None:
    """A database whose owner may create no roles: without a role to switch to, row security is forced on the owner."""
    url = postgres.create_database()
    name = url.partition("@/")[2].partition("?")[0]
    with psycopg.connect(postgres.url("postgres"), autocommit=True) as connection:
        connection.execute(f"DROP ROLE IF EXISTS plain_{name}".encode())
        connection.execute(f"CREATE ROLE plain_{name} LOGIN NOSUPERUSER NOCREATEROLE".encode())
        connection.execute(f"ALTER DATABASE {name} OWNER TO plain_{name}".encode())
    plain = url.replace("postgres@", f"plain_{name}@")
    database = await Database.open(settings_with(FRONTDESK_DATA=tmp_path, FRONTDESK_DATABASE_URL=plain))
    records = PersonDatabase(database)
    for scope in (ANN, BEN):
        await records.change(scope, _make)
        await records.change(scope, _put)
    assert await records.read(ANN, _all) == ["ann"]
    async with database.read_transaction() as connection:
        assert (await connection.execute(EVERYTHING)).all() == [], "nobody is named, so there is nobody's"
    listed = await PeopleDirectory(database).list_active_people(Caller("request", local=True), 10)
    assert [(one.person.user_id, one.last_change) for one in listed] == [("ann", NOON), ("ben", NOON)]
    await database.close()


async def test_a_person_who_was_named_in_one_transaction_is_not_named_in_the_next(shared: Database) -> None:
    async with shared.read_transaction() as connection:
        await connection.run_sync(lambda found: set_person(found, "ann", role=True))
        assert (await connection.execute(text("SELECT current_user"))).scalar_one() == PERSON_ROLE
    async with shared.read_transaction() as connection:
        assert (await connection.execute(text("SELECT current_user"))).scalar_one() == "postgres"
        person = text("SELECT current_setting('frontdesk.user_id', true)")
        assert (await connection.execute(person)).scalar_one() in (None, "")
        assert (await connection.execute(people.select())).all(), "who there is stands outside the wall"
