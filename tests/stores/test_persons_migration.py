"""What an agent knew and was told before people were kept apart goes to whom it belongs, on both databases."""

from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, create_engine, text

from frontdesk.agents.embedded.store import first_conversation_id
from frontdesk.db.engine import Database, database_url
from frontdesk.db.migrate import MIGRATIONS
from frontdesk.settings import Settings
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.postgres import Postgres

pytestmark = pytest.mark.anyio
AT = "2026-01-01 00:00:00+00:00"
# Who has talked with each agent in its first conversation; None is nobody in particular.
TALKERS = {
    "agent-sole": ("ann",),
    "agent-here": (None, "local"),
    "agent-many": (None, "ann", "bob"),
    "agent-left": ("ann",),
    "agent-new": (),
}


@shows("KEPT-01")
@pytest.mark.parametrize("shared", [False, True])
async def test_what_was_kept_for_all_goes_to_whom_it_belongs(
    tmp_path: Path, postgres: Postgres, *, shared: bool
) -> None:
    where = {"FRONTDESK_DATABASE_URL": postgres.create_database()} if shared else {"FRONTDESK_DATA": tmp_path / "data"}
    settings = settings_with(**where)
    (tmp_path / "data").mkdir()
    _bring_to_the_version_before(settings)
    database = await Database.open(settings)
    async with database.read_transaction() as connection:
        rows = await connection.execute(text("SELECT agent_id, value, per_person, description FROM blocks"))
        found = {row.agent_id: row for row in rows}
        own = {
            tuple(row) for row in await connection.execute(text("SELECT agent_id, user_id, value FROM person_blocks"))
        }
        versions = {
            tuple(row) for row in await connection.execute(text("SELECT agent_id, user_id FROM block_versions"))
        }
        heard = await connection.execute(
            text(
                "SELECT conversations.agent_id, conversations.id, conversations.user_id, payload FROM messages "
                "JOIN conversations ON conversations.id = conversation_id"
            )
        )
        said = {tuple(row) for row in heard}
        lanes = {
            tuple(row)
            for row in await connection.execute(text("SELECT id, lane FROM turns WHERE agent_id = 'agent-many'"))
        }
        summaries = await connection.execute(text("SELECT id FROM conversations WHERE summary IS NOT NULL"))
        summed = {row.id for row in summaries}
    await database.close()
    assert own == {("agent-sole", "ann", "Likes tea"), ("agent-here", "", "Likes tea")}
    assert {name for name, row in found.items() if row.per_person} == {"agent-sole", "agent-here", "agent-new"}
    for agent in ("agent-many", "agent-left"):
        assert found[agent].value == "Likes tea"
        assert "--per-person" in found[agent].description
    assert (found["agent-sole"].value, found["agent-new"].value) == ("", "Likes tea")
    assert versions == {
        ("agent-sole", "ann"),
        ("agent-here", ""),
        ("agent-many", None),
        *((agent, None) for agent in ("agent-left", "agent-new")),
    }
    wanted = {
        (agent, first_conversation_id(agent, user), user, f"{agent} {user}")
        for agent, users in TALKERS.items()
        for user in users
    }
    assert {row for row in said if row[1] != "conv-begun"} == wanted
    assert ("agent-sole", "conv-begun", "ann", "begun") in said, "one that is one person's alone keeps its id"
    assert ("turn-agent-many-bob", f"conversation:{first_conversation_id('agent-many', 'bob')}") in lanes
    assert summed == {"conv-begun", "conv-new"}


def _bring_to_the_version_before(settings: Settings) -> None:
    """A database as the version before left it, lived in."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    url = database_url(settings)
    engine = create_engine(url.set(drivername="postgresql+psycopg" if settings.database_url else "sqlite"))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0010")
        _live_in(connection)
    engine.dispose()


def _live_in(connection: Connection) -> None:
    for agent, users in TALKERS.items():
        first = first_conversation_id(agent)
        _add(connection, "agents", id=agent, name=agent, description="", created_at=AT)
        block = {"label": "human", "value": "Likes tea", "description": "", "size_limit": 5000, "read_only": False}
        _add(connection, "blocks", agent_id=agent, position=0, updated_at=AT, **block)
        _add(connection, "block_versions", agent_id=agent, label="human", value="", until=AT)
        _converse(connection, agent, first)
        for user in users:
            _speak(connection, agent, first, user, f"{agent} {user}")
    _converse(connection, "agent-sole", "conv-begun")
    _speak(connection, "agent-sole", "conv-begun", "ann", "begun")
    # Bob deleted his conversation, and what the agent learned in it is where it was.
    told = {"surface": "acp", "action": "turn", "outcome": "ok", "source": "none", "verified": True, "duration_us": 1}
    _add(connection, "journal", at=AT, kind="turn", agent_id="agent-left", user_id="bob", **told)


def _converse(connection: Connection, agent: str, conversation: str) -> None:
    told = {"title": "", "summary": "What was said", "summary_until": 1, "created_at": AT}
    _add(connection, "conversations", id=conversation, agent_id=agent, **told)


def _speak(connection: Connection, agent: str, conversation: str, user: str | None, words: str) -> None:
    turn = f"turn-{words.replace(' ', '-')}"
    counted = {"cancel_asked": False, "input_tokens": 0, "output_tokens": 0, "running": False}
    times = {"leased_until": AT, "started_at": AT}
    names = {"id": turn, "agent_id": agent, "conversation_id": conversation, "user_id": user, "owner": "o"}
    _add(connection, "turns", lane=f"conversation:{conversation}", **names, **counted, **times)
    _add(connection, "messages", conversation_id=conversation, turn_id=turn, at=AT, folded="", payload=words)


def _add(connection: Connection, table: str, **row: Any) -> None:
    names = ", ".join(row)
    connection.execute(text(f"INSERT INTO {table} ({names}) VALUES ({', '.join(f':{name}' for name in row)})"), row)
