"""Shows the sign-in page, and signs in with a key or at an issuer."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from urllib.parse import quote

from pydantic import TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from frontdesk.app import App
from frontdesk.errors import Denied, FrontdeskError
from frontdesk.identity.inbound import trace_refusal
from frontdesk.identity.model import AgentIdSource, Caller, Signals
from frontdesk.identity.sign_in import OTHER_SIGN_IN, SignInState
from frontdesk.interfaces.web.model import (
    SIGN_IN_PATH,
    SIGN_IN_WITH_PATH,
    SIGN_OUT_PATH,
    SIGNED_IN_PATH,
    PageContent,
    safe_return_path,
)
from frontdesk.interfaces.web.rendering import BrowserExchange, status_of
from frontdesk.interfaces.web.sessions import (
    FORM_COOKIE,
    NO_FIELDS,
    SESSION_COOKIE,
    SIGN_IN_COOKIE,
    new_form_token,
    pack_text,
    read_form,
    sign_in,
    sign_out,
    unpack_text,
)
from frontdesk.journal.service import CallRecord

STATE_SECONDS = 600
LONGEST_STATE = 3000
STATE_ADAPTER = TypeAdapter(tuple[SignInState, str])


def pack_state(pending: SignInState, back: str) -> str:
    """The state of a sign-in and the requested page as the value of a cookie. Long addresses are left out."""
    text = json.dumps([asdict(pending), back])
    return pack_text(text if len(text) <= LONGEST_STATE else json.dumps([asdict(pending), "/"]), LONGEST_STATE)


def unpack_state(text: str | None) -> tuple[SignInState, str] | None:
    found = unpack_text(text, LONGEST_STATE)
    if found is None:
        return None
    try:
        return STATE_ADAPTER.validate_json(found)
    except ValidationError:
        return None


MAX_CREDENTIAL = 32 * 1024

RouteHandler = Callable[[Request], Awaitable[Response]]


def sign_in_routes(app: App) -> list[Route]:
    return [
        Route(SIGN_IN_PATH, _show_page(app), methods=["GET"]),
        Route(SIGN_IN_PATH, _sign_in_with_key(app), methods=["POST"]),
        Route(SIGN_IN_WITH_PATH, _redirect_to_issuer(app), methods=["GET"]),
        Route(SIGNED_IN_PATH, _return_from_issuer(app), methods=["GET"]),
        Route(SIGN_OUT_PATH, _sign_out(app), methods=["POST"]),
    ]


def _show_page(app: App) -> RouteHandler:
    async def handle(request: Request) -> Response:
        return _sign_in_page(app, BrowserExchange.of_request(app, request), request.query_params.get("next"))

    return handle


def _sign_in_with_key(app: App) -> RouteHandler:
    async def handle(request: Request) -> Response:
        window = BrowserExchange.of_request(app, request)
        said = NO_FIELDS
        with _record_of(app, window, "POST", SIGN_IN_PATH) as record:
            try:
                said = await read_form(request, window.jar.read(FORM_COOKIE), MAX_CREDENTIAL)
                session = await _open_session(app, window, record, said.get("credential", "").strip())
            except FrontdeskError as error:
                record.fail(error)
                record.add_trace(trace_refusal(Signals(window.context.request_id), said.get("credential", "").strip()))
                return _sign_in_page(app, window, said.get("next"), error.public_message, status_of(error))
        answer = window.redirect(safe_return_path(said.get("next")))
        _set_cookies(window, answer, session)
        return answer

    return handle


def _redirect_to_issuer(app: App) -> RouteHandler:
    """Redirect to an issuer. This is a link and not a form, because the pages' CSP keeps forms on this site."""

    async def handle(request: Request) -> Response:
        window = BrowserExchange.of_request(app, request)
        back = safe_return_path(request.query_params.get("next"))
        with _record_of(app, window, "GET", SIGN_IN_WITH_PATH) as record:
            try:
                where, pending = await app.sign_in_issuers.begin(request.query_params.get("issuer", ""))
            except FrontdeskError as error:
                record.fail(error)
                return _sign_in_page(app, window, back, error.public_message, status_of(error))
        answer = RedirectResponse(where, 303)
        window.jar.store(answer, SIGN_IN_COOKIE, pack_state(pending, back), STATE_SECONDS, led_back=True)
        return answer

    return handle


def _return_from_issuer(app: App) -> RouteHandler:
    """Handle the redirect from an issuer, with a code.

    A browser that another site redirects here does not send the session's cookie, not even on a second redirect, so it
    gets a page of ours that leads on by itself.
    """

    async def handle(request: Request) -> Response:
        window = BrowserExchange.of_request(app, request)
        found = unpack_state(window.jar.read(SIGN_IN_COOKIE))
        back = safe_return_path(found[1] if found else None)
        with _record_of(app, window, "GET", SIGNED_IN_PATH) as record:
            try:
                if found is None:
                    raise Denied(OTHER_SIGN_IN)
                token = await app.sign_in_issuers.redeem(found[0], request.query_params)
                session = await _open_session(app, window, record, token)
            except FrontdeskError as error:
                record.fail(error)
                answer = _sign_in_page(app, window, back, error.public_message, status_of(error))
                window.jar.delete(answer, SIGN_IN_COOKIE)
                return answer
        answer = window.respond(PageContent("signed_in.html", "Signed in", {"next": back}))
        window.jar.delete(answer, SIGN_IN_COOKIE)
        _set_cookies(window, answer, session)
        return answer

    return handle


def _sign_out(app: App) -> RouteHandler:
    async def handle(request: Request) -> Response:
        window = BrowserExchange.of_request(app, request)
        with _record_of(app, window, "POST", SIGN_OUT_PATH) as record:
            try:
                await read_form(request, window.jar.read(FORM_COOKIE), MAX_CREDENTIAL)
                await sign_out(app, window.context)
            except FrontdeskError as error:
                record.fail(error)
                return window.refuse(error.public_message, status_of(error))
        answer = window.redirect(SIGN_IN_PATH)
        window.jar.delete(answer, SESSION_COOKIE)
        window.jar.delete(answer, FORM_COOKIE)
        return answer

    return handle


def _record_of(app: App, window: BrowserExchange, method: str, path: str) -> CallRecord:
    return CallRecord(app.journal, "web", f"{method} {path}", Caller(window.context.request_id))


async def _open_session(app: App, window: BrowserExchange, record: CallRecord, text: str) -> str:
    """Sign in with a key or token that may administer, and redirect to the requested page."""
    session, credential = await sign_in(app, window.context, text)
    record.caller = Caller(window.context.request_id, None, credential.user_id, AgentIdSource.CREDENTIAL, verified=True)
    return session


def _set_cookies(window: BrowserExchange, answer: Response, session: str) -> None:
    window.jar.store(answer, SESSION_COOKIE, session)
    # The form token of earlier pages becomes invalid.
    window.jar.store(answer, FORM_COOKIE, new_form_token())


def _sign_in_page(
    app: App, window: BrowserExchange, back: str | None, wrong: str | None = None, status: int = 200
) -> Response:
    back = safe_return_path(back)
    ways = {
        f"{SIGN_IN_WITH_PATH}?issuer={quote(issuer, safe='')}&next={quote(back, safe='')}": name
        for issuer, name in app.sign_in_issuers.names.items()
    }
    return window.respond(PageContent("sign_in.html", "Sign in", {"wrong": wrong, "next": back, "ways": ways}, status))
