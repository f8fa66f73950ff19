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
# Browsers accept cookies with this prefix only over TLS, and send them only to the host that set them.
SECURE_PREFIX = "__Host-"


@dataclass(frozen=True, slots=True)
class BrowserCookies:
    """The cookies of one browser. Scripts cannot read them, and other sites' requests do not carry them.

    `secure`: the request came over TLS, and the cookies are only sent over TLS.
    """

    cookies: Mapping[str, str]
    secure: bool

    @classmethod
    def of(cls, settings: Settings, context: RequestContext) -> "BrowserCookies":
        # The header of a proxy can be trusted here, because it can only make this stricter.
        passed_on = context.headers.get("x-forwarded-proto", "").partition(",")[0].strip().lower() == "https"
        over_tls = passed_on or (settings.public_url or "").lower().startswith("https:")
        return cls(cookie_parser(context.headers.get("cookie", "")), over_tls)

    def read(self, name: str) -> str | None:
        """The value of a cookie."""
        return self.cookies.get(self._full(name)) or None

    def store(
        self, response: Response, name: str, value: str, seconds: int | None = None, *, led_back: bool = False
    ) -> None:
        """Set a cookie for `seconds`, or until the browser is closed.

        `led_back`: also send it when another site redirects the browser here.
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
    """A text as the value of a cookie, cut to its maximum length."""
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
WRONG_FORM_TOKEN = "This form has expired or is not from this site; load the page again and repeat it"  # noqa: S105


async def read_form(request: Request, token: str | None, most: int = MAX_BYTES) -> Mapping[str, str]:
    """The fields of a form by name, without the form token, which must match the browser's cookie."""
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
    f"The pages are for administrators: sign in with a key that has the scope '{INSTALLATION_ADMIN}' "
    f"(frontdesk keys create --user YOU --scope {INSTALLATION_ADMIN})"
)


async def signed_in_credential(app: App, context: RequestContext) -> str | None:
    """The key or token of the sign-in, unchecked. Every request checks it again."""
    return await app.identity.sessions.recall(BrowserCookies.of(app.settings, context).read(SESSION_COOKIE))


def require_admin(context: RequestContext, credential: Credential) -> None:
    """Refuse a key or token that may not administer. A local one without scopes may, unless it names an agent."""
    unlimited = credential.scopes is None and credential.named_agent is None and context.local
    if not unlimited and INSTALLATION_ADMIN not in (credential.scopes or ()):
        raise Denied(NOT_THIS_KEY)


def page_caller(context: RequestContext) -> Caller:
    """The caller that pages act as. Raises `Denied` for callers who may not administer."""
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
    """Whether the request would still be allowed: its key may have been revoked, or its session may have ended."""
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
    "This key or token names no person; sign in with one that was created for you (frontdesk keys create --user YOU)"
)


def redirect_to_sign_in(app: App, scope: Scope) -> Response:
    """Redirect to the sign-in page; htmx loads it as a whole page.

    A session whose key is no longer valid ends. On this machine the page is loaded again without a session.
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
    """Start a session for a key or token that may administer. Returns the session's id and the credential."""
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
    """The page that was requested, or the page of the requested action."""
    if context.headers.get("hx-request") == "true":
        found = urlsplit(context.headers.get("hx-current-url", ""))
        return safe_return_path(f"{found.path}?{found.query}" if found.query else found.path)
    if scope["method"] != "GET":
        return section_path(scope["path"])
    query = scope["query_string"].decode("latin-1")
    path = quote(scope["path"])
    return safe_return_path(f"{path}?{query}" if query else path)
