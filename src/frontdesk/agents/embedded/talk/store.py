"""Conversations and messages of the built-in host in the database."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime

from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelRequest
from sqlalchemy import Row, Select, bindparam, insert, select, update

from frontdesk.agents.blocks import row_of
from frontdesk.agents.embedded.model import first_conversation, lane_of
from frontdesk.agents.embedded.store import no_agent, read_agent, read_blocks, read_tools
from frontdesk.agents.embedded.talk.model import Earlier, PastTurn, Scene, Speaker, StoredMessage
from frontdesk.agents.host import EVERYONE, Conversation, Whose
from frontdesk.agents.turns.store import pending_of
from frontdesk.db.engine import Database, Transaction
from frontdesk.db.schema import conversations, messages, oauth_grants, turns
from frontdesk.errors import NotFound
from frontdesk.loop.events import ApprovalRequest, StopReason, ToolStatus
from frontdesk.loop.messages import answered, open_calls, text_of
from frontdesk.loop.text import storable

NOT_RUN = "The call was not approved, and did not run."
# Made once: every turn runs these, and to build a statement takes longer than to run it.
CONVERSATION = select(conversations).where(
    conversations.c.id == bindparam("conversation"), conversations.c.agent_id == bindparam("agent")
)
SINCE = (
    select(messages)
    .where(messages.c.conversation_id == bindparam("conversation"), messages.c.id > bindparam("until"))
    .order_by(messages.c.id)
)
# What a person is called who has logged in here.
NAME = (
    select(oauth_grants.c.name)
    .where(oauth_grants.c.user_id == bindparam("person"), oauth_grants.c.name.is_not(None))
    .order_by(oauth_grants.c.created_at.desc())
    .limit(1)
)
WAITING = select(turns.c.pending).where(turns.c.lane == bindparam("lane"), turns.c.pending.is_not(None))
ADD = insert(messages)
# Of one turn so many messages are told again, and so many after them are looked through.
RETOLD = 500
SEQUEL = 10


class TalkStore:
    """Conversations, and the messages in them."""

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

    async def of_agent(self, agent_id: str, limit: int, user_id: Whose) -> Sequence[Conversation]:
        theirs = [conversations.c.agent_id == agent_id]
        if user_id is not EVERYONE:
            theirs.append(conversations.c.user_id.is_not_distinct_from(user_id))
        wanted = (
            select(conversations)
            .where(*theirs)
            .order_by(conversations.c.created_at.desc(), conversations.c.id)
            .limit(limit)
        )
        async with self._database.reading() as connection:
            rows = (await connection.execute(wanted)).all()
        return [Conversation(row.id, row.agent_id, row.created_at, row.title, row.user_id) for row in rows]

    async def require(self, agent_id: str, conversation_id: str, user_id: Whose) -> None:
        """Make sure that the agent has this conversation, with this person."""
        async with self._database.reading() as connection:
            try:
                thread = await read_conversation(connection, agent_id, conversation_id)
            except NotFound:
                # A person's first conversation is there once something is said in it.
                owner = None if user_id is EVERYONE else user_id
                if conversation_id != first_conversation(agent_id, owner):
                    raise
                if await read_agent(connection, agent_id) is None:
                    raise no_agent(agent_id) from None
                return
        if user_id is not EVERYONE and thread.user_id != user_id:
            raise no_conversation(agent_id, conversation_id)

    async def set_scene(
        self, connection: Transaction, agent_id: str, conversation_id: str, turn_id: str, speaker: Speaker
    ) -> Scene:
        """Everything a turn starts from. In another person's conversation it is that person's turn."""
        agent = await read_agent(connection, agent_id)
        if agent is None:
            raise no_agent(agent_id)
        await _begin_first(connection, agent_id, conversation_id, speaker.user_id)
        thread = await read_conversation(connection, agent_id, conversation_id)
        person: str | None = thread.user_id
        if person != speaker.user_id:
            if not speaker.runs:
                raise no_conversation(agent_id, conversation_id)
            await connection.execute(update(turns).where(turns.c.id == turn_id).values(user_id=person))
        owns = person is not None and person == agent.owner
        runs = owns or (speaker.runs and (person is None or row_of(person) == row_of(speaker.user_id)))
        waiting = (await connection.execute(WAITING, {"lane": lane_of(conversation_id)})).scalars().first()
        return Scene(
            agent=agent,
            conversation_id=conversation_id,
            user_id=person,
            summary=thread.summary,
            blocks=await read_blocks(connection, agent_id, person, runs=runs),
            tools=await read_tools(connection, agent_id),
            past=await read_messages(connection, SINCE, _thread(conversation_id, until=thread.summary_until)),
            pending=pending_of(waiting),
            person=None if person is None else await _name_of(connection, person),
            runs=runs,
        )

    async def earlier(self, connection: Transaction, conversation_id: str, otid: str) -> Earlier | None:
        """What became of the turns that were begun under a name; None where there were none."""
        named = (turns.c.lane == lane_of(conversation_id), turns.c.otid == otid, ~turns.c.running)
        begun = select(turns.c.id, turns.c.stop).where(*named).order_by(turns.c.started_at)
        found = (await connection.execute(begun)).all()
        if not found:
            return None
        ids = [row.id for row in found]
        here = (messages.c.conversation_id == conversation_id, messages.c.turn_id.in_(ids))
        said = await read_messages(connection, select(messages).where(*here).order_by(messages.c.id))
        return Earlier(frozenset(ids), StopReason(found[-1].stop), [one.message for one in said])

    async def append(
        self, connection: Transaction, conversation_id: str, turn_id: str, said: Sequence[ModelMessage]
    ) -> None:
        now = datetime.now(UTC)
        rows = [
            {
                "conversation_id": conversation_id,
                "turn_id": turn_id,
                "at": now,
                "folded": folded(text_of(message)),
                "payload": ModelMessagesTypeAdapter.dump_json([message]).decode()[1:-1],
            }
            for message in said
        ]
        if rows:
            await connection.execute(ADD, rows)

    def writing(self) -> AbstractAsyncContextManager[Transaction]:
        """A transaction for what a turn stores on its way."""
        return self._database.brief()

    async def pending(self, conversation_id: str) -> Sequence[ApprovalRequest]:
        async with self._database.reading() as connection:
            found = await connection.execute(WAITING, {"lane": lane_of(conversation_id)})
            return pending_of(found.scalars().first())

    async def settle(self, connection: Transaction, conversation_id: str) -> None:
        """Nothing waits for approval any longer."""
        await connection.execute(_settled(conversation_id))

    async def drop_pending(self, conversation_id: str) -> bool:
        """Give up what waits for approval, and tell the model so; whether anything did."""
        lane = lane_of(conversation_id)
        waits = select(turns.c.id, turns.c.pending).where(turns.c.lane == lane, turns.c.pending.is_not(None))
        async with self._database.transaction() as connection:
            row = (await connection.execute(waits)).first()
            if row is None:
                return False
            here = (messages.c.conversation_id == conversation_id, messages.c.turn_id == row.id)
            said = await read_messages(connection, select(messages).where(*here).order_by(messages.c.id))
            calls = open_calls([one.message for one in said])
            answers = ModelRequest(parts=[answered(call, NOT_RUN, ToolStatus.DENIED) for call in calls])
            await self.append(connection, conversation_id, row.id, [answers])
            change = update(turns).where(turns.c.id == row.id)
            await connection.execute(change.values(pending=None, stop=StopReason.CANCELLED))
        return True

    async def summarise(self, conversation_id: str, summary: str, until: int) -> None:
        """Let a summary stand for all messages up to one; they stay stored."""
        change = update(conversations).where(conversations.c.id == conversation_id)
        async with self._database.transaction() as connection:
            await connection.execute(change.values(summary=summary, summary_until=until))

    async def newest(self, conversation_id: str, limit: int) -> tuple[Sequence[StoredMessage], Sequence[PastTurn]]:
        """The newest messages in order, and the turns of the conversation's end."""
        wanted = (
            select(messages)
            .where(messages.c.conversation_id == conversation_id)
            .order_by(messages.c.id.desc())
            .limit(limit)
        )
        ended = (
            select(turns)
            .where(turns.c.lane == lane_of(conversation_id))
            .order_by(turns.c.started_at.desc())
            .limit(limit)
        )
        async with self._database.reading() as connection:
            said = await read_messages(connection, wanted)
            past = (await connection.execute(ended)).all()
        return list(reversed(said)), [_past(row) for row in reversed(past)]

    async def around(self, conversation_id: str, turn_id: str) -> tuple[Sequence[StoredMessage], Sequence[PastTurn]]:
        """A turn's messages in order, and those of its sequel, in which a call that had to wait was answered."""
        here = messages.c.conversation_id == conversation_id
        theirs = select(messages).where(here, messages.c.turn_id == turn_id).order_by(messages.c.id).limit(RETOLD)
        began = select(turns.c.started_at).where(turns.c.id == turn_id).scalar_subquery()
        both = (
            select(turns)
            .where(turns.c.lane == lane_of(conversation_id), turns.c.started_at >= began)
            .order_by(turns.c.started_at)
            .limit(2)
        )
        async with self._database.reading() as connection:
            said = await read_messages(connection, theirs)
            rest = SINCE.limit(SEQUEL)
            after = await read_messages(connection, rest, _thread(conversation_id, until=said[-1].id)) if said else ()
            past = (await connection.execute(both)).all()
        return [*said, *after], [_past(row) for row in past]

    async def search(
        self, agent_id: str, user_id: str | None, query: str, limit: int
    ) -> Sequence[tuple[datetime, ModelMessage]]:
        """Messages of an agent's conversations with one person that hold every word of a query, the newest first."""
        theirs = select(conversations.c.id).where(
            conversations.c.agent_id == agent_id, conversations.c.user_id.is_not_distinct_from(user_id)
        )
        wanted = select(messages).where(
            messages.c.conversation_id.in_(theirs.scalar_subquery()), messages.c.folded != ""
        )
        for word in folded(query).split():
            wanted = wanted.where(messages.c.folded.contains(word, autoescape=True))
        async with self._database.reading() as connection:
            found = await read_messages(connection, wanted.order_by(messages.c.id.desc()).limit(limit))
        return [(one.at, one.message) for one in found]


def folded(text: str) -> str:
    """A text as it is searched: SQLite knows upper and lower case in English alone."""
    return storable(text).casefold()


async def read_conversation(connection: Transaction, agent_id: str, conversation_id: str) -> Row[tuple[object, ...]]:
    row = (await connection.execute(CONVERSATION, _thread(conversation_id, agent=agent_id))).one_or_none()
    if row is None:
        raise no_conversation(agent_id, conversation_id)
    return row


def no_conversation(agent_id: str, conversation_id: str) -> NotFound:
    return NotFound(f"Agent '{agent_id}' has no conversation '{conversation_id}'; leave it out to use the first")


async def _begin_first(connection: Transaction, agent_id: str, conversation_id: str, user_id: str | None) -> None:
    """A person's first conversation begins when it is first spoken in; nobody else does so in this lane meanwhile."""
    if user_id is None or conversation_id != first_conversation(agent_id, user_id):
        return
    given = _thread(conversation_id, agent=agent_id)
    if (await connection.execute(CONVERSATION, given)).one_or_none() is None:
        row = {"id": conversation_id, "agent_id": agent_id, "user_id": user_id, "title": "", "summary_until": 0}
        await connection.execute(insert(conversations).values(**row, created_at=datetime.now(UTC)))


async def _name_of(connection: Transaction, person: str) -> str | None:
    return (await connection.execute(NAME, {"person": person})).scalar_one_or_none()


async def read_messages(
    connection: Transaction, wanted: Select[tuple[object, ...]], given: Mapping[str, object] | None = None
) -> Sequence[StoredMessage]:
    rows = (await connection.execute(wanted, given)).all()
    # One array is read many times faster than as many single messages.
    said = ModelMessagesTypeAdapter.validate_json(f"[{','.join(row.payload for row in rows)}]")
    return [StoredMessage(row.id, row.turn_id, row.at, message) for row, message in zip(rows, said, strict=True)]


def _thread(conversation_id: str, **more: object) -> dict[str, object]:
    return {"conversation": conversation_id, **more}


def _settled(conversation_id: str):  # noqa: ANN202 - SQLAlchemy's own type says no more
    waiting = (turns.c.lane == lane_of(conversation_id), turns.c.pending.is_not(None))
    return update(turns).where(*waiting).values(pending=None)


def _past(row: Row[tuple[object, ...]]) -> PastTurn:
    return PastTurn(row.id, StopReason(row.stop) if row.stop else None, row.ended_at, pending_of(row.pending))
