"""Sessions as the doors use them: opened in a folder with the agent that is at home there, found again, forgotten."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Unpack

from frontdesk.agents.host import Agent, AgentHost, Block, Conversation, NewAgent
from frontdesk.errors import Conflict, Denied, FrontdeskError, Invalid, NotFound
from frontdesk.identity import rights
from frontdesk.identity.keys import FIRST_USER
from frontdesk.identity.model import Caller
from frontdesk.loop.text import one_line, storable
from frontdesk.settings import AGENT_ID
from frontdesk.workspace.sessions.folders import folder, folders, name_of
from frontdesk.workspace.sessions.model import SESSION_ID, Changes, Page, Session, new_session_id
from frontdesk.workspace.sessions.store import SessionStore

LISTED = 50
AGENTS_LISTED = 1000
TITLE_LENGTH = 200
PERSONA = "I am a helpful coding assistant with access to the workspace."
WORKSPACE = "Working directory: {cwd}\nI should constrain file operations to this directory."


class Sessions:
    """Each method is for one person, who is the caller's user.

    `local` says whether the folders are on this machine, and so have to be there.
    """

    def __init__(self, store: SessionStore, host: AgentHost) -> None:
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
    ) -> Session:
        """Begin a session, on a conversation of its own; with the agent that is named, or the folder's."""
        user_id = _person(caller, rights.AGENTS_CHAT)
        place, others = await folder(cwd, local=local), await folders(directories, local=local)
        chosen = await (self._named(agent, user_id) if agent is not None else self._at_home(user_id, place))
        conversation = await self._host.converse(chosen.id, user_id, name_of(place))
        return await self._add(_begun(conversation, user_id, place, others))

    async def find(self, caller: Caller, session_id: str) -> Session:
        """A session of one's own."""
        return await self._own(_person(caller, rights.AGENTS_READ), session_id)

    async def list(self, caller: Caller, cwd: Path | str | None = None, cursor: str | None = None) -> Page:
        """One's own, those used last first; only those of one folder, where one is named."""
        user_id = _person(caller, rights.AGENTS_READ)
        place = None if cwd is None else await folder(cwd, local=False)
        return await self._store.list(user_id, place, cursor, LISTED)

    async def keeps(self, user_id: str, agent_id: str, conversation_id: str) -> bool:
        """Whether a person has a session on this conversation of an agent's."""
        return await self._store.keeps(user_id, agent_id, conversation_id)

    async def delete(self, caller: Caller, session_id: str) -> None:
        """Forget a session and what was said in it; nothing where there is none."""
        user_id = _person(caller, rights.AGENTS_CHAT)
        with suppress(NotFound):
            session = await self._kept(user_id, session_id)
            # First, so that whoever could not reach the host can try again. Some hosts forget nothing.
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
    ) -> Session:
        """A new session that begins with all that was said in another, and is set as that one is."""
        user_id = _person(caller, rights.AGENTS_CHAT)
        first = await self._own(user_id, session_id)
        place, others = await folder(cwd, local=local), await folders(directories, local=local)
        conversation = await self._host.fork(first.agent_id, first.conversation_id, user_id)
        begun = _begun(conversation, user_id, place, others)
        set_so = replace(begun, title=first.title, mode=first.mode, model=first.model, effort=first.effort)
        return await self._add(replace(set_so, asks_memory=first.asks_memory))

    async def change(self, session: Session, **fields: Unpack[Changes]) -> Session:
        if "title" in fields:
            fields["title"] = one_line(storable(fields["title"]), TITLE_LENGTH)
        return await self._store.change(session, **fields)

    async def touch(self, session: Session) -> Session:
        """The session as it is once used now."""
        return await self._store.touch(session, datetime.now(UTC))

    async def moved(
        self, session: Session, cwd: Path | str, directories: Sequence[Path | str] = (), *, local: bool = True
    ) -> Session:
        """The session in these folders, where the editor has it open now."""
        place, others = await folder(cwd, local=local), await folders(directories, local=local)
        if (place, others) == (session.cwd, session.directories):
            return session
        return await self._store.change(session, cwd=place, directories=others)

    async def choose_agent(self, session: Session, agent: str) -> Session:
        """The session with another agent, and so on a new conversation; what was said before stays with the old one."""
        chosen = await self._named(agent, session.user_id)
        if await self._host.serving(chosen.id, session.user_id) == session.agent_id:
            return session
        begun = await self._host.converse(chosen.id, session.user_id, session.title or name_of(session.cwd))
        return await self._store.change(session, agent_id=begun.agent_id, conversation_id=begun.id)

    async def _own(self, user_id: str | None, session_id: str) -> Session:
        found = await self._kept(user_id, session_id)
        if await self._host.serving(found.agent_id, user_id) != found.agent_id:
            raise Conflict("This session is with an agent that is a template now; open a new one")
        return found

    async def _kept(self, user_id: str | None, session_id: str) -> Session:
        """A person's session, whether its agent still serves them or not."""
        found = await self._store.get(session_id, user_id) if SESSION_ID.fullmatch(session_id) else None
        if found is None:
            raise NotFound("Session not found")
        return found

    async def _add(self, session: Session) -> Session:
        await self._store.add(session)
        return session

    async def _named(self, agent: str, user_id: str | None) -> Agent:
        """The agent of this id, or the only one of this name that is nobody else's."""
        found = await self._host.find(agent) if AGENT_ID.fullmatch(agent) else None
        if found is not None:
            return found
        others = () if user_id is None else await self._host.others(user_id)
        listed = await self._host.list(AGENTS_LISTED)
        called_so = [one for one in listed if one.name == agent and one.id not in others]
        if len(called_so) > 1:
            raise NotFound(f"{len(called_so)} agents are called '{one_line(agent, 100)}'; name one by its id")
        if not called_so:
            raise NotFound(f"There is no agent '{one_line(agent, 100)}'; give the id or the name of one that exists")
        return called_so[0]

    async def _at_home(self, user_id: str | None, cwd: Path) -> Agent:
        """The agent of a folder, made where there is none, or no longer."""
        known = await self._store.agent_of(user_id, cwd)
        found = None if known is None else await self._host.find(known)
        return found or await self._move_in(user_id, cwd, known)

    async def _move_in(self, user_id: str | None, cwd: Path, gone: str | None) -> Agent:
        made = await self._host.create(_newcomer(cwd, user_id))
        held = await self._store.settle(user_id, cwd, made.id, datetime.now(UTC), instead_of=gone)
        if held == made.id:
            return made
        # Another editor opened the same folder meanwhile.
        with suppress(FrontdeskError):
            await self._host.delete(made.id)
        return await self._named(held, user_id)


def _person(caller: Caller, scope: str) -> str | None:
    rights.require(caller, scope)
    if caller.user_id is None and not caller.local:
        raise Denied(
            "This credential speaks for an agent and for no person; use one that names a user "
            "(frontdesk keys create --user USER)"
        )
    return caller.user_id


def _newcomer(cwd: Path, user_id: str | None) -> NewAgent:
    blocks = (
        Block("persona", PERSONA, "Who I am, how I speak and what I care about."),
        Block("workspace", WORKSPACE.format(cwd=cwd), "Where I work."),
    )
    # The person at this machine runs every agent anyway.
    owner = None if user_id == FIRST_USER else user_id
    return NewAgent(name_of(cwd), f"Works in {cwd}", blocks=blocks, owner=owner)


def _begun(conversation: Conversation, user_id: str | None, cwd: Path, directories: tuple[Path, ...]) -> Session:
    now = datetime.now(UTC)
    session = Session(new_session_id(), conversation.agent_id, conversation.id, cwd, now, now, user_id)
    return replace(session, directories=directories)
