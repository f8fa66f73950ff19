"""Which role a tool plays, told by the server it is of and its exact name."""

from frontdesk.tools.selection.model import Role

# The tools with which a Letta agent speaks, remembers and reads its files (letta 0.16, `constants.py`).
LETTA_CORE = frozenset(
    {
        "send_message",
        "conversation_search",
        "archival_memory_insert",
        "archival_memory_search",
        "core_memory_append",
        "core_memory_replace",
        "memory",
        "memory_apply_patch",
        "memory_replace",
        "memory_insert",
        "memory_rethink",
        "memory_finish_edits",
        "search_memory",
        "store_memories",
        "rethink_user_memory",
        "finish_rethinking_memory",
        "open_files",
        "grep_files",
        "semantic_search_files",
    }
)
# What Letta ships besides: an agent works without them.
LETTA_OFFICIAL = frozenset(
    {
        "run_code",
        "run_code_with_tools",
        "web_search",
        "fetch_webpage",
        "send_message_to_agent_and_wait_for_reply",
        "send_message_to_agents_matching_tags",
        "send_message_to_agent_async",
    }
)


def role_of(name: str, server: str | None) -> Role:
    """`server` is the MCP server the tool is of; None for one of the host's own."""
    if server is not None:
        return Role.MCP
    if name in LETTA_CORE:
        return Role.CORE
    return Role.OFFICIAL if name in LETTA_OFFICIAL else Role.HOST
