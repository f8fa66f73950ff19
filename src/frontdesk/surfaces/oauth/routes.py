"""The addresses of the authorization server, and the document that lists them (RFC 8414)."""

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from frontdesk.app import App
from frontdesk.identity.oauth.checks import S256
from frontdesk.identity.rights import ADVERTISED
from frontdesk.surfaces.oauth.authorize import AUTHORIZE, ISSUE, authorize, issue
from frontdesk.surfaces.oauth.tokens import GRANTS, revoke, token, userinfo

TOKEN = "/oauth/token"  # noqa: S105 - an address
REVOKE = "/oauth/revoke"
USERINFO = "/oauth/userinfo"
METADATA = "/.well-known/oauth-authorization-server"
# Who comes here has no credential yet, or shows it in the request itself.
OPEN_PATHS = frozenset({AUTHORIZE, ISSUE, TOKEN, REVOKE, METADATA})
PUBLIC = {"access-control-allow-origin": "*", "cache-control": "public, max-age=3600"}
WAYS_TO_PROVE = ["client_secret_basic", "client_secret_post", "none"]


def oauth_routes(app: App) -> list[Route]:
    """Without any client the document is not there: a client that finds it would try to register."""
    routes = [
        Route(AUTHORIZE, authorize(app), methods=["GET"]),
        Route(ISSUE, issue(app), methods=["POST"]),
        Route(TOKEN, token(app), methods=["POST"]),
        Route(REVOKE, revoke(app), methods=["POST"]),
        Route(USERINFO, userinfo(app), methods=["GET"]),
    ]
    if not app.identity.oauth.is_open:
        return routes
    document = metadata(app.identity.oauth.terms.issuer)

    async def described(_request: Request) -> JSONResponse:
        return JSONResponse(document, headers=PUBLIC)

    return [*routes, Route(METADATA, described, methods=["GET"])]


def metadata(issuer: str) -> Mapping[str, object]:
    return {
        "issuer": issuer,
        "authorization_endpoint": f"{issuer}{AUTHORIZE}",
        "token_endpoint": f"{issuer}{TOKEN}",
        "revocation_endpoint": f"{issuer}{REVOKE}",
        "userinfo_endpoint": f"{issuer}{USERINFO}",
        "scopes_supported": list(ADVERTISED),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": list(GRANTS),
        "token_endpoint_auth_methods_supported": WAYS_TO_PROVE,
        "revocation_endpoint_auth_methods_supported": WAYS_TO_PROVE,
        "code_challenge_methods_supported": [S256],
        "authorization_response_iss_parameter_supported": True,
    }
