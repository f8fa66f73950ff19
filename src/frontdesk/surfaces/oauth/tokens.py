"""Tokens for a code or a refresh token (RFC 6749), their end (RFC 7009), and whose they are."""

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from frontdesk.app import App
from frontdesk.errors import LoginRefused, Unauthenticated
from frontdesk.identity.model import Signals
from frontdesk.identity.oauth.model import Client, Fault, Issued
from frontdesk.identity.oauth.service import OAuth
from frontdesk.journal.record import Record
from frontdesk.surfaces.oauth.refusals import NO_STORE
from frontdesk.surfaces.oauth.walk import Endpoint, note, walked
from frontdesk.surfaces.oauth.words import client_in, said_in
from frontdesk.surfaces.visit import visit_of


def token(app: App) -> Endpoint:
    oauth = app.identity.oauth

    async def work(request: Request, record: Record) -> Response:
        said = await said_in(request)
        kind = said.get("grant_type")
        if kind not in GRANTS:
            known = " and ".join(GRANTS)
            raise LoginRefused(Fault.UNSUPPORTED_GRANT_TYPE if kind else Fault.INVALID_REQUEST, f"grant_type: {known}")
        record.action += f" {kind}"
        issued = await GRANTS[kind](oauth, said, oauth.client(*client_in(request, said)))
        note(record, issued.user_id)
        return JSONResponse(told(issued), headers=NO_STORE)

    return walked(app, "token", work)


def revoke(app: App) -> Endpoint:
    oauth = app.identity.oauth

    async def work(request: Request, _record: Record) -> Response:
        said = await said_in(request)
        await oauth.revoke(_needed(said, "token"), oauth.client(*client_in(request, said)))
        return Response(status_code=200, headers=NO_STORE)

    return walked(app, "revoke", work)


def userinfo(app: App) -> Endpoint:
    async def work(request: Request, record: Record) -> Response:
        visit = visit_of(request.scope)
        signals = Signals(visit.request_id, credential=visit.credential, forwarded=visit.forwarded)
        caller = record.caller = await app.identity.identify(signals)
        if caller.user_id is None or visit.proof is None:
            raise Unauthenticated("Send a person's own key or token in the Authorization header: Bearer …")
        profile = await app.identity.profile(visit.proof.get_secret_value())
        return JSONResponse({"sub": caller.user_id, "email": profile.email, "name": profile.name}, headers=NO_STORE)

    return walked(app, "userinfo", work)


def told(issued: Issued) -> Mapping[str, object]:
    """Tokens as RFC 6749 has them."""
    return {
        "token_type": "Bearer",
        "access_token": issued.access_token,
        "refresh_token": issued.refresh_token,
        "expires_in": issued.expires_in,
        "scope": " ".join(sorted(issued.scopes)),
    }


async def _by_code(oauth: OAuth, said: Mapping[str, str], client: Client) -> Issued:
    code, redirect_uri, verifier = (_needed(said, name) for name in ("code", "redirect_uri", "code_verifier"))
    return await oauth.exchange(code, redirect_uri, verifier, client)


async def _by_refresh(oauth: OAuth, said: Mapping[str, str], client: Client) -> Issued:
    return await oauth.refresh(_needed(said, "refresh_token"), said.get("scope"), client)


def _needed(said: Mapping[str, str], name: str) -> str:
    if not said.get(name):
        raise LoginRefused(Fault.INVALID_REQUEST, f"{name} is needed")
    return said[name]


GRANTS = {"authorization_code": _by_code, "refresh_token": _by_refresh}
