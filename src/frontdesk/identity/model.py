"""Defines signals of a request, credentials, callers, and the values of a login."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

ANY_AGENT = "*"
# Prefixes of credential ids.
KEY_CREDENTIAL_PREFIX = "key:"
TOKEN_CREDENTIAL_PREFIX = "token:"  # noqa: S105 - no token


class AgentIdSource(StrEnum):
    """Where a caller's agent id came from, most trusted first."""

    CREDENTIAL = "credential"
    HEADER = "header"
    PARAMETER = "parameter"
    METADATA = "metadata"
    ENVIRONMENT = "environment"
    SINGLE_AGENT = "single_agent"
    SCHEDULE = "schedule"
    # Used only in the journal: the operator at this machine without a name.
    OPERATOR = "operator"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Credential:
    """A valid key or token. `scopes` is None if it has no scopes and is therefore not limited.

    `id` lists all credentials that it rests on, separated by spaces: one of our tokens also rests on the key of the
    login.
    """

    id: str
    agent_id: str | None = None
    user_id: str | None = None
    scopes: frozenset[str] | None = None

    @property
    def named_agent(self) -> str | None:
        """The one agent that this credential is bound to, if any."""
        return None if self.agent_id == ANY_AGENT else self.agent_id

    def covers(self, agent_id: str) -> bool:
        return self.agent_id in (agent_id, ANY_AGENT)


@dataclass(frozen=True, slots=True)
class Profile:
    """A person's name and email address."""

    email: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Signals:
    """Everything a request says about its sender, unchecked."""

    request_id: str
    header: str | None = None
    parameter: object = None
    metadata: Mapping[str, object] = field(default_factory=dict[str, object])
    credential: Credential | None = None
    forwarded: bool = False
    name: str | None = None
    capabilities: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClaimedIds:
    """The agent ids that a refused request named, each cut to one line, with the id of the credential."""

    header: str | None = None
    parameter: str | None = None
    metadata: str | None = None
    credential: str | None = None

    @property
    def source(self) -> AgentIdSource:
        """The source of the refused id: an explicit claim, or else the credential."""
        said = {
            AgentIdSource.HEADER: self.header,
            AgentIdSource.PARAMETER: self.parameter,
            AgentIdSource.METADATA: self.metadata,
            AgentIdSource.CREDENTIAL: self.credential,
        }
        return next((source for source, claim in said.items() if claim is not None), AgentIdSource.NONE)


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of one request. `verified`: a credential proves the identity; otherwise it is only asserted.

    `local`: the request came from this machine and needs no credential. `any_agent`: it may act for any agent.
    `credential_id` is the credential that was sent. `anonymous`: it sent no credential and no name, where that is not
    enough to be the operator. `unread_header`: it named an agent in the header, which is ignored here.
    """

    request_id: str
    agent_id: str | None = None
    user_id: str | None = None
    source: AgentIdSource = AgentIdSource.NONE
    verified: bool = False
    scopes: frozenset[str] | None = None
    name: str | None = None
    capabilities: tuple[str, ...] = ()
    local: bool = False
    any_agent: bool = False
    credential_id: str | None = None
    anonymous: bool = False
    unread_header: bool = False

    @property
    def keyless(self) -> bool:
        """Whether the request is local and has no credential."""
        return self.local and self.credential_id is None and not self.anonymous

    @property
    def by_token(self) -> bool:
        """Whether the credential is a token, which needs a login, and not a key."""
        return self.credential_id is not None and self.credential_id.startswith(TOKEN_CREDENTIAL_PREFIX)


@dataclass(frozen=True, slots=True)
class RefusalTrace:
    """The part of a refused request that the journal keeps: its claims, and the caller as far as known."""

    caller: Caller
    claimed: ClaimedIds


ACCESS_PREFIX = "zt_"
REFRESH_PREFIX = "zr_"
REQUEST_LIFETIME = timedelta(minutes=10)
CODE_LIFETIME = timedelta(minutes=10)
# Lifetimes of access tokens, for a code and for a refresh token.
FIRST_ACCESS_LIFETIME = timedelta(hours=8)
REFRESHED_ACCESS_LIFETIME = timedelta(hours=1)
REFRESH_LIFETIME = timedelta(days=30)


class OAuthErrorCode(StrEnum):
    """Error codes of a login, from RFC 6749, 7009, 8707 and the supported clients."""

    ACCESS_DENIED = "access_denied"
    INVALID_CLIENT = "invalid_client"
    INVALID_GRANT = "invalid_grant"
    INVALID_REDIRECT_URI = "invalid_redirect_uri"
    INVALID_REQUEST = "invalid_request"
    INVALID_SCOPE = "invalid_scope"
    INVALID_TARGET = "invalid_target"
    UNAUTHORIZED_CLIENT = "unauthorized_client"
    UNSUPPORTED_GRANT_TYPE = "unsupported_grant_type"
    UNSUPPORTED_RESPONSE_TYPE = "unsupported_response_type"


class TokenKind(StrEnum):
    """What a token is for."""

    ACCESS = "access"
    REFRESH = "refresh"


@dataclass(frozen=True, slots=True)
class RegisteredClient:
    """A program that may ask people to log in. Without a secret it is a public client."""

    id: str
    redirect_uris: tuple[str, ...]
    scopes: frozenset[str]
    secret_sha256: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    """A valid request of a client for a person's consent."""

    client_id: str
    redirect_uri: str
    scopes: frozenset[str]
    challenge: str
    state: str | None = None


@dataclass(frozen=True, slots=True)
class ProvenPerson:
    """A person, and the credential that proves it."""

    credential: Credential
    user_id: str
    profile: Profile


@dataclass(frozen=True, slots=True)
class LoginGrant:
    """The access that a person gave a client. Revoking it ends all tokens that were issued from it."""

    id: str
    client_id: str
    user_id: str
    scopes: frozenset[str]
    proof: str
    profile: Profile
    code_sha256: bytes
    redirect_uri: str
    challenge: str
    created_at: datetime
    code_expires_at: datetime


@dataclass(frozen=True, slots=True)
class NewToken:
    """A stored token. Without `scopes` it has the scopes of the grant."""

    sha256: bytes
    kind: TokenKind
    expires_at: datetime
    scopes: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class AccessToken:
    """The content of a valid access token. `proof` is the credential with which the person logged in."""

    user_id: str
    client_id: str
    scopes: frozenset[str]
    profile: Profile
    expires_at: datetime
    proof: str


@dataclass(frozen=True, slots=True)
class IssuedTokens:
    """Newly issued tokens, which are shown once."""

    access_token: str = field(repr=False)
    refresh_token: str = field(repr=False)
    expires_in: int
    scopes: frozenset[str]
    user_id: str


@dataclass(frozen=True, slots=True)
class LoginLink:
    """Where to send a person to log in, and the secrets that redeem the returned code."""

    url: str
    client_id: str
    redirect_uri: str
    scope: str
    state: str
    code_verifier: str = field(repr=False)
