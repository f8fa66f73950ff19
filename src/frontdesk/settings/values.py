"""Defines the values inside settings: issuers, login clients, rates."""

import ipaddress
import re
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

Algorithm = Literal[
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
    "Ed25519",
    "HS256",
]


# Visible characters except the colon, which separates the id from the secret in a header.
ClientId = Annotated[str, Field(pattern=r"^[!-9;-~]{1,200}$")]


class SignIn(BaseModel):
    """The client that the pages are at an issuer, so that people can sign in there."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    client_id: ClientId
    client_secret: Annotated[SecretStr, Field(min_length=1)] | None = None
    scope: str = "house:admin"
    name: Annotated[str, Field(max_length=80)] = ""


class Issuer(BaseModel):
    """An authorization server whose JWTs are accepted."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    issuer: str
    audience: tuple[str, ...] = ()
    jwks_url: str | None = None
    algorithms: tuple[Algorithm, ...] = ("RS256", "ES256")
    hs256_secret: SecretStr | None = None
    claims: Literal["standard", "entra"] = "standard"
    prefix: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{0,32}$")] = ""
    sign_in: SignIn | None = None

    @field_validator("audience", mode="before")
    @classmethod
    def _one_or_many(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _one_kind_of_key(self) -> Self:
        # If both kinds were allowed, a public key could be used as the shared secret.
        if (self.hs256_secret is None) == ("HS256" in self.algorithms) or (
            "HS256" in self.algorithms and len(self.algorithms) > 1
        ):
            raise ValueError('set hs256_secret together with algorithms = ["HS256"], or neither')
        return self


# Schemes that a browser itself executes or opens.
FORBIDDEN_SCHEMES = frozenset({"", "javascript", "data", "vbscript", "file", "blob", "about"})
URI_PATTERN = re.compile(r"[!-~]+")


class OAuthClient(BaseModel):
    """A program that may ask people to log in here."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    client_id: ClientId
    client_secret: Annotated[SecretStr, Field(min_length=1)] | None = None
    redirect_uris: Annotated[tuple[str, ...], Field(min_length=1)]
    scopes: tuple[str, ...] = ()

    @field_validator("redirect_uris", mode="after")
    @classmethod
    def _safe(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for uri in value:
            check_redirect_uri(uri)
        return value


def check_redirect_uri(uri: str) -> None:
    """A code is sent there: over TLS, to this machine, or to an app on it; without a fragment."""
    found = urlsplit(uri)
    if not URI_PATTERN.fullmatch(uri) or "#" in uri or found.scheme.lower() in FORBIDDEN_SCHEMES:
        raise ValueError(f"{uri!r} is no address that a login could lead back to")
    if found.scheme.lower() == "http" and not is_loopback(found.hostname or ""):
        raise ValueError(f"{uri!r} must be https, unless it is on this machine")
    if found.scheme.lower() == "https" and not found.hostname:
        raise ValueError(f"{uri!r} names no host")


# Hosts that mean every address of this machine.
ALL_ADDRESSES = frozenset({"0.0.0.0", "::"})  # noqa: S104 - recognised, not bound


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class Rate(BaseModel):
    """A token bucket: `limit` calls per `seconds`, which may all come at once."""

    model_config = ConfigDict(frozen=True)

    limit: int = Field(gt=0)
    seconds: float = Field(gt=0)


def parse_rate(text: str) -> Rate:
    """`600/minute` → Rate(600, 60)."""
    units = {"s": 1, "second": 1, "m": 60, "min": 60, "minute": 60, "h": 3600, "hour": 3600}
    count, _, unit = text.partition("/")
    if not count.strip().isdigit() or unit.strip() not in units:
        raise ValueError("a rate looks like 600/minute (second, minute or hour)")
    return Rate(limit=int(count), seconds=units[unit.strip()])
