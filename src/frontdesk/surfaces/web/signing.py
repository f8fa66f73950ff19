"""Signing in and out: a key or token is shown once, and stays with the house under the browser's session."""

from urllib.parse import quote, urlsplit

from starlette.responses import RedirectResponse, Response

from frontdesk.app import App
from frontdesk.errors import Denied, Unauthenticated
from frontdesk.identity.model import Credential
from frontdesk.surfaces.gate import presented
from frontdesk.surfaces.visit import Scope, Visit, visit_of
from frontdesk.surfaces.web import places, who
from frontdesk.surfaces.web.cookies import SESSION, Jar

NOT_VALID = "This key or token is not valid here: mistyped, expired, revoked, or of an issuer that is not trusted"
NOBODYS = "This key or token names no person; sign in with one that was made for you (frontdesk keys create --user YOU)"


def to_sign_in(app: App, scope: Scope) -> Response:
    """Where somebody goes who has to say who they are first; htmx is told to take the whole window there.

    A session whose key no longer holds ends with that; at this machine nobody needs one.
    """
    visit = visit_of(scope)
    jar = Jar.of(app.settings, visit)
    back = _asked_for(scope, visit)
    let_in = jar.kept(SESSION) is not None and presented(visit.said) is None and who.is_local(app, visit)
    where = back if let_in else f"{places.SIGN_IN}?next={quote(back, safe='')}"
    if visit.said.get("hx-request") == "true":
        answer = Response(status_code=401, headers={"hx-redirect": where})
    else:
        answer = RedirectResponse(where, 303)
    if jar.kept(SESSION) is not None:
        jar.drop(answer, SESSION)
    return answer


async def sign_in(app: App, visit: Visit, text: str) -> tuple[str, Credential]:
    """The id of a new session that stands for this key or token, if it may run the house."""
    try:
        credential = await app.identity.authenticate(text)
    except Unauthenticated as error:
        raise Unauthenticated(NOT_VALID) from error
    who.require_house(app, visit, credential)
    if credential.user_id is None:
        raise Denied(NOBODYS)
    session = app.identity.sessions.begin()
    await app.identity.sessions.remember(session, text)
    await sign_out(app, visit)
    return session, credential


async def sign_out(app: App, visit: Visit) -> None:
    session = Jar.of(app.settings, visit).kept(SESSION)
    if session is not None:
        await app.identity.sessions.forget(session)


def _asked_for(scope: Scope, visit: Visit) -> str:
    """The page somebody wanted to look at; where they wanted to do something, the page it is done on."""
    if visit.said.get("hx-request") == "true":
        found = urlsplit(visit.said.get("hx-current-url", ""))
        return places.ours(f"{found.path}?{found.query}" if found.query else found.path)
    if scope["method"] != "GET":
        return places.section(scope["path"])
    query = scope["query_string"].decode("latin-1")
    path = quote(scope["path"])
    return places.ours(f"{path}?{query}" if query else path)
