"""The sessions that one editor has open, and what it asks for about them and the others."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Self

import anyio
from anyio.abc import TaskGroup

from frontdesk.app import App
from frontdesk.errors import Invalid, NotFound
from frontdesk.identity.model import Caller
from frontdesk.surfaces.acp.commands.table import COMMANDS
from frontdesk.surfaces.acp.convert import updates
from frontdesk.surfaces.acp.convert.content import heard
from frontdesk.surfaces.acp.editor.model import Editor
from frontdesk.surfaces.acp.live import options
from frontdesk.surfaces.acp.live.aside import aside
from frontdesk.surfaces.acp.live.asked import SetTitle, Steering
from frontdesk.surfaces.acp.live.memory import MemoryWatch
from frontdesk.surfaces.acp.live.news import News, Tidings
from frontdesk.surfaces.acp.live.options import Choices
from frontdesk.surfaces.acp.live.session import LiveSession
from frontdesk.surfaces.acp.wire.model import Json, Request
from frontdesk.surfaces.acp.wire.words import (
    CloseSessionRequest,
    DeleteSessionRequest,
    ForkSessionRequest,
    ListSessionsRequest,
    LoadSessionRequest,
    NewSessionRequest,
    PromptRequest,
    ResumeSessionRequest,
    SetSessionModeRequest,
    config_choice,
    parsed,
)
from frontdesk.workspace.sessions.model import Session

AGENTS_LISTED = 100
WHOLE_HISTORY = 100_000
OFFERED = updates.commands([(one.name, one.description, one.hint) for one in COMMANDS.values()])
PROMPT_REQUIRED: Json = {"outcome": "promptRequired", "reason": "noRunningTurn"}

Who = Callable[[], Awaitable[Caller]]


@dataclass(slots=True)
class OpenSessions:
    """`agent` is the one that was chosen for every folder, if one was."""

    app: App
    editor: Editor
    who: Who
    agent: str | None
    tasks: TaskGroup
    news: News
    live: dict[str, LiveSession] = field(default_factory=dict[str, LiveSession])

    @classmethod
    @asynccontextmanager
    async def open(cls, app: App, editor: Editor, who: Who, agent: str | None) -> AsyncGenerator[Self]:
        async with anyio.create_task_group() as tasks:
            sessions = cls(app, editor, who, agent, tasks, News(app, who))
            tasks.start_soon(aside, partial(sessions.news.run, sessions.agents, sessions.bring))
            tasks.start_soon(aside, partial(MemoryWatch(app.host).run, sessions.all))
            try:
                yield sessions
            finally:
                await sessions.close_all()
                tasks.cancel_scope.cancel()

    async def new(self, request: Request, caller: Caller) -> Json:
        asked = parsed(NewSessionRequest, request.params)
        folders, local = asked.additional_directories or (), self.editor.local
        self.editor.admit(asked.cwd, *folders)
        kept = await self.app.workspace.sessions.open(caller, asked.cwd, folders, self.agent, local=local)
        session = await self._begin(kept, asked.mcp_servers, request)
        return {"sessionId": kept.id, **self._told(session)}

    async def load(self, request: Request, caller: Caller) -> Json:
        asked = parsed(LoadSessionRequest, request.params)
        kept = await self._found(caller, asked.session_id, asked.cwd, asked.additional_directories)
        session = await self._enter(kept, asked.mcp_servers)
        said = await self.app.host.history(
            kept.agent_id, kept.conversation_id, limit=WHOLE_HISTORY, user_id=kept.user_id
        )
        await session.replay(said)
        # Nothing that belongs to the past comes after the answer, and so this does not either.
        await session.show(OFFERED)
        return self._told(session)

    async def resume(self, request: Request, caller: Caller) -> Json:
        asked = parsed(ResumeSessionRequest, request.params)
        kept = await self._found(caller, asked.session_id, asked.cwd, asked.additional_directories)
        return self._told(await self._begin(kept, asked.mcp_servers or (), request))

    async def fork(self, request: Request, caller: Caller) -> Json:
        asked = parsed(ForkSessionRequest, request.params)
        folders, local = asked.additional_directories or (), self.editor.local
        self.editor.admit(asked.cwd, *folders)
        kept = await self.app.workspace.sessions.fork(caller, asked.session_id, asked.cwd, folders, local=local)
        session = await self._begin(kept, asked.mcp_servers or (), request)
        return {"sessionId": kept.id, **self._told(session)}

    async def list(self, request: Request, caller: Caller) -> Json:
        asked = parsed(ListSessionsRequest, request.params)
        page = await self.app.workspace.sessions.list(caller, asked.cwd, asked.cursor)
        found = [_info(one) for one in page.sessions]
        return {"sessions": found, **({"nextCursor": page.next_cursor} if page.next_cursor else {})}

    async def close(self, request: Request, caller: Caller) -> Json:
        asked = parsed(CloseSessionRequest, request.params)
        if not await self._leave(asked.session_id):
            # One that is there but not open is as good as closed.
            await self.app.workspace.sessions.find(caller, asked.session_id)
        return {}

    async def delete(self, request: Request, caller: Caller) -> Json:
        asked = parsed(DeleteSessionRequest, request.params)
        await self._leave(asked.session_id)
        await self.app.workspace.sessions.delete(caller, asked.session_id)
        return {}

    async def prompt(self, request: Request, caller: Caller) -> Json:
        asked = parsed(PromptRequest, request.params)
        session = self._open(asked.session_id)
        model = session.choices.model_of(session.kept)
        return await session.prompt(request, heard(asked.prompt, images=model.images, sounds=model.sounds), caller)

    async def set_mode(self, request: Request, _caller: Caller) -> Json:
        asked = parsed(SetSessionModeRequest, request.params)
        session = self._open(asked.session_id)
        await session.set(**options.changed(session.kept, session.choices, "mode", asked.mode_id))
        return {}

    async def set_option(self, request: Request, _caller: Caller) -> Json:
        asked = config_choice(request.params)
        session = self._open(asked.session_id)
        changes = options.changed(session.kept, session.choices, asked.config_id, str(asked.value))
        if "agent_id" in changes:
            await session.choose_agent(changes["agent_id"])
            self.news.watch(session.kept.agent_id)
        else:
            await session.set(**changes)
        return {"configOptions": options.told(session.kept, session.choices)}

    async def set_title(self, request: Request, caller: Caller) -> Json:
        """Call a session something else, whether it is open or not."""
        asked = parsed(SetTitle, request.params)
        if not asked.title.strip():
            raise Invalid("Give the session a title with at least one character")
        session, sessions = self.live.get(asked.session_id), self.app.workspace.sessions
        if session is not None:
            return {"title": await session.rename(asked.title)}
        return {
            "title": (await sessions.change(await sessions.find(caller, asked.session_id), title=asked.title)).title
        }

    async def steer(self, request: Request, caller: Caller) -> Json:
        """What the person says while the agent works: it hears it before its next step."""
        asked = parsed(Steering, request.params)
        session = self._open(asked.session_id)
        said = heard(asked.prompt, images=False, sounds=False)
        return {"outcome": "injected"} if session.steer(said.text, caller) else PROMPT_REQUIRED

    def agents(self) -> frozenset[str]:
        """Those that have a session open."""
        return frozenset(session.kept.agent_id for session in self.live.values())

    def all(self) -> Sequence[LiveSession]:
        return list(self.live.values())

    async def bring(self, agent_id: str, tidings: Tidings) -> None:
        """Show what became of a scheduled prompt in every session of its agent."""
        for session in self.all():
            if session.kept.agent_id == agent_id:
                # Each in its own time: one that is at work is told afterwards.
                self.tasks.start_soon(aside, partial(session.tell, tidings.text))

    def cancel(self, session_id: object) -> None:
        session = self.live.get(session_id) if isinstance(session_id, str) else None
        if session is not None:
            session.cancel()

    async def close_all(self) -> None:
        """Close every session, all at once."""
        sessions, self.live = self.live, {}
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as closing:
                for session in sessions.values():
                    closing.start_soon(session.close)

    async def _found(self, caller: Caller, session_id: str, cwd: str, directories: Sequence[str] | None) -> Session:
        """A session of the caller's, in the folders where the editor has it now."""
        self.editor.admit(cwd, *(directories or ()))
        sessions = self.app.workspace.sessions
        kept = await sessions.find(caller, session_id)
        return await sessions.moved(kept, cwd, directories or (), local=self.editor.local)

    async def _begin(self, kept: Session, servers: Sequence[object], request: Request) -> LiveSession:
        """Open a session that the editor hears of by the answer, and so hears of its commands afterwards."""
        session = await self._enter(kept, servers)
        request.afterwards.append(lambda: session.show(OFFERED))
        return session

    async def _enter(self, kept: Session, servers: Sequence[object]) -> LiveSession:
        """Open a session, in place of the same one where it is open already."""
        choices = await self._choices(kept)
        # Nothing is waited for between the last look and the new one: of two at once, neither is left open for good.
        while await self._leave(kept.id):
            pass
        session = self.live[kept.id] = LiveSession(self.app, self.editor, kept, choices)
        self.news.watch(kept.agent_id)
        session.connect(self.tasks, servers)
        await session.mirror_memory()
        return session

    async def _leave(self, session_id: str) -> bool:
        session = self.live.pop(session_id, None)
        if session is not None:
            await session.close()
        return session is not None

    async def _choices(self, kept: Session) -> Choices:
        host = self.app.host
        others = () if kept.user_id is None else await host.others(kept.user_id)
        agents = [agent for agent in await host.list(AGENTS_LISTED) if agent.id not in others]
        if all(agent.id != kept.agent_id for agent in agents):
            found = await host.find(kept.agent_id)
            agents += [found] if found else []
        return Choices(await host.models(), agents, host.traits.asks)

    def _open(self, session_id: str) -> LiveSession:
        session = self.live.get(session_id)
        if session is None:
            raise NotFound("Session not found; open it with session/new, session/load or session/resume")
        return session

    def _told(self, session: LiveSession) -> Json:
        return {
            "modes": options.modes(session.kept),
            "configOptions": options.told(session.kept, session.choices),
        }


def _info(kept: Session) -> Json:
    return {
        "sessionId": kept.id,
        "cwd": str(kept.cwd),
        "updatedAt": kept.updated_at.isoformat(),
        **({"title": kept.title} if kept.title else {}),
        **({"additionalDirectories": [str(one) for one in kept.directories]} if kept.directories else {}),
    }
