"""Handles every request of one editor: opens, loads, forks, prompts and closes its sessions."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Self, TypeVar

import anyio
from anyio.abc import TaskGroup

from frontdesk.app import App, open_app, running
from frontdesk.coding.model import CodingSession
from frontdesk.errors import FrontdeskError, Invalid, NotFound
from frontdesk.identity import rights
from frontdesk.identity.model import Caller, Credential, Signals
from frontdesk.interfaces import logs
from frontdesk.interfaces.acp import convert
from frontdesk.interfaces.acp.commands import COMMANDS
from frontdesk.interfaces.acp.convert import SessionChoices, convert_prompt
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
from frontdesk.interfaces.acp.schema import (
    AuthenticateRequest,
    CloseSessionRequest,
    ConfigChoice,
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
from frontdesk.journal.service import CallRecord
from frontdesk.settings import Settings

MAX_AGENTS = 100
MAX_HISTORY = 100_000
COMMANDS_UPDATE = convert.commands_update([(one.name, one.description, one.hint) for one in COMMANDS.values()])
NO_RUNNING_TURN: Json = {"outcome": "promptRequired", "reason": "noRunningTurn"}
CANCEL_METHOD = "session/cancel"
PROMPT_METHOD = "session/prompt"

P = TypeVar("P")

# Identifies the caller at the other end; called again for each request.
GetCaller = Callable[[], Awaitable[Caller]]


@dataclass(slots=True)
class EditorConnection:
    """The sessions that one editor has open, and a handler for each method that it may call.

    `agent` is the agent for every folder, where one was chosen. `METHODS` has the parameters and the scope of each
    handler.
    """

    app: App
    editor: Editor
    get_caller: GetCaller
    agent: str | None
    tasks: TaskGroup
    schedule_watcher: ScheduleWatcher
    sessions: dict[str, EditorSession] = field(default_factory=dict[str, EditorSession])
    logged_out: bool = False
    _prompts: list[RpcRequest] = field(default_factory=list[RpcRequest])

    @classmethod
    @asynccontextmanager
    async def open(cls, app: App, editor: Editor, get_caller: GetCaller, agent: str | None) -> AsyncGenerator[Self]:
        async with anyio.create_task_group() as tasks:
            connection = cls(app, editor, get_caller, agent, tasks, ScheduleWatcher(app, get_caller))
            watch_schedules = partial(connection.schedule_watcher.run, connection.open_agents, connection.show_result)
            watch_memory = partial(MemoryWatcher(app.host).run, connection.open_sessions)
            tasks.start_soon(run_in_background, watch_schedules)
            tasks.start_soon(run_in_background, watch_memory)
            try:
                yield connection
            finally:
                await connection.close_all()
                tasks.cancel_scope.cancel()

    async def answer(self, request: RpcRequest) -> Json:
        """Answer one request; every failure becomes an error of the protocol."""
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
                credential = Credential(caller.credential_id, user_id=caller.user_id) if caller.credential_id else None
                record.signals = Signals(caller.request_id, credential=credential)
                if method.scope is not None:
                    if self.logged_out:
                        raise RpcError(AUTH_REQUIRED, "You have logged out; authenticate first")
                    rights.require_scope(caller, method.scope)
                return await method.call(self, request, caller)
        except FrontdeskError as error:
            raise rpc_error(error) from error
        finally:
            if request.method == PROMPT_METHOD:
                self._prompts.remove(request)

    def handle_notification(self, method: str, params: Json) -> None:
        """Handle a notification; only a cancel has an effect."""
        if method != CANCEL_METHOD:
            return
        session_id = params.get("sessionId")
        for request in self._prompts:
            # This covers a prompt whose caller is still being identified, and that its session does not know yet.
            if request.params.get("sessionId") == session_id:
                request.withdrawn = True
        session = self.sessions.get(session_id) if isinstance(session_id, str) else None
        if session is not None:
            session.cancel()

    async def authenticate(self, params: AuthenticateRequest, _request: RpcRequest, _caller: Caller) -> Json:
        if params.method_id != AUTH_METHOD:
            raise RpcError(INVALID_PARAMS, f"There is no way to authenticate by that id; take {AUTH_METHOD}")
        # Where the agents are on another server, that server knows whether the key is valid.
        await self.app.host.list(1)
        self.logged_out = False
        return {}

    async def log_out(self, _params: Json, _request: RpcRequest, _caller: Caller) -> Json:
        self.logged_out = True
        await self.close_all()
        return {}

    async def new(self, params: NewSessionRequest, request: RpcRequest, caller: Caller) -> Json:
        folders, local = params.additional_directories or (), self.editor.local
        self.editor.check_folders(params.cwd, *folders)
        stored = await self.app.workspace.sessions.open(caller, params.cwd, folders, self.agent, local=local)
        session = await self._begin(stored, params.mcp_servers, request)
        return {"sessionId": stored.id, **_session_state(session)}

    async def load(self, params: LoadSessionRequest, _request: RpcRequest, caller: Caller) -> Json:
        stored = await self._find(caller, params.session_id, params.cwd, params.additional_directories)
        session = await self._enter(stored, params.mcp_servers)
        await session.replay(
            await self.app.host.history(
                stored.agent_id, stored.conversation_id, limit=MAX_HISTORY, user_id=stored.user_id
            )
        )
        # An editor expects nothing of the history after the answer, so the commands come before it too.
        await session.show(COMMANDS_UPDATE)
        return _session_state(session)

    async def resume(self, params: ResumeSessionRequest, request: RpcRequest, caller: Caller) -> Json:
        stored = await self._find(caller, params.session_id, params.cwd, params.additional_directories)
        return _session_state(await self._begin(stored, params.mcp_servers or (), request))

    async def fork(self, params: ForkSessionRequest, request: RpcRequest, caller: Caller) -> Json:
        folders, local = params.additional_directories or (), self.editor.local
        self.editor.check_folders(params.cwd, *folders)
        stored = await self.app.workspace.sessions.fork(caller, params.session_id, params.cwd, folders, local=local)
        session = await self._begin(stored, params.mcp_servers or (), request)
        return {"sessionId": stored.id, **_session_state(session)}

    async def list(self, params: ListSessionsRequest, _request: RpcRequest, caller: Caller) -> Json:
        page = await self.app.workspace.sessions.list(caller, params.cwd, params.cursor)
        found = [_session_info(one) for one in page.sessions]
        return {"sessions": found, **({"nextCursor": page.next_cursor} if page.next_cursor else {})}

    async def close(self, params: CloseSessionRequest, _request: RpcRequest, caller: Caller) -> Json:
        if not await self._leave(params.session_id):
            # A session that exists but is not open counts as closed.
            await self.app.workspace.sessions.find(caller, params.session_id)
        return {}

    async def delete(self, params: DeleteSessionRequest, _request: RpcRequest, caller: Caller) -> Json:
        await self._leave(params.session_id)
        await self.app.workspace.sessions.delete(caller, params.session_id)
        return {}

    async def prompt(self, params: PromptRequest, request: RpcRequest, caller: Caller) -> Json:
        return await self._session(params.session_id).prompt(request, params.prompt, caller)

    async def set_mode(self, params: SetSessionModeRequest, _request: RpcRequest, _caller: Caller) -> Json:
        session = self._session(params.session_id)
        await session.set(**convert.option_change(session.stored, session.choices, "mode", params.mode_id))
        return {}

    async def set_option(self, params: ConfigChoice, _request: RpcRequest, _caller: Caller) -> Json:
        session = self._session(params.session_id)
        changes = convert.option_change(session.stored, session.choices, params.config_id, str(params.value))
        if "agent_id" in changes:
            await session.choose_agent(changes["agent_id"])
            self.schedule_watcher.watch(session.stored.agent_id)
        else:
            await session.set(**changes)
        return {"configOptions": convert.option_list(session.stored, session.choices)}

    async def set_title(self, params: SetTitleRequest, _request: RpcRequest, caller: Caller) -> Json:
        """Rename a session, whether it is open or not."""
        if not params.title.strip():
            raise Invalid("Give the session a title with at least one character")
        if (session := self.sessions.get(params.session_id)) is not None:
            return {"title": await session.rename(params.title)}
        stored = await self.app.workspace.sessions.find(caller, params.session_id)
        return {"title": (await self.app.workspace.sessions.change(stored, title=params.title)).title}

    async def steer(self, params: SteeringRequest, _request: RpcRequest, caller: Caller) -> Json:
        """Give the agent a text while it works; it reads it before its next step."""
        content = convert_prompt(params.prompt, images=False, sounds=False)
        session = self._session(params.session_id)
        return {"outcome": "injected"} if session.steer(content.text, caller) else NO_RUNNING_TURN

    def open_agents(self) -> frozenset[str]:
        """The agents that have a session open."""
        return frozenset(session.stored.agent_id for session in self.sessions.values())

    def open_sessions(self) -> Sequence[EditorSession]:
        return tuple(self.sessions.values())

    async def show_result(self, agent_id: str, result: ScheduledResult) -> None:
        """Show the result of a scheduled prompt in every session of its agent."""
        for session in self.open_sessions():
            if session.stored.agent_id == agent_id:
                # One task each: a session that is at work shows it afterwards.
                self.tasks.start_soon(run_in_background, partial(session.show_text, result.text))

    async def close_all(self) -> None:
        """Close all sessions at the same time."""
        sessions, self.sessions = self.sessions, {}
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as closing:
                for session in sessions.values():
                    closing.start_soon(session.close)

    async def _find(
        self, caller: Caller, session_id: str, cwd: str, directories: Sequence[str] | None
    ) -> CodingSession:
        """A session of the caller's, moved to the folders where the editor has it now."""
        self.editor.check_folders(cwd, *(directories or ()))
        sessions = self.app.workspace.sessions
        stored = await sessions.find(caller, session_id)
        return await sessions.move(stored, cwd, directories or (), local=self.editor.local)

    async def _begin(self, stored: CodingSession, servers: Sequence[object], request: RpcRequest) -> EditorSession:
        """Open a session; the editor knows it from the answer, and gets the commands after that."""
        session = await self._enter(stored, servers)
        request.after_answer.append(partial(session.show, COMMANDS_UPDATE))
        return session

    async def _enter(self, stored: CodingSession, servers: Sequence[object]) -> EditorSession:
        """Open a session; where the same one is open already, close that first."""
        choices = await self._choices(stored)
        # There is no await between the last check and the new session, so two simultaneous calls cannot both leave a
        # session open.
        while await self._leave(stored.id):
            pass
        session = self.sessions[stored.id] = EditorSession(self.app, self.editor, stored, choices)
        self.schedule_watcher.watch(stored.agent_id)
        session.connect(self.tasks, servers)
        await session.mirror_memory()
        return session

    async def _leave(self, session_id: str) -> bool:
        session = self.sessions.pop(session_id, None)
        if session is not None:
            await session.close()
        return session is not None

    async def _choices(self, stored: CodingSession) -> SessionChoices:
        host = self.app.host
        others = () if stored.user_id is None else await host.agents_of_others(stored.user_id)
        agents = [agent for agent in await host.list(MAX_AGENTS) if agent.id not in others]
        if all(agent.id != stored.agent_id for agent in agents):
            found = await host.find(stored.agent_id)
            agents += [found] if found else []
        return SessionChoices(await host.models(), agents, host.features.can_require_approval)

    def _session(self, session_id: str) -> EditorSession:
        session = self.sessions.get(session_id)
        if session is None:
            raise NotFound("Session not found; open it with session/new, session/load or session/resume")
        return session


def _session_state(session: EditorSession) -> Json:
    return {
        "modes": convert.mode_state(session.stored),
        "configOptions": convert.option_list(session.stored, session.choices),
    }


def _session_info(stored: CodingSession) -> Json:
    return {
        "sessionId": stored.id,
        "cwd": str(stored.cwd),
        "updatedAt": stored.updated_at.isoformat(),
        **({"title": stored.title} if stored.title else {}),
        **({"additionalDirectories": [str(one) for one in stored.directories]} if stored.directories else {}),
    }


@dataclass(frozen=True, slots=True)
class AcpMethod:
    """A method of the protocol; `scope` is None for the two that are open to an editor that has logged out."""

    call: Callable[[EditorConnection, RpcRequest, Caller], Awaitable[Json]]
    scope: str | None


def _method(
    parse_params: Callable[[Json], P],
    handle: Callable[[EditorConnection, P, RpcRequest, Caller], Awaitable[Json]],
    scope: str | None = rights.AGENTS_CHAT,
) -> AcpMethod:
    async def call(connection: EditorConnection, request: RpcRequest, caller: Caller) -> Json:
        return await handle(connection, parse_params(request.params), request, caller)

    return AcpMethod(call, scope)


METHODS: Mapping[str, AcpMethod] = {
    "authenticate": _method(partial(parse, AuthenticateRequest), EditorConnection.authenticate, None),
    # This one has no parameters, whatever is sent.
    "logout": _method(dict, EditorConnection.log_out, None),
    "session/new": _method(partial(parse, NewSessionRequest), EditorConnection.new),
    "session/load": _method(partial(parse, LoadSessionRequest), EditorConnection.load, rights.AGENTS_READ),
    "session/resume": _method(partial(parse, ResumeSessionRequest), EditorConnection.resume, rights.AGENTS_READ),
    "session/fork": _method(partial(parse, ForkSessionRequest), EditorConnection.fork),
    "session/list": _method(partial(parse, ListSessionsRequest), EditorConnection.list, rights.AGENTS_READ),
    "session/close": _method(partial(parse, CloseSessionRequest), EditorConnection.close, rights.AGENTS_READ),
    "session/delete": _method(partial(parse, DeleteSessionRequest), EditorConnection.delete),
    PROMPT_METHOD: _method(partial(parse, PromptRequest), EditorConnection.prompt),
    "session/set_mode": _method(partial(parse, SetSessionModeRequest), EditorConnection.set_mode),
    "session/set_config_option": _method(parse_config_option, EditorConnection.set_option),
    "session/set_title": _method(partial(parse, SetTitleRequest), EditorConnection.set_title),
    "_session/steering": _method(partial(parse, SteeringRequest), EditorConnection.steer),
}


@asynccontextmanager
async def open_local_connection(
    settings: Settings, peer: RpcPeer, can: EditorCapabilities, user: str, agent: str | None
) -> AsyncGenerator[EditorConnection]:
    """A connection with an app of its own, which also delivers due prompts while it is open."""
    logs.configure_logs(settings)

    async def get_caller() -> Caller:
        # A person who can start this command can read the database, so the user needs no proof.
        return Caller(ensure_request_id(None), user_id=user, local=True, any_agent=True)

    async with open_app(settings) as app, running(app):
        await app.tools.catalogue.load()
        freeze_garbage()
        async with EditorConnection.open(app, Editor(peer, can), get_caller, agent) as connection:
            yield connection
