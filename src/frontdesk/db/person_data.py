"""Exports and deletes a person's data outside the memory tables."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Delete,
    RowMapping,
    Select,
    Table,
    and_,
    delete,
    exists,
    or_,
    select,
    update,
)

from frontdesk.db.engine import Database
from frontdesk.db.schema import (
    agent_defaults,
    agent_tools,
    agents,
    api_keys,
    attempts,
    block_versions,
    blocks,
    buckets,
    chat_replies,
    chat_sessions,
    chat_words,
    conversations,
    counters,
    editor_sessions,
    forwards,
    messages,
    oauth_grants,
    occurrences,
    permissions,
    person_blocks,
    schedules,
    tool_searches,
    tool_uses,
    turns,
    workspaces,
)

# Tables that are exported row by row, each under its own name.
EXPORTED_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "memory_blocks": ("agent_id", "label", "value", "updated_at"),
    "conversations": ("id", "agent_id", "title", "created_at", "summary"),
    "messages": ("conversation_id", "turn_id", "at", "payload"),
    "turns": ("id", "agent_id", "conversation_id", "stop", "started_at", "ended_at", "input_tokens", "output_tokens"),
    "schedules": ("id", "agent_id", "prompt", "kind", "value", "zone", "words", "webhook", "state", "created_us"),
    "runs": ("id", "schedule_id", "agent_id", "intended_us", "standing", "reason", "answer"),
}


async def export_rows(database: Database, name: str, user_id: str, block_row: str) -> Sequence[Mapping[str, Any]]:
    """The rows of one kind that are stored about a person; `block_row` is the owner of the person's memory blocks."""
    wanted = _export_statement(name, user_id, block_row)
    async with database.read_transaction() as connection:
        return [_plain_row(row) for row in (await connection.execute(wanted)).mappings()]


@dataclass(frozen=True, slots=True)
class DeletedPersonData:
    """The number of deleted rows, the agents whose shared memory has changed, and messages about what is left."""

    count: int
    agents: Collection[str]
    left: Sequence[str]


async def delete_person_rows(database: Database, user_id: str, block_row: str, own_block: str) -> DeletedPersonData:
    """Delete all rows of a person in one transaction. The journal deletes its own rows.

    `own_block` is the label of the block that usually has a text for each person.
    """

    def work(connection: Connection) -> DeletedPersonData:
        gone = _delete_own_agents(connection, user_id)
        taken_back = _restore_shared_blocks(connection, user_id)
        left = _mixed_blocks(connection, user_id, own_block)
        rows = sum(connection.execute(one).rowcount for one in _delete_statements(user_id, block_row))
        changed = {*gone, *(agent_id for agent_id, _ in taken_back)}
        return DeletedPersonData(len(gone) + len(taken_back) + rows, changed, left)

    return await database.write(work, small=False)


def _export_statement(name: str, user_id: str, block_row: str) -> Select[Any]:
    talks = select(conversations.c.id).where(conversations.c.user_id == user_id)
    sources: Mapping[str, tuple[Table, ColumnElement[bool]]] = {
        "memory_blocks": (person_blocks, person_blocks.c.user_id == block_row),
        "conversations": (conversations, conversations.c.user_id == user_id),
        "messages": (messages, messages.c.conversation_id.in_(talks)),
        "turns": (turns, turns.c.user_id == user_id),
        "schedules": (schedules, schedules.c.user_id == user_id),
        "runs": (occurrences, occurrences.c.user_id == user_id),
    }
    table, theirs = sources[name]
    return (
        select(*(table.c[column] for column in EXPORTED_COLUMNS[name]))
        .where(theirs)
        .order_by(*table.primary_key.columns)
    )


def _plain_row(row: RowMapping) -> Mapping[str, Any]:
    return {name: json.loads(value) if name == "payload" else value for name, value in row.items()}


def _delete_own_agents(connection: Connection, user_id: str) -> Sequence[str]:
    """Delete agents that only this person uses; an agent that others talk with stays, without an owner."""
    others = exists().where(
        conversations.c.agent_id == agents.c.id,
        conversations.c.user_id.is_not(None),
        conversations.c.user_id != user_id,
    )
    mine = select(agents.c.id).where(agents.c.owner == user_id)
    gone = connection.execute(mine.where(~others)).scalars().all()
    talks = select(conversations.c.id).where(conversations.c.agent_id.in_(gone))
    connection.execute(delete(messages).where(messages.c.conversation_id.in_(talks)))
    for table in (conversations, turns, blocks, person_blocks, block_versions, agent_tools):
        connection.execute(delete(table).where(table.c.agent_id.in_(gone)))
    connection.execute(delete(agents).where(agents.c.id.in_(gone)))
    connection.execute(update(agents).where(agents.c.owner == user_id).values(owner=None))
    return gone


def _restore_shared_blocks(connection: Connection, user_id: str) -> Collection[tuple[str, str]]:
    """Restore shared blocks to their text before the person's turns first changed them.

    Later changes by other people are lost too: the authors within one text cannot be told apart.
    """
    changed = (
        select(block_versions)
        .where(block_versions.c.written_by == user_id, block_versions.c.user_id.is_(None))
        .order_by(block_versions.c.id)
    )
    firsts: dict[tuple[str, str], Any] = {}
    for row in connection.execute(changed):
        firsts.setdefault((row.agent_id, row.label), row)
    for (agent_id, label), row in firsts.items():
        this = (blocks.c.agent_id == agent_id, blocks.c.label == label)
        connection.execute(update(blocks).where(*this).values(value=row.value))
        later = and_(
            block_versions.c.agent_id == agent_id,
            block_versions.c.label == label,
            block_versions.c.user_id.is_(None),
            block_versions.c.id >= row.id,
        )
        connection.execute(delete(block_versions).where(later))
    return firsts.keys()


def _mixed_blocks(connection: Connection, user_id: str, own_block: str) -> Sequence[str]:
    """A shared block with this label dates from before people were kept apart, and may contain anybody's text."""
    talked = select(turns.c.agent_id).where(turns.c.user_id == user_id)
    mixed = (blocks.c.label == own_block, ~blocks.c.per_person, ~blocks.c.read_only, blocks.c.value != "")
    query = select(blocks.c.agent_id).where(*mixed, blocks.c.agent_id.in_(talked)).order_by(blocks.c.agent_id)
    return [
        f"the memory block '{own_block}' of agent '{agent_id}' is shared by several people, and may tell of this one: "
        f"look through it (frontdesk agents block {agent_id} {own_block})"
        for agent_id in connection.execute(query).scalars()
    ]


def _delete_statements(user_id: str, block_row: str) -> list[Delete]:
    """Delete dependent rows first."""
    runs = select(occurrences.c.id).where(occurrences.c.user_id == user_id)
    talks = select(conversations.c.id).where(conversations.c.user_id == user_id)
    taken = select(turns.c.id).where(turns.c.user_id == user_id)
    sessions = select(chat_sessions.c.id).where(chat_sessions.c.user_id == user_id)
    told = or_(chat_replies.c.user_id == user_id, chat_replies.c.session_id.in_(sessions))
    replies = select(chat_replies.c.id).where(told)
    name = f"user:{user_id}"
    return [
        delete(block_versions).where(block_versions.c.user_id == block_row),
        delete(person_blocks).where(person_blocks.c.user_id == block_row),
        delete(forwards).where(forwards.c.occurrence_id.in_(runs)),
        delete(attempts).where(attempts.c.occurrence_id.in_(runs)),
        delete(occurrences).where(occurrences.c.user_id == user_id),
        delete(schedules).where(schedules.c.user_id == user_id),
        delete(agent_defaults).where(agent_defaults.c.scope == name),
        delete(messages).where(messages.c.conversation_id.in_(talks)),
        delete(messages).where(messages.c.turn_id.in_(taken)),
        delete(chat_words).where(chat_words.c.message_id.in_(replies)),
        delete(chat_replies).where(told),
        delete(chat_sessions).where(chat_sessions.c.user_id == user_id),
        delete(turns).where(turns.c.conversation_id.in_(talks)),
        delete(turns).where(turns.c.user_id == user_id),
        delete(conversations).where(conversations.c.user_id == user_id),
        delete(editor_sessions).where(editor_sessions.c.user_id == user_id),
        delete(workspaces).where(workspaces.c.user_id == user_id),
        delete(permissions).where(permissions.c.user_id == user_id),
        delete(tool_uses).where(tool_uses.c.tenant == name),
        delete(tool_searches).where(tool_searches.c.tenant == name),
        # The second name is the one from before such names became hashes.
        delete(counters).where(counters.c.name.in_([f"tool_uses:{name}", f"tool_uses_forgotten:{name}"])),
        delete(oauth_grants).where(oauth_grants.c.user_id == user_id),
        delete(buckets).where(buckets.c.key == name),
        delete(api_keys).where(api_keys.c.user_id == user_id),
    ]
