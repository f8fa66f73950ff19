"""The tools handed out so far, in the database: every replica lists the same, also after a restart."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import RowMapping, delete, insert, select, update

from frontdesk.agents.letta.handed.model import Handed
from frontdesk.db import counters
from frontdesk.db.engine import Database, Transaction
from frontdesk.db.schema import handed_tools

CHANGES = "handed_tools"


class HandedStore:
    """Letta asks for the list after every call, so the last one is kept until something changes."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._last: tuple[int, Sequence[Handed]] | None = None

    async def listed(self) -> Sequence[Handed]:
        """All of them by name; the very same sequence as long as nothing changed."""
        async with self._database.reading() as connection:
            # The number before the rows: read the other way round, a change in between would be missed for good.
            revision = await counters.read(connection, CHANGES)
            if self._last is not None and self._last[0] == revision:
                return self._last[1]
            rows = (await connection.execute(select(handed_tools).order_by(handed_tools.c.name))).mappings().all()
        listed = [_handed(row) for row in rows]
        self._last = (revision, listed)
        return listed

    async def named(self, names: Iterable[str]) -> Mapping[str, Handed]:
        async with self._database.reading() as connection:
            return await _named(connection, names)

    async def put(self, tools: Sequence[Handed], now: datetime) -> Mapping[str, Handed]:
        """List these from now on, as they are given; and what is known of each, the place with Letta among it."""
        async with self._database.transaction() as connection:
            await counters.hold(connection, CHANGES)
            known = await _named(connection, [tool.name for tool in tools])
            changed = {tool.name: tool for tool in tools if not _is_known(tool, known)}
            if changed:
                await connection.execute(delete(handed_tools).where(handed_tools.c.name.in_(changed)))
                await connection.execute(insert(handed_tools), [_row(tool, now) for tool in changed.values()])
                await counters.bump(connection, CHANGES)
        return {**known, **changed}

    async def mark_registered(self, name: str, registered_as: str) -> None:
        """Letta has this one now, just as it is listed."""
        async with self._database.brief() as connection:
            await connection.execute(
                update(handed_tools).where(handed_tools.c.name == name).values(registered_as=registered_as)
            )


async def _named(connection: Transaction, names: Iterable[str]) -> dict[str, Handed]:
    rows = await connection.execute(select(handed_tools).where(handed_tools.c.name.in_(set(names))))
    return {row["name"]: _handed(row) for row in rows.mappings()}


def _is_known(tool: Handed, known: Mapping[str, Handed]) -> bool:
    return tool.name in known and known[tool.name].says_the_same_as(tool)


def _row(tool: Handed, now: datetime) -> dict[str, Any]:
    return {
        "name": tool.name,
        "server": tool.server,
        "remote_name": tool.remote_name,
        "description": tool.description,
        "parameters": json.dumps(tool.parameters),
        "registered_as": None,
        "handed_at": now,
    }


def _handed(row: RowMapping) -> Handed:
    return Handed(
        row["name"],
        row["server"],
        row["remote_name"],
        row["description"],
        json.loads(row["parameters"]),
        row["registered_as"],
    )
