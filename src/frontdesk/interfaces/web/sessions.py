"""Keeps browser sessions: cookies, form tokens, signing in and out, and the caller that pages act as."""

import base64
import binascii
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, urlsplit

import anyio
from starlette.requests import ClientDisconnect, Request, cookie_parser
from starlette.responses import RedirectResponse, Response

from frontdesk.app import App
from frontdesk.errors import Denied, FrontdeskError, Invalid, Unauthenticated
from frontdesk.identity.inbound import trace_refusal
from frontdesk.identity.model import AgentIdSource, Caller, Credential, Signals
from frontdesk.identity.rights import ALL_SCOPES, INSTALLATION_ADMIN
from frontdesk.interfaces.http.context import RequestContext, Scope, request_context
from frontdesk.interfaces.http.middleware import presented_credential
from frontdesk.interfaces.web.model import SIGN_IN_PATH, safe_return_path, section_path
from frontdesk.settings import Settings

SESSION_COOKIE = "frontdesk_session"
FORM_COOKIE = "frontdesk_form"
MESSAGE_COOKIE = "frontdesk_said"
SIGN_IN_COOKIE = "frontdesk_errand"
MESSAGE_SECONDS = 30
# In bytes.
LONGEST_MESSAGE = 1200
# Browsers take a name like this over TLS alone, and from nobody but the very host that gets it back.
SECURE_PREFIX = "__Host-"


@dataclass(frozen=True, slots=True)
class BrowserCookies:
    """The cookies of one browser, out of reach of scripts and never sent along from another site.

    `secure`: it came over TLS, and what it keeps goes back no other way.
    """

    cookies: Mapping[str, str]
    secure: bool

    @classmethod
    def of(cls, settings: Settings, context: RequestContext) -> "BrowserCookies":
        # A proxy's word is enough here: it can make this stricter, and nothing looser.
        passed_on = context.headers.get("x-forwarded-proto", "").partition(",")[0].strip().lower() == "https"
        over_tls = passed_on or (settings.public_url or "").lower().startswith("https:")
        return cls(cookie_parser(context.headers.get("cookie", "")), over_tls)

    def read(self, name: str) -> str | None:
        """What the browser kept under this name."""
        return self.cookies.get(self._full(name)) or None

    def store(
        self, response: Response, name: str, value: str, seconds: int | None = None, *, led_back: bool = False
    ) -> None:
        """Have it kept so long, or until the browser is closed.

        `led_back`: it comes along also when another site leads the browser back here.
        """
        response.set_cookie(
            self._full(name),
            value,
            max_age=seconds,
            path="/",
            httponly=True,
            secure=self.secure,
            samesite="lax" if led_back else "strict",
        )

    def delete(self, response: Response, name: str) -> None:
        response.delete_cookie(self._full(name), path="/", httponly=True, secure=self.secure, samesite="strict")

    def _full(self, name: str) -> str:
        return f"{SECURE_PREFIX}{name}" if self.secure else name


def new_form_token() -> str:
    return secrets.token_urlsafe(24)


def is_same_token(one: str | None, other: str | None) -> bool:
    return bool(one) and bool(other) and hmac.compare_digest((one or "").encode(), (other or "").encode())


def pack_text(text: str, longest: int = LONGEST_MESSAGE) -> str:
    """A sentence as a cookie can hold it, or as much of its beginning as fits."""
    begun = text.encode(errors="replace")[:longest].decode(errors="ignore")
    return base64.urlsafe_b64encode(begun.encode()).decode().rstrip("=")


def unpack_text(text: str | None, longest: int = LONGEST_MESSAGE) -> str | None:
    if not text or len(text) > (longest * 4 + 2) // 3:
        return None
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    except (binascii.Error, ValueError):
        return None


FORM_TOKEN_FIELD = "form_token"  # noqa: S105 - the name of a field
MAX_BYTES = 1024 * 1024
MAX_FIELDS = 1000
READ_SECONDS = 20
NO_FIELDS: Mapping[str, str] = {}
UNREADABLE = "The form cannot be read; load the page again and repeat it"
WRONG_FORM_TOKEN = "This form is too old, or was not made here; load the page again and repeat it"  # noqa: S105


async def read_form(request: Request, token: str | None, most: int = MAX_BYTES) -> Mapping[str, str]:
    """Its fields by name, without the token, which has to be the one that the browser keeps."""
    try:
        with anyio.fail_after(READ_SECONDS):
            body = await _read_body(request, most)
        said = dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MAX_FIELDS))
    except (TimeoutError, ClientDisconnect, ValueError) as error:
        raise Invalid(UNREADABLE) from error
    if not is_same_token(said.pop(FORM_TOKEN_FIELD, None), token):
        raise Denied(WRONG_FORM_TOKEN)
    return said


async def _read_body(request: Request, most: int) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise Invalid(f"The form is too large; {most // 1024} KiB is the limit")
    return bytes(body)


NOT_THIS_KEY = (
    f"The pages are for the operator of Frontdesk: sign in with a key that carries the scope '{INSTALLATION_ADMIN}' "
    f"(frontdesk keys create --user YOU --scope {INSTALLATION_ADMIN})"
)


async def signed_in_credential(app: App, context: RequestContext) -> str | None:
    """The key or token that somebody signed in with, unchecked; it is checked anew with every request."""
    return await app.identity.sessions.recall(BrowserCookies.of(app.settings, context).read(SESSION_COOKIE))


def require_admin(context: RequestContext, credential: Credential) -> None:
    """Refuse a key or token without the operator's scope; at this machine one without limits may, but no agent's."""
    unlimited = credential.scopes is None and credential.named_agent is None and context.local
    if not unlimited and INSTALLATION_ADMIN not in (credential.scopes or ()):
        raise Denied(NOT_THIS_KEY)


def page_caller(context: RequestContext) -> Caller:
    """The caller that pages act as; refuses callers without the operator's scope."""
    credential = context.credential
    try:
        if credential is None:
            if not context.local:
                raise Denied(NOT_THIS_KEY)
            return Caller(context.request_id, local=True, any_agent=True)
        require_admin(context, credential)
    except Denied as error:
        error.trace = trace_refusal(
            Signals(context.request_id, context.headers.get("x-agent-id"), credential=credential)
        )
        raise
    return Caller(
        context.request_id,
        None,
        credential.user_id,
        AgentIdSource.CREDENTIAL,
        verified=True,
        scopes=ALL_SCOPES,
        any_agent=True,
        credential_id=credential.id,
    )


async def is_still_allowed(app: App, context: RequestContext) -> bool:
    """Whether who was let in some time ago would be let in now: a key may have been revoked, a session ended."""
    if context.credential is None:
        return True
    try:
        text = presented_credential(context.headers) or await signed_in_credential(app, context)
        if text is None:
            return False
        require_admin(context, await app.identity.authenticate(text))
    except FrontdeskError:
        return False
    return True


NOT_VALID = "This key or token is not valid here: mistyped, expired, revoked, or of an issuer that is not trusted"
NAMES_NO_PERSON = (
    "This key or token names no person; sign in with one that was made for you (frontdesk keys create --user YOU)"
)


def redirect_to_sign_in(app: App, scope: Scope) -> Response:
    """Where somebody goes who has to say who they are first; htmx is told to take the whole window there.

    A session whose key no longer holds ends with that; at this machine nobody needs one.
    """
    context = request_context(scope)
    jar = BrowserCookies.of(app.settings, context)
    back = _requested_page(scope, context)
    let_in = jar.read(SESSION_COOKIE) is not None and presented_credential(context.headers) is None and context.local
    where = back if let_in else f"{SIGN_IN_PATH}?next={quote(back, safe='')}"
    if context.headers.get("hx-request") == "true":
        answer = Response(status_code=401, headers={"hx-redirect": where})
    else:
        answer = RedirectResponse(where, 303)
    if jar.read(SESSION_COOKIE) is not None:
        jar.delete(answer, SESSION_COOKIE)
    return answer


async def sign_in(app: App, context: RequestContext, text: str) -> tuple[str, Credential]:
    """The id of a new session for this key or token, if it has the operator's scope."""
    try:
        credential = await app.identity.authenticate(text)
    except Unauthenticated as error:
        raise Unauthenticated(NOT_VALID) from error
    require_admin(context, credential)
    if credential.user_id is None:
        raise Denied(NAMES_NO_PERSON)
    session = app.identity.sessions.new_id()
    await app.identity.sessions.remember(session, text)
    await sign_out(app, context)
    return session, credential


async def sign_out(app: App, context: RequestContext) -> None:
    session = BrowserCookies.of(app.settings, context).read(SESSION_COOKIE)
    if session is not None:
        await app.identity.sessions.forget(session)


def _requested_page(scope: Scope, context: RequestContext) -> str:
    """The page somebody wanted to look at; where they wanted to do something, the page it is done on."""
    if context.headers.get("hx-request") == "true":
        found = urlsplit(context.headers.get("hx-current-url", ""))
        return safe_return_path(f"{found.path}?{found.query}" if found.query else found.path)
    if scope["method"] != "GET":
        return section_path(scope["path"])
    query = scope["query_string"].decode("latin-1")
    path = quote(scope["path"])
    return safe_return_path(f"{path}?{query}" if query else path)
