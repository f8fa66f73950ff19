"""Stores conversations and their messages; copies, deletes, rewinds and searches them."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from uuid import uuid4

from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelRequest
from sqlalchemy import Row, Select, bindparam, delete, func, insert, select, update

from frontdesk.agents.embedded.conversation import (
    EarlierAttempt,
    PastTurn,
    StoredMessage,
    TurnSender,
    TurnState,
    turn_starts,
)
from frontdesk.agents.embedded.store import (
    agent_not_found,
    conversation_lock,
    first_conversation_id,
    read_agent,
    read_blocks,
    read_tools,
)
from frontdesk.agents.host import EVERYONE, Conversation, PersonFilter
from frontdesk.agents.memory_blocks import block_row_user
from frontdesk.agents.turns.store import parse_pending, require_idle
from frontdesk.db.engine import Database, Transaction
from frontdesk.db.schema import conversations, messages, oauth_grants, turns
from frontdesk.errors import Conflict, NotFound
from frontdesk.llm.events import ApprovalRequest, StopReason, ToolStatus
from frontdesk.llm.messages import make_tool_return, message_text, open_calls
from frontdesk.text import storable

NOT_RUN = "The call was not approved, and did not run."
# Built once: every turn runs these, and building a statement takes longer than running it.
SELECT_CONVERSATION = select(conversations).where(
    conversations.c.id == bindparam("conversation"), conversations.c.agent_id == bindparam("agent")
)
SELECT_MESSAGES_SINCE = (
    select(messages)
    .where(messages.c.conversation_id == bindparam("conversation"), messages.c.id > bindparam("until"))
    .order_by(messages.c.id)
)
# The name of a person who has logged in here.
SELECT_PERSON_NAME = (
    select(oauth_grants.c.name)
    .where(oauth_grants.c.user_id == bindparam("person"), oauth_grants.c.name.is_not(None))
    .order_by(oauth_grants.c.created_at.desc())
    .limit(1)
)
SELECT_PENDING = select(turns.c.pending).where(turns.c.lane == bindparam("lane"), turns.c.pending.is_not(None))
INSERT_MESSAGES = insert(messages)
# The limits on the messages that a history reads: those of one turn, and those after it.
TURN_MESSAGES = 500
SEQUEL_MESSAGES = 10


class ConversationStore:
    """Stores conversations and their messages."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, conversation: Conversation) -> None:
        row = {
            "id": conversation.id,
            "agent_id": conversation.agent_id,
            "user_id": conversation.user_id,
            "title": conversation.title,
            "created_at": conversation.created_at,
            "summary_until": 0,
        }
        async with self._database.transaction() as connection:
            await connection.execute(insert(conversations).values(row))

    async def of_agent(self, agent_id: str, limit: int, user_id: PersonFilter) -> Sequence[Conversation]:
        theirs = [conversations.c.agent_id == agent_id]
        if user_id is not EVERYONE:
            theirs.append(conversations.c.user_id.is_not_distinct_from(user_id))
        query = (
            select(conversations)
            .where(*theirs)
            .order_by(conversations.c.created_at.desc(), conversations.c.id)
            .limit(limit)
        )
        async with self._database.read_transaction() as connection:
            rows = (await connection.execute(query)).all()
        return [Conversation(row.id, row.agent_id, row.created_at, row.title, row.user_id) for row in rows]

    async def require(self, agent_id: str, conversation_id: str, user_id: PersonFilter) -> None:
        """Raise `NotFound` unless the agent has this conversation with this person."""
        async with self._database.read_transaction() as connection:
            try:
                thread = await read_conversation(connection, agent_id, conversation_id)
            except NotFound:
                # A person's first conversation has no row before its first message.
                owner = None if user_id is EVERYONE else user_id
                if conversation_id != first_conversation_id(agent_id, owner):
                    raise
                if await read_agent(connection, agent_id) is None:
                    raise agent_not_found(agent_id) from None
                return
        if user_id is not EVERYONE and thread.user_id != user_id:
            raise conversation_not_found(agent_id, conversation_id)

    async def read_turn_state(
        self, connection: Transaction, agent_id: str, conversation_id: str, turn_id: str, speaker: TurnSender
    ) -> TurnState:
        """Read the state from which a turn starts. In another person's conversation, the turn is that person's."""
        agent = await read_agent(connection, agent_id)
        if agent is None:
            raise agent_not_found(agent_id)
        await _create_first(connection, agent_id, conversation_id, speaker.user_id)
        thread = await read_conversation(connection, agent_id, conversation_id)
        person: str | None = thread.user_id
        if person != speaker.user_id:
            if not speaker.runs:
                raise conversation_not_found(agent_id, conversation_id)
            await connection.execute(update(turns).where(turns.c.id == turn_id).values(user_id=person))
        owns = person is not None and person == agent.owner
        runs = owns or (speaker.runs and (person is None or block_row_user(person) == block_row_user(speaker.user_id)))
        waiting = (
            (await connection.execute(SELECT_PENDING, {"lane": conversation_lock(conversation_id)})).scalars().first()
        )
        return TurnState(
            agent=agent,
            conversation_id=conversation_id,
            user_id=person,
            summary=thread.summary,
            blocks=await read_blocks(connection, agent_id, person, runs=runs),
            tools=await read_tools(connection, agent_id),
            past=await read_messages(
                connection, SELECT_MESSAGES_SINCE, _parameters(conversation_id, until=thread.summary_until)
            ),
            pending=parse_pending(waiting),
            person=None if person is None else await _read_person_name(connection, person),
            runs=runs,
        )

    async def find_earlier_attempt(
        self, connection: Transaction, conversation_id: str, otid: str
    ) -> EarlierAttempt | None:
        """The outcome of the turns that were begun under this id; None if there were none."""
        named = (turns.c.lane == conversation_lock(conversation_id), turns.c.otid == otid, ~turns.c.running)
        begun = select(turns.c.id, turns.c.stop).where(*named).order_by(turns.c.started_at)
        found = (await connection.execute(begun)).all()
        if not found:
            return None
        ids = [row.id for row in found]
        here = (messages.c.conversation_id == conversation_id, messages.c.turn_id.in_(ids))
        said = await read_messages(connection, select(messages).where(*here).order_by(messages.c.id))
        return EarlierAttempt(frozenset(ids), StopReason(found[-1].stop), [one.message for one in said])

    async def append(
        self, connection: Transaction, conversation_id: str, turn_id: str, said: Sequence[ModelMessage]
    ) -> None:
        now = datetime.now(UTC)
        rows = [
            {
                "conversation_id": conversation_id,
                "turn_id": turn_id,
                "at": now,
                "folded": fold_case(message_text(message)),
                "payload": ModelMessagesTypeAdapter.dump_json([message]).decode()[1:-1],
            }
            for message in said
        ]
        if rows:
            await connection.execute(INSERT_MESSAGES, rows)

    def writing(self) -> AbstractAsyncContextManager[Transaction]:
        """A transaction in which a running turn stores data."""
        return self._database.brief_transaction()

    async def pending(self, conversation_id: str) -> Sequence[ApprovalRequest]:
        async with self._database.read_transaction() as connection:
            found = await connection.execute(SELECT_PENDING, {"lane": conversation_lock(conversation_id)})
            return parse_pending(found.scalars().first())

    async def settle(self, connection: Transaction, conversation_id: str) -> None:
        """Clear the calls that wait for approval."""
        await connection.execute(_clear_pending_statement(conversation_id))

    async def drop_pending(self, conversation_id: str) -> bool:
        """Cancel the calls that wait for approval, and tell the model so; returns False if none waited."""
        lane = conversation_lock(conversation_id)
        waits = select(turns.c.id, turns.c.pending).where(turns.c.lane == lane, turns.c.pending.is_not(None))
        async with self._database.transaction() as connection:
            row = (await connection.execute(waits)).first()
            if row is None:
                return False
            here = (messages.c.conversation_id == conversation_id, messages.c.turn_id == row.id)
            said = await read_messages(connection, select(messages).where(*here).order_by(messages.c.id))
            calls = open_calls([one.message for one in said])
            answers = ModelRequest(parts=[make_tool_return(call, NOT_RUN, ToolStatus.DENIED) for call in calls])
            await self.append(connection, conversation_id, row.id, [answers])
            change = update(turns).where(turns.c.id == row.id)
            await connection.execute(change.values(pending=None, stop=StopReason.CANCELLED))
        return True

    async def store_summary(self, conversation_id: str, summary: str, until: int) -> None:
        """Store a summary of all messages up to the id `until`; the messages stay stored."""
        change = update(conversations).where(conversations.c.id == conversation_id)
        async with self._database.transaction() as connection:
            await connection.execute(change.values(summary=summary, summary_until=until))

    async def newest(self, conversation_id: str, limit: int) -> tuple[Sequence[StoredMessage], Sequence[PastTurn]]:
        """The newest messages in order, and the turns at the end of the conversation."""
        query = (
            select(messages)
            .where(messages.c.conversation_id == conversation_id)
            .order_by(messages.c.id.desc())
            .limit(limit)
        )
        ended = (
            select(turns)
            .where(turns.c.lane == conversation_lock(conversation_id))
            .order_by(turns.c.started_at.desc())
            .limit(limit)
        )
        async with self._database.read_transaction() as connection:
            said = await read_messages(connection, query)
            past = (await connection.execute(ended)).all()
        return list(reversed(said)), [_past_turn(row) for row in reversed(past)]

    async def messages_of_turn(
        self, conversation_id: str, turn_id: str
    ) -> tuple[Sequence[StoredMessage], Sequence[PastTurn]]:
        """A turn's messages in order, and those after it that answer its waiting calls."""
        here = messages.c.conversation_id == conversation_id
        query = select(messages).where(here, messages.c.turn_id == turn_id).order_by(messages.c.id).limit(TURN_MESSAGES)
        began = select(turns.c.started_at).where(turns.c.id == turn_id).scalar_subquery()
        both = (
            select(turns)
            .where(turns.c.lane == conversation_lock(conversation_id), turns.c.started_at >= began)
            .order_by(turns.c.started_at)
            .limit(2)
        )
        async with self._database.read_transaction() as connection:
            said = await read_messages(connection, query)
            rest = SELECT_MESSAGES_SINCE.limit(SEQUEL_MESSAGES)
            after = (
                await read_messages(connection, rest, _parameters(conversation_id, until=said[-1].id)) if said else ()
            )
            past = (await connection.execute(both)).all()
        return [*said, *after], [_past_turn(row) for row in past]

    async def search(
        self, agent_id: str, user_id: str | None, query: str, limit: int
    ) -> Sequence[tuple[datetime, ModelMessage]]:
        """Messages of an agent's conversations with one person that contain every word of a query, the newest first."""
        theirs = select(conversations.c.id).where(
            conversations.c.agent_id == agent_id, conversations.c.user_id.is_not_distinct_from(user_id)
        )
        wanted = select(messages).where(
            messages.c.conversation_id.in_(theirs.scalar_subquery()), messages.c.folded != ""
        )
        for word in fold_case(query).split():
            wanted = wanted.where(messages.c.folded.contains(word, autoescape=True))
        async with self._database.read_transaction() as connection:
            found = await read_messages(connection, wanted.order_by(messages.c.id.desc()).limit(limit))
        return [(one.at, one.message) for one in found]


def fold_case(text: str) -> str:
    """A text in the form that is searched; SQLite folds the case of ASCII letters only."""
    return storable(text).casefold()


async def read_conversation(connection: Transaction, agent_id: str, conversation_id: str) -> Row[tuple[object, ...]]:
    row = (await connection.execute(SELECT_CONVERSATION, _parameters(conversation_id, agent=agent_id))).one_or_none()
    if row is None:
        raise conversation_not_found(agent_id, conversation_id)
    return row


def conversation_not_found(agent_id: str, conversation_id: str) -> NotFound:
    return NotFound(f"Agent '{agent_id}' has no conversation '{conversation_id}'; leave it out to use the first")


async def _create_first(connection: Transaction, agent_id: str, conversation_id: str, user_id: str | None) -> None:
    """Create a person's first conversation with its first message; the turn's lock prevents a second one."""
    if user_id is None or conversation_id != first_conversation_id(agent_id, user_id):
        return
    given = _parameters(conversation_id, agent=agent_id)
    if (await connection.execute(SELECT_CONVERSATION, given)).one_or_none() is None:
        row = {"id": conversation_id, "agent_id": agent_id, "user_id": user_id, "title": "", "summary_until": 0}
        await connection.execute(insert(conversations).values(**row, created_at=datetime.now(UTC)))


async def _read_person_name(connection: Transaction, person: str) -> str | None:
    return (await connection.execute(SELECT_PERSON_NAME, {"person": person})).scalar_one_or_none()


async def read_messages(
    connection: Transaction, query: Select[tuple[object, ...]], given: Mapping[str, object] | None = None
) -> Sequence[StoredMessage]:
    rows = (await connection.execute(query, given)).all()
    # Reading one array is many times faster than reading that many single messages.
    said = ModelMessagesTypeAdapter.validate_json(f"[{','.join(row.payload for row in rows)}]")
    return [StoredMessage(row.id, row.turn_id, row.at, message) for row, message in zip(rows, said, strict=True)]


def _parameters(conversation_id: str, **more: object) -> dict[str, object]:
    return {"conversation": conversation_id, **more}


def _clear_pending_statement(conversation_id: str):  # noqa: ANN202 - SQLAlchemy's own type says no more
    waiting = (turns.c.lane == conversation_lock(conversation_id), turns.c.pending.is_not(None))
    return update(turns).where(*waiting).values(pending=None)


def _past_turn(row: Row[tuple[object, ...]]) -> PastTurn:
    return PastTurn(row.id, StopReason(row.stop) if row.stop else None, row.ended_at, parse_pending(row.pending))


class ConversationMaintenance:
    """Copies, deletes and rewinds whole conversations."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def fork(
        self, agent_id: str, conversation_id: str, new_id: str, user_id: str | None, now: datetime
    ) -> Conversation:
        """Copy a conversation; a turn that runs or waits in it is interrupted in the copy."""
        async with self._database.transaction() as connection:
            source = await read_conversation(connection, agent_id, conversation_id)
            if source.user_id != user_id:
                raise conversation_not_found(agent_id, conversation_id)
            row = {"id": new_id, "agent_id": agent_id, "user_id": user_id, "title": source.title, "created_at": now}
            await connection.execute(insert(conversations).values(**row, summary=source.summary, summary_until=0))
            names = await _copy_turns(connection, conversation_id, new_id, now)
            until = await _copy_messages(connection, source, new_id, names)
            await connection.execute(
                update(conversations).where(conversations.c.id == new_id).values(summary_until=until)
            )
        return Conversation(new_id, agent_id, now, source.title, user_id)

    async def delete(self, agent_id: str, conversation_id: str) -> None:
        """Delete a conversation with its messages and turns, if the agent has it."""
        theirs = (conversations.c.id == conversation_id, conversations.c.agent_id == agent_id)
        async with self._database.transaction() as connection:
            if (await connection.execute(delete(conversations).where(*theirs))).rowcount > 0:
                await connection.execute(delete(messages).where(messages.c.conversation_id == conversation_id))
                await connection.execute(delete(turns).where(turns.c.lane == conversation_lock(conversation_id)))

    async def rewind(self, conversation_id: str, count: int) -> int:
        """Delete the `count` newest turns; returns how many there were."""
        async with self._database.transaction() as connection:
            await _require_nothing_open(connection, conversation_lock(conversation_id))
            said = await read_messages(connection, SELECT_MESSAGES_SINCE, {"conversation": conversation_id, "until": 0})
            starts = turn_starts(said)[-count:]
            if starts:
                gone = said[starts[0] :]
                await _delete_turns(connection, conversation_id, gone[0].id, {one.turn_id for one in gone})
        return len(starts)


async def _require_nothing_open(connection: Transaction, lock: str) -> None:
    await require_idle(connection, lock)
    if (await connection.execute(SELECT_PENDING, {"lane": lock})).first() is not None:
        raise Conflict("A tool call waits for approval; approve or reject it, or cancel it, before you go back")


async def _delete_turns(connection: Transaction, conversation_id: str, first: int, turn_ids: set[str]) -> None:
    here = messages.c.conversation_id == conversation_id
    await connection.execute(delete(messages).where(here, messages.c.id >= first))
    await connection.execute(delete(turns).where(turns.c.id.in_(turn_ids)))
    # A summary that covers deleted messages is deleted too; the other messages that it covered still exist.
    told = (conversations.c.id == conversation_id, conversations.c.summary_until >= first)
    await connection.execute(update(conversations).where(*told).values(summary=None, summary_until=0))


async def _copy_turns(connection: Transaction, source_id: str, new_id: str, now: datetime) -> dict[str, str]:
    """Copy the turns; returns new ids by old ids. The copies have no usage, so that it counts once."""
    query = select(turns).where(turns.c.lane == conversation_lock(source_id))
    found = (await connection.execute(query)).mappings().all()
    names: dict[str, str] = {row["id"]: f"turn-{uuid4()}" for row in found}
    copies = [
        {
            **row,
            "id": names[row["id"]],
            "lane": conversation_lock(new_id),
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
    """Copy the messages; returns the id up to which the summary covers them in the copy."""
    rows = (await connection.execute(SELECT_MESSAGES_SINCE, {"conversation": source.id, "until": 0})).all()
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
    await _insert_messages(connection, copies[:summed])
    newest = select(func.coalesce(func.max(messages.c.id), 0)).where(messages.c.conversation_id == new_id)
    until = (await connection.execute(newest)).scalar_one()
    await _insert_messages(connection, copies[summed:])
    return until


async def _insert_messages(connection: Transaction, rows: Sequence[Mapping[str, object]]) -> None:
    if rows:
        await connection.execute(insert(messages), list(rows))
