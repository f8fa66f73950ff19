"""Serves the authorization server: authorize, token, revoke, userinfo and metadata (RFC 6749, 7009, 8414, 9207)."""

import base64
import binascii
import hashlib
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from urllib.parse import parse_qsl, unquote_plus, urlsplit

import anyio
import structlog
from pydantic import TypeAdapter
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from frontdesk.app import App
from frontdesk.errors import Denied, FrontdeskError, LoginRefused, RateLimited, Unauthenticated, Unavailable, Unstorable
from frontdesk.identity.model import (
    REQUEST_LIFETIME,
    AuthorizationRequest,
    Caller,
    IssuedTokens,
    OAuthErrorCode,
    RegisteredClient,
    Signals,
)
from frontdesk.identity.oauth_server import S256, AuthorizationServer, random_text
from frontdesk.identity.rights import ADVERTISED_SCOPES, SCOPES
from frontdesk.interfaces.http.context import request_context
from frontdesk.interfaces.http.errors import retry_after_header
from frontdesk.interfaces.http.middleware import presented_credential
from frontdesk.journal.model import Outcome
from frontdesk.journal.service import CallRecord

NO_STORE = {"cache-control": "no-store", "pragma": "no-cache"}
BASIC_CHALLENGE = {"www-authenticate": 'Basic realm="frontdesk", charset="UTF-8"'}


@dataclass(frozen=True, slots=True)
class OAuthErrorFormat:
    """The status and the code for one kind of error."""

    status: int
    code: str


# The narrower error stands first; a refused login has its own code.
ERROR_FORMATS: tuple[tuple[type[FrontdeskError], OAuthErrorFormat], ...] = (
    (LoginRefused, OAuthErrorFormat(400, OAuthErrorCode.INVALID_REQUEST)),
    (Unstorable, OAuthErrorFormat(400, OAuthErrorCode.INVALID_REQUEST)),
    (Unauthenticated, OAuthErrorFormat(401, "Unauthorized")),
    (Denied, OAuthErrorFormat(403, OAuthErrorCode.ACCESS_DENIED)),
    (RateLimited, OAuthErrorFormat(429, "slow_down")),
    (Unavailable, OAuthErrorFormat(503, "temporarily_unavailable")),
    (FrontdeskError, OAuthErrorFormat(500, "server_error")),
)


def error_status(error: FrontdeskError) -> int:
    if isinstance(error, LoginRefused) and error.fault == OAuthErrorCode.INVALID_CLIENT:
        return 401
    return _error_format(error).status


def error_response(error: FrontdeskError) -> JSONResponse:
    """The error for a program, as JSON."""
    code = error.fault if isinstance(error, LoginRefused) else _error_format(error).code
    headers = {
        **NO_STORE,
        **retry_after_header(error),
        **(BASIC_CHALLENGE if code == OAuthErrorCode.INVALID_CLIENT else {}),
    }
    return JSONResponse({"error": code, "error_description": error.public_message}, error_status(error), headers)


def internal_error_response() -> JSONResponse:
    told = {"error": "server_error", "error_description": "Something went wrong here; try again"}
    return JSONResponse(told, 500, NO_STORE)


def _error_format(error: FrontdeskError) -> OAuthErrorFormat:
    return next(found for kind, found in ERROR_FORMATS if isinstance(error, kind))


MAX_BODY_BYTES = 64 * 1024
MAX_FIELDS = 100
READ_SECONDS = 30
JSON_TYPE = "application/json"
BASIC_PREFIX = "basic "
TEXT_FIELDS = TypeAdapter(dict[str, str | None])


def is_json(request: Request) -> bool:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() == JSON_TYPE


def query_fields(request: Request) -> Mapping[str, str]:
    """The fields of the query."""
    return _unique_fields(request.query_params.multi_items())


async def body_fields(request: Request) -> Mapping[str, str]:
    """The fields of the body: a form, unless the content type is JSON."""
    body = await _read_body(request)
    try:
        return (
            _json_fields(body)
            if is_json(request)
            else _unique_fields(parse_qsl(body.decode(), max_num_fields=MAX_FIELDS))
        )
    except ValueError as error:
        raise _invalid_request("The body is neither a form nor a JSON object of texts") from error


def client_credentials(request: Request, form: Mapping[str, str]) -> tuple[str | None, str | None]:
    """(id, secret) of the client: from the header `Authorization: Basic` or from the body; having both is an error."""
    authorization = request.headers.get("authorization", "")
    if authorization[: len(BASIC_PREFIX)].lower() != BASIC_PREFIX:
        return form.get("client_id"), form.get("client_secret")
    try:
        name, _, secret = base64.b64decode(authorization[len(BASIC_PREFIX) :], validate=True).decode().partition(":")
    except (binascii.Error, ValueError) as error:
        raise LoginRefused(OAuthErrorCode.INVALID_CLIENT, "The Authorization header is not well formed") from error
    if "client_secret" in form or form.get("client_id", unquote_plus(name)) != unquote_plus(name):
        raise _invalid_request("The client is named in two ways; use the header or the body")
    return unquote_plus(name), unquote_plus(secret)


def _unique_fields(pairs: Iterable[tuple[str, str]]) -> Mapping[str, str]:
    said: dict[str, str] = {}
    for name, value in pairs:
        if name in said:
            raise _invalid_request(f"{name[:40]} is said more than once")
        said[name] = value
    return said


def _json_fields(body: bytes) -> Mapping[str, str]:
    return {name: value for name, value in TEXT_FIELDS.validate_json(body, strict=True).items() if value is not None}


async def _read_body(request: Request) -> bytes:
    body = bytearray()
    try:
        with anyio.fail_after(READ_SECONDS):
            async for piece in request.stream():
                body += piece
                if len(body) > MAX_BODY_BYTES:
                    raise _invalid_request(f"The body has more than {MAX_BODY_BYTES} bytes")
    except (TimeoutError, ClientDisconnect) as error:
        raise _invalid_request(f"The body did not arrive within {READ_SECONDS} s") from error
    return bytes(body)


def _invalid_request(message: str) -> LoginRefused:
    return LoginRefused(OAuthErrorCode.INVALID_REQUEST, message)


Endpoint = Callable[[Request], Awaitable[Response]]
EndpointWork = Callable[[Request, CallRecord], Awaitable[Response]]

log = structlog.get_logger("frontdesk.oauth")


def recorded_endpoint(
    app: App, action: str, work: EndpointWork, tell: Callable[[FrontdeskError], Response] = error_response
) -> Endpoint:
    """An endpoint whose calls are journaled. `tell` turns an error into a response, by default JSON."""

    async def endpoint(request: Request) -> Response:
        context = request_context(request.scope)
        record = CallRecord(app.journal, "oauth", action, Caller(context.request_id))
        try:
            answer = await work(request, record)
            record.outcome = record.outcome or Outcome.OK
        except FrontdeskError as error:
            record.fail(error)
            answer = tell(error)
        except Exception as error:
            record.fail(error)
            log.exception("call_failed", action=action, request_id=context.request_id)
            answer = internal_error_response()
        finally:
            record.write()
        return answer

    return endpoint


def record_person(record: CallRecord, user_id: str) -> None:
    """Add the person to the journal entry."""
    record.caller = replace(record.caller, user_id=user_id, verified=True)


STYLE = (
    ":root{color-scheme:light dark}"
    "body{font:1rem/1.5 system-ui,sans-serif;max-width:34rem;margin:10vh auto;padding:0 1rem}"
    "label,input{display:block;width:100%;box-sizing:border-box}input{font:inherit;padding:.5rem;margin:.25rem 0 1rem}"
    "button{font:inherit;padding:.5rem 1.5rem;margin-right:.5rem}li{margin:.25rem 0}"
    ".wrong{border-left:.25rem solid #c33;padding-left:.75rem}"
)
STYLE_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
HOST_PATTERN = re.compile(r"[A-Za-z0-9.:\[\]-]+")


def consent_page(
    request: AuthorizationRequest, request_id: str, action: str, wrong: str | None = None, status: int = 200
) -> HTMLResponse:
    """The page that names the client, its scopes and its destination, and has a field for the person's credential."""
    told = f'<p class="wrong" role="alert">{escape(wrong)}</p>' if wrong else ""
    body = (
        f"<h1>Let {escape(request.client_id)} act for you?</h1>"
        f"<p>It asks to:</p><ul>{_scope_items(sorted(request.scopes))}</ul>"
        f"<p>You will be sent back to <strong>{escape(destination_name(request.redirect_uri))}</strong>. "
        "If you did not begin this there, deny it.</p>"
        f'<form method="post" action="{escape(action)}">'
        f'<input type="hidden" name="request" value="{escape(request_id)}">'
        f"{told}"
        '<label for="credential">Your key or token</label>'
        '<input id="credential" name="credential" type="password" autocomplete="off" spellcheck="false" '
        "required autofocus>"
        '<button name="decision" value="allow">Allow</button>'
        '<button name="decision" value="deny" formnovalidate>Deny</button>'
        "</form>"
    )
    return _render_page("Log in", body, f"'self' {_policy_source(request.redirect_uri)}", status)


def problem_page(message: str, status: int) -> HTMLResponse:
    """A page with an error, where there is no address to send the person back to."""
    return _render_page("This does not work", f"<h1>This does not work</h1><p>{escape(message)}.</p>", "'none'", status)


def destination_name(redirect_uri: str) -> str:
    """The destination of an address, as a person reads it."""
    found = urlsplit(redirect_uri)
    return found.netloc if found.scheme in {"http", "https"} else f"the app that opens {found.scheme}: links"


def _scope_items(scopes: Sequence[str]) -> str:
    return "".join(f"<li>{escape(SCOPES[scope])} <small>({escape(scope)})</small></li>" for scope in scopes)


def _policy_source(redirect_uri: str) -> str:
    """The address as a source in a policy: browsers apply `form-action` to the redirect after a form too."""
    found = urlsplit(redirect_uri)
    return f"{found.scheme}://{found.netloc}" if HOST_PATTERN.fullmatch(found.netloc) else f"{found.scheme}:"


def _render_page(title: str, body: str, form_action: str, status: int) -> HTMLResponse:
    policy = (
        f"default-src 'none'; style-src 'sha256-{STYLE_HASH}'; form-action {form_action}; "
        "base-uri 'none'; frame-ancestors 'none'"
    )
    head = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)} · Frontdesk</title><style>{STYLE}</style></head>"
    )
    headers = {
        **NO_STORE,
        "content-security-policy": policy,
        "x-frame-options": "DENY",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
    }
    return HTMLResponse(f"{head}<body><main>{body}</main></body></html>", status, headers)


def token_endpoint(app: App) -> Endpoint:
    oauth = app.identity.oauth

    async def work(request: Request, record: CallRecord) -> Response:
        said = await body_fields(request)
        kind = said.get("grant_type")
        if kind not in GRANTS:
            known = " and ".join(GRANTS)
            raise LoginRefused(
                OAuthErrorCode.UNSUPPORTED_GRANT_TYPE if kind else OAuthErrorCode.INVALID_REQUEST,
                f"grant_type: {known}",
            )
        record.action += f" {kind}"
        issued = await GRANTS[kind](oauth, said, oauth.authenticate_client(*client_credentials(request, said)))
        record_person(record, issued.user_id)
        return JSONResponse(token_response(issued), headers=NO_STORE)

    return recorded_endpoint(app, "token", work)


def revoke_endpoint(app: App) -> Endpoint:
    oauth = app.identity.oauth

    async def work(request: Request, _record: CallRecord) -> Response:
        said = await body_fields(request)
        await oauth.revoke(
            _required_field(said, "token"), oauth.authenticate_client(*client_credentials(request, said))
        )
        return Response(status_code=200, headers=NO_STORE)

    return recorded_endpoint(app, "revoke", work)


def userinfo_endpoint(app: App) -> Endpoint:
    async def work(request: Request, record: CallRecord) -> Response:
        context = request_context(request.scope)
        signals = Signals(context.request_id, credential=context.credential, forwarded=context.forwarded)
        caller = record.caller = await app.identity.identify(signals)
        if caller.user_id is None or context.proof is None:
            raise Unauthenticated("Send a person's own key or token in the Authorization header: Bearer …")
        profile = await app.identity.profile(context.proof.get_secret_value())
        return JSONResponse({"sub": caller.user_id, "email": profile.email, "name": profile.name}, headers=NO_STORE)

    return recorded_endpoint(app, "userinfo", work)


def token_response(issued: IssuedTokens) -> Mapping[str, object]:
    """Tokens in the form of RFC 6749."""
    return {
        "token_type": "Bearer",
        "access_token": issued.access_token,
        "refresh_token": issued.refresh_token,
        "expires_in": issued.expires_in,
        "scope": " ".join(sorted(issued.scopes)),
    }


async def _exchange_code(oauth: AuthorizationServer, form: Mapping[str, str], client: RegisteredClient) -> IssuedTokens:
    code, redirect_uri, verifier = (_required_field(form, name) for name in ("code", "redirect_uri", "code_verifier"))
    return await oauth.exchange(code, redirect_uri, verifier, client)


async def _exchange_refresh_token(
    oauth: AuthorizationServer, form: Mapping[str, str], client: RegisteredClient
) -> IssuedTokens:
    return await oauth.refresh(_required_field(form, "refresh_token"), form.get("scope"), client)


def _required_field(form: Mapping[str, str], name: str) -> str:
    if not form.get(name):
        raise LoginRefused(OAuthErrorCode.INVALID_REQUEST, f"{name} is needed")
    return form[name]


GRANTS = {"authorization_code": _exchange_code, "refresh_token": _exchange_refresh_token}

AUTHORIZE_PATH = "/oauth/authorize"
ISSUE_PATH = "/oauth/authorize/issue"
# This cookie binds a page to the browser in which it was shown.
LOGIN_COOKIE = "frontdesk_login"
BROWSER_ID_PATTERN = re.compile(r"[A-Za-z0-9_-]{43}")


def authorize_endpoint(app: App) -> Endpoint:
    """The endpoint that shows the consent page."""
    consent, issuer = app.identity.oauth.consent, app.identity.oauth.config.issuer

    async def ask(request: Request, record: CallRecord) -> Response:
        said = query_fields(request)
        client, redirect_uri = consent.find_client(said)
        try:
            if said.get("response_type") != "code":
                raise LoginRefused(OAuthErrorCode.UNSUPPORTED_RESPONSE_TYPE, "response_type must be code")
            asked = consent.parse_authorization(client, redirect_uri, said)
        except LoginRefused as error:
            # The redirect address is known by now, so the error goes to the client.
            record.fail(error)
            told = {"error": error.fault, "error_description": str(error)}
            return _redirect(consent.redirect_url(redirect_uri, said.get("state"), **told), 302)
        browser = _browser_id(request) or random_text()
        answer = consent_page(asked, await consent.open_request(asked, browser), _form_action(issuer))
        _set_browser_cookie(answer, browser, issuer)
        return answer

    return recorded_endpoint(app, "authorize", ask, _error_page)


def issue_endpoint(app: App) -> Endpoint:
    """The endpoint for the page's form, and for a program that has the person's own token."""
    by_form = recorded_endpoint(app, "authorize/issue", _issue_by_form(app), _error_page)
    by_program = recorded_endpoint(app, "authorize/issue", _issue_to_program(app))

    async def answer(request: Request) -> Response:
        return await (by_program if is_json(request) else by_form)(request)

    return answer


def _issue_to_program(app: App) -> EndpointWork:
    consent = app.identity.oauth.consent

    async def work(request: Request, record: CallRecord) -> Response:
        shown = presented_credential(request_context(request.scope).headers)
        if shown is None:
            raise Unauthenticated("Send the person's own key or token in the Authorization header: Bearer …")
        proof = await app.identity.prove(shown)
        record_person(record, proof.user_id)
        said = await body_fields(request)
        asked = consent.parse_authorization(*consent.find_client(said), said)
        return JSONResponse({"redirect": await consent.allow(asked, proof)}, headers=NO_STORE)

    return work


def _issue_by_form(app: App) -> EndpointWork:
    consent, issuer = app.identity.oauth.consent, app.identity.oauth.config.issuer

    async def work(request: Request, record: CallRecord) -> Response:
        said = await body_fields(request)
        request_id = said.get("request", "")
        asked = await consent.find_request(request_id, _browser_id(request) or "")
        if said.get("decision") != "allow":
            return _redirect(await consent.deny(asked, request_id), 303)
        try:
            proof = await app.identity.prove(said.get("credential", "").strip())
            record_person(record, proof.user_id)
            return _redirect(await consent.allow(asked, proof, request_id), 303)
        except (Unauthenticated, LoginRefused) as error:
            record.fail(error)
            return consent_page(asked, request_id, _form_action(issuer), error.public_message, error_status(error))

    return work


def _error_page(error: FrontdeskError) -> HTMLResponse:
    """The error page, where there is no address to send the person back to."""
    return problem_page(error.public_message, error_status(error))


def _browser_id(request: Request) -> str | None:
    known = request.cookies.get(LOGIN_COOKIE, "")
    return known if BROWSER_ID_PATTERN.fullmatch(known) else None


def _set_browser_cookie(answer: Response, browser: str, issuer: str) -> None:
    answer.set_cookie(
        LOGIN_COOKIE,
        browser,
        max_age=int(REQUEST_LIFETIME.total_seconds()),
        path=f"{urlsplit(issuer).path}/oauth",
        secure=issuer.startswith("https:"),
        httponly=True,
        samesite="strict",
    )


def _form_action(issuer: str) -> str:
    """The address of the form: on the server that showed it, whatever name the browser has for it."""
    return urlsplit(issuer).path + ISSUE_PATH


def _redirect(address: str, status: int) -> RedirectResponse:
    return RedirectResponse(address, status, {**NO_STORE, "referrer-policy": "no-referrer"})


TOKEN_PATH = "/oauth/token"  # noqa: S105 - an address
REVOKE_PATH = "/oauth/revoke"
USERINFO_PATH = "/oauth/userinfo"
METADATA_PATH = "/.well-known/oauth-authorization-server"
# A caller of these paths has no credential yet, or sends it in the request itself.
OPEN_PATHS = frozenset({AUTHORIZE_PATH, ISSUE_PATH, TOKEN_PATH, REVOKE_PATH, METADATA_PATH})
PUBLIC_HEADERS = {"access-control-allow-origin": "*", "cache-control": "public, max-age=3600"}
CLIENT_AUTH_METHODS = ["client_secret_basic", "client_secret_post", "none"]


def oauth_routes(app: App) -> list[Route]:
    """The routes. Without any client there is no metadata document: a client that finds it would try to register."""
    routes = [
        Route(AUTHORIZE_PATH, authorize_endpoint(app), methods=["GET"]),
        Route(ISSUE_PATH, issue_endpoint(app), methods=["POST"]),
        Route(TOKEN_PATH, token_endpoint(app), methods=["POST"]),
        Route(REVOKE_PATH, revoke_endpoint(app), methods=["POST"]),
        Route(USERINFO_PATH, userinfo_endpoint(app), methods=["GET"]),
    ]
    if not app.identity.oauth.has_clients:
        return routes
    document = server_metadata(app.identity.oauth.config.issuer)

    async def described(_request: Request) -> JSONResponse:
        return JSONResponse(document, headers=PUBLIC_HEADERS)

    return [*routes, Route(METADATA_PATH, described, methods=["GET"])]


def server_metadata(issuer: str) -> Mapping[str, object]:
    return {
        "issuer": issuer,
        "authorization_endpoint": f"{issuer}{AUTHORIZE_PATH}",
        "token_endpoint": f"{issuer}{TOKEN_PATH}",
        "revocation_endpoint": f"{issuer}{REVOKE_PATH}",
        "userinfo_endpoint": f"{issuer}{USERINFO_PATH}",
        "scopes_supported": list(ADVERTISED_SCOPES),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": list(GRANTS),
        "token_endpoint_auth_methods_supported": CLIENT_AUTH_METHODS,
        "revocation_endpoint_auth_methods_supported": CLIENT_AUTH_METHODS,
        "code_challenge_methods_supported": [S256],
        "authorization_response_iss_parameter_supported": True,
    }
