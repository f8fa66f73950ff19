"""Makes an agent like another on a Letta server, for one person."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, cast

import structlog

from frontdesk.agents.letta.proof import SECRET, working
from frontdesk.agents.letta.server import Server
from frontdesk.identity import keys
from frontdesk.identity.keys import ApiKey
from frontdesk.identity.store import KeyStore

KEY_NAME = "letta connect"
# The parts of an agent that Letta gives back as it takes them.
SAME = (
    "agent_type",
    "compaction_settings",
    "description",
    "embedding",
    "enable_sleeptime",
    # A model by its handle alone would be set up as Letta sets up new agents, and not as this one is.
    "llm_config",
    "max_files_open",
    "message_buffer_autoclear",
    "metadata",
    "model",
    "per_file_view_window_char_limit",
    "response_format",
    "system",
    "timezone",
)
OF_A_BLOCK = ("label", "value", "description", "limit", "metadata", "read_only")
PARTS = ("agent.blocks", "agent.secrets", "agent.sources", "agent.tags", "agent.tools")
# What Letta allows in a name.
UNNAMED = re.compile(r"[^\w '\-]+")
NAME_LENGTH = 60
FOUND = 100

log = structlog.get_logger("frontdesk.letta")


def tag_of(template_id: str, user_id: str) -> str:
    """What marks a person's agent on the Letta server, so that one whose making was cut off is found again."""
    return f"frontdesk-{hashlib.sha256(f'{template_id} {user_id}'.encode()).hexdigest()[:32]}"


def like(template: Mapping[str, Any], user_id: str, tag: str) -> dict[str, Any]:
    """What to have Letta make: all that an agent is made of, and nothing of what was said with it."""
    same = {name: template[name] for name in SAME if template.get(name) is not None}
    return same | {
        "name": named(str(template.get("name") or ""), user_id),
        "memory_blocks": [_block(block) for block in _list(template, "blocks")],
        "tool_ids": [tool["id"] for tool in _list(template, "tools")],
        "folder_ids": [folder["id"] for folder in _list(template, "sources")],
        "tool_rules": _list(template, "tool_rules"),
        "tags": [*(template.get("tags") or ()), tag],
        "include_base_tools": False,
        "include_base_tool_rules": False,
    }


def named(name: str, user_id: str) -> str:
    """The agent's name and the person's, so that whoever looks at the Letta server can tell them apart."""
    return f"{name} - {UNNAMED.sub(' ', user_id).strip()[:NAME_LENGTH]}".strip(" -")


async def made(server: Server, store: KeyStore, template_id: str, user_id: str, unnoted: str | None) -> str:
    """The id of an agent like the template, or `unnoted`, one that was made so before, equipped as the template is."""
    about = f"agent '{template_id}'"
    with server.asking(about):
        answer = await server.client.agents.with_raw_response.retrieve(template_id, include=list(PARTS))
        template = cast("dict[str, Any]", await answer.json())
    body = like(template, user_id, tag_of(template_id, user_id))
    with server.asking(about):
        # Never sent twice: a server that answers with an error may have made it all the same.
        once = server.client.with_options(max_retries=0)
        agent_id = unnoted or (await once.agents.create(extra_body=body)).id
    await _equip(server, store, template, agent_id)
    return agent_id


async def like_it(server: Server, template_id: str, user_id: str) -> Sequence[str]:
    """The agents on the server that were made from a template for a person: one, as a rule."""
    with server.asking("agents"):
        page = await server.client.agents.list(tags=[tag_of(template_id, user_id)], limit=FOUND, order="asc")
    return [found.id for found in page.items]


async def _equip(server: Server, store: KeyStore, template: Mapping[str, Any], agent_id: str) -> None:
    """The template's secrets, with a key of the new agent's own; and its rules, without those that tools bring."""
    secrets = {one["key"]: str(one.get("value") or "") for one in _list(template, "secrets")}
    theirs = await _key_of(store, str(template["id"]), secrets.pop(SECRET, None))
    given = {name: value for name, value in secrets.items() if value}
    if hidden := sorted(secrets.keys() - given.keys()):
        log.warning("letta_secrets_not_copied", agent_id=agent_id, names=hidden)
    new: ApiKey | None = None
    if theirs is not None:
        # One that was cut off while it was made may have a key that nobody knows any more.
        for old in await store.of_agent(agent_id, datetime.now(UTC)):
            await store.revoke(old.id, datetime.now(UTC))
        wanted = ApiKey("", b"", KEY_NAME, agent_id, None, theirs.scopes, datetime.now(UTC))
        new, text = keys.minted(wanted)
        await store.add(new)
        given[SECRET] = text
    change: dict[str, Any] = {"tool_rules": _list(template, "tool_rules")}
    try:
        with server.asking(f"agent '{agent_id}'"):
            await server.client.agents.update(agent_id, extra_body=change | ({"secrets": given} if given else {}))
    except BaseException:
        if new is not None:
            with suppress(Exception):
                await store.revoke(new.id, datetime.now(UTC))
        raise


async def _key_of(store: KeyStore, template_id: str, text: str | None) -> ApiKey | None:
    """The key that the template has; where Letta does not show it, the newest that was made for it."""
    if text is None:
        return None
    now = datetime.now(UTC)
    if (found := await working(store, text, template_id, now)) is not None:
        return found
    made_for = [key for key in await store.of_agent(template_id, now) if key.name == KEY_NAME]
    return max(made_for, key=lambda key: key.created_at, default=None)


def _block(block: Mapping[str, Any]) -> dict[str, Any]:
    return {name: block[name] for name in OF_A_BLOCK if block.get(name) is not None}


def _list(state: Mapping[str, Any], name: str) -> Sequence[Any]:
    return state.get(name) or ()
