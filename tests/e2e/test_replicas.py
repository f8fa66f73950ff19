"""Two servers on one PostgreSQL: any of them answers, and limits are shared."""

import json
from collections.abc import Mapping
from pathlib import Path

import anyio

from frontdesk.app import open_app
from frontdesk.interfaces.http.application import build_application
from frontdesk.journal.store import JournalQuery
from frontdesk.settings import Settings
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.desk import Desk, frontdesk_here, open_desk
from tests.support.postgres import Postgres
from tests.support.wire import MODERN, call, curl, send

CALLS_EACH = 8
SECONDS = 30


async def taking_turns(there: Desk, here: Settings, credential: Mapping[str, str]) -> list[int]:
    """The statuses that a server elsewhere and one in this process answer with, once the journal has them all."""
    said, body = call(MODERN)
    said |= credential
    statuses: list[int] = []
    # The database is all that the two have in common.
    async with open_app(here) as app:
        asgi = build_application(app)
        for _ in range(CALLS_EACH):
            statuses += [curl(there.mcp, said, body).status, (await send(asgi, said, body)).status]
        await app.journal.flush()
        with anyio.fail_after(SECONDS):
            while len(await app.journal.read(JournalQuery())) < len(statuses):
                await anyio.lowlevel.checkpoint()
    return statuses


@shows("RATE")
def test_a_key_made_anywhere_works_at_every_replica_and_its_rate_is_one(tmp_path: Path, postgres: Postgres) -> None:
    shared = {"FRONTDESK_DATABASE_URL": postgres.create_database(), "FRONTDESK_RATE_AGENT": "10/hour"}
    key = frontdesk_here("keys", "create", "--agent", "agent-1", data=tmp_path / "cli", **shared).stdout.strip()
    with open_desk(tmp_path / "there", **shared) as there:
        here = settings_with(FRONTDESK_DATA=tmp_path / "here", **shared)
        statuses = anyio.run(taking_turns, there, here, {"authorization": f"Bearer {key}"})
    assert statuses[:2] == [200, 200]
    assert statuses.count(200) == 10
    assert statuses.count(429) == 6
    rows = frontdesk_here("journal", "--limit", "100", "--as-json", data=tmp_path / "cli", **shared).stdout
    surfaces = [json.loads(row)["surface"] for row in rows.splitlines()]
    assert surfaces == ["cli", *["mcp"] * 16]
