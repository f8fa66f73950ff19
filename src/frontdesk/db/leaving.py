"""What the house keeps of a person outside the memory room, in every table that names them."""

from collections.abc import Mapping

from sqlalchemy import Connection, Delete, delete, select

from frontdesk.db.engine import Database
from frontdesk.db.schema import (
    agent_defaults,
    api_keys,
    attempts,
    buckets,
    chat_replies,
    chat_sessions,
    chat_words,
    conversations,
    editor_sessions,
    forwards,
    messages,
    oauth_grants,
    occurrences,
    permissions,
    schedules,
    tool_searches,
    tool_uses,
    turns,
    workspaces,
)


async def forget_person(database: Database, user_id: str) -> Mapping[str, int]:
    """Delete all of it, in one transaction; how many rows of what went. The journal's are the journal's to delete."""

    def work(connection: Connection) -> Mapping[str, int]:
        done = ((name, connection.execute(one).rowcount) for name, one in _deletes(user_id))
        gone: dict[str, int] = {}
        for name, count in done:
            gone[name] = gone.get(name, 0) + count
        return gone

    return await database.whole(work, small=False)


def _deletes(user_id: str) -> list[tuple[str, Delete]]:
    """What hangs on a row goes before it."""
    runs = select(occurrences.c.id).where(occurrences.c.user_id == user_id)
    talks = select(conversations.c.id).where(conversations.c.user_id == user_id)
    replies = select(chat_replies.c.id).where(chat_replies.c.user_id == user_id)
    name = f"user:{user_id}"
    return [
        ("schedules", delete(forwards).where(forwards.c.occurrence_id.in_(runs))),
        ("schedules", delete(attempts).where(attempts.c.occurrence_id.in_(runs))),
        ("schedules", delete(occurrences).where(occurrences.c.user_id == user_id)),
        ("schedules", delete(schedules).where(schedules.c.user_id == user_id)),
        ("schedules", delete(agent_defaults).where(agent_defaults.c.scope == name)),
        ("conversations", delete(messages).where(messages.c.conversation_id.in_(talks))),
        ("conversations", delete(chat_words).where(chat_words.c.message_id.in_(replies))),
        ("conversations", delete(chat_replies).where(chat_replies.c.user_id == user_id)),
        ("conversations", delete(chat_sessions).where(chat_sessions.c.user_id == user_id)),
        ("conversations", delete(turns).where(turns.c.user_id == user_id)),
        ("conversations", delete(conversations).where(conversations.c.user_id == user_id)),
        ("editors", delete(editor_sessions).where(editor_sessions.c.user_id == user_id)),
        ("editors", delete(workspaces).where(workspaces.c.user_id == user_id)),
        ("editors", delete(permissions).where(permissions.c.user_id == user_id)),
        ("tools", delete(tool_uses).where(tool_uses.c.tenant == name)),
        ("tools", delete(tool_searches).where(tool_searches.c.tenant == name)),
        ("access", delete(oauth_grants).where(oauth_grants.c.user_id == user_id)),
        ("access", delete(buckets).where(buckets.c.key == name)),
        ("access", delete(api_keys).where(api_keys.c.user_id == user_id)),
    ]
