"""Every table, once, for both databases; each room's stand in `tables/`."""

from frontdesk.db.tables.agents import (
    agent_tools,
    agents,
    blocks,
    chat_replies,
    chat_sessions,
    chat_words,
    conversations,
    handed_tools,
    messages,
    turns,
)
from frontdesk.db.tables.identity import api_keys, buckets
from frontdesk.db.tables.journal import journal
from frontdesk.db.tables.schedule import (
    IS_OVER,
    UNDER_WAY,
    WAITS_FOR_ITS_TIME,
    agent_defaults,
    attempts,
    forwards,
    lanes,
    occurrences,
    schedules,
)
from frontdesk.db.tables.shared import Moment, counters, metadata
from frontdesk.db.tables.tools import (
    held_tools,
    tool_rights,
    tool_searches,
    tool_servers,
    tool_turns,
    tool_uses,
    tool_vectors,
    tools,
)

__all__ = [
    "IS_OVER",
    "UNDER_WAY",
    "WAITS_FOR_ITS_TIME",
    "Moment",
    "agent_defaults",
    "agent_tools",
    "agents",
    "api_keys",
    "attempts",
    "blocks",
    "buckets",
    "chat_replies",
    "chat_sessions",
    "chat_words",
    "conversations",
    "counters",
    "forwards",
    "handed_tools",
    "held_tools",
    "journal",
    "lanes",
    "messages",
    "metadata",
    "occurrences",
    "schedules",
    "tool_rights",
    "tool_searches",
    "tool_servers",
    "tool_turns",
    "tool_uses",
    "tool_vectors",
    "tools",
    "turns",
]
