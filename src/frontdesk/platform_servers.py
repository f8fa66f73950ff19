"""Lists the servers of Agent 365 for the tool catalogue."""

import os
from collections import ChainMap
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from frontdesk.agent365.errors import DiscoveryFailed
from frontdesk.errors import FrontdeskError, Unavailable
from frontdesk.mcp_client.model import OAuthConfig, bare_token
from frontdesk.settings import PlatformOAuth, Settings
from frontdesk.text import one_line
from frontdesk.tools.server_registry import DiscoveredServers, PlatformSource
from frontdesk.tools.servers import ServerOrigin, ServerSpec, distinct_server_names
from frontdesk.tools.token_exchange import TokenExchange

if TYPE_CHECKING:
    from frontdesk.agent365.discovery import Agent365Server, ServerDiscovery

MAX_REASON_LENGTH = 300


def platform_source(settings: Settings, exchange: TokenExchange) -> PlatformSource | None:
    """Agent 365 as a source of tool servers, each with its own token. None if it is not configured."""
    if settings.platform_app_id is None:
        return None
    discovery = _open_discovery(settings, settings.platform_app_id, exchange)

    async def discover() -> DiscoveredServers:
        try:
            found = await discovery.find()
        except FrontdeskError as error:
            raise _discovery_error(error) from None
        # Duplicates are removed.
        servers = list(dict.fromkeys(found.servers))
        names = distinct_server_names([(server.name, server.unique_name) for server in servers])
        specs = [
            _server_spec(name, server, settings.platform_oauth) for name, server in zip(names, servers, strict=True)
        ]
        return DiscoveredServers(specs, found.notes)

    def recall(spec: ServerSpec) -> ServerSpec | None:
        said = spec.token_for
        if not {"server", "scope"} <= said.keys():
            return None
        server = discovery.with_token(said["server"], said["server"], spec.url, said["scope"])
        return None if server is None else _server_spec(spec.name, server, settings.platform_oauth)

    return PlatformSource(discover, recall)


async def platform_problems(settings: Settings) -> Sequence[str]:
    """Ask Agent 365 for its servers, and return the problems."""
    exchange = TokenExchange()
    try:
        platform = platform_source(settings, exchange)
        return [] if platform is None else (await platform.discover()).notes
    except Unavailable as error:
        return [str(error)]
    finally:
        await exchange.close()


def _open_discovery(settings: Settings, app_id: str, exchange: TokenExchange) -> "ServerDiscovery":
    # Most installations do not use the platform, so its client is imported only here.
    from frontdesk.agent365.discovery import ServerDiscovery  # noqa: PLC0415

    oauth, token = settings.platform_oauth, settings.platform_token
    fetch = None if oauth is None else partial(_fetch_platform_token, exchange, oauth)
    named = {"AGENT365_APPLICATION_NAME": settings.application_name} if settings.application_name else {}
    environ = ChainMap(named, os.environ)
    return ServerDiscovery(app_id, bare_token(token.get_secret_value()) if token else None, fetch, environ)


async def _fetch_platform_token(exchange: TokenExchange, oauth: PlatformOAuth, scope: str, refused: str | None) -> str:
    """A token for the application itself, not for a person."""
    ours = OAuthConfig(oauth.token_url, oauth.client_id, oauth.client_secret, scope=scope)
    return await exchange.token("the Agent 365 platform", ours, refused=refused)


def _server_spec(name: str, server: "Agent365Server", oauth: PlatformOAuth | None) -> ServerSpec:
    credential = {"authorization": f"Bearer {server.bearer}"} if server.bearer else {}
    # Queries may contain secrets and are not stored, so a server with a query could not be found again.
    kept = "?" not in server.url and "#" not in server.url
    return ServerSpec(
        name,
        url=server.url,
        headers=credential,
        oauth=_server_oauth(oauth, server.scope) if oauth is not None and server.fetched else {},
        origin=ServerOrigin.PLATFORM,
        token_for={"server": server.name, "scope": server.scope} if kept else {},
    )


def _server_oauth(oauth: PlatformOAuth, scope: str) -> dict[str, str]:
    secret = oauth.client_secret
    said = {
        "token_url": oauth.token_url,
        "client_id": oauth.client_id,
        "client_secret": secret.get_secret_value() if secret else None,
        "grant": oauth.grant,
        # Without a person, an application gets a token for the whole resource, not for single permissions.
        "scope": scope if oauth.grant == "on_behalf_of" else f"{scope.rpartition('/')[0]}/.default",
    }
    return {name: value for name, value in said.items() if value is not None}


def _discovery_error(error: FrontdeskError) -> Unavailable:
    """The error without the platform's own text."""
    if isinstance(error, DiscoveryFailed):
        told = f"it answers HTTP {error.status}; check FRONTDESK_PLATFORM_APP_ID and the token that it is asked with"
    else:
        told = one_line(str(error), MAX_REASON_LENGTH)
    return Unavailable(f"Agent 365 does not list its servers: {told}")
