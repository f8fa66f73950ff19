"""Offers the coding capability: opens, finds, forks and deletes sessions of code editors."""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path, PureWindowsPath
from typing import Unpack

import anyio

from frontdesk.agents.host import Agent, AgentHost, Conversation, MemoryBlock, NewAgent
from frontdesk.coding.memory_mirror import MemoryMirror
from frontdesk.coding.model import SESSION_ID, CodingSession, CodingSessionChanges, CodingSessionPage, new_session_id
from frontdesk.coding.paths import LONGEST_PATH
from frontdesk.coding.permissions import PermissionService
from frontdesk.coding.store import CodingSessionStore, PermissionStore
from frontdesk.db.engine import Database
from frontdesk.errors import Conflict, Denied, FrontdeskError, Invalid, NotFound
from frontdesk.identity import rights
from frontdesk.identity.keys import LOCAL_USER
from frontdesk.identity.model import Caller
from frontdesk.settings import Settings
from frontdesk.settings.model import AGENT_ID_PATTERN
from frontdesk.text import is_storable, one_line, storable

SUGGESTED_TITLE_LENGTH = 60
ELLIPSIS = "…"


def suggest_title(text: str) -> str:
    """A title from the first line with text, cut to the length of a list entry."""
    line = next((" ".join(line.split()) for line in text.splitlines() if line.strip()), "")
    if len(line) <= SUGGESTED_TITLE_LENGTH:
        return line
    kept = line[:SUGGESTED_TITLE_LENGTH]
    # A single long word, such as an address, is cut in the middle.
    head, _, _ = kept.rpartition(" ")
    return f"{(head or kept[:-1]).rstrip()}{ELLIPSIS}"


MAX_FOLDERS = 50
NAME_LENGTH = 100
PATH_SHOWN = 200


async def check_folder(given: Path | str, *, local: bool) -> Path:
    """Check a folder's path: it is absolute, and where it is `local` (on this machine) it exists."""
    text = str(given)
    if not text or len(text) > LONGEST_PATH or not is_storable(text):
        raise Invalid("Give the absolute path of a folder")
    path = Path(text)
    if not local:
        # An editor on another machine may run on Windows.
        if not path.is_absolute() and not PureWindowsPath(text).is_absolute():
            raise _not_absolute(text)
        return path
    if not path.is_absolute():
        raise _not_absolute(text)
    return await anyio.to_thread.run_sync(_require_folder, path)


async def check_folders(given: Sequence[Path | str], *, local: bool) -> tuple[Path, ...]:
    """Check several folders; returns each of them once."""
    if len(given) > MAX_FOLDERS:
        raise Invalid(f"A session has at most {MAX_FOLDERS} folders besides its own; open one further up instead")
    return tuple(dict.fromkeys([await check_folder(one, local=local) for one in given]))


def folder_name(cwd: Path) -> str:
    """The name of a folder."""
    # This class reads the paths of Windows and of other systems.
    return one_line(PureWindowsPath(cwd).name, NAME_LENGTH) or "workspace"


def _require_folder(path: Path) -> Path:
    # `..` depends on links, so it is resolved; a path without it stays as the editor knows it.
    found = Path(os.path.realpath(path)) if ".." in path.parts else path
    if not found.is_dir():
        raise Invalid(f"There is no folder '{str(path)[:PATH_SHOWN]}' on this machine; open one that exists")
    return found


def _not_absolute(text: str) -> Invalid:
    return Invalid(f"'{text[:PATH_SHOWN]}' is no absolute path; give the whole path of a folder")


PAGE_SIZE = 50
AGENTS_LISTED = 1000
TITLE_LENGTH = 200
PERSONA = "I am a helpful coding assistant with access to the workspace."
WORKSPACE_BLOCK = "Working directory: {cwd}\nI should constrain file operations to this directory."


class CodingSessions:
    """Opens, finds and changes the sessions of one person, who is the caller's user.

    `local` is true where the folders are on this machine and have to exist.
    """

    def __init__(self, store: CodingSessionStore, host: AgentHost) -> None:
        self._store = store
        self._host = host

    async def open(
        self,
        caller: Caller,
        cwd: Path | str,
        directories: Sequence[Path | str] = (),
        agent: str | None = None,
        *,
        local: bool = True,
    ) -> CodingSession:
        """Open a session on a new conversation, with the named agent or the folder's own."""
        user_id = _require_person(caller, rights.AGENTS_CHAT)
        place, others = await check_folder(cwd, local=local), await check_folders(directories, local=local)
        chosen = await (self._find_agent(agent, user_id) if agent is not None else self._folder_agent(user_id, place))
        conversation = await self._host.start_conversation(chosen.id, user_id, folder_name(place))
        return await self._add(_new_session(conversation, user_id, place, others))

    async def find(self, caller: Caller, session_id: str) -> CodingSession:
        """Find a session of the caller's."""
        return await self._find_usable(_require_person(caller, rights.AGENTS_READ), session_id)

    async def list(self, caller: Caller, cwd: Path | str | None = None, cursor: str | None = None) -> CodingSessionPage:
        """The caller's sessions, the last used first; only those of one folder where `cwd` is given."""
        user_id = _require_person(caller, rights.AGENTS_READ)
        place = None if cwd is None else await check_folder(cwd, local=False)
        return await self._store.list(user_id, place, cursor, PAGE_SIZE)

    async def has_conversation(self, user_id: str, agent_id: str, conversation_id: str) -> bool:
        """Whether a person has a session on this conversation of an agent."""
        return await self._store.has_conversation(user_id, agent_id, conversation_id)

    async def delete(self, caller: Caller, session_id: str) -> None:
        """Delete a session and its conversation; does nothing where there is none."""
        user_id = _require_person(caller, rights.AGENTS_CHAT)
        with suppress(NotFound):
            session = await self._find_stored(user_id, session_id)
            # The conversation first, so that this can be repeated if the host fails. Some hosts delete nothing.
            with suppress(NotFound, Invalid):
                await self._host.forget(session.agent_id, session.conversation_id, user_id)
            await self._store.delete(session.id, user_id)

    async def fork(
        self,
        caller: Caller,
        session_id: str,
        cwd: Path | str,
        directories: Sequence[Path | str] = (),
        *,
        local: bool = True,
    ) -> CodingSession:
        """A new session with a copy of another session's conversation and its settings."""
        user_id = _require_person(caller, rights.AGENTS_CHAT)
        first = await self._find_usable(user_id, session_id)
        place, others = await check_folder(cwd, local=local), await check_folders(directories, local=local)
        conversation = await self._host.fork(first.agent_id, first.conversation_id, user_id)
        begun = _new_session(conversation, user_id, place, others)
        set_so = replace(begun, title=first.title, mode=first.mode, model=first.model, effort=first.effort)
        return await self._add(replace(set_so, asks_memory=first.asks_memory))

    async def change(self, session: CodingSession, **fields: Unpack[CodingSessionChanges]) -> CodingSession:
        if "title" in fields:
            fields["title"] = one_line(storable(fields["title"]), TITLE_LENGTH)
        return await self._store.change(session, **fields)

    async def touch(self, session: CodingSession) -> CodingSession:
        """Note that the session was used now."""
        return await self._store.touch(session, datetime.now(UTC))

    async def move(
        self, session: CodingSession, cwd: Path | str, directories: Sequence[Path | str] = (), *, local: bool = True
    ) -> CodingSession:
        """Move the session to the folders in which the editor has it now."""
        place, others = await check_folder(cwd, local=local), await check_folders(directories, local=local)
        if (place, others) == (session.cwd, session.directories):
            return session
        return await self._store.change(session, cwd=place, directories=others)

    async def choose_agent(self, session: CodingSession, agent: str) -> CodingSession:
        """Continue the session with another agent, on a new conversation; the old one stays with the old agent."""
        chosen = await self._find_agent(agent, session.user_id)
        if await self._host.agent_for_person(chosen.id, session.user_id) == session.agent_id:
            return session
        begun = await self._host.start_conversation(
            chosen.id, session.user_id, session.title or folder_name(session.cwd)
        )
        return await self._store.change(session, agent_id=begun.agent_id, conversation_id=begun.id)

    async def _find_usable(self, user_id: str | None, session_id: str) -> CodingSession:
        found = await self._find_stored(user_id, session_id)
        if await self._host.agent_for_person(found.agent_id, user_id) != found.agent_id:
            raise Conflict("This session is with an agent that is a template now; open a new one")
        return found

    async def _find_stored(self, user_id: str | None, session_id: str) -> CodingSession:
        """A person's session, even if its agent no longer serves them."""
        found = await self._store.get(session_id, user_id) if SESSION_ID.fullmatch(session_id) else None
        if found is None:
            raise NotFound("Session not found")
        return found

    async def _add(self, session: CodingSession) -> CodingSession:
        await self._store.add(session)
        return session

    async def _find_agent(self, agent: str, user_id: str | None) -> Agent:
        """The agent with this id, or the only one with this name that is not another person's."""
        found = await self._host.find(agent) if AGENT_ID_PATTERN.fullmatch(agent) else None
        if found is not None:
            return found
        others = () if user_id is None else await self._host.agents_of_others(user_id)
        listed = await self._host.list(AGENTS_LISTED)
        called_so = [one for one in listed if one.name == agent and one.id not in others]
        if len(called_so) > 1:
            raise NotFound(f"{len(called_so)} agents are called '{one_line(agent, 100)}'; name one by its id")
        if not called_so:
            raise NotFound(f"There is no agent '{one_line(agent, 100)}'; give the id or the name of one that exists")
        return called_so[0]

    async def _folder_agent(self, user_id: str | None, cwd: Path) -> Agent:
        """The agent of a folder; it is created where there is none."""
        known = await self._store.folder_agent(user_id, cwd)
        found = None if known is None else await self._host.find(known)
        return found or await self._create_folder_agent(user_id, cwd, known)

    async def _create_folder_agent(self, user_id: str | None, cwd: Path, gone: str | None) -> Agent:
        made = await self._host.create(_new_folder_agent(cwd, user_id))
        held = await self._store.set_folder_agent(user_id, cwd, made.id, datetime.now(UTC), instead_of=gone)
        if held == made.id:
            return made
        # Another editor has opened the same folder meanwhile.
        with suppress(FrontdeskError):
            await self._host.delete(made.id)
        return await self._find_agent(held, user_id)


def _require_person(caller: Caller, scope: str) -> str | None:
    rights.require_scope(caller, scope)
    if caller.user_id is None and not caller.local:
        raise Denied(
            "This credential is for an agent and not for a person; use one that names a user "
            "(frontdesk keys create --user USER)"
        )
    return caller.user_id


def _new_folder_agent(cwd: Path, user_id: str | None) -> NewAgent:
    blocks = (
        MemoryBlock("persona", PERSONA, "Who I am, how I speak and what I care about."),
        MemoryBlock("workspace", WORKSPACE_BLOCK.format(cwd=cwd), "Where I work."),
    )
    # The local user runs every agent anyway.
    owner = None if user_id == LOCAL_USER else user_id
    return NewAgent(folder_name(cwd), f"Works in {cwd}", blocks=blocks, owner=owner)


def _new_session(
    conversation: Conversation, user_id: str | None, cwd: Path, directories: tuple[Path, ...]
) -> CodingSession:
    now = datetime.now(UTC)
    session = CodingSession(new_session_id(), conversation.agent_id, conversation.id, cwd, now, now, user_id)
    return replace(session, directories=directories)


@dataclass(frozen=True, slots=True)
class CodingService:
    """The parts of coding that all sessions share; files and commands belong to each session."""

    sessions: CodingSessions
    permissions: PermissionService
    mirror: MemoryMirror


MEMORY_FOLDER = "memory"


def open_coding(settings: Settings, database: Database, host: AgentHost) -> CodingService:
    """Open the coding capability; the files that show memory are in the data folder."""
    return CodingService(
        sessions=CodingSessions(CodingSessionStore(database), host),
        permissions=PermissionService(PermissionStore(database)),
        mirror=MemoryMirror(settings.data / MEMORY_FOLDER),
    )
