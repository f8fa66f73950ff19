"""The gate before every HTTP door: request id, Host and Origin, credentials."""

import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import structlog
from starlette.responses import JSONResponse

from frontdesk.app import App
from frontdesk.errors import Unauthenticated, Unavailable
from frontdesk.identity.model import Caller, Credential
from frontdesk.journal.model import Outcome, entry
from frontdesk.settings import Settings, is_loopback
from frontdesk.surfaces.visit import KEY, Scope, Visit, headers_said, request_id

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]

BEARER = "bearer "

log = structlog.get_logger("frontdesk.http")


@dataclass(frozen=True, slots=True)
class Doorstep:
    """Which hosts and origins are answered, and which paths need no credential."""

    hosts: frozenset[str]
    any_loopback: bool
    origins: frozenset[str]
    open_paths: frozenset[str]
    auth_required: bool

    @classmethod
    def of(cls, settings: Settings, open_paths: frozenset[str]) -> "Doorstep":
        public = urlsplit(settings.public_url or "")
        hosts = {settings.host.lower(), *(host.lower() for host in settings.allowed_hosts)}
        origins = {origin.lower() for origin in settings.allowed_origins}
        if settings.public_url:
            hosts |= {public.netloc.lower(), (public.hostname or "").lower()}
            origins.add(f"{public.scheme}://{public.netloc}".lower())
        # An address that stands for all of them, such as 0.0.0.0, is nobody's Host.
        loopback = is_loopback(settings.host) or settings.host in ("0.0.0.0", "::")  # noqa: S104
        return cls(frozenset(hosts), loopback, frozenset(origins), open_paths, settings.auth_required)

    def answers_host(self, host: str) -> bool:
        host = host.lower()
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        return host in self.hosts or name in self.hosts or (self.any_loopback and is_loopback(name))

    def answers_origin(self, origin: str) -> bool:
        origin = origin.lower()
        return origin in self.origins or (self.any_loopback and _loopback_origin(origin))


def _loopback_origin(origin: str) -> bool:
    try:
        return is_loopback(urlsplit(origin).hostname or "")
    except ValueError:
        return False


class Gate:
    """ASGI middleware: lets in whom it may, with a `Visit` in hand, and answers the rest itself."""

    def __init__(self, inner: ASGIApp, app: App, doorstep: Doorstep, challenge: Callable[[str, bool], str]) -> None:
        self._inner = inner
        self._app = app
        self._doorstep = doorstep
        self._challenge = challenge

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        scope["headers"] = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
        headers = headers_said(scope["headers"])
        visit = Visit(request_id(headers.get("x-request-id")), headers)
        scope[KEY] = visit
        send = _announced(send, visit)
        refusal = self._refusal(headers) or await self._authenticate(scope["path"], headers, visit)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        await self._inner(scope, receive, send)

    def _refusal(self, headers: Mapping[str, str]) -> JSONResponse | None:
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self._doorstep.answers_host(host):
            return _problem(
                421,
                "misdirected",
                "This Host is not answered here; FRONTDESK_ALLOWED_HOSTS adds to those that are",
            )
        if origin is not None and not self._doorstep.answers_origin(origin):
            return _problem(
                403,
                "forbidden_origin",
                "This Origin may not call; FRONTDESK_ALLOWED_ORIGINS adds to those that may",
            )
        return None

    async def _authenticate(self, path: str, headers: Mapping[str, str], visit: Visit) -> JSONResponse | None:
        if path in self._doorstep.open_paths:
            return None
        started = time.perf_counter_ns()
        text = presented(headers)
        try:
            if text is not None:
                visit.credential = await self._app.identity.authenticate(text)
            elif self._doorstep.auth_required:
                raise Unauthenticated("Send an API key or a token in the Authorization header: Bearer …")
        except Unauthenticated as error:
            self._record(path, visit, error, started)
            challenge = {"www-authenticate": self._challenge(path, text is not None)}
            return _problem(401, "invalid_token" if text else "unauthorized", str(error), challenge)
        except Unavailable as error:
            log.warning("authentication_unavailable", error=str(error), request_id=visit.request_id)
            return _problem(
                503,
                "unavailable",
                "Credentials cannot be checked right now; try again shortly",
                {"retry-after": "2"},
            )
        return None

    def _record(self, path: str, visit: Visit, error: Unauthenticated, started: int) -> None:
        taken = (time.perf_counter_ns() - started) // 1000
        denied = entry(
            Caller(visit.request_id),
            at=datetime.now(UTC),
            surface="http",
            action=path if path in KNOWN_ACTIONS else "other",
            outcome=Outcome.DENIED,
            duration_us=taken,
            reason=type(error).__name__,
        )
        self._app.journal.record(denied)


# Paths are a caller's text; only these may become a label in metrics.
KNOWN_ACTIONS = frozenset({"/mcp", "/mcp/tools", "/mcp/schedule", "/mcp/memory", "/sse", "/messages", "/metrics"})


def presented(headers: Mapping[str, str]) -> str | None:
    """The key or token a request shows: `Authorization: Bearer`, or `X-API-Key`. Never from the URL."""
    authorization = headers.get("authorization", "")
    if authorization[: len(BEARER)].lower() == BEARER:
        return authorization[len(BEARER) :].strip()
    return headers.get("x-api-key") or (authorization or None)


def credential_caller(visit: Visit) -> Caller:
    """Who a credential alone says is calling: for routes that act for no agent."""
    credential: Credential | None = visit.credential
    if credential is None:
        return Caller(visit.request_id)
    return Caller(visit.request_id, credential.named_agent, credential.user_id, verified=True, scopes=credential.scopes)


def _announced(send: Send, visit: Visit) -> Send:
    async def announced(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [
                *message.get("headers", ()),
                (b"x-request-id", visit.request_id.encode()),
                *visit.answer_headers,
            ]
            message["status"] = visit.status or message["status"]
        await send(message)

    return announced


def _problem(status: int, code: str, text: str, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": code, "error_description": text}, status, headers)
