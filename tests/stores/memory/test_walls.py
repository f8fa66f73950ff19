"""Row-level security behind the interfaces: whatever a statement asks for, PostgreSQL shows one person's rows alone."""

from collections.abc import AsyncGenerator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Connection, text

from frontdesk.db.engine import Database
from frontdesk.db.row_security import PERSON_ROLE, set_person
from frontdesk.db.schema import metadata, people
from frontdesk.errors import Unavailable
from frontdesk.identity.model import Caller
from frontdesk.memory.items_store import insert_category, insert_item
from frontdesk.memory.model import Category, ItemType, PersonScope, TimelineItem
from frontdesk.memory.people import PeopleDirectory
from frontdesk.memory.store import PersonDatabase, PersonTransaction
from frontdesk.memory.validation import new_id
from tests.conftest import settings_with
from tests.requirements import shows
from tests.stores.memory.conftest import NOON
from tests.support.postgres import Postgres
from tests.support.ready import Ready

pytestmark = pytest.mark.anyio
ANN, BEN = PersonScope("ann"), PersonScope("ben")
EVERYTHING = text("SELECT user_id, name FROM categories")
# Keys and the journal are the installation's own; they name people, and are asked about by other means.
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
    """A database of somebody who may make no roles: without the step into one, the walls are forced on the owner."""
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
