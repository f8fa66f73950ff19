"""`frontdesk journal`: what was called, by whom, and how it went."""

import json
from dataclasses import asdict, replace
from datetime import UTC, datetime

import anyio

from frontdesk.app import App
from frontdesk.journal.model import Entry, Kind, Outcome
from frontdesk.journal.store import Query
from frontdesk.surfaces.cli.running import with_app
from frontdesk.surfaces.cli.words import duration

POLL_SECONDS = 1.0


def read(
    *,
    agent: str | None = None,
    user: str | None = None,
    kind: Kind | None = None,
    outcome: Outcome | None = None,
    since: str | None = None,
    limit: int = 50,
    as_json: bool = False,
    follow: bool = False,
) -> None:
    """Read the journal, oldest first.

    Parameters
    ----------
    agent
        Only calls of this agent.
    user
        Only calls for this user.
    kind
        Only calls of ours, only denials, only turns of agents, or only calls of tools elsewhere.
    outcome
        Only calls that ended so.
    since
        Only the last while, e.g. 1h.
    limit
        At most so many rows, the newest.
    as_json
        One JSON object a line.
    follow
        Go on as new rows come.
    """
    start = datetime.now(UTC) - duration(since) if since else None
    query = Query(agent, user, kind, outcome, start, limit=limit)

    async def show(app: App) -> None:
        last = 0
        while True:
            for number, entry in await app.journal.read(replace(query, after_id=last)):
                print(_line(entry, number, as_json=as_json), flush=follow)
                last = number
            if not follow:
                return
            await anyio.sleep(POLL_SECONDS)

    with_app(show)


def _line(entry: Entry, number: int, *, as_json: bool) -> str:
    if as_json:
        return json.dumps({"id": number, **asdict(entry), "at": entry.at.isoformat()})
    who = entry.agent_id or entry.user_id or "-"
    trust = "proven" if entry.verified else "asserted"
    why = f"  {entry.reason}" if entry.reason else ""
    took = f"{entry.duration_us / 1000:.1f} ms"
    at = entry.at.strftime("%Y-%m-%d %H:%M:%S")
    return f"{at}  {entry.outcome:<8}  {entry.action:<24}  {who} ({entry.source}, {trust})  {took}{why}"
