"""The addresses of every page of an installation where a day has passed."""

import json
import sqlite3
from contextlib import closing
from urllib.parse import quote

from tests.web.conftest import Installation

PLAIN = (
    "/",
    "/start",
    "/agents",
    "/tools",
    "/tools/plan",
    "/tools/all",
    "/tools/servers",
    "/tools/add",
    "/tools/use",
    "/tools/quality",
    "/schedule",
    "/schedule?show=runs",
    "/schedule/new",
    "/people",
    "/turns",
    "/access",
    "/access/denied",
    "/sign-in",
)
TABS = ("tasks", "memories", "timeline", "time", "work", "everything")


def addresses(installation: Installation) -> list[str]:
    """Those of lists, and one of each kind of thing that is listed."""
    with closing(sqlite3.connect(installation.data / "frontdesk.db", timeout=30)) as found:
        agent = _first(found, "SELECT id FROM agents LIMIT 1")
        tool = _first(found, "SELECT id FROM tools LIMIT 1")
        schedule = _first(found, "SELECT id FROM schedules LIMIT 1")
        turn = _first(found, "SELECT id FROM turns ORDER BY started_at DESC LIMIT 1")
    person = json.loads(installation.run("memory", "people", "--json").splitlines()[0])["user_id"]
    one_of_each = (
        f"/agents/{quote(agent)}",
        f"/agents/{quote(agent)}/memory",
        f"/agents/{quote(agent)}/talk",
        f"/tools/tool/{quote(tool, safe='')}",
        f"/schedule/{schedule}",
        f"/turns/{quote(turn)}",
        *(f"/people/{quote(person, safe='')}?tab={tab}" for tab in TABS),
    )
    return [*PLAIN, *one_of_each]


def _first(connection: sqlite3.Connection, query: str) -> str:
    row = connection.execute(query).fetchone()
    assert row is not None, query
    return str(row[0])
