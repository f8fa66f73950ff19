"""The gate before every HTTP door: request id, Host and Origin, credentials."""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import structlog
from starlette.responses import JSONResponse

from frontdesk.app import App
from frontdesk.errors import Denied, FrontdeskError, Unauthenticated, Unavailable
from frontdesk.identity.behalf import is_trusted
from frontdesk.identity.inbound import traced
from frontdesk.identity.model import Caller, Signals
from frontdesk.journal.model import Outcome
from frontdesk.journal.record import Record
from frontdesk.surfaces import behalf
from frontdesk.surfaces.doorstep import WRONG_ORIGIN, Doorstep
from frontdesk.surfaces.visit import KEY, Scope, Visit, headers_said, request_id
from frontdesk.surfaces.waits import retry_after

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]

# Its clients know refusals in other words than those of OAuth.
API = "/api/"
NONE_BESIDES: Mapping[str, str] = {}
UNAUTHORIZED = 401
NOTHING_SHOWN = "Authentication required: send an API key or a token in the Authorization header: Bearer …"

log = structlog.get_logger("frontdesk.http")


@dataclass(frozen=True, slots=True)
class Pages:
    """What the gate has to know of pages: browsers bring a cookie, and are sent to sign in rather than refused."""

    has: Callable[[str], bool]
    is_open: Callable[[str], bool]
    shown: Callable[[Visit], Awaitable[str | None]]
    to_sign_in: Callable[[Scope], ASGIApp]
    # What every answer there says besides, whoever gives it, unless it says otherwise itself.
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RecordsAt:
    """The addresses of people's records: a person's own token is proof enough there, and clients are given sessions.

    Clients of those that are `told_inside` read why they are refused in the answer to a tool call, and nowhere else.
    """

    paths: frozenset[str] = frozenset()
    told_inside: frozenset[str] = frozenset()


NOWHERE = RecordsAt()


class Gate:
    """ASGI middleware: lets in whom it may, with a `Visit` in hand, and answers the rest itself."""

    def __init__(
        self,
        inner: ASGIApp,
        app: App,
        doors: frozenset[str],
        open_paths: frozenset[str],
        challenge: Callable[[str, bool], str],
        records: RecordsAt = NOWHERE,
        pages: Pages | None = None,
    ) -> None:
        self._inner = inner
        self._app = app
        self._doorstep = Doorstep.of(app.settings)
        # Paths are a caller's text; only these may become a label in metrics.
        self._doors = doors
        self._open_paths = open_paths
        self._challenge = challenge
        self._records = records
        self._pages = pages
        # Settings do not change, and to look at every address anew costs a call more than its credential does.
        self._proof_required = app.settings.auth_required

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        scope["headers"] = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
        headers = headers_said(scope["headers"])
        visit = Visit(request_id(headers.get("x-request-id")), headers)
        scope[KEY] = visit
        page = self._pages if self._pages is not None and self._pages.has(scope["path"]) else None
        path = scope["path"]
        # Browsers sign in by a page, and whoever is at an open address needs no credential of ours.
        challenge = None if page is not None or path in self._open_paths else partial(self._challenge, path, False)
        send = _announced(send, visit, page.headers if page is not None else NONE_BESIDES, challenge)
        refusal = self._turn_away(path, visit, page) or await self._authenticate(scope, visit, page)
        await (refusal or self._inner)(scope, receive, send)

    def _turn_away(self, path: str, visit: Visit, page: Pages | None) -> ASGIApp | None:
        turned = self._doorstep.turns_away(visit.said, own_alone=page is not None)
        # What is open to everybody is open to every page.
        if turned is None or (turned is WRONG_ORIGIN and path in self._open_paths):
            return None
        self._record(path, visit, turned.code)
        return _problem(turned.status, turned.code, turned.message)

    async def _authenticate(self, scope: Scope, visit: Visit, page: Pages | None) -> ASGIApp | None:
        path = scope["path"]
        if path in self._open_paths or (page is not None and page.is_open(path)):
            return None
        text = presented(visit.said)
        visit.told_inside = path in self._records.told_inside
        try:
            if text is None and page is not None:
                text = await page.shown(visit)
            await self._know(path, visit, text)
        except (Unauthenticated, Denied) as error:
            if visit.told_inside:
                visit.refuse_calls(error)
                return None
            self._record(path, visit, type(error).__name__)
            if isinstance(error, Denied):
                return _problem(403, "forbidden", str(error))
            return page.to_sign_in(scope) if page is not None else self._unknown(path, visit, text, error)
        except Unavailable as error:
            log.warning("authentication_unavailable", error=str(error), request_id=visit.request_id)
            said = "Credentials cannot be checked right now; try again shortly"
            return _problem(503, "unavailable", said, retry_after(error))
        return None

    def _unknown(self, path: str, visit: Visit, text: str | None, error: Unauthenticated) -> JSONResponse:
        shown = text is not None or behalf.HEADER in visit.said
        challenge = {"www-authenticate": self._challenge(path, shown)}
        if path.startswith(API):
            return JSONResponse({"error": "Authentication required", "details": str(error)}, 401, challenge)
        return _problem(401, "invalid_token" if shown else "unauthorized", str(error), challenge)

    async def _know(self, path: str, visit: Visit, text: str | None) -> None:
        """Check what the request shows of itself and its person, who may have left a token in its session."""
        if path not in self._records.paths:
            await self._check(visit, text)
            return
        identity = self._app.identity
        try:
            await self._check_person(visit, text)
        except FrontdeskError:
            # Whether it is a person's token cannot be told of what does not hold, or cannot be checked just now.
            if text is not None or behalf.person_token(visit):
                await identity.sessions.token_came(visit.session_id, proven=False)
            raise
        visit.carried = visit.credential is not None and visit.credential.user_id is not None
        if visit.carried:
            await identity.sessions.token_came(visit.session_id, proven=True)
        else:
            await behalf.recall(identity, visit, local=self._is_local(visit))

    async def _check(self, visit: Visit, text: str | None) -> None:
        identity, local = self._app.identity, self._is_local(visit)
        if text is not None:
            await behalf.show(identity, visit, text)
        elif not local:
            raise Unauthenticated(NOTHING_SHOWN)
        visit.trusted = is_trusted(visit.credential, local=local)
        token = behalf.person_token(visit)
        if token:
            await behalf.speak_for(identity, visit, token, local=local)

    async def _check_person(self, visit: Visit, text: str | None) -> None:
        """The same where a person's records are: their own token counts alone."""
        token = behalf.person_token(visit)
        if text is None and token and not self._is_local(visit):
            await behalf.show_person(self._app.identity, visit, token)
        else:
            await self._check(visit, text)

    def _is_local(self, visit: Visit) -> bool:
        return not (self._proof_required or visit.forwarded)

    def _record(self, path: str, visit: Visit, reason: str) -> None:
        door = path.rstrip("/")
        action = door if door in self._doors else "other"
        caller = Caller(visit.request_id)
        record = Record(self._app.journal, "http", action, caller, outcome=Outcome.DENIED, reason=reason)
        # The body is not read for somebody who may not come in, so a parameter is not known.
        signals = Signals(visit.request_id, visit.said.get("x-agent-id"), credential=visit.credential)
        record.trace(traced(signals, presented(visit.said) or behalf.person_token(visit)))
        record.write()


def presented(headers: Mapping[str, str]) -> str | None:
    """The key or token a request shows: `Authorization: Bearer`, or `X-API-Key`. Never from the URL."""
    authorization = headers.get("authorization", "")
    token = behalf.without_scheme(authorization)
    return token if token != authorization else headers.get("x-api-key") or (authorization or None)


def _announced(send: Send, visit: Visit, besides: Mapping[str, str], challenge: Callable[[], str] | None) -> Send:
    """Answers with what is said in all of them, and with a challenge in a 401, whoever gives it."""

    async def announced(message: Message) -> None:
        if message["type"] == "http.response.start":
            status = visit.status or message["status"]
            message["headers"] = [
                *message.get("headers", ()),
                (b"x-request-id", visit.request_id.encode()),
                *visit.answer_headers,
            ]
            if besides:
                message["headers"] += _missing(message["headers"], besides)
            if status == UNAUTHORIZED and challenge is not None:
                message["headers"] += _missing(message["headers"], {"www-authenticate": challenge()})
            message["status"] = status
        await send(message)

    return announced


def _missing(said: list[tuple[bytes, bytes]], besides: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    named = {name.lower() for name, _ in said}
    return [(name.encode(), value.encode()) for name, value in besides.items() if name.encode() not in named]


def _problem(status: int, code: str, text: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": code, "error_description": text}, status, headers)
