"""Stores the catalogue's tools that Letta agents hold, so that every replica lists the same."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import RowMapping, delete, insert, select, update

from frontdesk.db.engine import Database, Transaction
from frontdesk.db.schema import handed_tools
from frontdesk.db.statements import increase_counter, lock_counter, read_counter

HANDED_TOOLS_PATH = "/mcp/held"


def agent_lock(agent_id: str) -> str:
    """What turns of an agent of Letta's stand in, one after the other."""
    return f"letta:{agent_id}"


@dataclass(frozen=True, slots=True)
class HandedTool:
    """A copy of what the catalogue said; `registered_as` is the MCP server under which Letta has it just so."""

    name: str
    server: str
    remote_name: str
    description: str
    parameters: Mapping[str, Any]
    registered_as: str | None = None

    @property
    def identity(self) -> tuple[str, str]:
        """Whose tool it is, and its name there."""
        return self.server, self.remote_name

    def has_same_description(self, other: "HandedTool") -> bool:
        """Whether Letta would be told the same of both."""
        return (self.description, self.parameters) == (other.description, other.parameters)


CHANGE_COUNTER = "handed_tools"


class HandedToolStore:
    """Letta asks for the list after every call, so the last one is kept until something changes."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._last: tuple[int, Sequence[HandedTool]] | None = None

    async def listed(self) -> Sequence[HandedTool]:
        """All of them by name; the very same sequence as long as nothing changed."""
        async with self._database.read_transaction() as connection:
            # The number before the rows: read the other way round, a change in between would be missed for good.
            revision = await read_counter(connection, CHANGE_COUNTER)
            if self._last is not None and self._last[0] == revision:
                return self._last[1]
            rows = (await connection.execute(select(handed_tools).order_by(handed_tools.c.name))).mappings().all()
        listed = [_handed_tool(row) for row in rows]
        self._last = (revision, listed)
        return listed

    async def named(self, names: Iterable[str]) -> Mapping[str, HandedTool]:
        async with self._database.read_transaction() as connection:
            return await _read_named(connection, names)

    async def put(self, tools: Sequence[HandedTool], now: datetime) -> Mapping[str, HandedTool]:
        """List these from now on, as they are given; and what is known of each, the place with Letta among it."""
        async with self._database.transaction() as connection:
            await lock_counter(connection, CHANGE_COUNTER)
            known = await _read_named(connection, [tool.name for tool in tools])
            changed = {tool.name: tool for tool in tools if not _is_known(tool, known)}
            if changed:
                await connection.execute(delete(handed_tools).where(handed_tools.c.name.in_(changed)))
                await connection.execute(insert(handed_tools), [_row(tool, now) for tool in changed.values()])
                await increase_counter(connection, CHANGE_COUNTER)
        return {**known, **changed}

    async def mark_registered(self, name: str, registered_as: str) -> None:
        """Letta has this one now, just as it is listed."""
        async with self._database.brief_transaction() as connection:
            await connection.execute(
                update(handed_tools).where(handed_tools.c.name == name).values(registered_as=registered_as)
            )


async def _read_named(connection: Transaction, names: Iterable[str]) -> dict[str, HandedTool]:
    rows = await connection.execute(select(handed_tools).where(handed_tools.c.name.in_(set(names))))
    return {row["name"]: _handed_tool(row) for row in rows.mappings()}


def _is_known(tool: HandedTool, known: Mapping[str, HandedTool]) -> bool:
    return tool.name in known and known[tool.name].has_same_description(tool)


def _row(tool: HandedTool, now: datetime) -> dict[str, Any]:
    return {
        "name": tool.name,
        "server": tool.server,
        "remote_name": tool.remote_name,
        "description": tool.description,
        "parameters": json.dumps(tool.parameters),
        "registered_as": None,
        "handed_at": now,
    }


def _handed_tool(row: RowMapping) -> HandedTool:
    return HandedTool(
        row["name"],
        row["server"],
        row["remote_name"],
        row["description"],
        json.loads(row["parameters"]),
        row["registered_as"],
    )
