"""The roster of tool servers in the database: who is on it, how each is, and who asks it just now."""

import json
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any, cast

from sqlalchemy import RowMapping, delete, insert, or_, select, update

from frontdesk.db import clock, counters
from frontdesk.db.engine import Database, Transaction
from frontdesk.db.schema import tool_servers, tools
from frontdesk.tools.catalogue.roster.model import REMEMBERED, Noted, ServerState, Status
from frontdesk.tools.catalogue.servers import Origin, ServerSpec, Transport

COUNTER = "catalogue"
# What says how a server is reached: when any of it changes, the server is asked anew.
DEFINITION = ("transport", "url", "command", "env", "headers", "user_token", "oauth", "origin")

# A replica says every few seconds what its settings name; replicas that are being replaced may differ.
LAPSE = timedelta(minutes=2)
# So far the clocks of replicas may differ.
CLOCKS_APART = timedelta(minutes=1)


class RosterStore:
    """Servers come and go with a new revision of the catalogue, so that every replica hears of it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def all(self) -> Sequence[ServerState]:
        async with self._database.reading() as connection:
            rows = await connection.execute(select(tool_servers).order_by(tool_servers.c.name))
            return [_state(row) for row in rows.mappings()]

    async def put(self, specs: Collection[ServerSpec]) -> bool:
        """Add these, or bring what is stored of them up to date; whether anything was to be written."""
        wanted = [_row(spec) for spec in specs]
        async with self._database.reading() as connection:
            if not await _changed(connection, wanted):
                return False
        async with self._database.transaction() as connection:
            await counters.bump(connection, COUNTER)
            for stored, row in await _changed(connection, wanted):
                await _write(connection, stored, row)
        return True

    async def declare(self, specs: Collection[ServerSpec], now: datetime) -> None:
        """Write down what this replica's settings and manifest name, and that they still do."""
        await self.put(specs)
        names = [spec.name for spec in specs]
        if names:
            async with self._database.transaction() as connection:
                mine = update(tool_servers).where(tool_servers.c.name.in_(names))
                await connection.execute(mine.values(declared_at=now))

    async def undeclared(self, names: Collection[str], now: datetime, kept: Collection[Origin] = ()) -> set[str]:
        """Those that nobody added and that are not named, neither here nor, for a while, by any other replica.

        What one of `kept` named is not among them.
        """
        lapse = LAPSE if self._database.shared else timedelta()
        return {
            state.name
            for state in await self.all()
            if state.spec.origin not in (Origin.ADDED, *kept)
            and state.name not in names
            and (state.declared_at is None or state.declared_at <= now - lapse)
        }

    async def remove(self, names: Collection[str], now: datetime) -> bool:
        """Take servers off the roster, and with them their tools; whether there were any."""
        async with self._database.transaction() as connection:
            revision = await counters.bump(connection, COUNTER)
            theirs = update(tools).where(tools.c.server.in_(names), tools.c.gone.is_(False))
            await connection.execute(theirs.values(gone=True, changed_at=now, revision=revision))
            done = await connection.execute(delete(tool_servers).where(tool_servers.c.name.in_(names)))
            return done.rowcount > 0

    async def claim(self, name: str, owner: str, lease: timedelta, asked_before: datetime) -> bool:
        """Take it on to ask a server; not while another does, nor when it was asked since `asked_before`."""
        crawled, leased = tool_servers.c.crawled_at, tool_servers.c.leased_until
        async with self._database.transaction() as connection:
            now = await clock.now(connection)
            # What lies ahead was written before the clock was set back.
            due = or_(crawled.is_(None), crawled <= asked_before, crawled > now + CLOCKS_APART)
            free = or_(leased.is_(None), leased < now, leased > now + lease + CLOCKS_APART)
            mine = update(tool_servers).where(tool_servers.c.name == name, free, due)
            done = await connection.execute(mine.values(leased_by=owner, leased_until=now + lease))
            return done.rowcount > 0

    async def fail(self, name: str, error: str, now: datetime, owner: str | None = None) -> None:
        """It did not answer: its tools stay, marked stale. Not while it is another's to ask than `owner`'s."""
        async with self._database.transaction() as connection:
            row = await read_server(connection, name)
            if row is None or (owner is not None and row["leased_by"] != owner):
                return
            values: dict[str, Any] = {"crawled_at": now, "leased_by": None, "leased_until": None}
            if (row["status"], row["error"]) != (Status.FAILED, error):
                await counters.bump(connection, COUNTER)
                values |= {"status": Status.FAILED, "error": error}
            await connection.execute(_the(name).values(**values))


async def read_server(connection: Transaction, name: str) -> RowMapping | None:
    found = await connection.execute(select(tool_servers).where(tool_servers.c.name == name))
    return found.mappings().one_or_none()


async def note_answer(
    connection: Transaction, row: RowMapping, *, tools: int, problems: Sequence[str], summary: str, now: datetime
) -> dict[str, Any]:
    """Write that a server listed its tools; what of it is news to others."""
    values: dict[str, Any] = {"status": Status.OK, "error": "", "problems": json.dumps(problems), "tools": tools}
    if summary:
        noted = [{"at": now.isoformat(), "what": summary}, *json.loads(row["changes"])]
        values["changes"] = json.dumps(noted[:REMEMBERED])
    told = {name: value for name, value in values.items() if row[name] != value}
    always = {"crawled_at": now, "answered_at": now, "leased_by": None, "leased_until": None}
    await connection.execute(_the(row["name"]).values(**told, **always))
    return told


def _the(name: str):  # noqa: ANN202 - SQLAlchemy's own type says no more
    return update(tool_servers).where(tool_servers.c.name == name)


async def _write(connection: Transaction, stored: RowMapping | None, row: dict[str, Any]) -> None:
    if stored is None:
        fresh = {"status": Status.NEW, "error": "", "problems": "[]", "changes": "[]", "tools": 0}
        await connection.execute(insert(tool_servers).values(**row, **fresh))
        return
    if any(stored[name] != row[name] for name in DEFINITION):
        row |= {"crawled_at": None, "leased_by": None, "leased_until": None}
    await connection.execute(_the(stored["name"]).values(**row))


async def _changed(
    connection: Transaction, wanted: Sequence[dict[str, Any]]
) -> list[tuple[RowMapping | None, dict[str, Any]]]:
    """(stored, wanted) of those that are not yet as wanted."""
    stored = {row["name"]: row for row in (await connection.execute(select(tool_servers))).mappings()}
    pairs = [(stored.get(row["name"]), row) for row in wanted]
    return [(old, row) for old, row in pairs if old is None or any(old[name] != row[name] for name in row)]


def _row(spec: ServerSpec) -> dict[str, Any]:
    # What settings and manifest say, each replica reads there; what the platform says, it is told with tokens of its
    # own. Only what exists nowhere else is stored whole.
    whole = spec.origin is Origin.ADDED
    return {
        "name": spec.name,
        "transport": spec.transport,
        "url": spec.url if whole else spec.place,
        "command": json.dumps([spec.command, *spec.args] if whole else [spec.command]),
        "env": json.dumps(dict(spec.env) if whole else {}),
        "headers": json.dumps(dict(spec.headers) if whole else {}),
        "user_token": spec.user_token,
        "oauth": json.dumps(dict(spec.oauth if whole else spec.token_for)),
        "description": spec.description,
        "origin": spec.origin,
        "hold_changes": spec.hold_changes,
        "timeout": spec.timeout,
    }


def _state(row: RowMapping) -> ServerState:
    command, *args = cast("list[str]", json.loads(row["command"]))
    of_platform = row["origin"] == Origin.PLATFORM
    spec = ServerSpec(
        row["name"],
        Transport(row["transport"]),
        row["url"],
        command,
        tuple(args),
        json.loads(row["env"]),
        json.loads(row["headers"]),
        row["user_token"],
        {} if of_platform else json.loads(row["oauth"]),
        row["description"],
        Origin(row["origin"]),
        row["hold_changes"],
        row["timeout"],
        token_for=json.loads(row["oauth"]) if of_platform else {},
    )
    changes = tuple(Noted(datetime.fromisoformat(one["at"]), one["what"]) for one in json.loads(row["changes"]))
    return ServerState(
        spec,
        Status(row["status"]),
        row["error"],
        tuple(json.loads(row["problems"])),
        changes,
        row["tools"],
        row["crawled_at"],
        row["answered_at"],
        row["declared_at"],
    )
