"""Documents a client may read before it connects: server cards, their catalogue, and OAuth metadata (RFC 9728)."""

from collections.abc import Iterable
from typing import Any

from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from frontdesk import __version__
from frontdesk.app import App, base_url
from frontdesk.surfaces.mcp.server import DESCRIPTION, TITLE, scopes_at

CARD_TYPE = "application/mcp-server-card+json"
SCHEMA = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"
PUBLIC = {"access-control-allow-origin": "*", "cache-control": "public, max-age=3600"}
METADATA_PATH = "/.well-known/oauth-protected-resource"


def card_routes(app: App, paths: Iterable[str]) -> list[Route]:
    """A card below each door, and the catalogue that lists them."""
    cards = {path: card(app, path) for path in paths}
    routes = [_document(f"{path}/server-card", document, CARD_TYPE) for path, document in cards.items()]
    catalogue = {
        "specVersion": "1.0",
        "entries": [
            {
                "identifier": f"urn:mcp:server:{document['name']}",
                "displayName": document["title"],
                "mediaType": CARD_TYPE,
                "url": f"{base_url(app.settings)}{path}/server-card",
            }
            for path, document in cards.items()
        ],
    }
    return [*routes, _document("/.well-known/mcp/catalog.json", catalogue, "application/json")]


def card(app: App, path: str) -> dict[str, Any]:
    remote: dict[str, Any] = {
        "type": "streamable-http",
        "url": f"{base_url(app.settings)}{path}",
        "supportedProtocolVersions": [*MODERN_PROTOCOL_VERSIONS, *reversed(HANDSHAKE_PROTOCOL_VERSIONS)],
    }
    if app.settings.auth_required:
        remote["headers"] = [{"name": "Authorization", "isRequired": True, "isSecret": True}]
    return {
        "$schema": SCHEMA,
        "name": f"dev.frontdesk{path}",
        "title": TITLE,
        "description": DESCRIPTION,
        "version": __version__,
        "remotes": [remote],
    }


def metadata_routes(app: App, paths: Iterable[str]) -> list[Route]:
    """Where a client learns which authorization servers vouch for callers, per door and at the root."""
    paths = list(paths)
    per_door = [_document(f"{METADATA_PATH}{path}", _metadata(app, path), "application/json") for path in paths]
    return [*per_door, _document(METADATA_PATH, _metadata(app, paths[0]), "application/json")]


def _metadata(app: App, path: str) -> dict[str, Any]:
    ours = [app.identity.oauth.terms.issuer] if app.identity.oauth.is_open else []
    issuers = [*ours, *(issuer.issuer for issuer in app.settings.trusted_issuers)]
    return {
        "resource": f"{base_url(app.settings)}{path}",
        "resource_name": TITLE,
        **({"authorization_servers": issuers} if issuers else {}),
        "scopes_supported": list(scopes_at(path)),
        "bearer_methods_supported": ["header"],
    }


def _document(path: str, document: dict[str, Any], media_type: str) -> Route:
    async def serve(_request: Request) -> JSONResponse:
        return JSONResponse(document, headers=PUBLIC, media_type=media_type)

    return Route(path, serve, methods=["GET"])
