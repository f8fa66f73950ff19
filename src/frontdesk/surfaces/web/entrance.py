"""The way in and out: the page to sign in on, with a key or at an issuer, and the form to sign out with."""

from collections.abc import Awaitable, Callable
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from frontdesk.app import App
from frontdesk.errors import Denied, FrontdeskError
from frontdesk.identity.inbound import traced
from frontdesk.identity.model import Caller, Signals, Source
from frontdesk.identity.oauth.upstream import OTHER_ERRAND
from frontdesk.journal.record import Record
from frontdesk.surfaces.web import cookies, errands, forms, places, signing
from frontdesk.surfaces.web.model import Shown
from frontdesk.surfaces.web.refusals import status_of
from frontdesk.surfaces.web.window import Window

MAX_CREDENTIAL = 32 * 1024

Answering = Callable[[Request], Awaitable[Response]]


def entrance(app: App) -> list[Route]:
    return [
        Route(places.SIGN_IN, _page(app), methods=["GET"]),
        Route(places.SIGN_IN, _with_a_key(app), methods=["POST"]),
        Route(places.SIGN_IN_WITH, _sent_away(app), methods=["GET"]),
        Route(places.SIGNED_IN, _back(app), methods=["GET"]),
        Route(places.SIGN_OUT, _out(app), methods=["POST"]),
    ]


def _page(app: App) -> Answering:
    async def handle(request: Request) -> Response:
        return _ask(app, Window.on(app, request), request.query_params.get("next"))

    return handle


def _with_a_key(app: App) -> Answering:
    async def handle(request: Request) -> Response:
        window = Window.on(app, request)
        said = forms.NOTHING
        with _recorded(app, window, "POST", places.SIGN_IN) as record:
            try:
                said = await forms.read(request, window.jar.kept(cookies.FORGERY), MAX_CREDENTIAL)
                session = await _let_in(app, window, record, said.get("credential", "").strip())
            except FrontdeskError as error:
                record.ended_by(error)
                record.trace(traced(Signals(window.visit.request_id), said.get("credential", "").strip()))
                return _ask(app, window, said.get("next"), error.public, status_of(error))
        answer = window.lead(places.ours(said.get("next")))
        _keep(window, answer, session)
        return answer

    return handle


def _sent_away(app: App) -> Answering:
    """To an issuer. It is a link and no form: the policy of pages lets forms lead nowhere else."""

    async def handle(request: Request) -> Response:
        window = Window.on(app, request)
        back = places.ours(request.query_params.get("next"))
        with _recorded(app, window, "GET", places.SIGN_IN_WITH) as record:
            try:
                where, errand = await app.upstreams.send(request.query_params.get("issuer", ""))
            except FrontdeskError as error:
                record.ended_by(error)
                return _ask(app, window, back, error.public, status_of(error))
        answer = RedirectResponse(where, 303)
        window.jar.keep(answer, cookies.ERRAND, errands.packed(errand, back), errands.SECONDS, led_back=True)
        return answer

    return handle


def _back(app: App) -> Answering:
    """From an issuer, with a code.

    A browser that another site leads here leaves the session's cookie at home, also on the next page it is led to, so
    it is shown a page of ours that leads on by itself.
    """

    async def handle(request: Request) -> Response:
        window = Window.on(app, request)
        found = errands.unpacked(window.jar.kept(cookies.ERRAND))
        back = places.ours(found[1] if found else None)
        with _recorded(app, window, "GET", places.SIGNED_IN) as record:
            try:
                if found is None:
                    raise Denied(OTHER_ERRAND)
                token = await app.upstreams.redeem(found[0], request.query_params)
                session = await _let_in(app, window, record, token)
            except FrontdeskError as error:
                record.ended_by(error)
                answer = _ask(app, window, back, error.public, status_of(error))
                window.jar.drop(answer, cookies.ERRAND)
                return answer
        answer = window.answer(Shown("signed_in.html", "Signed in", {"next": back}))
        window.jar.drop(answer, cookies.ERRAND)
        _keep(window, answer, session)
        return answer

    return handle


def _out(app: App) -> Answering:
    async def handle(request: Request) -> Response:
        window = Window.on(app, request)
        with _recorded(app, window, "POST", places.SIGN_OUT) as record:
            try:
                await forms.read(request, window.jar.kept(cookies.FORGERY), MAX_CREDENTIAL)
                await signing.sign_out(app, window.visit)
            except FrontdeskError as error:
                record.ended_by(error)
                return window.refuse(error.public, status_of(error))
        answer = window.lead(places.SIGN_IN)
        window.jar.drop(answer, cookies.SESSION)
        window.jar.drop(answer, cookies.FORGERY)
        return answer

    return handle


def _recorded(app: App, window: Window, method: str, path: str) -> Record:
    return Record(app.journal, "web", f"{method} {path}", Caller(window.visit.request_id))


async def _let_in(app: App, window: Window, record: Record, text: str) -> str:
    """The session of somebody who shows a key or token that may run the house."""
    session, credential = await signing.sign_in(app, window.visit, text)
    record.caller = Caller(window.visit.request_id, None, credential.user_id, Source.CREDENTIAL, verified=True)
    return session


def _keep(window: Window, answer: Response, session: str) -> None:
    window.jar.keep(answer, cookies.SESSION, session)
    # What was on pages before is worth nothing on those that come.
    window.jar.keep(answer, cookies.FORGERY, cookies.new_form_token())


def _ask(app: App, window: Window, back: str | None, wrong: str | None = None, status: int = 200) -> Response:
    back = places.ours(back)
    ways = {
        f"{places.SIGN_IN_WITH}?issuer={quote(issuer, safe='')}&next={quote(back, safe='')}": name
        for issuer, name in app.upstreams.names.items()
    }
    return window.answer(Shown("sign_in.html", "Sign in", {"wrong": wrong, "next": back, "ways": ways}, status))
