"""Two servers on one PostgreSQL: any of them answers, and limits are shared."""

from pathlib import Path

from tests.requirements import shows
from tests.support.desk import frontdesk, open_desk
from tests.support.postgres import Postgres
from tests.support.wire import MODERN, call, curl


@shows("RATE")
def test_a_key_made_anywhere_works_at_every_replica_and_its_rate_is_one(tmp_path: Path, postgres: Postgres) -> None:
    shared = {"FRONTDESK_DATABASE_URL": postgres.create_database(), "FRONTDESK_RATE_AGENT": "10/hour"}
    key = frontdesk("keys", "create", "--agent", "agent-1", data=tmp_path / "cli", **shared).stdout.strip()
    said, body = call(MODERN)
    with open_desk(tmp_path / "one", **shared) as one, open_desk(tmp_path / "two", **shared) as two:
        answers = [
            curl(desk.mcp, said | {"authorization": f"Bearer {key}"}, body) for _ in range(8) for desk in (one, two)
        ]
    statuses = [answer.status for answer in answers]
    assert statuses.count(200) == 10
    assert statuses.count(429) == 6
    rows = frontdesk("journal", "--limit", "100", "--as-json", data=tmp_path / "cli", **shared).stdout.splitlines()
    assert len(rows) == 16
