"""Stores the catalogue's tools that Letta agents hold, so that every replica lists the same tools."""

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
    """The name of the lock of a Letta agent's turns, which run one after another."""
    return f"letta:{agent_id}"


@dataclass(frozen=True, slots=True)
class HandedTool:
    """A copy of a tool in the catalogue; `registered_as` is the MCP server under which Letta has this version of it."""

    name: str
    server: str
    remote_name: str
    description: str
    parameters: Mapping[str, Any]
    registered_as: str | None = None

    @property
    def identity(self) -> tuple[str, str]:
        """The tool's server and its name on that server."""
        return self.server, self.remote_name

    def has_same_description(self, other: "HandedTool") -> bool:
        """Whether Letta would get the same description and parameters for both."""
        return (self.description, self.parameters) == (other.description, other.parameters)


CHANGE_COUNTER = "handed_tools"


class HandedToolStore:
    """Stores the tools, and caches the list until it changes, because Letta asks for it after every call."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._last: tuple[int, Sequence[HandedTool]] | None = None

    async def listed(self) -> Sequence[HandedTool]:
        """All tools by name; the identical sequence as long as nothing has changed."""
        async with self._database.read_transaction() as connection:
            # The counter is read before the rows. In the other order, a change between the two reads would never be
            # noticed.
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
        """List these tools from now on; returns what is stored of each, with its registration at Letta."""
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
        """Record that Letta has this tool in the listed version."""
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
