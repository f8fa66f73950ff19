"""The clients that the settings name, and the terms on which they may ask."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from frontdesk.errors import ConfigurationError
from frontdesk.identity.oauth.checks import sha256
from frontdesk.identity.oauth.model import Client
from frontdesk.identity.rights import LOGIN_SCOPES, SCOPES
from frontdesk.settings import OAuthClient, Settings


@dataclass(frozen=True, slots=True)
class Terms:
    """Who may ask; what they ask for when they do not say; under which name we answer, and for which addresses.

    `own` is the client that our own tools speak for.
    """

    issuer: str
    resources: frozenset[str] = frozenset()
    clients: Mapping[str, Client] = field(default_factory=dict[str, Client])
    scope: str = ""
    own: Client | None = None

    @classmethod
    def of(cls, settings: Settings, issuer: str, resources: frozenset[str]) -> "Terms":
        """A scope that is none is told before anybody asks for it."""
        _check("OAUTH_SCOPE", settings.oauth_scope.split())
        clients = {one.client_id: _client(one) for one in settings.login_clients}
        return cls(issuer, resources, clients, settings.oauth_scope, clients.get(settings.oauth_client_id or ""))


def _client(given: OAuthClient) -> Client:
    _check(f"The client '{given.client_id}' in OAUTH_CLIENTS", given.scopes)
    secret = given.client_secret
    return Client(
        given.client_id,
        given.redirect_uris,
        frozenset(given.scopes) or LOGIN_SCOPES,
        None if secret is None else sha256(secret.get_secret_value()),
    )


def _check(where: str, scopes: Iterable[str]) -> None:
    for scope in scopes:
        if scope not in SCOPES:
            raise ConfigurationError(f"{where} names the scope '{scope}'; there are: {', '.join(SCOPES)}")
