"""Decides which Letta agent serves which person, and makes a person's agent from a template."""

import hashlib
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from secrets import token_hex
from typing import Any, cast

import anyio
import structlog

from frontdesk.agents.letta.people_store import (
    AgentAssignment,
    AgentAssignmentStore,
    AssignmentKind,
    CopyClaim,
    assign_if_unknown,
)
from frontdesk.agents.letta.server import KEY_SECRET, LettaServer, find_working_key
from frontdesk.background import retry_delays
from frontdesk.db.engine import Transaction
from frontdesk.errors import Busy, Conflict, Denied, FrontdeskError, NotFound
from frontdesk.identity import keys
from frontdesk.identity.keys import ApiKey
from frontdesk.identity.store import KeyStore

KEY_NAME = "letta connect"
# The parts of an agent that Letta returns in the same form in which it takes them.
COPIED_FIELDS = (
    "agent_type",
    "compaction_settings",
    "description",
    "embedding",
    "enable_sleeptime",
    # With only a model's handle, Letta would use its settings for new agents instead of this agent's.
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
COPIED_BLOCK_FIELDS = ("label", "value", "description", "limit", "metadata", "read_only")
INCLUDED_PARTS = ("agent.blocks", "agent.secrets", "agent.sources", "agent.tags", "agent.tools")
# The characters that Letta does not allow in a name.
NOT_IN_NAMES = re.compile(r"[^\w '\-]+")
NAME_LENGTH = 60
MAX_COPIES_FOUND = 100

log = structlog.get_logger("frontdesk.letta")


def copy_tag(template_id: str, user_id: str) -> str:
    """The tag of a person's agent on the Letta server, with which an agent is found whose creation was interrupted."""
    return f"frontdesk-{hashlib.sha256(f'{template_id} {user_id}'.encode()).hexdigest()[:32]}"


def copy_request(template: Mapping[str, Any], user_id: str, tag: str) -> dict[str, Any]:
    """The request that makes a copy of the template, without the template's messages."""
    same = {name: template[name] for name in COPIED_FIELDS if template.get(name) is not None}
    return same | {
        "name": copy_name(str(template.get("name") or ""), user_id),
        "memory_blocks": [_block(block) for block in _items(template, "blocks")],
        "tool_ids": [tool["id"] for tool in _items(template, "tools")],
        "folder_ids": [folder["id"] for folder in _items(template, "sources")],
        "tool_rules": _items(template, "tool_rules"),
        "tags": [*(template.get("tags") or ()), tag],
        "include_base_tools": False,
        "include_base_tool_rules": False,
    }


def copy_name(name: str, user_id: str) -> str:
    """The agent's name and the person's, so that the copies can be told apart on the Letta server."""
    return f"{name} - {NOT_IN_NAMES.sub(' ', user_id).strip()[:NAME_LENGTH]}".strip(" -")


async def copy_agent(server: LettaServer, store: KeyStore, template_id: str, user_id: str, unnoted: str | None) -> str:
    """Make an agent like the template, or complete `unnoted`, an agent from an earlier attempt; returns its id."""
    about = f"agent '{template_id}'"
    with server.translating_errors(about):
        answer = await server.client.agents.with_raw_response.retrieve(template_id, include=list(INCLUDED_PARTS))
        template = cast("dict[str, Any]", await answer.json())
    body = copy_request(template, user_id, copy_tag(template_id, user_id))
    with server.translating_errors(about):
        # Sent once: a server that answers with an error may still have made the agent.
        once = server.client.with_options(max_retries=0)
        agent_id = unnoted or (await once.agents.create(extra_body=body)).id
    await _equip(server, store, template, agent_id)
    return agent_id


async def find_copies(server: LettaServer, template_id: str, user_id: str) -> Sequence[str]:
    """The agents on the server that were made from a template for a person; usually one."""
    with server.translating_errors("agents"):
        page = await server.client.agents.list(
            tags=[copy_tag(template_id, user_id)], limit=MAX_COPIES_FOUND, order="asc"
        )
    return [found.id for found in page.items]


async def _equip(server: LettaServer, store: KeyStore, template: Mapping[str, Any], agent_id: str) -> None:
    """Copy the template's secrets, with a new key for this agent, and its rules, without those that tools bring."""
    secrets = {one["key"]: str(one.get("value") or "") for one in _items(template, "secrets")}
    theirs = await _key_of(store, str(template["id"]), secrets.pop(KEY_SECRET, None))
    given = {name: value for name, value in secrets.items() if value}
    if hidden := sorted(secrets.keys() - given.keys()):
        log.warning("letta_secrets_not_copied", agent_id=agent_id, names=hidden)
    new: ApiKey | None = None
    if theirs is not None:
        # An agent from an interrupted attempt may have a key that nobody knows any more.
        for old in await store.list_for_agent(agent_id, datetime.now(UTC)):
            await store.revoke(old.id, datetime.now(UTC))
        wanted = ApiKey("", b"", KEY_NAME, agent_id, None, theirs.scopes, datetime.now(UTC))
        new, text = keys.with_new_secret(wanted)
        await store.add(new)
        given[KEY_SECRET] = text
    change: dict[str, Any] = {"tool_rules": _items(template, "tool_rules")}
    try:
        with server.translating_errors(f"agent '{agent_id}'"):
            await server.client.agents.update(agent_id, extra_body=change | ({"secrets": given} if given else {}))
    except BaseException:
        if new is not None:
            with suppress(Exception):
                await store.revoke(new.id, datetime.now(UTC))
        raise


async def _key_of(store: KeyStore, template_id: str, text: str | None) -> ApiKey | None:
    """The template's key; where Letta does not show it, the newest key that was made for the template."""
    if text is None:
        return None
    now = datetime.now(UTC)
    if (found := await find_working_key(store, text, template_id, now)) is not None:
        return found
    made_for = [key for key in await store.list_for_agent(template_id, now) if key.name == KEY_NAME]
    return max(made_for, key=lambda key: key.created_at, default=None)


def _block(block: Mapping[str, Any]) -> dict[str, Any]:
    return {name: block[name] for name in COPIED_BLOCK_FIELDS if block.get(name) is not None}


def _items(state: Mapping[str, Any], name: str) -> Sequence[Any]:
    return state.get(name) or ()


CLAIM_WAIT_SECONDS = 30
CLAIM_PAUSES = (0.05, 0.1, 0.2, 0.5)
UNDO_SECONDS = 5
SERVES_SOMEBODY_ELSE = (
    "Agent '{0}' serves somebody else: what a Letta agent learns of one person, it knows when it talks with the next. "
    "The operator can make it a template, from which everybody gets an agent of their own "
    "(frontdesk letta template {0}), or say that several people may share it (frontdesk letta share {0})"
)

# Deletes an agent with everything that Letta keeps of it.
DeleteAgent = Callable[[str], Awaitable[None]]


class AgentAssignments:
    """Decides which agent a turn for a named person uses. Turns without a person belong to the operator."""

    def __init__(self, store: AgentAssignmentStore, keys: KeyStore) -> None:
        self.store = store
        self._keys = keys

    async def agent_for_person(self, server: LettaServer, agent_id: str, user_id: str | None) -> str:
        """The agent that serves a person who names this one."""
        found = None if user_id is None else await self.store.find(agent_id)
        if found is None or user_id is None or found.kind is AssignmentKind.SHARED:
            return agent_id
        if found.kind is AssignmentKind.TEMPLATE:
            return await self._find_or_make(server, agent_id, user_id)
        _check_person(found, agent_id, user_id)
        return agent_id

    async def bind(self, connection: Transaction, agent_id: str, user_id: str) -> None:
        """Assign the agent to the person of its first turn, in the transaction in which that turn begins."""
        found = await assign_if_unknown(connection, agent_id, user_id)
        if found.kind is AssignmentKind.TEMPLATE:
            raise Conflict(f"Agent '{agent_id}' has just become a template; send it again")
        if found.kind is AssignmentKind.PERSON:
            _check_person(found, agent_id, user_id)

    async def agents_of_others(self, user_id: str) -> Collection[str]:
        """The agents that serve only other people."""
        listed = await self.store.listed()
        return {one.agent_id or "" for one in listed if one.kind is AssignmentKind.PERSON and one.user_id != user_id}

    async def descriptions(self, ids: Collection[str]) -> Mapping[str, str]:
        """Descriptions of the people that these agents serve, where known."""
        return {agent_id: known.description for agent_id, known in (await self.store.known(ids)).items()}

    async def make_template(self, agent_id: str, *, as_it_is: bool) -> None:
        """Make the agent a template: each person who names it gets their own copy."""
        known = await self.store.find(agent_id)
        if known is not None and known.kind is AssignmentKind.TEMPLATE:
            return
        if (people := await self._served(agent_id, known)) and not as_it_is:
            raise Conflict(
                f"Agent '{agent_id}' has talked with {', '.join(people)}, and what it has learned stands in its memory "
                f"blocks, which everybody's agent would begin with. Make a new one for this (frontdesk agents create "
                f"NAME), or clear what is theirs (frontdesk agents block {agent_id} LABEL '') and say --as-it-is"
            )
        await self.store.mark(agent_id, AssignmentKind.TEMPLATE)

    async def share(self, agent_id: str) -> None:
        """Let several people talk with this one agent, which uses what it learned from all of them with each."""
        await self.store.mark(agent_id, AssignmentKind.SHARED)

    async def keep_apart(self, agent_id: str, user_id: str | None) -> AgentAssignment | None:
        """End sharing, or being a template: the agent now serves one person, the given one or its only speaker.

        Returns None where nobody has talked with it yet; it will then serve the first person who does.
        """
        known = await self.store.find(agent_id)
        people = [user_id] if user_id is not None else await self._served(agent_id, known)
        if len(people) > 1:
            raise Conflict(
                f"Several people have talked with agent '{agent_id}': {', '.join(people)}. Say whose it is to be "
                "(--user); it knows of them all"
            )
        if not people:
            await self.store.unmark(agent_id)
            return None
        if known is None or known.user_id != people[0]:
            await self.store.mark(agent_id, AssignmentKind.PERSON, people[0])
        return await self.store.find(agent_id)

    async def forget(self, server: LettaServer, delete: DeleteAgent, user_id: str) -> tuple[int, Sequence[str]]:
        """Delete a person's agents; returns the number of rows, and texts about what is left of them on the server."""
        left = [
            f"agent '{agent_id}' is shared by several people, and may know of this one: look through its memory "
            f"blocks and conversations (frontdesk agents show {agent_id})"
            for agent_id in await self.store.shared_with(user_id)
        ]
        gone = 0
        for one in await self.store.of_person(user_id):
            try:
                ids = (
                    [one.agent_id]
                    if one.agent_id
                    else await self._unrecorded_copies(server, one.template_id or "", user_id)
                )
                for agent_id in ids:
                    await self._delete(delete, agent_id)
                    gone += await self.store.forget(agent_id)
            except FrontdeskError as error:
                which = f"agent '{one.agent_id}'" if one.agent_id else f"an agent made from '{one.template_id}'"
                left.append(f"{which} was not deleted: {error.public_message}; erase once more when Letta answers")
            else:
                if one.agent_id is None:
                    await self.store.forget_unmade(user_id)
        return gone, left

    async def _delete(self, delete: DeleteAgent, agent_id: str) -> None:
        for key in await self._keys.list_for_agent(agent_id, datetime.now(UTC)):
            await self._keys.revoke(key.id, datetime.now(UTC))
        with suppress(NotFound):
            await delete(agent_id)

    async def _unrecorded_copies(self, server: LettaServer, template_id: str, user_id: str) -> Sequence[str]:
        """The agents on the server from interrupted attempts, without those that have a record by now."""
        found = await find_copies(server, template_id, user_id)
        known = await self.store.known(found)
        return [agent_id for agent_id in found if agent_id not in known]

    async def _served(self, agent_id: str, known: AgentAssignment | None) -> Sequence[str]:
        bound = {known.user_id} if known is not None and known.user_id is not None else set[str]()
        return sorted(bound | set(await self.store.speakers(agent_id)))

    async def _find_or_make(self, server: LettaServer, template_id: str, user_id: str) -> str:
        """A person's agent, made from the template if they have none; concurrent calls make one agent together."""
        if (known := await self.store.made_from(template_id, user_id)) is not None:
            return known
        claim, waits = CopyClaim(template_id, user_id, token_hex(16)), retry_delays(*CLAIM_PAUSES)
        with anyio.move_on_after(CLAIM_WAIT_SECONDS):
            while True:
                answer = await self.store.claim(claim)
                if isinstance(answer, str):
                    return answer
                if answer:
                    return await self._make(server, claim)
                await anyio.sleep(next(waits))
        raise Busy("This person's agent is still being made; try again in a moment")

    async def _make(self, server: LettaServer, claim: CopyClaim) -> str:
        try:
            unnoted = next(iter(await self._unrecorded_copies(server, claim.template_id, claim.user_id)), None)
            agent_id = await copy_agent(server, self._keys, claim.template_id, claim.user_id, unnoted)
            if not await self.store.made(claim, agent_id):
                raise Busy("This person's agent took too long to be made; try again in a moment")
        except BaseException:
            # An agent that was made by then has a tag, and the next attempt finds it.
            with anyio.move_on_after(UNDO_SECONDS, shield=True), suppress(FrontdeskError):
                await self.store.give_up(claim)
            raise
        log.info("letta_agent_made", agent_id=agent_id, template_id=claim.template_id)
        return agent_id


def _check_person(found: AgentAssignment, agent_id: str, user_id: str) -> None:
    if found.user_id != user_id:
        raise Denied(SERVES_SOMEBODY_ELSE.format(agent_id))
