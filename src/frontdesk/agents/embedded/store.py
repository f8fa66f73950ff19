"""The built-in host's agents in the database: who they are, what they remember, which tools they hold."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, Select, String, bindparam, delete, insert, select, update

from frontdesk.agents.blocks import changed
from frontdesk.agents.embedded.model import AttachedTool, first_conversation
from frontdesk.agents.host import Agent, Block, BlockVersion
from frontdesk.db.engine import Database, Transaction
from frontdesk.db.schema import agent_tools, agents, block_versions, blocks, conversations, messages, turns
from frontdesk.errors import NotFound

# Made once: every turn runs these, and to build a statement takes longer than to run it.
THE_AGENT = bindparam("agent_id", type_=String())
AGENT = select(agents).where(agents.c.id == THE_AGENT)
BLOCKS = select(blocks).where(blocks.c.agent_id == THE_AGENT).order_by(blocks.c.position, blocks.c.label)
# The newest last: what stands before them in a model's prompt need not be read anew.
TOOLS = (
    select(agent_tools)
    .where(agent_tools.c.agent_id == THE_AGENT)
    .order_by(agent_tools.c.attached_at, agent_tools.c.name)
)
LOCK = select(agents.c.id).where(agents.c.id == THE_AGENT).with_for_update()
HELD = select(agent_tools.c.name, agent_tools.c.attached_at).where(agent_tools.c.agent_id == THE_AGENT)
TAKE = delete(agent_tools).where(
    agent_tools.c.agent_id == THE_AGENT, agent_tools.c.name.in_(bindparam("names", expanding=True))
)
GIVE = insert(agent_tools)
# As many as somebody would look back through.
VERSIONS = 50


class AgentStore:
    """Agents, their memory blocks and their tools. `changes` counts those of tools that came through here."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.changes = 0

    async def add(self, agent: Agent, memory: Sequence[Block], now: datetime) -> None:
        row = {
            "id": agent.id,
            "name": agent.name,
            "description": agent.description,
            "model": agent.model,
            "created_at": now,
        }
        async with self._database.transaction() as connection:
            await connection.execute(insert(agents).values(row))
            if memory:
                rows = [_block_row(agent.id, block, place, now) for place, block in enumerate(memory)]
                await connection.execute(insert(blocks), rows)
            thread = {"id": first_conversation(agent.id), "agent_id": agent.id, "title": "", "created_at": now}
            await connection.execute(insert(conversations).values(**thread, summary_until=0))

    async def get(self, agent_id: str) -> Agent | None:
        async with self._database.reading() as connection:
            return await read_agent(connection, agent_id)

    async def list(self, limit: int) -> Sequence[Agent]:
        wanted = select(agents).order_by(agents.c.created_at, agents.c.id).limit(limit)
        async with self._database.reading() as connection:
            rows = (await connection.execute(wanted)).all()
        return [_agent(row) for row in rows]

    async def names(self, ids: Collection[str]) -> Mapping[str, str]:
        wanted = select(agents.c.id, agents.c.name).where(agents.c.id.in_(ids))
        rows = await self._database.look(lambda connection: connection.execute(wanted).all())
        return {row.id: row.name for row in rows}

    async def delete(self, agent_id: str) -> bool:
        """Forget an agent and all that belongs to it; whether there was one."""
        theirs = select(conversations.c.id).where(conversations.c.agent_id == agent_id).scalar_subquery()
        async with self._database.transaction() as connection:
            await connection.execute(delete(messages).where(messages.c.conversation_id.in_(theirs)))
            for table in (conversations, turns, blocks, block_versions, agent_tools):
                await connection.execute(delete(table).where(table.c.agent_id == agent_id))
            return (await connection.execute(delete(agents).where(agents.c.id == agent_id))).rowcount > 0

    async def blocks(self, agent_id: str) -> Sequence[Block]:
        async with self._database.reading() as connection:
            return await read_blocks(connection, agent_id)

    async def edit_block(
        self, agent_id: str, label: str, change: Callable[[str], str], now: datetime
    ) -> tuple[Block, Block]:
        """Change a block's value by its rules; (before, after). Nobody else's change can come between."""
        mine = (blocks.c.agent_id == agent_id, blocks.c.label == label)
        async with self._database.transaction() as connection:
            row = (await connection.execute(select(blocks).where(*mine).with_for_update())).one_or_none()
            if row is None:
                known = ", ".join(block.label for block in await read_blocks(connection, agent_id)) or "none"
                raise NotFound(f"There is no memory block '{label}'; there are: {known}")
            before = _block(row)
            after = changed(before, change)
            await connection.execute(update(blocks).where(*mine).values(value=after.value, updated_at=now))
            if after.value != before.value:
                await _keep_version(connection, agent_id, before, now)
        return before, after

    async def versions(self, agent_id: str, label: str) -> Sequence[BlockVersion]:
        """What stood in a block before, the newest first."""
        wanted = _versions(agent_id, label).with_only_columns(block_versions.c.value, block_versions.c.until)
        async with self._database.reading() as connection:
            return [BlockVersion(row.value, row.until) for row in await connection.execute(wanted)]

    async def tools(self, agent_id: str) -> Sequence[AttachedTool]:
        async with self._database.reading() as connection:
            found = await read_tools(connection, agent_id)
            if not found and await read_agent(connection, agent_id) is None:
                raise no_agent(agent_id)
        return found

    async def change_tools(
        self, agent_id: str, attach: Sequence[AttachedTool], detach: Sequence[str], now: datetime
    ) -> Sequence[str]:
        """Take tools from an agent and give it others, in place of those of the same names; the names it had to lose.

        All at once, so that whoever reads them sees the agent's tools as they were or as they are to be.
        """
        new = {tool.name: tool for tool in attach}
        async with self._database.brief() as connection:
            # Held until the end: two changes of one agent's tools do not trip over each other.
            if (await connection.execute(LOCK, {"agent_id": agent_id})).one_or_none() is None:
                raise no_agent(agent_id)
            rows = (await connection.execute(HELD, {"agent_id": agent_id})).all()
            since = {row.name: row.attached_at for row in rows}
            gone = [name for name in since if name in new or name in detach]
            if gone:
                await connection.execute(TAKE, {"agent_id": agent_id, "names": gone})
            if new:
                rows = [_tool_row(agent_id, tool, since.get(tool.name, now)) for tool in new.values()]
                await connection.execute(GIVE, rows)
        self.changes += 1
        return [name for name in gone if name not in new]


async def _keep_version(connection: Transaction, agent_id: str, before: Block, now: datetime) -> None:
    row = {"agent_id": agent_id, "label": before.label, "value": before.value, "until": now}
    await connection.execute(insert(block_versions).values(row))
    oldest = _versions(agent_id, before.label).with_only_columns(block_versions.c.id).offset(VERSIONS).limit(1)
    last = (await connection.execute(oldest)).scalar_one_or_none()
    if last is not None:
        theirs = (block_versions.c.agent_id == agent_id, block_versions.c.label == before.label)
        await connection.execute(delete(block_versions).where(*theirs, block_versions.c.id <= last))


def _versions(agent_id: str, label: str) -> Select[Any]:
    theirs = (block_versions.c.agent_id == agent_id, block_versions.c.label == label)
    return select(block_versions).where(*theirs).order_by(block_versions.c.id.desc())


async def read_agent(connection: Transaction, agent_id: str) -> Agent | None:
    row = (await connection.execute(AGENT, {"agent_id": agent_id})).one_or_none()
    return _agent(row) if row else None


async def read_blocks(connection: Transaction, agent_id: str) -> Sequence[Block]:
    return [_block(row) for row in (await connection.execute(BLOCKS, {"agent_id": agent_id})).all()]


async def read_tools(connection: Transaction, agent_id: str) -> Sequence[AttachedTool]:
    rows = (await connection.execute(TOOLS, {"agent_id": agent_id})).all()
    return [
        AttachedTool(
            row.name, row.description, json.loads(row.parameters), row.server, row.remote_name, row.needs_approval
        )
        for row in rows
    ]


def _agent(row: Row[tuple[object, ...]]) -> Agent:
    return Agent(row.id, row.name, row.description, row.model)


def _block(row: Row[tuple[object, ...]]) -> Block:
    return Block(row.label, row.value, row.description, row.size_limit, row.read_only)


def _block_row(agent_id: str, block: Block, position: int, now: datetime) -> dict[str, object]:
    return {
        "agent_id": agent_id,
        "label": block.label,
        "value": block.value,
        "description": block.description,
        "size_limit": block.limit,
        "read_only": block.read_only,
        "position": position,
        "updated_at": now,
    }


def _tool_row(agent_id: str, tool: AttachedTool, since: datetime) -> dict[str, object]:
    return {
        "agent_id": agent_id,
        "name": tool.name,
        "description": tool.description,
        "parameters": json.dumps(tool.parameters),
        "server": tool.server,
        "remote_name": tool.remote_name,
        "needs_approval": tool.needs_approval,
        "attached_at": since,
    }


def no_agent(agent_id: str) -> NotFound:
    return NotFound(f"There is no agent '{agent_id}'; check the id, or create the agent")
