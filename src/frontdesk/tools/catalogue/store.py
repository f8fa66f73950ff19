"""The catalogue's tools in the database; each change has a revision, by which replicas follow each other."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import anyio
from sqlalchemy import RowMapping, Select, and_, bindparam, delete, insert, null, or_, select, tuple_, update

from frontdesk.db import counters
from frontdesk.db.engine import Database, Transaction
from frontdesk.db.lists import sliced
from frontdesk.db.schema import tool_servers, tool_vectors, tools
from frontdesk.errors import NotFound
from frontdesk.tools.catalogue import versions
from frontdesk.tools.catalogue.changes import Change, Comparison, Known
from frontdesk.tools.catalogue.changes import Kind as ChangeKind
from frontdesk.tools.catalogue.roster.model import Status
from frontdesk.tools.catalogue.roster.store import COUNTER, note_answer, read_server
from frontdesk.tools.model import CatalogueTool, Kind, Standing, tool_id

KNOWN = ("name", "api_name", "seal", "standing", "change", "other", "refused", "gone")
INDEXED = ("id", "revision", "server", "name", "description", "inputs", "input_texts", "kind", "digest")
TOOL = select(tools, tool_servers.c.status.label("server_status"), tool_servers.c.answered_at).outerjoin(
    tool_servers, tool_servers.c.name == tools.c.server
)


@dataclass(frozen=True, slots=True)
class Indexed:
    """A tool as search takes it in, with its vector where that is known; `usable` False: it is to be left out."""

    id: str
    revision: int
    server: str
    name: str
    description: str
    inputs: tuple[str, ...]
    input_texts: str
    kind: Kind
    digest: str
    usable: bool
    vector: bytes | None = None


@dataclass(frozen=True, slots=True)
class Filter:
    """Which tools to list: the `limit` that come after the id `after`. `changed`: those that wait for a review."""

    server: str | None = None
    kind: Kind | None = None
    standing: Standing | None = None
    changed: bool = False
    after: str = ""
    limit: int = 100


class ToolStore:
    """Tools that are gone stay as they were for a while: one that comes back is compared with what was approved."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def revision(self) -> int:
        async with self._database.reading() as connection:
            return await counters.read(connection, COUNTER)

    async def changed_since(self, revision: int, after: str, limit: int, model: str | None) -> Sequence[Indexed]:
        """The next tools that changed after tool `after` of this revision, in the order of their changes."""
        this_model = and_(tool_vectors.c.digest == tools.c.digest, tool_vectors.c.model == (model or ""))
        wanted = (
            select(*(tools.c[name] for name in INDEXED), tools.c.gone, tools.c.standing, tool_vectors.c.vector)
            .outerjoin(tool_vectors, this_model)
            .where(tuple_(tools.c.revision, tools.c.id) > (revision, after))
            .order_by(tools.c.revision, tools.c.id)
            .limit(limit)
        )
        async with self._database.reading() as connection:
            return [_indexed(row) for row in (await connection.execute(wanted)).mappings()]

    async def texts(self, ids: Sequence[str]) -> Sequence[Indexed]:
        """These tools as search takes them in."""
        wanted = select(*(tools.c[name] for name in INDEXED), tools.c.gone, tools.c.standing, null().label("vector"))
        async with self._database.reading() as connection:
            return [_indexed(row) for row in (await connection.execute(wanted.where(tools.c.id.in_(ids)))).mappings()]

    async def many(self, ids: Sequence[str]) -> Mapping[str, CatalogueTool]:
        """Those of these tools that there are."""
        found: dict[str, CatalogueTool] = {}
        async with self._database.reading() as connection:
            for some in sliced(ids):
                rows = await connection.execute(TOOL.where(tools.c.id.in_(some), tools.c.gone.is_(False)))
                found |= {row["id"]: _tool(row) for row in rows.mappings()}
        return found

    async def named(self, name: str) -> Sequence[CatalogueTool]:
        """What a name means: an id, else the name that models see, else the tools of that name of any server.

        A name that once was an id or a model's name means nothing else later: no server can take a dead tool's calls.
        """
        by_name = or_(tools.c.id == name, tools.c.api_name == name, tools.c.name == name)
        async with self._database.reading() as connection:
            rows = (await connection.execute(TOOL.where(by_name).order_by(tools.c.id))).mappings().all()
        for column in ("id", "api_name"):
            if exact := [row for row in rows if row[column] == name]:
                return [_tool(row) for row in exact if not row["gone"]]
        return [_tool(row) for row in rows if not row["gone"]]

    async def page(self, wanted: Filter) -> Sequence[CatalogueTool]:
        chosen = _chosen(TOOL, wanted).where(tools.c.id > wanted.after).order_by(tools.c.id).limit(wanted.limit)
        async with self._database.reading() as connection:
            return [_tool(row) for row in (await connection.execute(chosen)).mappings()]

    async def other_version(self, found: str) -> Mapping[str, Any] | None:
        """The version of a changed tool that does not count: new where it is held, else the one it had before."""
        async with self._database.reading() as connection:
            stored = (await connection.execute(select(tools.c.other).where(tools.c.id == found))).scalar_one_or_none()
        return json.loads(stored) if stored else None

    async def withheld(self, found: str) -> bool:
        """Whether a tool waits for a review, also one that its server lists no more."""
        held = select(tools.c.id).where(tools.c.id == found, tools.c.standing == Standing.HELD)
        async with self._database.reading() as connection:
            return (await connection.execute(held)).one_or_none() is not None

    async def known(self, server: str) -> Mapping[str, Known]:
        async with self._database.reading() as connection:
            return await _known(connection, server)

    async def apply(
        self,
        server: str,
        kind: Kind,
        decide: Callable[[Mapping[str, Known]], Comparison],
        problems: Sequence[str],
        now: datetime,
        owner: str | None = None,
    ) -> Comparison | None:
        """Write what a server's listing changes; None where the server was removed meanwhile, or is not `owner`'s.

        Whoever defines a server anew takes the lease away: what stood at its former address is not listed as its own.
        """
        async with self._database.transaction() as connection:
            revision = await counters.hold(connection, COUNTER) + 1
            row = await read_server(connection, server)
            if row is None or (owner is not None and row["leased_by"] != owner):
                return None
            before = await _known(connection, server)
            found = await anyio.to_thread.run_sync(decide, before)
            stamp = {"changed_at": now, "revision": revision}
            await _write(connection, server, kind, found.changes, stamp)
            told = await note_answer(
                connection,
                row,
                tools=found.tools,
                problems=[*problems, *found.problems],
                summary=found.summary if before else "",
                now=now,
            )
            if told or found.changes:
                await counters.bump(connection, COUNTER)
        return found

    async def review(self, found: str, now: datetime, *, accept: bool) -> None:
        """Accept or refuse how a tool changed."""
        async with self._database.transaction() as connection:
            revision = await counters.bump(connection, COUNTER)
            rows = await connection.execute(select(tools).where(tools.c.id == found, tools.c.gone.is_(False)))
            row = rows.mappings().one_or_none()
            if row is None:
                raise NotFound(f"There is no tool '{found}'; check its id")
            values = versions.reviewed(row, accept=accept)
            change = update(tools).where(tools.c.id == found)
            await connection.execute(change.values(**values, changed_at=now, revision=revision))

    async def prune(self, before: datetime) -> None:
        """Forget tools that went before then."""
        async with self._database.transaction() as connection:
            await connection.execute(delete(tools).where(tools.c.gone.is_(True), tools.c.changed_at < before))


async def _known(connection: Transaction, server: str) -> Mapping[str, Known]:
    wanted = select(*(tools.c[name] for name in KNOWN)).where(tools.c.server == server)
    rows = (await connection.execute(wanted)).all()

    def known() -> Mapping[str, Known]:
        return {row.name: versions.known(dict(zip(KNOWN, row, strict=True))) for row in rows}

    # A server may have thousands, and nobody else should wait for that.
    return await anyio.to_thread.run_sync(known)


async def _write(
    connection: Transaction, server: str, kind: Kind, changes: Sequence[Change], stamp: Mapping[str, Any]
) -> None:
    place = {"server": server, "kind": kind, "gone": False, **stamp}
    new = [one.listed for one in changes if one.kind is ChangeKind.NEW and one.listed is not None]
    for some in sliced(new):
        rows = [{"id": tool_id(server, one.name), **place, **versions.first(one)} for one in some]
        await connection.execute(insert(tools), rows)
    for kinds, gone in (((ChangeKind.GONE,), True), ((ChangeKind.BACK,), False)):
        ids = [tool_id(server, one.name) for one in changes if one.kind in kinds]
        for some in sliced(ids):
            await connection.execute(update(tools).where(tools.c.id.in_(some)).values(gone=gone, **stamp))
    moved = [one for one in changes if one.kind in (ChangeKind.TAKEN, ChangeKind.HELD, ChangeKind.SETTLED)]
    for some in sliced(moved):
        await _move(connection, {tool_id(server, one.name): one for one in some}, stamp)


async def _move(connection: Transaction, moved: Mapping[str, Change], stamp: Mapping[str, Any]) -> None:
    rows = (await connection.execute(select(tools).where(tools.c.id.in_(moved)))).mappings().all()
    values = [
        {"the_id": row["id"], **versions.moved(row, moved[row["id"]], stamp["changed_at"]), "gone": False, **stamp}
        for row in rows
    ]
    await connection.execute(update(tools).where(tools.c.id == bindparam("the_id")), values)


def _chosen(statement: Select[Any], wanted: Filter) -> Select[Any]:
    chosen = statement.where(tools.c.gone.is_(False))
    for column in ("server", "kind", "standing"):
        value = getattr(wanted, column)
        if value is not None:
            chosen = chosen.where(tools.c[column] == value)
    return chosen.where(tools.c.change != "") if wanted.changed else chosen


def _indexed(row: RowMapping) -> Indexed:
    values: dict[str, Any] = {name: row[name] for name in INDEXED}
    usable = not row["gone"] and row["standing"] == Standing.READY
    values |= {"inputs": tuple(row["inputs"].split("\n")) if row["inputs"] else (), "kind": Kind(row["kind"])}
    return Indexed(**values, usable=usable, vector=row["vector"])


def _tool(row: RowMapping) -> CatalogueTool:
    return CatalogueTool(
        row["id"],
        row["server"],
        row["name"],
        row["description"],
        json.loads(row["parameters"]),
        Kind(row["kind"]),
        json.loads(row["annotations"]),
        Standing(row["standing"]),
        row["change"],
        stale=row["server_status"] == Status.FAILED,
        seen_at=row["answered_at"],
        changed_at=row["changed_at"],
    )
