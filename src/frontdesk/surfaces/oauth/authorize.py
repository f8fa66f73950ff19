"""Where a person allows a client to act for them: a page, a form, and the same for programs in JSON."""

import re
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from frontdesk.app import App
from frontdesk.errors import FrontdeskError, LoginRefused, Unauthenticated
from frontdesk.identity.oauth import checks
from frontdesk.identity.oauth.model import REQUEST_LIFETIME, Fault
from frontdesk.journal.record import Record
from frontdesk.surfaces.gate import presented
from frontdesk.surfaces.oauth import page
from frontdesk.surfaces.oauth.refusals import NO_STORE, status_of
from frontdesk.surfaces.oauth.walk import Endpoint, Work, note, walked
from frontdesk.surfaces.oauth.words import asked_in, is_json, said_in
from frontdesk.surfaces.visit import visit_of

AUTHORIZE = "/oauth/authorize"
ISSUE = "/oauth/authorize/issue"
# What binds a page to the browser that it was shown in.
COOKIE = "frontdesk_login"
BROWSER = re.compile(r"[A-Za-z0-9_-]{43}")


def authorize(app: App) -> Endpoint:
    """The page that asks."""
    consent, issuer = app.identity.oauth.consent, app.identity.oauth.terms.issuer

    async def ask(request: Request, record: Record) -> Response:
        said = asked_in(request)
        client, redirect_uri = consent.destination(said)
        try:
            if said.get("response_type") != "code":
                raise LoginRefused(Fault.UNSUPPORTED_RESPONSE_TYPE, "response_type must be code")
            asked = consent.asked(client, redirect_uri, said)
        except LoginRefused as error:
            # Where the answer goes is known by now: it is the client that has to hear this.
            record.ended_by(error)
            told = {"error": error.fault, "error_description": str(error)}
            return _to(consent.sent_back(redirect_uri, said.get("state"), **told), 302)
        browser = _browser(request) or checks.random_text()
        answer = page.ask(asked, await consent.open(asked, browser), _action(issuer))
        _bind(answer, browser, issuer)
        return answer

    return walked(app, "authorize", ask, _told)


def issue(app: App) -> Endpoint:
    """What the page's form, or a program that has the person's own token, answers."""
    by_form = walked(app, "authorize/issue", _by_form(app), _told)
    by_program = walked(app, "authorize/issue", _by_program(app))

    async def answer(request: Request) -> Response:
        return await (by_program if is_json(request) else by_form)(request)

    return answer


def _by_program(app: App) -> Work:
    consent = app.identity.oauth.consent

    async def work(request: Request, record: Record) -> Response:
        shown = presented(visit_of(request.scope).said)
        if shown is None:
            raise Unauthenticated("Send the person's own key or token in the Authorization header: Bearer …")
        proof = await app.identity.prove(shown)
        note(record, proof.user_id)
        said = await said_in(request)
        asked = consent.asked(*consent.destination(said), said)
        return JSONResponse({"redirect": await consent.allow(asked, proof)}, headers=NO_STORE)

    return work


def _by_form(app: App) -> Work:
    consent, issuer = app.identity.oauth.consent, app.identity.oauth.terms.issuer

    async def work(request: Request, record: Record) -> Response:
        said = await said_in(request)
        request_id = said.get("request", "")
        asked = await consent.opened(request_id, _browser(request) or "")
        if said.get("decision") != "allow":
            return _to(await consent.deny(asked, request_id), 303)
        try:
            proof = await app.identity.prove(said.get("credential", "").strip())
            note(record, proof.user_id)
            return _to(await consent.allow(asked, proof, request_id), 303)
        except (Unauthenticated, LoginRefused) as error:
            record.ended_by(error)
            return page.ask(asked, request_id, _action(issuer), error.public, status_of(error))

    return work


def _told(error: FrontdeskError) -> HTMLResponse:
    """The answer to a person, where there is nothing to send them back to."""
    return page.problem(error.public, status_of(error))


def _browser(request: Request) -> str | None:
    known = request.cookies.get(COOKIE, "")
    return known if BROWSER.fullmatch(known) else None


def _bind(answer: Response, browser: str, issuer: str) -> None:
    answer.set_cookie(
        COOKIE,
        browser,
        max_age=int(REQUEST_LIFETIME.total_seconds()),
        path=f"{urlsplit(issuer).path}/oauth",
        secure=issuer.startswith("https:"),
        httponly=True,
        samesite="strict",
    )


def _action(issuer: str) -> str:
    """Where the form goes: on the server that showed it, whatever name that has in the browser."""
    return urlsplit(issuer).path + ISSUE


def _to(address: str, status: int) -> RedirectResponse:
    return RedirectResponse(address, status, {**NO_STORE, "referrer-policy": "no-referrer"})
