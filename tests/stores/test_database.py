"""Tests the schema and its migrations, on both databases."""

import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import anyio
import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, text

from frontdesk.db.engine import Database
from frontdesk.db.migrate import HEAD_VERSION, schema_version
from frontdesk.db.schema import metadata
from frontdesk.db.sqlite import CHECKPOINT_IN_LULL
from frontdesk.errors import ConfigurationError, Unavailable
from frontdesk.settings import Settings
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.postgres import Postgres
from tests.support.waiting import until


@shows("DB-SCHEMA")
@pytest.mark.parametrize("shared", [False, True])
async def test_the_migrations_make_exactly_the_schema(tmp_path: Path, postgres: Postgres, *, shared: bool) -> None:
    where = {"FRONTDESK_DATABASE_URL": postgres.create_database()} if shared else {"FRONTDESK_DATA": tmp_path / "data"}
    database = await Database.open(settings_with(**where))

    def differences(connection: Connection) -> list[object]:
        return compare_metadata(MigrationContext.configure(connection, opts={"compare_type": True}), metadata)

    async with database.read_transaction() as connection:
        assert await connection.run_sync(differences) == []
        assert await connection.run_sync(schema_version) == HEAD_VERSION
    await database.close()


@pytest.mark.parametrize("shared", [False, True])
async def test_replicas_that_start_together_do_not_trip_over_each_other(
    tmp_path: Path, postgres: Postgres, *, shared: bool
) -> None:
    where = {"FRONTDESK_DATABASE_URL": postgres.create_database()} if shared else {"FRONTDESK_DATA": tmp_path / "data"}
    settings = settings_with(**where)
    opened: list[Database] = []

    async def start() -> None:
        opened.append(await Database.open(settings))

    async with anyio.create_task_group() as replicas:
        for _ in range(4):
            replicas.start_soon(start)
    for database in opened:
        await database.ping()
        await database.close()
    assert len(opened) == 4


async def test_a_database_from_a_newer_version_is_refused_and_left_alone(settings: Settings) -> None:
    database = await Database.open(settings)
    async with database.transaction() as connection:
        await connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    await database.close()
    with pytest.raises(ConfigurationError, match="newer"):
        await Database.open(settings)


async def test_many_transactions_in_a_row_are_folded_back_while_others_write(tmp_path: Path) -> None:
    database = await Database.open(settings_with(FRONTDESK_DATA=tmp_path / "data"))
    path = tmp_path / "data" / "frontdesk.db"
    for number in range(CHECKPOINT_IN_LULL):
        await database.write(lambda here, number=number: here.execute(ADD, {"id": f"agent-{number}"}), small=False)
    await until(lambda: _folded_back(path) == CHECKPOINT_IN_LULL)
    await database.close()
    assert not path.with_name("frontdesk.db-wal").exists(), "nobody is left who holds it open"


def _folded_back(path: Path) -> int:
    """The number of agents in the database file itself, without its log; during a write it cannot be read."""
    with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as connection, suppress(sqlite3.DatabaseError):
        return connection.execute("SELECT count(*) FROM agents").fetchone()[0]
    return 0


async def test_a_failed_transaction_leaves_nothing(database: Database) -> None:
    with pytest.raises(RuntimeError):
        await _insert_and_fail(database)
    async with database.read_transaction() as connection:
        assert (await connection.execute(text("SELECT count(*) FROM agents"))).scalar_one() == 0


async def _insert_and_fail(database: Database) -> None:
    async with database.transaction() as connection:
        await connection.execute(ADD, {"id": "a"})
        raise RuntimeError


async def test_a_cancelled_caller_leaves_a_transaction_whole_and_the_database_usable(database: Database) -> None:
    async def add() -> None:
        async with database.transaction() as connection:
            await connection.execute(ADD, {"id": "a"})
            tasks.cancel_scope.cancel()
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(add)
    async with database.read_transaction() as connection:
        # SQLite's driver cannot be stopped midway, so it finishes the transaction.
        kept = 0 if database.shared else 1
        assert (await connection.execute(text("SELECT count(*) FROM agents"))).scalar_one() == kept


ADD = text("INSERT INTO agents (id, name, description, created_at) VALUES (:id, 'A', '', '2026-01-01')")


async def test_a_brief_transaction_waits_for_another_writer_and_holds_up_nobody(database: Database) -> None:
    order: list[str] = []

    async def add() -> None:
        async with database.brief_transaction() as brief:
            await brief.execute(ADD, {"id": "brief"})
        order.append("brief")

    async with anyio.create_task_group() as tasks, database.transaction() as connection:
        await connection.execute(ADD, {"id": "long"})
        tasks.start_soon(add)
        for _ in range(20):
            await database.ping()
        if database.shared:
            await until(lambda: bool(order))
        order.append("long")
    assert order == (["brief", "long"] if database.shared else ["long", "brief"])
    async with database.read_transaction() as connection:
        assert (await connection.execute(text("SELECT count(*) FROM agents"))).scalar_one() == 2


async def _add_and_fail(database: Database) -> None:
    async with database.brief_transaction() as brief:
        await brief.execute(ADD, {"id": "lost"})
        raise RuntimeError


async def test_a_brief_transaction_that_fails_leaves_nothing_and_the_next_one_works(database: Database) -> None:
    with pytest.raises(RuntimeError):
        await _add_and_fail(database)
    with pytest.raises(Unavailable):
        async with database.brief_transaction() as brief:
            await brief.execute(text("SELECT * FROM nowhere"))
    async with database.brief_transaction() as brief:
        await brief.execute(ADD, {"id": "kept"})
    async with database.read_transaction() as connection:
        assert (await connection.execute(text("SELECT id FROM agents"))).scalars().all() == ["kept"]


@pytest.mark.parametrize(
    ("url", "said"),
    [("mysql://localhost/x", "postgresql://"), ("not a url", "not a database URL")],
)
async def test_a_database_we_cannot_use_is_named(url: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        await Database.open(settings_with(FRONTDESK_DATABASE_URL=url))


async def test_a_database_that_is_not_there_is_said_without_its_password() -> None:
    url = "postgresql://desk:hunter2@127.0.0.1:1/desk"
    with pytest.raises(Unavailable) as caught:
        await Database.open(settings_with(FRONTDESK_DATABASE_URL=url))
    assert "hunter2" not in str(caught.value)
    assert "FRONTDESK_DATABASE_URL" in str(caught.value)


async def test_a_look_at_a_connection_that_is_cut_off_ends_as_such_and_spoils_the_connection_for_nobody(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = await Database.open(settings_with(FRONTDESK_DATABASE_URL=postgres.create_database()))
    with anyio.CancelScope() as scope:

        def cut_off(connection: Any) -> bool:
            """The result of a read whose caller has no more time: an open query, and an error instead of a result."""
            scope.cancel()
            connection.driver_connection.pgconn.send_query(b"SELECT pg_sleep(0.1)")
            raise psycopg.ProgrammingError("can't change 'autocommit' now: connection in transaction status ACTIVE")

        with monkeypatch.context() as patch:
            patch.setattr(database.engine.sync_engine.dialect, "do_ping", cut_off)
            await database.ping()
    assert scope.cancelled_caught
    await database.ping()
    await database.close()
