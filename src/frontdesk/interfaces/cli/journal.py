"""Implements `frontdesk journal`: what was called, by whom, and how it ended."""

import json
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Annotated

import anyio
from cyclopts import Parameter

from frontdesk.app import App
from frontdesk.interfaces.app_runner import run_with_app
from frontdesk.interfaces.cli.output import Flag, Limit, format_time, parse_duration, printable_line
from frontdesk.journal.model import EntryKind, JournalEntry, Outcome
from frontdesk.journal.store import JournalQuery

POLL_SECONDS = 1.0


def read(
    *,
    agent: str | None = None,
    user: str | None = None,
    kind: EntryKind | None = None,
    outcome: Outcome | None = None,
    since: str | None = None,
    limit: Annotated[Limit, Parameter(help="Show at most this many rows, the newest ones.")] = 50,
    as_json: Annotated[bool, Parameter(name=("--json", "--as-json"), negative=(), show_default=False)] = False,
    follow: Flag = False,
) -> None:
    """Show what was called.

    Parameters
    ----------
    agent
        Only calls of this agent.
    user
        Only calls for this person.
    kind
        Only this kind: calls of Frontdesk, denials, turns of agents, calls of tools, or deliveries of prompts.
    outcome
        Only rows with this outcome.
    since
        Only the last 45s, 30m, 12h, 7d and so on.
    as_json
        Print one JSON object a line.
    follow
        Keep printing new rows.
    """
    start = datetime.now(UTC) - parse_duration(since) if since else None
    query = JournalQuery(agent, user, kind, outcome, start, limit=limit)

    async def show(app: App) -> None:
        last = 0
        while True:
            for number, entry in await app.journal.read(replace(query, after_id=last)):
                print(_format_entry(entry, number, as_json=as_json), flush=follow)
                last = number
            if not follow:
                return
            await anyio.sleep(POLL_SECONDS)

    run_with_app(show)


def _format_entry(entry: JournalEntry, number: int, *, as_json: bool) -> str:
    if as_json:
        return json.dumps({"id": number, **asdict(entry), "at": entry.at.isoformat()})
    who = printable_line(entry.agent_id or entry.user_id or "-")
    trust = "proven" if entry.verified else "asserted"
    why = f"  {printable_line(entry.reason)}" if entry.reason else ""
    if entry.claimed is not None:
        claims = [
            f"{name} {printable_line(claim)}" for name, claim in asdict(entry.claimed).items() if claim is not None
        ]
        why += f"  claimed: {', '.join(claims)}"
    took = f"{entry.duration_us / 1000:.1f} ms"
    at = format_time(entry.at, seconds=True)
    return f"{at}  {entry.outcome:<8}  {printable_line(entry.action):<24}  {who} ({entry.source}, {trust})  {took}{why}"
