"""Whole conversations of the built-in host in the database: copied, deleted, taken back by some turns."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import uuid4

from sqlalchemy import Row, delete, func, insert, select, update

from frontdesk.agents.embedded.model import lane_of
from frontdesk.agents.embedded.talk.model import turn_starts
from frontdesk.agents.embedded.talk.store import SINCE, WAITING, no_conversation, read_conversation, read_messages
from frontdesk.agents.host import Conversation
from frontdesk.agents.turns.store import require_idle
from frontdesk.db.engine import Database, Transaction
from frontdesk.db.schema import conversations, messages, turns
from frontdesk.errors import Conflict
from frontdesk.loop.events import StopReason


class ThreadStore:
    """Conversations as a whole."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def fork(
        self, agent_id: str, conversation_id: str, new_id: str, user_id: str | None, now: datetime
    ) -> Conversation:
        """Copy a conversation; what is under way or waits in it is given up in the copy."""
        async with self._database.transaction() as connection:
            source = await read_conversation(connection, agent_id, conversation_id)
            if source.user_id != user_id:
                raise no_conversation(agent_id, conversation_id)
            row = {"id": new_id, "agent_id": agent_id, "user_id": user_id, "title": source.title, "created_at": now}
            await connection.execute(insert(conversations).values(**row, summary=source.summary, summary_until=0))
            names = await _copy_turns(connection, conversation_id, new_id, now)
            until = await _copy_messages(connection, source, new_id, names)
            await connection.execute(
                update(conversations).where(conversations.c.id == new_id).values(summary_until=until)
            )
        return Conversation(new_id, agent_id, now, source.title, user_id)

    async def delete(self, agent_id: str, conversation_id: str) -> None:
        """Forget a conversation and all that was said in it, where the agent has it."""
        theirs = (conversations.c.id == conversation_id, conversations.c.agent_id == agent_id)
        async with self._database.transaction() as connection:
            if (await connection.execute(delete(conversations).where(*theirs))).rowcount > 0:
                await connection.execute(delete(messages).where(messages.c.conversation_id == conversation_id))
                await connection.execute(delete(turns).where(turns.c.lane == lane_of(conversation_id)))

    async def rewind(self, conversation_id: str, count: int) -> int:
        """Forget so many of the newest turns; how many there were."""
        async with self._database.transaction() as connection:
            await _require_rest(connection, lane_of(conversation_id))
            said = await read_messages(connection, SINCE, {"conversation": conversation_id, "until": 0})
            starts = turn_starts(said)[-count:]
            if starts:
                gone = said[starts[0] :]
                await _take_back(connection, conversation_id, gone[0].id, {one.turn_id for one in gone})
        return len(starts)


async def _require_rest(connection: Transaction, lane: str) -> None:
    await require_idle(connection, lane)
    if (await connection.execute(WAITING, {"lane": lane})).first() is not None:
        raise Conflict("A tool call waits for approval; approve or reject it, or cancel it, before you go back")


async def _take_back(connection: Transaction, conversation_id: str, first: int, turn_ids: set[str]) -> None:
    here = messages.c.conversation_id == conversation_id
    await connection.execute(delete(messages).where(here, messages.c.id >= first))
    await connection.execute(delete(turns).where(turns.c.id.in_(turn_ids)))
    # A summary that tells of what is forgotten goes too: all that it stood for is still there.
    told = (conversations.c.id == conversation_id, conversations.c.summary_until >= first)
    await connection.execute(update(conversations).where(*told).values(summary=None, summary_until=0))


async def _copy_turns(connection: Transaction, source_id: str, new_id: str, now: datetime) -> dict[str, str]:
    """The turns under new names, by their old ones; what they took is counted once, with the old."""
    theirs = select(turns).where(turns.c.lane == lane_of(source_id))
    found = (await connection.execute(theirs)).mappings().all()
    names: dict[str, str] = {row["id"]: f"turn-{uuid4()}" for row in found}
    copies = [
        {
            **row,
            "id": names[row["id"]],
            "lane": lane_of(new_id),
            "conversation_id": new_id,
            "running": False,
            "pending": None,
            "stop": StopReason.INTERRUPTED if row["running"] or row["pending"] else row["stop"],
            "ended_at": row["ended_at"] or now,
            "cancel_asked": False,
            "input_tokens": 0,
            "output_tokens": 0,
            "cost_usd": None,
            "otid": None,
        }
        for row in found
    ]
    if copies:
        await connection.execute(insert(turns), copies)
    return names


async def _copy_messages(
    connection: Transaction, source: Row[tuple[object, ...]], new_id: str, names: dict[str, str]
) -> int:
    """All that was said; how far the summary goes in the copy."""
    rows = (await connection.execute(SINCE, {"conversation": source.id, "until": 0})).all()
    copies = [
        {
            "conversation_id": new_id,
            "turn_id": names.get(row.turn_id, row.turn_id),
            "at": row.at,
            "folded": row.folded,
            "payload": row.payload,
        }
        for row in rows
    ]
    summed = sum(row.id <= source.summary_until for row in rows)
    await _add(connection, copies[:summed])
    newest = select(func.coalesce(func.max(messages.c.id), 0)).where(messages.c.conversation_id == new_id)
    until = (await connection.execute(newest)).scalar_one()
    await _add(connection, copies[summed:])
    return until


async def _add(connection: Transaction, rows: Sequence[Mapping[str, object]]) -> None:
    if rows:
        await connection.execute(insert(messages), list(rows))
