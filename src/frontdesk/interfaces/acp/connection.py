"""Handles every request of one editor: its sessions are opened, loaded, forked, prompted and closed here."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Self

import anyio
from anyio.abc import TaskGroup

from frontdesk.app import App, open_app, running
from frontdesk.coding.model import CodingSession
from frontdesk.errors import FrontdeskError, Invalid, NotFound
from frontdesk.identity import rights
from frontdesk.identity.model import Caller, Credential, Signals
from frontdesk.interfaces import logs
from frontdesk.interfaces.acp import options, updates
from frontdesk.interfaces.acp.commands import COMMANDS
from frontdesk.interfaces.acp.content import convert_prompt
from frontdesk.interfaces.acp.editor import Editor
from frontdesk.interfaces.acp.errors import rpc_error
from frontdesk.interfaces.acp.handshake import AUTH_METHOD, EditorCapabilities
from frontdesk.interfaces.acp.jsonrpc import (
    AUTH_REQUIRED,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    Json,
    RpcError,
    RpcPeer,
    RpcRequest,
)
from frontdesk.interfaces.acp.options import SessionChoices
from frontdesk.interfaces.acp.schema import (
    AuthenticateRequest,
    CloseSessionRequest,
    DeleteSessionRequest,
    ForkSessionRequest,
    ListSessionsRequest,
    LoadSessionRequest,
    NewSessionRequest,
    PromptRequest,
    ResumeSessionRequest,
    SetSessionModeRequest,
    SetTitleRequest,
    SteeringRequest,
    parse,
    parse_config_option,
)
from frontdesk.interfaces.acp.session import INTERFACE_NAME, EditorSession
from frontdesk.interfaces.acp.watchers import MemoryWatcher, ScheduledResult, ScheduleWatcher, run_in_background
from frontdesk.interfaces.app_runner import freeze_garbage
from frontdesk.interfaces.http.context import ensure_request_id
from frontdesk.journal.record import CallRecord
from frontdesk.settings import Settings

MAX_AGENTS = 100
MAX_HISTORY = 100_000
COMMANDS_UPDATE = updates.commands_update([(one.name, one.description, one.hint) for one in COMMANDS.values()])
NO_RUNNING_TURN: Json = {"outcome": "promptRequired", "reason": "noRunningTurn"}

GetCaller = Callable[[], Awaitable[Caller]]


@dataclass(slots=True)
class OpenSessions:
    """`agent` is the one that was chosen for every folder, if one was."""

    app: App
    editor: Editor
    who: GetCaller
    agent: str | None
    tasks: TaskGroup
    schedule_watcher: ScheduleWatcher
    open_sessions: dict[str, EditorSession] = field(default_factory=dict[str, EditorSession])

    @classmethod
    @asynccontextmanager
    async def open(cls, app: App, editor: Editor, who: GetCaller, agent: str | None) -> AsyncGenerator[Self]:
        async with anyio.create_task_group() as tasks:
            sessions = cls(app, editor, who, agent, tasks, ScheduleWatcher(app, who))
            tasks.start_soon(
                run_in_background, partial(sessions.schedule_watcher.run, sessions.agents, sessions.show_result)
            )
            tasks.start_soon(run_in_background, partial(MemoryWatcher(app.host).run, sessions.all))
            try:
                yield sessions
            finally:
                await sessions.close_all()
                tasks.cancel_scope.cancel()

    async def new(self, request: RpcRequest, caller: Caller) -> Json:
        asked = parse(NewSessionRequest, request.params)
        folders, local = asked.additional_directories or (), self.editor.local
        self.editor.check_folders(asked.cwd, *folders)
        kept = await self.app.workspace.sessions.open(caller, asked.cwd, folders, self.agent, local=local)
        session = await self._begin(kept, asked.mcp_servers, request)
        return {"sessionId": kept.id, **self._session_state(session)}

    async def load(self, request: RpcRequest, caller: Caller) -> Json:
        asked = parse(LoadSessionRequest, request.params)
        kept = await self._find(caller, asked.session_id, asked.cwd, asked.additional_directories)
        session = await self._enter(kept, asked.mcp_servers)
        said = await self.app.host.history(kept.agent_id, kept.conversation_id, limit=MAX_HISTORY, user_id=kept.user_id)
        await session.replay(said)
        # Nothing that belongs to the past comes after the answer, and so this does not either.
        await session.show(COMMANDS_UPDATE)
        return self._session_state(session)

    async def resume(self, request: RpcRequest, caller: Caller) -> Json:
        asked = parse(ResumeSessionRequest, request.params)
        kept = await self._find(caller, asked.session_id, asked.cwd, asked.additional_directories)
        return self._session_state(await self._begin(kept, asked.mcp_servers or (), request))

    async def fork(self, request: RpcRequest, caller: Caller) -> Json:
        asked = parse(ForkSessionRequest, request.params)
        folders, local = asked.additional_directories or (), self.editor.local
        self.editor.check_folders(asked.cwd, *folders)
        kept = await self.app.workspace.sessions.fork(caller, asked.session_id, asked.cwd, folders, local=local)
        session = await self._begin(kept, asked.mcp_servers or (), request)
        return {"sessionId": kept.id, **self._session_state(session)}

    async def list(self, request: RpcRequest, caller: Caller) -> Json:
        asked = parse(ListSessionsRequest, request.params)
        page = await self.app.workspace.sessions.list(caller, asked.cwd, asked.cursor)
        found = [_session_info(one) for one in page.sessions]
        return {"sessions": found, **({"nextCursor": page.next_cursor} if page.next_cursor else {})}

    async def close(self, request: RpcRequest, caller: Caller) -> Json:
        asked = parse(CloseSessionRequest, request.params)
        if not await self._leave(asked.session_id):
            # One that is there but not open is as good as closed.
            await self.app.workspace.sessions.find(caller, asked.session_id)
        return {}

    async def delete(self, request: RpcRequest, caller: Caller) -> Json:
        asked = parse(DeleteSessionRequest, request.params)
        await self._leave(asked.session_id)
        await self.app.workspace.sessions.delete(caller, asked.session_id)
        return {}

    async def prompt(self, request: RpcRequest, caller: Caller) -> Json:
        asked = parse(PromptRequest, request.params)
        session = self._open(asked.session_id)
        model = session.choices.model_of(session.stored)
        return await session.prompt(
            request, convert_prompt(asked.prompt, images=model.images, sounds=model.sounds), caller
        )

    async def set_mode(self, request: RpcRequest, _caller: Caller) -> Json:
        asked = parse(SetSessionModeRequest, request.params)
        session = self._open(asked.session_id)
        await session.set(**options.option_change(session.stored, session.choices, "mode", asked.mode_id))
        return {}

    async def set_option(self, request: RpcRequest, _caller: Caller) -> Json:
        asked = parse_config_option(request.params)
        session = self._open(asked.session_id)
        changes = options.option_change(session.stored, session.choices, asked.config_id, str(asked.value))
        if "agent_id" in changes:
            await session.choose_agent(changes["agent_id"])
            self.schedule_watcher.watch(session.stored.agent_id)
        else:
            await session.set(**changes)
        return {"configOptions": options.option_list(session.stored, session.choices)}

    async def set_title(self, request: RpcRequest, caller: Caller) -> Json:
        """Call a session something else, whether it is open or not."""
        asked = parse(SetTitleRequest, request.params)
        if not asked.title.strip():
            raise Invalid("Give the session a title with at least one character")
        session, sessions = self.open_sessions.get(asked.session_id), self.app.workspace.sessions
        if session is not None:
            return {"title": await session.rename(asked.title)}
        return {
            "title": (await sessions.change(await sessions.find(caller, asked.session_id), title=asked.title)).title
        }

    async def steer(self, request: RpcRequest, caller: Caller) -> Json:
        """What the person says while the agent works: it hears it before its next step."""
        asked = parse(SteeringRequest, request.params)
        session = self._open(asked.session_id)
        said = convert_prompt(asked.prompt, images=False, sounds=False)
        return {"outcome": "injected"} if session.steer(said.text, caller) else NO_RUNNING_TURN

    def agents(self) -> frozenset[str]:
        """Those that have a session open."""
        return frozenset(session.stored.agent_id for session in self.open_sessions.values())

    def all(self) -> Sequence[EditorSession]:
        return list(self.open_sessions.values())

    async def show_result(self, agent_id: str, tidings: ScheduledResult) -> None:
        """Show what became of a scheduled prompt in every session of its agent."""
        for session in self.all():
            if session.stored.agent_id == agent_id:
                # Each in its own time: one that is at work is told afterwards.
                self.tasks.start_soon(run_in_background, partial(session.show_text, tidings.text))

    def cancel(self, session_id: object) -> None:
        session = self.open_sessions.get(session_id) if isinstance(session_id, str) else None
        if session is not None:
            session.cancel()

    async def close_all(self) -> None:
        """Close every session, all at once."""
        sessions, self.open_sessions = self.open_sessions, {}
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as closing:
                for session in sessions.values():
                    closing.start_soon(session.close)

    async def _find(
        self, caller: Caller, session_id: str, cwd: str, directories: Sequence[str] | None
    ) -> CodingSession:
        """A session of the caller's, in the folders where the editor has it now."""
        self.editor.check_folders(cwd, *(directories or ()))
        sessions = self.app.workspace.sessions
        kept = await sessions.find(caller, session_id)
        return await sessions.move(kept, cwd, directories or (), local=self.editor.local)

    async def _begin(self, kept: CodingSession, servers: Sequence[object], request: RpcRequest) -> EditorSession:
        """Open a session that the editor hears of by the answer, and so hears of its commands afterwards."""
        session = await self._enter(kept, servers)
        request.after_answer.append(lambda: session.show(COMMANDS_UPDATE))
        return session

    async def _enter(self, kept: CodingSession, servers: Sequence[object]) -> EditorSession:
        """Open a session, in place of the same one where it is open already."""
        choices = await self._choices(kept)
        # Nothing is waited for between the last look and the new one: of two at once, neither is left open for good.
        while await self._leave(kept.id):
            pass
        session = self.open_sessions[kept.id] = EditorSession(self.app, self.editor, kept, choices)
        self.schedule_watcher.watch(kept.agent_id)
        session.connect(self.tasks, servers)
        await session.mirror_memory()
        return session

    async def _leave(self, session_id: str) -> bool:
        session = self.open_sessions.pop(session_id, None)
        if session is not None:
            await session.close()
        return session is not None

    async def _choices(self, kept: CodingSession) -> SessionChoices:
        host = self.app.host
        others = () if kept.user_id is None else await host.agents_of_others(kept.user_id)
        agents = [agent for agent in await host.list(MAX_AGENTS) if agent.id not in others]
        if all(agent.id != kept.agent_id for agent in agents):
            found = await host.find(kept.agent_id)
            agents += [found] if found else []
        return SessionChoices(await host.models(), agents, host.features.can_require_approval)

    def _open(self, session_id: str) -> EditorSession:
        session = self.open_sessions.get(session_id)
        if session is None:
            raise NotFound("Session not found; open it with session/new, session/load or session/resume")
        return session

    def _session_state(self, session: EditorSession) -> Json:
        return {
            "modes": options.mode_state(session.stored),
            "configOptions": options.option_list(session.stored, session.choices),
        }


def _session_info(kept: CodingSession) -> Json:
    return {
        "sessionId": kept.id,
        "cwd": str(kept.cwd),
        "updatedAt": kept.updated_at.isoformat(),
        **({"title": kept.title} if kept.title else {}),
        **({"additionalDirectories": [str(one) for one in kept.directories]} if kept.directories else {}),
    }


CANCEL_METHOD = "session/cancel"
PROMPT_METHOD = "session/prompt"

HandleMethod = Callable[["EditorConnection", RpcRequest, Caller], Awaitable[Json]]


@dataclass(slots=True)
class EditorConnection:
    """`who` says who is at the other end, anew for every request."""

    app: App
    editor: Editor
    get_caller: GetCaller
    sessions: OpenSessions
    logged_out: bool = False
    _prompts: list[RpcRequest] = field(default_factory=list[RpcRequest])

    @classmethod
    @asynccontextmanager
    async def open(cls, app: App, editor: Editor, who: GetCaller, agent: str | None) -> AsyncGenerator[Self]:
        async with OpenSessions.open(app, editor, who, agent) as sessions:
            yield cls(app, editor, who, sessions)

    async def answer(self, request: RpcRequest) -> Json:
        """What a request comes to; every failure is one of the protocol's."""
        method = METHODS.get(request.method)
        if method is None:
            raise RpcError(METHOD_NOT_FOUND, "Method not found")
        if request.method == PROMPT_METHOD:
            self._prompts.append(request)
        try:
            with CallRecord(
                self.app.journal, INTERFACE_NAME, request.method, Caller(ensure_request_id(None))
            ) as record:
                caller = record.caller = await self.get_caller()
                shown = Credential(caller.credential_id, user_id=caller.user_id) if caller.credential_id else None
                record.signals = Signals(caller.request_id, credential=shown)
                return await method(self, request, caller)
        except FrontdeskError as error:
            raise rpc_error(error) from error
        finally:
            if request.method == PROMPT_METHOD:
                self._prompts.remove(request)

    def handle_notification(self, method: str, params: Json) -> None:
        """Take in a notification; of those that editors send, only a cancel says anything."""
        if method != CANCEL_METHOD:
            return
        for request in self._prompts:
            # Also one that has not got as far as its session, because who asks is still being looked up.
            if request.params.get("sessionId") == params.get("sessionId"):
                request.withdrawn = True
        self.sessions.cancel(params.get("sessionId"))


async def _authenticate(self: EditorConnection, request: RpcRequest, _caller: Caller) -> Json:
    asked = parse(AuthenticateRequest, request.params)
    if asked.method_id != AUTH_METHOD:
        raise RpcError(INVALID_PARAMS, f"There is no way to authenticate by that id; take {AUTH_METHOD}")
    # Where the agents live elsewhere, whether the key holds is known there.
    await self.app.host.list(1)
    self.logged_out = False
    return {}


async def _log_out(self: EditorConnection, _request: RpcRequest, _caller: Caller) -> Json:
    self.logged_out = True
    await self.sessions.close_all()
    return {}


def _with_sessions(
    work: Callable[[OpenSessions, RpcRequest, Caller], Awaitable[Json]], scope: str = rights.AGENTS_CHAT
) -> HandleMethod:
    async def method(self: EditorConnection, request: RpcRequest, caller: Caller) -> Json:
        if self.logged_out:
            raise RpcError(AUTH_REQUIRED, "You have logged out; authenticate first")
        rights.require_scope(caller, scope)
        return await work(self.sessions, request, caller)

    return method


METHODS: Mapping[str, HandleMethod] = {
    "authenticate": _authenticate,
    "logout": _log_out,
    "session/new": _with_sessions(OpenSessions.new),
    "session/load": _with_sessions(OpenSessions.load, rights.AGENTS_READ),
    "session/resume": _with_sessions(OpenSessions.resume, rights.AGENTS_READ),
    "session/fork": _with_sessions(OpenSessions.fork),
    "session/list": _with_sessions(OpenSessions.list, rights.AGENTS_READ),
    "session/close": _with_sessions(OpenSessions.close, rights.AGENTS_READ),
    "session/delete": _with_sessions(OpenSessions.delete),
    PROMPT_METHOD: _with_sessions(OpenSessions.prompt),
    "session/set_mode": _with_sessions(OpenSessions.set_mode),
    "session/set_config_option": _with_sessions(OpenSessions.set_option),
    "session/set_title": _with_sessions(OpenSessions.set_title),
    "_session/steering": _with_sessions(OpenSessions.steer),
}


@asynccontextmanager
async def open_local_connection(
    settings: Settings, peer: RpcPeer, can: EditorCapabilities, user: str, agent: str | None
) -> AsyncGenerator[EditorConnection]:
    """A connection with an app of its own, which delivers due prompts too while it is open."""
    logs.configure_logs(settings)

    async def who() -> Caller:
        # Whoever can start this command can read the database: there is nobody to prove a user to.
        return Caller(ensure_request_id(None), user_id=user, local=True, any_agent=True)

    async with open_app(settings) as app, running(app):
        await app.tools.catalogue.load()
        freeze_garbage()
        async with EditorConnection.open(app, Editor(peer, can), who, agent) as connection:
            yield connection
