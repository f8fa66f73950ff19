"""API keys as text: `fd_<id>_<secret>_<crc>`, made from random bytes, kept only as a hash."""

import hashlib
import hmac
import secrets
import zlib
from dataclasses import dataclass
from datetime import datetime

from frontdesk.identity.model import Credential

PREFIX = "fd_"
ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
ID_LENGTH = 12
SECRET_LENGTH = 43  # 256 bits in base 62
CRC_LENGTH = 6


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key as it is stored: everything but the secret."""

    id: str
    secret_sha256: bytes
    name: str
    agent_id: str | None
    user_id: str | None
    scopes: frozenset[str] | None
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None
    replaces: str | None = None

    def works_at(self, now: datetime) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)

    def matches(self, secret: str) -> bool:
        return hmac.compare_digest(self.secret_sha256, hash_secret(secret))

    @property
    def credential(self) -> Credential:
        return Credential(f"key:{self.id}", self.agent_id, self.user_id, self.scopes)


def mint() -> tuple[str, str, str]:
    """A new (id, secret, text); the text is shown once and never stored."""
    key_id = "".join(secrets.choice(ALPHABET) for _ in range(ID_LENGTH))
    secret = "".join(secrets.choice(ALPHABET) for _ in range(SECRET_LENGTH))
    body = f"{PREFIX}{key_id}_{secret}"
    return key_id, secret, f"{body}_{_crc(body)}"


def parse(text: str) -> tuple[str, str] | None:
    """(id, secret) of a well-formed key; a typing slip is caught here, before any look-up."""
    body, _, crc = text.rpartition("_")
    prefix, _, rest = body.partition("_")
    key_id, _, secret = rest.partition("_")
    if f"{prefix}_" != PREFIX or len(key_id) != ID_LENGTH or len(secret) != SECRET_LENGTH:
        return None
    return (key_id, secret) if hmac.compare_digest(crc.encode(), _crc(body).encode()) else None


def hash_secret(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def _crc(body: str) -> str:
    number, digits = zlib.crc32(body.encode()), ""
    for _ in range(CRC_LENGTH):
        number, digit = divmod(number, len(ALPHABET))
        digits = ALPHABET[digit] + digits
    return digits
