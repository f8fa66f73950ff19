"""Stores tool servers, their tools and the tools' vectors."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast

import anyio
from sqlalchemy import RowMapping, Select, and_, bindparam, delete, insert, null, or_, select, tuple_, update

from frontdesk.db.engine import Database, Transaction
from frontdesk.db.schema import tool_servers, tool_vectors, tools
from frontdesk.db.statements import in_slices, increase_counter, lease_time, lock_counter, per_dialect, read_counter
from frontdesk.errors import NotFound
from frontdesk.tools import versions
from frontdesk.tools.model import CatalogueTool, ReviewStatus, ToolKind, tool_id
from frontdesk.tools.servers import (
    CHANGES_KEPT,
    CatalogueChange,
    ServerOrigin,
    ServerSpec,
    ServerState,
    ServerStatus,
    Transport,
)
from frontdesk.tools.versions import ChangeKind, KnownTool, ListingChange, ListingComparison

CATALOGUE_COUNTER = "catalogue"
# The columns that define how to reach a server. If one changes, the server is asked again.
DEFINITION_COLUMNS = ("transport", "url", "command", "env", "headers", "user_token", "oauth", "origin")

# Replicas declare their servers every few seconds. During a deployment their settings may differ.
LAPSE = timedelta(minutes=2)
# The clocks of replicas may differ by this much.
CLOCK_TOLERANCE = timedelta(minutes=1)


class ServerStore:
    """Stores servers. Each change has a revision, so that every replica notices it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def all(self) -> Sequence[ServerState]:
        async with self._database.read_transaction() as connection:
            rows = await connection.execute(select(tool_servers).order_by(tool_servers.c.name))
            return [_server_state(row) for row in rows.mappings()]

    async def put(self, specs: Collection[ServerSpec]) -> bool:
        """Add or update servers. Returns whether anything was written."""
        wanted = [_server_row(spec) for spec in specs]
        async with self._database.read_transaction() as connection:
            if not await _changed_servers(connection, wanted):
                return False
        async with self._database.transaction() as connection:
            await increase_counter(connection, CATALOGUE_COUNTER)
            for stored, row in await _changed_servers(connection, wanted):
                await _write_server(connection, stored, row)
        return True

    async def declare(self, specs: Collection[ServerSpec], now: datetime) -> None:
        """Record that this replica's settings and manifest declare these servers."""
        await self.put(specs)
        names = [spec.name for spec in specs]
        if names:
            async with self._database.transaction() as connection:
                mine = update(tool_servers).where(tool_servers.c.name.in_(names))
                await connection.execute(mine.values(declared_at=now))

    async def undeclared(self, names: Collection[str], now: datetime, kept: Collection[ServerOrigin] = ()) -> set[str]:
        """The servers that were not added by hand, and that neither `names` nor, for a while, any replica declares.

        Servers with an origin in `kept` are not included.
        """
        lapse = LAPSE if self._database.shared else timedelta()
        return {
            state.name
            for state in await self.all()
            if state.spec.origin not in (ServerOrigin.ADDED, *kept)
            and state.name not in names
            and (state.declared_at is None or state.declared_at <= now - lapse)
        }

    async def remove(self, names: Collection[str], now: datetime) -> bool:
        """Remove servers and their tools. Returns whether there were any."""
        async with self._database.transaction() as connection:
            revision = await increase_counter(connection, CATALOGUE_COUNTER)
            statement = update(tools).where(tools.c.server.in_(names), tools.c.gone.is_(False))
            await connection.execute(statement.values(gone=True, changed_at=now, revision=revision))
            done = await connection.execute(delete(tool_servers).where(tool_servers.c.name.in_(names)))
            return done.rowcount > 0

    async def claim(self, name: str, owner: str, lease: timedelta, asked_before: datetime) -> bool:
        """Claim the right to ask a server, unless another replica has it or asked after `asked_before`."""
        crawled, leased = tool_servers.c.crawled_at, tool_servers.c.leased_until
        async with self._database.transaction() as connection:
            now = await lease_time(connection)
            # A time in the future was written before the clock was set back.
            due = or_(crawled.is_(None), crawled <= asked_before, crawled > now + CLOCK_TOLERANCE)
            free = or_(leased.is_(None), leased < now, leased > now + lease + CLOCK_TOLERANCE)
            mine = update(tool_servers).where(tool_servers.c.name == name, free, due)
            done = await connection.execute(mine.values(leased_by=owner, leased_until=now + lease))
            return done.rowcount > 0

    async def fail(self, name: str, error: str, now: datetime, owner: str | None = None) -> None:
        """Record that a server did not answer. Its tools stay, marked stale. An `owner` must hold the claim."""
        async with self._database.transaction() as connection:
            row = await read_server(connection, name)
            if row is None or (owner is not None and row["leased_by"] != owner):
                return
            values: dict[str, Any] = {"crawled_at": now, "leased_by": None, "leased_until": None}
            if (row["status"], row["error"]) != (ServerStatus.FAILED, error):
                await increase_counter(connection, CATALOGUE_COUNTER)
                values |= {"status": ServerStatus.FAILED, "error": error}
            await connection.execute(_update_server(name).values(**values))


async def read_server(connection: Transaction, name: str) -> RowMapping | None:
    found = await connection.execute(select(tool_servers).where(tool_servers.c.name == name))
    return found.mappings().one_or_none()


async def record_listing(
    connection: Transaction, row: RowMapping, *, tools: int, problems: Sequence[str], summary: str, now: datetime
) -> dict[str, Any]:
    """Record that a server listed its tools. Returns what other replicas must know."""
    values: dict[str, Any] = {"status": ServerStatus.OK, "error": "", "problems": json.dumps(problems), "tools": tools}
    if summary:
        noted = [{"at": now.isoformat(), "what": summary}, *json.loads(row["changes"])]
        values["changes"] = json.dumps(noted[:CHANGES_KEPT])
    told = {name: value for name, value in values.items() if row[name] != value}
    always = {"crawled_at": now, "answered_at": now, "leased_by": None, "leased_until": None}
    await connection.execute(_update_server(row["name"]).values(**told, **always))
    return told


def _update_server(name: str):  # noqa: ANN202 - SQLAlchemy's own type says no more
    return update(tool_servers).where(tool_servers.c.name == name)


async def _write_server(connection: Transaction, stored: RowMapping | None, row: dict[str, Any]) -> None:
    if stored is None:
        fresh = {"status": ServerStatus.NEW, "error": "", "problems": "[]", "changes": "[]", "tools": 0}
        await connection.execute(insert(tool_servers).values(**row, **fresh))
        return
    if any(stored[name] != row[name] for name in DEFINITION_COLUMNS):
        row |= {"crawled_at": None, "leased_by": None, "leased_until": None}
    await connection.execute(_update_server(stored["name"]).values(**row))


async def _changed_servers(
    connection: Transaction, wanted: Sequence[dict[str, Any]]
) -> list[tuple[RowMapping | None, dict[str, Any]]]:
    """The pairs (stored, wanted) that differ."""
    stored = {row["name"]: row for row in (await connection.execute(select(tool_servers))).mappings()}
    pairs = [(stored.get(row["name"]), row) for row in wanted]
    return [(old, row) for old, row in pairs if old is None or any(old[name] != row[name] for name in row)]


def _server_row(spec: ServerSpec) -> dict[str, Any]:
    # Each replica reads its own settings and manifest, and gets the platform's answer with its own tokens. Only servers
    # that exist nowhere else are stored completely.
    whole = spec.origin is ServerOrigin.ADDED
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


def _server_state(row: RowMapping) -> ServerState:
    command, *args = cast("list[str]", json.loads(row["command"]))
    of_platform = row["origin"] == ServerOrigin.PLATFORM
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
        ServerOrigin(row["origin"]),
        row["hold_changes"],
        row["timeout"],
        token_for=json.loads(row["oauth"]) if of_platform else {},
    )
    changes = tuple(
        CatalogueChange(datetime.fromisoformat(one["at"]), one["what"]) for one in json.loads(row["changes"])
    )
    return ServerState(
        spec,
        ServerStatus(row["status"]),
        row["error"],
        tuple(json.loads(row["problems"])),
        changes,
        row["tools"],
        row["crawled_at"],
        row["answered_at"],
        row["declared_at"],
    )


KNOWN_COLUMNS = ("name", "api_name", "seal", "standing", "change", "other", "refused", "gone")
INDEXED_COLUMNS = ("id", "revision", "server", "name", "description", "inputs", "input_texts", "kind", "digest")
SELECT_TOOL = select(tools, tool_servers.c.status.label("server_status"), tool_servers.c.answered_at).outerjoin(
    tool_servers, tool_servers.c.name == tools.c.server
)


@dataclass(frozen=True, slots=True)
class IndexedTool:
    """A tool as the index takes it, with its vector if it has one. Not `usable`: remove it from the index."""

    id: str
    revision: int
    server: str
    name: str
    description: str
    inputs: tuple[str, ...]
    input_texts: str
    kind: ToolKind
    digest: str
    usable: bool
    vector: bytes | None = None


@dataclass(frozen=True, slots=True)
class ToolFilter:
    """Which tools to list: at most `limit` after the id `after`. `changed`: only those that wait for a review."""

    server: str | None = None
    kind: ToolKind | None = None
    standing: ReviewStatus | None = None
    changed: bool = False
    after: str = ""
    limit: int = 100


class ToolStore:
    """Stores tools. Removed tools stay for a while: one that comes back is compared with its approved version."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def revision(self) -> int:
        async with self._database.read_transaction() as connection:
            return await read_counter(connection, CATALOGUE_COUNTER)

    async def changed_since(self, revision: int, after: str, limit: int, model: str | None) -> Sequence[IndexedTool]:
        """The next tools that changed after tool `after` of this revision, in the order of their changes."""
        this_model = and_(tool_vectors.c.digest == tools.c.digest, tool_vectors.c.model == (model or ""))
        query = (
            select(*(tools.c[name] for name in INDEXED_COLUMNS), tools.c.gone, tools.c.standing, tool_vectors.c.vector)
            .outerjoin(tool_vectors, this_model)
            .where(tuple_(tools.c.revision, tools.c.id) > (revision, after))
            .order_by(tools.c.revision, tools.c.id)
            .limit(limit)
        )
        async with self._database.read_transaction() as connection:
            return [_indexed_tool(row) for row in (await connection.execute(query)).mappings()]

    async def texts(self, ids: Sequence[str]) -> Sequence[IndexedTool]:
        """The texts of tools for the index."""
        query = select(
            *(tools.c[name] for name in INDEXED_COLUMNS), tools.c.gone, tools.c.standing, null().label("vector")
        )
        async with self._database.read_transaction() as connection:
            return [
                _indexed_tool(row) for row in (await connection.execute(query.where(tools.c.id.in_(ids)))).mappings()
            ]

    async def many(self, ids: Sequence[str]) -> Mapping[str, CatalogueTool]:
        """The known tools with these ids."""
        found: dict[str, CatalogueTool] = {}
        async with self._database.read_transaction() as connection:
            for some in in_slices(ids):
                rows = await connection.execute(SELECT_TOOL.where(tools.c.id.in_(some), tools.c.gone.is_(False)))
                found |= {row["id"]: _catalogue_tool(row) for row in rows.mappings()}
        return found

    async def find_by_name(self, name: str) -> Sequence[CatalogueTool]:
        """The tools that a name means: an id, else the name that models see, else the tools of that name on any server.

        A name that once was an id or a model's name never gets another meaning: no server can take a dead tool's calls.
        """
        by_name = or_(tools.c.id == name, tools.c.api_name == name, tools.c.name == name)
        async with self._database.read_transaction() as connection:
            rows = (await connection.execute(SELECT_TOOL.where(by_name).order_by(tools.c.id))).mappings().all()
        for column in ("id", "api_name"):
            if exact := [row for row in rows if row[column] == name]:
                return [_catalogue_tool(row) for row in exact if not row["gone"]]
        return [_catalogue_tool(row) for row in rows if not row["gone"]]

    async def page(self, filters: ToolFilter) -> Sequence[CatalogueTool]:
        chosen = (
            _apply_filter(SELECT_TOOL, filters)
            .where(tools.c.id > filters.after)
            .order_by(tools.c.id)
            .limit(filters.limit)
        )
        async with self._database.read_transaction() as connection:
            return [_catalogue_tool(row) for row in (await connection.execute(chosen)).mappings()]

    async def other_version(self, found: str) -> Mapping[str, Any] | None:
        """The version of a changed tool that is not in use: the new one if the tool is held, else the old one."""
        async with self._database.read_transaction() as connection:
            stored = (await connection.execute(select(tools.c.other).where(tools.c.id == found))).scalar_one_or_none()
        return json.loads(stored) if stored else None

    async def is_held_back(self, found: str) -> bool:
        """Whether a tool waits for a review, even if its server no longer lists it."""
        held = select(tools.c.id).where(tools.c.id == found, tools.c.standing == ReviewStatus.HELD)
        async with self._database.read_transaction() as connection:
            return (await connection.execute(held)).one_or_none() is not None

    async def known(self, server: str) -> Mapping[str, KnownTool]:
        async with self._database.read_transaction() as connection:
            return await _read_known(connection, server)

    async def apply(
        self,
        server: str,
        kind: ToolKind,
        decide: Callable[[Mapping[str, KnownTool]], ListingComparison],
        problems: Sequence[str],
        now: datetime,
        owner: str | None = None,
    ) -> ListingComparison | None:
        """Write the changes of a server's listing; None if the server was removed meanwhile, or `owner` lost its claim.

        Changing a server's definition ends the claim, so that a listing from its old address is not stored for the new
        one.
        """
        async with self._database.transaction() as connection:
            revision = await lock_counter(connection, CATALOGUE_COUNTER) + 1
            row = await read_server(connection, server)
            if row is None or (owner is not None and row["leased_by"] != owner):
                return None
            before = await _read_known(connection, server)
            found = await anyio.to_thread.run_sync(decide, before)
            stamp = {"changed_at": now, "revision": revision}
            await _write_changes(connection, server, kind, found.changes, stamp)
            told = await record_listing(
                connection,
                row,
                tools=found.tools,
                problems=[*problems, *found.problems],
                summary=found.summary if before else "",
                now=now,
            )
            if told or found.changes:
                await increase_counter(connection, CATALOGUE_COUNTER)
        return found

    async def review(self, found: str, now: datetime, *, accept: bool) -> None:
        """Accept or refuse the change of a tool."""
        async with self._database.transaction() as connection:
            revision = await increase_counter(connection, CATALOGUE_COUNTER)
            rows = await connection.execute(select(tools).where(tools.c.id == found, tools.c.gone.is_(False)))
            row = rows.mappings().one_or_none()
            if row is None:
                raise NotFound(f"There is no tool '{found}'; check its id")
            values = versions.reviewed_version(row, accept=accept)
            change = update(tools).where(tools.c.id == found)
            await connection.execute(change.values(**values, changed_at=now, revision=revision))

    async def prune(self, before: datetime) -> None:
        """Delete tools that were removed before this time."""
        async with self._database.transaction() as connection:
            await connection.execute(delete(tools).where(tools.c.gone.is_(True), tools.c.changed_at < before))


async def _read_known(connection: Transaction, server: str) -> Mapping[str, KnownTool]:
    query = select(*(tools.c[name] for name in KNOWN_COLUMNS)).where(tools.c.server == server)
    rows = (await connection.execute(query)).all()

    def known() -> Mapping[str, KnownTool]:
        return {row.name: versions.known_from_row(dict(zip(KNOWN_COLUMNS, row, strict=True))) for row in rows}

    # A server may have thousands of tools, and no other write should wait for this.
    return await anyio.to_thread.run_sync(known)


async def _write_changes(
    connection: Transaction, server: str, kind: ToolKind, changes: Sequence[ListingChange], stamp: Mapping[str, Any]
) -> None:
    place = {"server": server, "kind": kind, "gone": False, **stamp}
    new = [one.listed for one in changes if one.kind is ChangeKind.NEW and one.listed is not None]
    for some in in_slices(new):
        rows = [{"id": tool_id(server, one.name), **place, **versions.first_version(one)} for one in some]
        await connection.execute(insert(tools), rows)
    for kinds, gone in (((ChangeKind.GONE,), True), ((ChangeKind.BACK,), False)):
        ids = [tool_id(server, one.name) for one in changes if one.kind in kinds]
        for some in in_slices(ids):
            await connection.execute(update(tools).where(tools.c.id.in_(some)).values(gone=gone, **stamp))
    moved = [one for one in changes if one.kind in (ChangeKind.TAKEN, ChangeKind.HELD, ChangeKind.SETTLED)]
    for some in in_slices(moved):
        await _write_versions(connection, {tool_id(server, one.name): one for one in some}, stamp)


async def _write_versions(
    connection: Transaction, moved: Mapping[str, ListingChange], stamp: Mapping[str, Any]
) -> None:
    rows = (await connection.execute(select(tools).where(tools.c.id.in_(moved)))).mappings().all()
    values = [
        {
            "the_id": row["id"],
            **versions.changed_version(row, moved[row["id"]], stamp["changed_at"]),
            "gone": False,
            **stamp,
        }
        for row in rows
    ]
    await connection.execute(update(tools).where(tools.c.id == bindparam("the_id")), values)


def _apply_filter(statement: Select[Any], filters: ToolFilter) -> Select[Any]:
    chosen = statement.where(tools.c.gone.is_(False))
    for column in ("server", "kind", "standing"):
        value = getattr(filters, column)
        if value is not None:
            chosen = chosen.where(tools.c[column] == value)
    return chosen.where(tools.c.change != "") if filters.changed else chosen


def _indexed_tool(row: RowMapping) -> IndexedTool:
    values: dict[str, Any] = {name: row[name] for name in INDEXED_COLUMNS}
    usable = not row["gone"] and row["standing"] == ReviewStatus.READY
    values |= {"inputs": tuple(row["inputs"].split("\n")) if row["inputs"] else (), "kind": ToolKind(row["kind"])}
    return IndexedTool(**values, usable=usable, vector=row["vector"])


def _catalogue_tool(row: RowMapping) -> CatalogueTool:
    return CatalogueTool(
        row["id"],
        row["server"],
        row["name"],
        row["description"],
        json.loads(row["parameters"]),
        ToolKind(row["kind"]),
        json.loads(row["annotations"]),
        ReviewStatus(row["standing"]),
        row["change"],
        stale=row["server_status"] == ServerStatus.FAILED,
        seen_at=row["answered_at"],
        changed_at=row["changed_at"],
    )


INSERT_VECTORS = per_dialect(lambda insert: insert(tool_vectors).on_conflict_do_nothing())


class ToolVectorStore:
    """Stores packed vectors (`search/vectors.py`)."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, model: str, digests: Sequence[str]) -> Mapping[str, bytes]:
        """The known vectors with these digests."""
        found: dict[str, bytes] = {}
        async with self._database.read_transaction() as connection:
            for some in in_slices(digests):
                these = tool_vectors.c.digest.in_(some)
                rows = await connection.execute(select(tool_vectors).where(tool_vectors.c.model == model, these))
                found |= {row.digest: row.vector for row in rows}
        return found

    async def put(self, model: str, vectors: Mapping[str, bytes]) -> None:
        rows = [{"model": model, "digest": digest, "vector": vector} for digest, vector in vectors.items()]
        async with self._database.transaction() as connection:
            for some in in_slices(rows):
                await connection.execute(INSERT_VECTORS[connection.dialect.name], some)

    async def prune(self) -> int:
        """Delete the vectors of texts that no tool has. Returns how many."""
        unused = tool_vectors.c.digest.not_in(select(tools.c.digest))
        async with self._database.transaction() as connection:
            return (await connection.execute(delete(tool_vectors).where(unused))).rowcount
