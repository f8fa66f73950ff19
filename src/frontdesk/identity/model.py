"""Defines what a request says of its sender, what is proven, who the caller is, and the values of a login."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

ANY_AGENT = "*"
# What the id of a credential begins with.
KEY_CREDENTIAL_PREFIX = "key:"
TOKEN_CREDENTIAL_PREFIX = "token:"  # noqa: S105 - no token


class AgentIdSource(StrEnum):
    """Where a caller's agent id came from, the most trusted first."""

    CREDENTIAL = "credential"
    HEADER = "header"
    PARAMETER = "parameter"
    METADATA = "metadata"
    ENVIRONMENT = "environment"
    SINGLE_AGENT = "single_agent"
    SCHEDULE = "schedule"
    # In the journal alone: who runs this installation, at this machine, and named nobody.
    OPERATOR = "operator"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Credential:
    """A key or token that was checked and holds. `scopes` is None where it carries none, and so is not limited.

    `id` names all that it rests on, with a space between: a token of ours also the key that the person logged in with.
    """

    id: str
    agent_id: str | None = None
    user_id: str | None = None
    scopes: frozenset[str] | None = None

    @property
    def named_agent(self) -> str | None:
        """The one agent that this credential is bound to, if it is bound to one."""
        return None if self.agent_id == ANY_AGENT else self.agent_id

    def covers(self, agent_id: str) -> bool:
        return self.agent_id in (agent_id, ANY_AGENT)


@dataclass(frozen=True, slots=True)
class Profile:
    """What is known of a person besides who they are."""

    email: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Signals:
    """Everything one request says about who sends it, as it was said."""

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
    """The agent ids that a refused request named, one line each and cut; by the credential also which one it was."""

    header: str | None = None
    parameter: str | None = None
    metadata: str | None = None
    credential: str | None = None

    @property
    def source(self) -> AgentIdSource:
        """What the refused id came by: what was said counts, and the credential where nothing was."""
        said = {
            AgentIdSource.HEADER: self.header,
            AgentIdSource.PARAMETER: self.parameter,
            AgentIdSource.METADATA: self.metadata,
            AgentIdSource.CREDENTIAL: self.credential,
        }
        return next((source for source, claim in said.items() if claim is not None), AgentIdSource.NONE)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is calling, for one request. `verified`: a credential proves it; otherwise it is only asserted.

    `local`: it came from this machine, and needs no credential. `any_agent`: it could have named whichever agent it
    liked. `credential_id` is what it showed. `anonymous`: it showed nothing and named nobody, where that does not make
    it the operator. `unread_header`: it named an agent in the header, which is not read here.
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
        """It came from this machine and showed no credential, where it need not."""
        return self.local and self.credential_id is None and not self.anonymous

    @property
    def by_token(self) -> bool:
        """It showed a token, which somebody who logged in has, and not a key."""
        return self.credential_id is not None and self.credential_id.startswith(TOKEN_CREDENTIAL_PREFIX)


@dataclass(frozen=True, slots=True)
class RefusalTrace:
    """What is kept of a refused request: what it claimed, and the caller as far as that is known."""

    caller: Caller
    claimed: ClaimedIds


ACCESS_PREFIX = "zt_"
REFRESH_PREFIX = "zr_"
REQUEST_LIFETIME = timedelta(minutes=10)
CODE_LIFETIME = timedelta(minutes=10)
# Of an access token that a code gives, and of one that a refresh token gives.
FIRST_ACCESS_LIFETIME = timedelta(hours=8)
REFRESHED_ACCESS_LIFETIME = timedelta(hours=1)
REFRESH_LIFETIME = timedelta(days=30)


class OAuthErrorCode(StrEnum):
    """Why a login does not go on, in the words of RFC 6749, 7009, 8707 and of the clients that we know."""

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
    """A program that may ask people to log in. One without a secret cannot keep one."""

    id: str
    redirect_uris: tuple[str, ...]
    scopes: frozenset[str]
    secret_sha256: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    """What a client asks a person for, in order."""

    client_id: str
    redirect_uri: str
    scopes: frozenset[str]
    challenge: str
    state: str | None = None


@dataclass(frozen=True, slots=True)
class ProvenPerson:
    """A person, and what proves it."""

    credential: Credential
    user_id: str
    profile: Profile


@dataclass(frozen=True, slots=True)
class LoginGrant:
    """What a person allowed a client; all tokens that come of it stand and fall together."""

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
    """A token as it is stored. Without `scopes` it has those of the grant."""

    sha256: bytes
    kind: TokenKind
    expires_at: datetime
    scopes: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class AccessToken:
    """What an access token that holds proves, on the strength of `proof`: what the person showed to log in."""

    user_id: str
    client_id: str
    scopes: frozenset[str]
    profile: Profile
    expires_at: datetime
    proof: str


@dataclass(frozen=True, slots=True)
class IssuedTokens:
    """Tokens as they are handed out, once."""

    access_token: str = field(repr=False)
    refresh_token: str = field(repr=False)
    expires_in: int
    scopes: frozenset[str]
    user_id: str


@dataclass(frozen=True, slots=True)
class LoginLink:
    """Where to send a person to log in, and what to show when they come back with a code."""

    url: str
    client_id: str
    redirect_uri: str
    scope: str
    state: str
    code_verifier: str = field(repr=False)
