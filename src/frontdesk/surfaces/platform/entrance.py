"""The entrance of the local platform: only this machine comes in, and every request is remembered as it leaves."""

import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from frontdesk.platform.constants import Constants
from frontdesk.platform.local.seen import Seen, agent_from, agent_id_of, orchestrator_of, shortened, shown
from frontdesk.platform.local.standin import StandIn
from frontdesk.surfaces.doorstep import WRONG_HOST, Doorstep
from frontdesk.surfaces.gate import ASGIApp, Message, Receive, Send
from frontdesk.surfaces.platform.asked import BODIED, Asked, again, problem, read
from frontdesk.surfaces.platform.tokens import look
from frontdesk.surfaces.visit import KEY, Scope, Visit, headers_said, request_id

DOORSTEP = Doorstep(frozenset(), frozenset(), any_loopback=True, any_address=False)
ONLY_HOSTS = "The local platform answers to localhost and loopback addresses alone; send one of them as Host"
ONLY_ORIGINS = "Pages of this Origin may not call; the local platform is for programs and pages of this machine"
# What looks at the log and breaks things on purpose is no part of what is looked at.
ASIDE = frozenset({"", "health", "requests", "chats", "faults"})

Route = Callable[[Asked], Awaitable[ASGIApp]]
Tell = Callable[[Seen], None]


class Entrance:
    """The ASGI application; `tell` hears of each request when it is answered."""

    def __init__(self, standin: StandIn, route: Route, tell: Tell | None = None) -> None:
        self._standin = standin
        self._route = route
        self._tell = tell

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = headers_said((name, value.strip(b" \t")) for name, value in scope["headers"])
        scope[KEY] = Visit(request_id(headers.get("x-request-id")), headers)
        asked, start = Asked(scope), time.perf_counter()
        look(asked)
        noted = _Noting(send, asked, lambda: self._note(asked, (time.perf_counter() - start) * 1000))
        try:
            answer = _turned_away(asked) or await self._answer(asked, receive)
            await answer(scope, again(asked.body, receive), noted.send)
        finally:
            noted.end()

    async def _answer(self, asked: Asked, receive: Receive) -> ASGIApp:
        if asked.method in BODIED:
            body = await read(receive)
            if not isinstance(body, bytes):
                return body
            asked.body = body
        return await self._route(asked)

    def _note(self, asked: Asked, milliseconds: float) -> None:
        match asked.parts:
            case [part] if part in ASIDE:
                return
            case _:
                pass
        seen = _seen(asked, milliseconds)
        self._standin.seen.append(seen)
        if self._tell is not None:
            self._tell(seen)


class _Noting:
    """Notes a request before the last of its answer goes out: whoever has the answer finds it noted."""

    def __init__(self, send: Send, asked: Asked, note: Callable[[], None]) -> None:
        self._send = send
        self._asked = asked
        self._note: Callable[[], None] | None = note

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._asked.status = message["status"]
            identity = (b"x-request-id", self._asked.visit.request_id.encode())
            message["headers"] = [*message.get("headers", ()), identity]
        elif not message.get("more_body", False):
            self.end()
        await self._send(message)

    def end(self) -> None:
        note, self._note = self._note, None
        if note is not None:
            note()


def _turned_away(asked: Asked) -> ASGIApp | None:
    turned = DOORSTEP.turns_away(asked.visit.said)
    if turned is None:
        return None
    return problem(turned.status, turned.code, ONLY_HOSTS if turned is WRONG_HOST else ONLY_ORIGINS)


def _seen(asked: Asked, milliseconds: float) -> Seen:
    said, names = asked.visit.said, Constants.Headers
    agent = agent_id_of(said)
    user_agent = shortened(said.get("user-agent"))
    return Seen(
        time=datetime.now(UTC).isoformat(timespec="milliseconds"),
        method=asked.method,
        path=asked.raw_path[:2000],
        status=asked.status,
        ms=round(milliseconds, 1),
        agent_id=agent,
        agent_from=agent_from(agent, asked.claims),
        correlation_id=shortened(said.get(names.CORRELATION_ID)),
        channel_id=shortened(said.get(names.CHANNEL_ID)),
        subchannel_id=shortened(said.get(names.SUBCHANNEL_ID)),
        user_agent=user_agent,
        orchestrator=orchestrator_of(user_agent),
        server=asked.server,
        rpc_method=shortened(asked.rpc_method),
        tool=shortened(asked.tool),
        token=asked.token,
        headers=shown(said),
    )
