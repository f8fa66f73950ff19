"""Stores built-in agents, their memory blocks and their attached tools."""

import json
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from sqlalchemy import Executable, Row, Select, String, and_, bindparam, delete, func, insert, select, update

from frontdesk.agents.host import EVERYONE, Agent, BlockVersion, MemoryBlock, PersonFilter
from frontdesk.agents.memory_blocks import (
    block_row_user,
    change_block,
    is_per_person,
    may_change_block,
    require_block_changeable,
)
from frontdesk.db.engine import Database, Transaction
from frontdesk.db.schema import (
    agent_tools,
    agents,
    block_versions,
    blocks,
    conversations,
    messages,
    person_blocks,
    turns,
)
from frontdesk.db.statements import per_dialect
from frontdesk.errors import NotFound


@dataclass(frozen=True, slots=True)
class AttachedTool:
    """A tool of an MCP server that is attached to an agent."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    server: str
    remote_name: str
    needs_approval: bool = False


def first_conversation_id(agent_id: str, user_id: str | None = None) -> str:
    """The id of a person's first conversation with an agent; the one without a person exists from the start."""
    if user_id is not None:
        return f"conv-{uuid5(NAMESPACE_OID, f'{agent_id} {user_id}')}"
    return f"conv-{agent_id.removeprefix('agent-')}"[:64]


def conversation_lock(conversation_id: str) -> str:
    return f"conversation:{conversation_id}"


# Built once: every turn runs these, and building a statement takes longer than running it.
AGENT_ID_PARAMETER = bindparam("agent_id", type_=String())
SELECT_AGENT = select(agents).where(agents.c.id == AGENT_ID_PARAMETER)
# Blocks, each with the person's own text if there is one.
SELECT_BLOCKS = (
    select(blocks, person_blocks.c.value.label("own"))
    .select_from(
        blocks.outerjoin(
            person_blocks,
            and_(
                person_blocks.c.agent_id == blocks.c.agent_id,
                person_blocks.c.label == blocks.c.label,
                person_blocks.c.user_id == bindparam("row", type_=String()),
                blocks.c.per_person,
            ),
        )
    )
    .where(blocks.c.agent_id == AGENT_ID_PARAMETER)
    .order_by(blocks.c.position, blocks.c.label)
)
# The newest tools last, so that the provider's cache of the prompt stays valid up to them.
SELECT_TOOLS = (
    select(agent_tools)
    .where(agent_tools.c.agent_id == AGENT_ID_PARAMETER)
    .order_by(agent_tools.c.attached_at, agent_tools.c.name)
)
LOCK_AGENT = select(agents.c.id).where(agents.c.id == AGENT_ID_PARAMETER).with_for_update()
SELECT_TOOL_TIMES = select(agent_tools.c.name, agent_tools.c.attached_at).where(
    agent_tools.c.agent_id == AGENT_ID_PARAMETER
)
DELETE_TOOLS = delete(agent_tools).where(
    agent_tools.c.agent_id == AGENT_ID_PARAMETER, agent_tools.c.name.in_(bindparam("names", expanding=True))
)
INSERT_TOOLS = insert(agent_tools)
# How many versions of a block are kept.
KEPT_VERSIONS = 50
EditGuard = Callable[[Transaction], Awaitable[None]]


def _upsert_person_block(insert: Any) -> Executable:  # noqa: ANN401 - the two dialects' inserts have no common type
    new = insert(person_blocks)
    change = {name: new.excluded[name] for name in ("value", "updated_at")}
    return new.on_conflict_do_update(index_elements=["agent_id", "label", "user_id"], set_=change)


UPSERT_PERSON_BLOCK = per_dialect(_upsert_person_block)


class AgentStore:
    """Stores agents, their memory blocks and their tools; `changes` counts changes of tools by this process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.changes = 0

    async def add(self, agent: Agent, memory: Sequence[MemoryBlock], now: datetime) -> None:
        row = {
            "id": agent.id,
            "name": agent.name,
            "description": agent.description,
            "model": agent.model,
            "owner": agent.owner,
            "created_at": now,
        }
        async with self._database.transaction() as connection:
            await connection.execute(insert(agents).values(row))
            if memory:
                rows = [_block_row(agent.id, block, place, now) for place, block in enumerate(memory)]
                await connection.execute(insert(blocks), rows)
            thread = {"id": first_conversation_id(agent.id), "agent_id": agent.id, "title": "", "created_at": now}
            await connection.execute(insert(conversations).values(**thread, summary_until=0))

    async def get(self, agent_id: str) -> Agent | None:
        async with self._database.read_transaction() as connection:
            return await read_agent(connection, agent_id)

    async def list(self, limit: int) -> Sequence[Agent]:
        query = select(agents).order_by(agents.c.created_at, agents.c.id).limit(limit)
        async with self._database.read_transaction() as connection:
            rows = (await connection.execute(query)).all()
        return [_agent(row) for row in rows]

    async def names(self, ids: Collection[str]) -> Mapping[str, str]:
        query = select(agents.c.id, agents.c.name).where(agents.c.id.in_(ids))
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return {row.id: row.name for row in rows}

    async def delete(self, agent_id: str) -> bool:
        """Delete an agent and everything that belongs to it; returns False if there was none."""
        query = select(conversations.c.id).where(conversations.c.agent_id == agent_id).scalar_subquery()
        async with self._database.transaction() as connection:
            await connection.execute(delete(messages).where(messages.c.conversation_id.in_(query)))
            for table in (conversations, turns, blocks, person_blocks, block_versions, agent_tools):
                await connection.execute(delete(table).where(table.c.agent_id == agent_id))
            return (await connection.execute(delete(agents).where(agents.c.id == agent_id))).rowcount > 0

    async def blocks(self, agent_id: str, user_id: PersonFilter = None, *, runs: bool = True) -> Sequence[MemoryBlock]:
        async with self._database.read_transaction() as connection:
            return await read_blocks(connection, agent_id, user_id, runs=runs)

    async def edit_block(
        self,
        agent_id: str,
        label: str,
        change: Callable[[str], str],
        now: datetime,
        user_id: PersonFilter = None,
        *,
        runs: bool = True,
        guard: EditGuard | None = None,
    ) -> tuple[MemoryBlock, MemoryBlock]:
        """Change a block's value by its rules; returns (before, after). No other change can come between.

        In a per-person block, this writes the person's own row, or for EVERYONE the initial value for new people. An
        exception from `guard` prevents the change.
        """
        mine = (blocks.c.agent_id == agent_id, blocks.c.label == label)
        async with self._database.transaction() as connection:
            if guard is not None:
                await guard(connection)
            held = (await connection.execute(select(blocks.c.label).where(*mine).with_for_update())).one_or_none()
            memory = {block.label: block for block in await read_blocks(connection, agent_id, user_id)}
            if held is None or label not in memory:
                known = ", ".join(memory) or "none"
                raise NotFound(f"There is no memory block '{label}'; there are: {known}")
            before = memory[label]
            require_block_changeable(before, list(memory.values()), runs=runs)
            after = change_block(before, change)
            if after.value != before.value:
                await _write_block(connection, agent_id, before, after.value, now, user_id)
        return before, after

    async def set_block(self, agent_id: str, label: str, settings: Mapping[str, bool]) -> MemoryBlock:
        """Set whether a block is one text per person, and whether people may change it."""
        async with self._database.transaction() as connection:
            if settings:
                mine = (blocks.c.agent_id == agent_id, blocks.c.label == label)
                await connection.execute(update(blocks).where(*mine).values(dict(settings)))
            memory = {block.label: block for block in await read_blocks(connection, agent_id, EVERYONE)}
        if label not in memory:
            raise NotFound(f"There is no memory block '{label}'; there are: {', '.join(memory) or 'none'}")
        return memory[label]

    async def people(self, agent_id: str) -> Sequence[str]:
        """The people who have their own text in one of the agent's blocks."""
        theirs = (person_blocks.c.agent_id == agent_id, person_blocks.c.user_id != "")
        query = select(person_blocks.c.user_id).where(*theirs).distinct().order_by(person_blocks.c.user_id)
        async with self._database.read_transaction() as connection:
            return (await connection.execute(query)).scalars().all()

    async def versions(self, agent_id: str, label: str, user_id: PersonFilter = None) -> Sequence[BlockVersion]:
        """The earlier versions of a block, the newest first."""
        async with self._database.read_transaction() as connection:
            memory = {block.label: block for block in await read_blocks(connection, agent_id, user_id)}
            row = _row_user(memory[label], user_id) if label in memory else None
            columns = (block_versions.c.value, block_versions.c.until)
            wanted = _select_versions(agent_id, label, row).with_only_columns(*columns)
            return [BlockVersion(found.value, found.until) for found in await connection.execute(wanted)]

    async def tools(self, agent_id: str) -> Sequence[AttachedTool]:
        async with self._database.read_transaction() as connection:
            found = await read_tools(connection, agent_id)
            if not found and await read_agent(connection, agent_id) is None:
                raise agent_not_found(agent_id)
        return found

    async def change_tools(
        self, agent_id: str, attach: Sequence[AttachedTool], detach: Sequence[str], now: datetime
    ) -> Sequence[str]:
        """Detach and attach tools of an agent; returns the names that were only detached.

        A new tool replaces one of the same name. One transaction: readers see all of the changes or none.
        """
        new = {tool.name: tool for tool in attach}
        async with self._database.brief_transaction() as connection:
            # Locked until the end of the transaction, so that two changes to one agent's tools follow each other.
            if (await connection.execute(LOCK_AGENT, {"agent_id": agent_id})).one_or_none() is None:
                raise agent_not_found(agent_id)
            rows = (await connection.execute(SELECT_TOOL_TIMES, {"agent_id": agent_id})).all()
            since = {row.name: row.attached_at for row in rows}
            gone = [name for name in since if name in new or name in detach]
            if gone:
                await connection.execute(DELETE_TOOLS, {"agent_id": agent_id, "names": gone})
            if new:
                rows = [_tool_row(agent_id, tool, since.get(tool.name, now)) for tool in new.values()]
                await connection.execute(INSERT_TOOLS, rows)
        self.changes += 1
        return [name for name in gone if name not in new]


async def _write_block(
    connection: Transaction, agent_id: str, before: MemoryBlock, value: str, now: datetime, user_id: PersonFilter
) -> None:
    row = _row_user(before, user_id)
    kept = {"agent_id": agent_id, "label": before.label, "value": before.value, "until": now, "user_id": row}
    if row is None:
        mine = (blocks.c.agent_id == agent_id, blocks.c.label == before.label)
        await connection.execute(update(blocks).where(*mine).values(value=value, updated_at=now))
        kept["written_by"] = None if user_id is EVERYONE else user_id
    else:
        own = {"agent_id": agent_id, "label": before.label, "user_id": row, "value": value, "updated_at": now}
        await connection.execute(UPSERT_PERSON_BLOCK[connection.dialect.name], own)
    await connection.execute(insert(block_versions).values(kept))
    await _prune_versions(connection, agent_id, before.label, row)


async def _prune_versions(connection: Transaction, agent_id: str, label: str, row: str | None) -> None:
    """Keep the newest versions, and of a shared block the version before each person's first change."""
    versions = _select_versions(agent_id, label, row)
    last = (
        await connection.execute(versions.with_only_columns(block_versions.c.id).offset(KEPT_VERSIONS).limit(1))
    ).scalar_one_or_none()
    if last is None:
        return
    these = (
        block_versions.c.agent_id == agent_id,
        block_versions.c.label == label,
        block_versions.c.user_id.is_not_distinct_from(row),
    )
    firsts = (
        select(func.min(block_versions.c.id))
        .where(*these, block_versions.c.written_by.is_not(None))
        .group_by(block_versions.c.written_by)
    )
    old = delete(block_versions).where(*these, block_versions.c.id <= last)
    await connection.execute(old.where(block_versions.c.id.not_in(firsts.scalar_subquery())))


def _row_user(block: MemoryBlock, user_id: PersonFilter) -> str | None:
    """The person whose row of a block is used; None for the shared row."""
    return None if user_id is EVERYONE or not is_per_person(block) else block_row_user(user_id)


def _select_versions(agent_id: str, label: str, row: str | None) -> Select[Any]:
    these = (block_versions.c.agent_id == agent_id, block_versions.c.label == label)
    whose = block_versions.c.user_id.is_not_distinct_from(row)
    return select(block_versions).where(*these, whose).order_by(block_versions.c.id.desc())


async def read_agent(connection: Transaction, agent_id: str) -> Agent | None:
    row = (await connection.execute(SELECT_AGENT, {"agent_id": agent_id})).one_or_none()
    return _agent(row) if row else None


async def read_blocks(
    connection: Transaction, agent_id: str, user_id: PersonFilter = None, *, runs: bool = True
) -> Sequence[MemoryBlock]:
    """The memory in a person's turns; blocks that the person may not change are marked as read-only."""
    row = None if user_id is EVERYONE else block_row_user(user_id)
    found = [_block(one) for one in (await connection.execute(SELECT_BLOCKS, {"agent_id": agent_id, "row": row})).all()]
    return [block if may_change_block(block, runs=runs) else replace(block, read_only=True) for block in found]


async def read_tools(connection: Transaction, agent_id: str) -> Sequence[AttachedTool]:
    rows = (await connection.execute(SELECT_TOOLS, {"agent_id": agent_id})).all()
    return [
        AttachedTool(
            row.name, row.description, json.loads(row.parameters), row.server, row.remote_name, row.needs_approval
        )
        for row in rows
    ]


def _agent(row: Row[tuple[object, ...]]) -> Agent:
    return Agent(row.id, row.name, row.description, row.model, row.owner)


def _block(row: Row[tuple[object, ...]]) -> MemoryBlock:
    value = row.value if row.own is None else row.own
    return MemoryBlock(
        row.label, value, row.description, row.size_limit, row.read_only, row.per_person, row.people_write
    )


def _block_row(agent_id: str, block: MemoryBlock, position: int, now: datetime) -> dict[str, object]:
    return {
        "agent_id": agent_id,
        "label": block.label,
        "value": block.value,
        "description": block.description,
        "size_limit": block.limit,
        "read_only": block.read_only,
        "per_person": is_per_person(block),
        "people_write": block.people_write,
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


def agent_not_found(agent_id: str) -> NotFound:
    return NotFound(f"There is no agent '{agent_id}'; check the id, or create the agent")
