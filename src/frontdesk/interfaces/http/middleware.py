"""Checks each HTTP request before any endpoint: Host and Origin, then credentials and the person that they name."""

import ipaddress
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from urllib.parse import urlsplit

import structlog
from pydantic import SecretStr
from starlette.responses import JSONResponse

from frontdesk.app import App
from frontdesk.errors import Denied, FrontdeskError, Unauthenticated, Unavailable
from frontdesk.identity.inbound import (
    NAMES_NO_PERSON,
    check_trusted_client,
    credential_on_behalf,
    is_trusted_client,
    trace_refusal,
)
from frontdesk.identity.keys import KEY_PREFIXES
from frontdesk.identity.model import ACCESS_PREFIX, Caller, Signals
from frontdesk.identity.service import Identity
from frontdesk.interfaces.http.context import (
    CONTEXT_KEY,
    ASGIApp,
    Message,
    Receive,
    RequestContext,
    Scope,
    Send,
    ensure_request_id,
    parse_headers,
)
from frontdesk.interfaces.http.errors import retry_after_header
from frontdesk.journal.model import Outcome
from frontdesk.journal.service import CallRecord
from frontdesk.settings import ALL_ADDRESSES, Settings, is_loopback


@dataclass(frozen=True, slots=True)
class OriginRefusal:
    """The response to a request with a wrong Host or Origin."""

    status: int
    code: str
    message: str


# Another port of this machine is "same-site", but another program.
OTHER_SITES = frozenset({"cross-site", "same-site"})
WRONG_HOST = OriginRefusal(
    421, "misdirected", "Requests for this Host are not answered; add it to FRONTDESK_ALLOWED_HOSTS"
)
WRONG_ORIGIN = OriginRefusal(
    403, "forbidden_origin", "Pages of this Origin may not call; add it to FRONTDESK_ALLOWED_ORIGINS"
)
OTHER_PAGE = OriginRefusal(
    403,
    "forbidden_origin",
    "These pages accept requests only from themselves; behind a proxy set FRONTDESK_PUBLIC_URL to the address in the "
    "browser",
)


@dataclass(frozen=True, slots=True)
class HostOriginPolicy:
    """The host names that this server answers to, and the origins whose pages may call it."""

    hosts: frozenset[str]
    origins: frozenset[str]
    any_loopback: bool
    any_address: bool
    # The origin of the configured public URL.
    public_origin: str = ""

    @classmethod
    def from_settings(cls, settings: Settings) -> "HostOriginPolicy":
        public = urlsplit(settings.public_url or "")
        hosts = {
            settings.host.lower(),
            f"[{settings.host.lower()}]",
            *(host.lower() for host in settings.allowed_hosts),
        }
        origins = {origin.lower() for origin in settings.allowed_origins}
        if settings.public_url:
            hosts |= {public.netloc.lower(), (public.hostname or "").lower()}
            origins.add(f"{public.scheme}://{public.netloc}".lower())
        everywhere = settings.host in ALL_ADDRESSES
        known_by = f"{public.scheme}://{public.netloc}".lower() if settings.public_url else ""
        return cls(frozenset(hosts), frozenset(origins), everywhere or is_loopback(settings.host), everywhere, known_by)

    def check(self, headers: Mapping[str, str], *, own_alone: bool = False) -> OriginRefusal | None:
        """Why a request with these headers is refused, or None. `own_alone`: refuse all other origins."""
        host = headers.get("host", "").lower()
        if not self._answers_host(host):
            return WRONG_HOST
        origin = headers.get("origin")
        if own_alone and _is_loaded_by_other_site(headers):
            return OTHER_PAGE
        if origin is None:
            return None
        if own_alone:
            return None if self._is_own(origin.lower(), host) else OTHER_PAGE
        return None if self._answers_origin(origin.lower()) else WRONG_ORIGIN

    def _answers_host(self, host: str) -> bool:
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        if host in self.hosts or name in self.hosts or (self.any_loopback and is_loopback(name)):
            return True
        # A server on all addresses answers to any IP address: DNS rebinding needs a name.
        return self.any_address and _is_address(name)

    def _is_own(self, origin: str, host: str) -> bool:
        """Whether this is our own origin. Another port of this machine is not, although it shares our cookies."""
        if origin == self.public_origin:
            return True
        scheme, _, place = origin.partition("://")
        return scheme in ("http", "https") and place == host and place != self.public_origin.partition("://")[2]

    def _answers_origin(self, origin: str) -> bool:
        if origin in self.origins:
            return True
        try:
            return self.any_loopback and is_loopback(urlsplit(origin).hostname or "")
        except ValueError:
            return False


def _is_loaded_by_other_site(headers: Mapping[str, str]) -> bool:
    """Whether a page of another site loads this as a part of itself. Links and redirects from other sites are fine."""
    return headers.get("sec-fetch-site") in OTHER_SITES and headers.get("sec-fetch-mode") != "navigate"


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


PERSON_TOKEN_HEADER = "x-user-auth-token"  # noqa: S105
BEARER_PREFIX = "bearer "
# Prefixes of our own keys and tokens, which are valid only here.
OWN_PREFIXES = (*KEY_PREFIXES, ACCESS_PREFIX)


async def use_credential(identity: Identity, context: RequestContext, text: str) -> None:
    """Check the request's own credential."""
    context.credential = await identity.authenticate(text)
    _set_proof(context, text)


def person_token(context: RequestContext) -> str:
    """The person's token, which is sent beside the request's own credential or alone."""
    return strip_bearer(context.headers.get(PERSON_TOKEN_HEADER, ""))


async def use_person_token(identity: Identity, context: RequestContext, token: str) -> None:
    """Use a person's token that is sent alone as the request's credential.

    It does not allow the client to act for other people, even if it is a key for every agent.
    """
    person = await identity.authenticate(token)
    if person.user_id is None:
        raise Unauthenticated(NAMES_NO_PERSON)
    context.credential = replace(person, agent_id=person.named_agent)
    _set_proof(context, token)


async def act_for_person(identity: Identity, context: RequestContext, token: str, *, local: bool) -> None:
    """Use a person's token that a trusted client sends beside its own credential."""
    check_trusted_client(context.credential, local=local)
    await _set_person(identity, context, token)


async def use_session_token(identity: Identity, context: RequestContext, *, local: bool) -> None:
    """Use the token that is stored for this session, for a request that proves no person."""
    kept = await identity.sessions.recall(context.session_id)
    if kept is not None:
        check_trusted_client(context.credential, local=local)
        # The stored token may have expired. Then there is no person, and a new token can be stored.
        with suppress(Unauthenticated):
            await _set_person(identity, context, kept)


def strip_bearer(text: str) -> str:
    """The text without a leading `Bearer`."""
    return text[len(BEARER_PREFIX) :].strip() if text[: len(BEARER_PREFIX)].lower() == BEARER_PREFIX else text


async def _set_person(identity: Identity, context: RequestContext, token: str) -> None:
    context.credential = credential_on_behalf(context.credential, await identity.authenticate(token))
    _set_proof(context, token)


def _set_proof(context: RequestContext, text: str) -> None:
    context.proof = SecretStr(text)
    context.token = None if text.startswith(OWN_PREFIXES) else context.proof


# Clients of the HTTP API expect another error format than OAuth's.
API_BEGINNING = "/api/"
NO_HEADERS: Mapping[str, str] = {}
UNAUTHORIZED = 401
NO_CREDENTIAL = "Authentication required: send an API key or a token in the Authorization header: Bearer …"

log = structlog.get_logger("frontdesk.http")


@dataclass(frozen=True, slots=True)
class PageAccess:
    """What the middleware needs for pages: browsers send a cookie, and are redirected to sign in instead of refused."""

    is_page: Callable[[str], bool]
    is_open: Callable[[str], bool]
    read_credential: Callable[[RequestContext], Awaitable[str | None]]
    redirect_to_sign_in: Callable[[Scope], ASGIApp]
    # Headers of every answer, unless the answer sets them itself.
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class MemoryPaths:
    """The addresses of people's records. They accept a person's own token, and give clients sessions.

    Clients of `errors_in_result` expect refusals in the result of a tool call and not as a status.
    """

    paths: frozenset[str] = frozenset()
    errors_in_result: frozenset[str] = frozenset()


NO_MEMORY_PATHS = MemoryPaths()


class AuthMiddleware:
    """ASGI middleware that authenticates requests, adds a `RequestContext`, and answers refused requests itself."""

    def __init__(
        self,
        inner: ASGIApp,
        app: App,
        known_paths: frozenset[str],
        open_paths: frozenset[str],
        challenge: Callable[[str, bool], str],
        records: MemoryPaths = NO_MEMORY_PATHS,
        pages: PageAccess | None = None,
    ) -> None:
        self._inner = inner
        self._app = app
        self._host_policy = HostOriginPolicy.from_settings(app.settings)
        # Only known paths become labels in metrics: other paths are arbitrary text.
        self._known_paths = known_paths
        self._open_paths = open_paths
        self._challenge = challenge
        self._records = records
        self._pages = pages
        # Computed once: the settings do not change, and computing this costs more than checking a credential.
        self._proof_required = app.settings.auth_required

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        scope["headers"] = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
        headers = parse_headers(scope["headers"])
        context = RequestContext(ensure_request_id(headers.get("x-request-id")), headers)
        context.local = not (self._proof_required or context.forwarded)
        scope[CONTEXT_KEY] = context
        page = self._pages if self._pages is not None and self._pages.is_page(scope["path"]) else None
        path = scope["path"]
        # Pages redirect to sign in instead, and open paths need no credential.
        challenge = None if page is not None or path in self._open_paths else partial(self._challenge, path, False)
        send = _with_headers(send, context, page.headers if page is not None else NO_HEADERS, challenge)
        refusal = self._check_origin(path, context, page) or await self._authenticate(scope, context, page)
        await (refusal or self._inner)(scope, receive, send)

    def _check_origin(self, path: str, context: RequestContext, page: PageAccess | None) -> ASGIApp | None:
        refusal = self._host_policy.check(context.headers, own_alone=page is not None)
        # Open paths may be called by pages of any origin.
        if refusal is None or (refusal is WRONG_ORIGIN and path in self._open_paths):
            return None
        self._record(path, context, refusal.code)
        return _error_response(refusal.status, refusal.code, refusal.message)

    async def _authenticate(self, scope: Scope, context: RequestContext, page: PageAccess | None) -> ASGIApp | None:
        path = scope["path"]
        if path in self._open_paths or (page is not None and page.is_open(path)):
            return None
        text = presented_credential(context.headers)
        context.errors_in_result = path in self._records.errors_in_result
        try:
            if text is None and page is not None:
                text = await page.read_credential(context)
            await self._check_credentials(path, context, text)
        except (Unauthenticated, Denied) as error:
            if context.errors_in_result:
                context.refuse_calls(error)
                return None
            self._record(path, context, type(error).__name__)
            if isinstance(error, Denied):
                return _error_response(403, "forbidden", str(error))
            return (
                page.redirect_to_sign_in(scope)
                if page is not None
                else self._unauthenticated_response(path, context, text, error)
            )
        except Unavailable as error:
            log.warning("authentication_unavailable", error=str(error), request_id=context.request_id)
            said = "Credentials cannot be checked right now; try again shortly"
            return _error_response(503, "unavailable", said, retry_after_header(error))
        return None

    def _unauthenticated_response(
        self, path: str, context: RequestContext, text: str | None, error: Unauthenticated
    ) -> JSONResponse:
        shown = text is not None or PERSON_TOKEN_HEADER in context.headers
        challenge = {"www-authenticate": self._challenge(path, shown)}
        if path.startswith(API_BEGINNING):
            return JSONResponse({"error": "Authentication required", "details": str(error)}, 401, challenge)
        return _error_response(401, "invalid_token" if shown else "unauthorized", str(error), challenge)

    async def _check_credentials(self, path: str, context: RequestContext, text: str | None) -> None:
        """Check the request's credential and its person, whose token may be stored for the session."""
        if path not in self._records.paths:
            await self._check(context, text)
            return
        identity = self._app.identity
        try:
            await self._check_person(context, text)
        except FrontdeskError:
            # It is unknown whether an invalid or unchecked token belongs to a person, so the session is noted.
            if text is not None or person_token(context):
                await identity.sessions.note_token(context.session_id, proven=False)
            raise
        context.person_in_request = context.credential is not None and context.credential.user_id is not None
        if context.person_in_request:
            await identity.sessions.note_token(context.session_id, proven=True)
        else:
            await use_session_token(identity, context, local=context.local)

    async def _check(self, context: RequestContext, text: str | None) -> None:
        identity, local = self._app.identity, context.local
        if text is not None:
            await use_credential(identity, context, text)
        elif not local:
            raise Unauthenticated(NO_CREDENTIAL)
        context.trusted = is_trusted_client(context.credential, local=local)
        token = person_token(context)
        if token:
            await act_for_person(identity, context, token, local=local)

    async def _check_person(self, context: RequestContext, text: str | None) -> None:
        """Like `_check`, but a person's own token is enough."""
        token = person_token(context)
        if text is None and token and not context.local:
            await use_person_token(self._app.identity, context, token)
        else:
            await self._check(context, text)

    def _record(self, path: str, context: RequestContext, reason: str) -> None:
        known = path.rstrip("/")
        action = known if known in self._known_paths else "other"
        caller = Caller(context.request_id)
        record = CallRecord(self._app.journal, "http", action, caller, outcome=Outcome.DENIED, reason=reason)
        # The body of a refused request is not read, so parameters are unknown.
        signals = Signals(context.request_id, context.headers.get("x-agent-id"), credential=context.credential)
        record.add_trace(trace_refusal(signals, presented_credential(context.headers) or person_token(context)))
        record.write()


def presented_credential(headers: Mapping[str, str]) -> str | None:
    """The key or token of a request, from `Authorization: Bearer` or `X-API-Key`. Never from the URL."""
    authorization = headers.get("authorization", "")
    token = strip_bearer(authorization)
    return token if token != authorization else headers.get("x-api-key") or (authorization or None)


def _with_headers(
    send: Send, context: RequestContext, besides: Mapping[str, str], challenge: Callable[[], str] | None
) -> Send:
    """A `send` that adds the request id, additional headers, and the challenge of a 401."""

    async def announced(message: Message) -> None:
        if message["type"] == "http.response.start":
            status = context.status or message["status"]
            message["headers"] = [
                *message.get("headers", ()),
                (b"x-request-id", context.request_id.encode()),
                *context.answer_headers,
            ]
            if besides:
                message["headers"] += _missing_headers(message["headers"], besides)
            if status == UNAUTHORIZED and challenge is not None:
                message["headers"] += _missing_headers(message["headers"], {"www-authenticate": challenge()})
            message["status"] = status
        await send(message)

    return announced


def _missing_headers(said: list[tuple[bytes, bytes]], besides: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    named = {name.lower() for name, _ in said}
    return [(name.encode(), value.encode()) for name, value in besides.items() if name.encode() not in named]


def _error_response(status: int, code: str, text: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": code, "error_description": text}, status, headers)
