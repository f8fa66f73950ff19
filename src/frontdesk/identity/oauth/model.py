"""The words of a login: who asks, for what, on whose word, and what came of it."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from frontdesk.identity.model import Credential, Profile

ACCESS_PREFIX = "zt_"
REFRESH_PREFIX = "zr_"
REQUEST_LIFETIME = timedelta(minutes=10)
CODE_LIFETIME = timedelta(minutes=10)
# Of an access token that a code gives, and of one that a refresh token gives.
FIRST_LIFETIME = timedelta(hours=8)
NEXT_LIFETIME = timedelta(hours=1)
REFRESH_LIFETIME = timedelta(days=30)


class Fault(StrEnum):
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


class Kind(StrEnum):
    """What a token is for."""

    ACCESS = "access"
    REFRESH = "refresh"


@dataclass(frozen=True, slots=True)
class Client:
    """A program that may ask people to log in. One without a secret cannot keep one."""

    id: str
    redirect_uris: tuple[str, ...]
    scopes: frozenset[str]
    secret_sha256: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a client asks a person for, in order."""

    client_id: str
    redirect_uri: str
    scopes: frozenset[str]
    challenge: str
    state: str | None = None


@dataclass(frozen=True, slots=True)
class Proof:
    """A person, and what proves it."""

    credential: Credential
    user_id: str
    profile: Profile


@dataclass(frozen=True, slots=True)
class Grant:
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
    kind: Kind
    expires_at: datetime
    scopes: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Access:
    """What an access token that holds proves, on the strength of `proof`: what the person showed to log in."""

    user_id: str
    client_id: str
    scopes: frozenset[str]
    profile: Profile
    expires_at: datetime
    proof: str


@dataclass(frozen=True, slots=True)
class Issued:
    """Tokens as they are handed out, once."""

    access_token: str = field(repr=False)
    refresh_token: str = field(repr=False)
    expires_in: int
    scopes: frozenset[str]
    user_id: str


@dataclass(frozen=True, slots=True)
class Invitation:
    """Where to send a person to log in, and what to show when they come back with a code."""

    url: str
    client_id: str
    redirect_uri: str
    scope: str
    state: str
    code_verifier: str = field(repr=False)
