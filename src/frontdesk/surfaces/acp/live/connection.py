"""One editor, introduced: what it asks for is done in the house, and its sessions end with it."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Self

from frontdesk.app import App
from frontdesk.errors import FrontdeskError
from frontdesk.identity import rights
from frontdesk.identity.model import Caller, Credential, Signals
from frontdesk.journal.record import Record
from frontdesk.surfaces.acp.convert import stops
from frontdesk.surfaces.acp.editor.model import Editor
from frontdesk.surfaces.acp.greeting import AUTH_METHOD
from frontdesk.surfaces.acp.live.answering import SURFACE
from frontdesk.surfaces.acp.live.sessions import OpenSessions
from frontdesk.surfaces.acp.wire.model import AUTH_REQUIRED, INVALID_PARAMS, METHOD_NOT_FOUND, Json, Request, RpcError
from frontdesk.surfaces.acp.wire.words import AuthenticateRequest, parsed
from frontdesk.surfaces.visit import request_id

CANCEL = "session/cancel"
PROMPT = "session/prompt"

Who = Callable[[], Awaitable[Caller]]
Method = Callable[["Connection", Request, Caller], Awaitable[Json]]


@dataclass(slots=True)
class Connection:
    """`who` says who is at the other end, anew for every request."""

    app: App
    editor: Editor
    who: Who
    sessions: OpenSessions
    logged_out: bool = False
    _prompts: list[Request] = field(default_factory=list[Request])

    @classmethod
    @asynccontextmanager
    async def open(cls, app: App, editor: Editor, who: Who, agent: str | None) -> AsyncGenerator[Self]:
        async with OpenSessions.open(app, editor, who, agent) as sessions:
            yield cls(app, editor, who, sessions)

    async def answer(self, request: Request) -> Json:
        """What a request comes to; every failure is one of the protocol's."""
        method = METHODS.get(request.method)
        if method is None:
            raise RpcError(METHOD_NOT_FOUND, "Method not found")
        if request.method == PROMPT:
            self._prompts.append(request)
        try:
            with Record(self.app.journal, SURFACE, request.method, Caller(request_id(None))) as record:
                caller = record.caller = await self.who()
                shown = Credential(caller.credential_id, user_id=caller.user_id) if caller.credential_id else None
                record.signals = Signals(caller.request_id, credential=shown)
                return await method(self, request, caller)
        except FrontdeskError as error:
            raise stops.refusal(error) from error
        finally:
            if request.method == PROMPT:
                self._prompts.remove(request)

    def hear(self, method: str, params: Json) -> None:
        """Take in a notification; of those that editors send, only a cancel says anything."""
        if method != CANCEL:
            return
        for request in self._prompts:
            # Also one that has not got as far as its session, because who asks is still being looked up.
            if request.params.get("sessionId") == params.get("sessionId"):
                request.withdrawn = True
        self.sessions.cancel(params.get("sessionId"))


async def _authenticate(self: Connection, request: Request, _caller: Caller) -> Json:
    asked = parsed(AuthenticateRequest, request.params)
    if asked.method_id != AUTH_METHOD:
        raise RpcError(INVALID_PARAMS, f"There is no way to authenticate by that id; take {AUTH_METHOD}")
    # Where the agents live elsewhere, whether the key holds is known there.
    await self.app.host.list(1)
    self.logged_out = False
    return {}


async def _log_out(self: Connection, _request: Request, _caller: Caller) -> Json:
    self.logged_out = True
    await self.sessions.close_all()
    return {}


def _in_session(
    work: Callable[[OpenSessions, Request, Caller], Awaitable[Json]], scope: str = rights.AGENTS_CHAT
) -> Method:
    async def method(self: Connection, request: Request, caller: Caller) -> Json:
        if self.logged_out:
            raise RpcError(AUTH_REQUIRED, "You have logged out; authenticate first")
        rights.require(caller, scope)
        return await work(self.sessions, request, caller)

    return method


METHODS: Mapping[str, Method] = {
    "authenticate": _authenticate,
    "logout": _log_out,
    "session/new": _in_session(OpenSessions.new),
    "session/load": _in_session(OpenSessions.load, rights.AGENTS_READ),
    "session/resume": _in_session(OpenSessions.resume, rights.AGENTS_READ),
    "session/fork": _in_session(OpenSessions.fork),
    "session/list": _in_session(OpenSessions.list, rights.AGENTS_READ),
    "session/close": _in_session(OpenSessions.close, rights.AGENTS_READ),
    "session/delete": _in_session(OpenSessions.delete),
    PROMPT: _in_session(OpenSessions.prompt),
    "session/set_mode": _in_session(OpenSessions.set_mode),
    "session/set_config_option": _in_session(OpenSessions.set_option),
    "session/set_title": _in_session(OpenSessions.set_title),
    "_session/steering": _in_session(OpenSessions.steer),
}
