"""Creates and parses API keys: `fd_<id>_<secret>_<crc>`, or `zm_…` for people's own. Only their hashes are stored."""

import hashlib
import hmac
import re
import secrets
import zlib
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from frontdesk.errors import Invalid
from frontdesk.identity.model import KEY_CREDENTIAL_PREFIX, Credential

KEY_PREFIX = "fd_"
# For keys that people create for themselves or import.
OWN_KEY_PREFIX = "zm_"
KEY_PREFIXES = (KEY_PREFIX, OWN_KEY_PREFIX)
ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
ID_LENGTH = 12
SECRET_LENGTH = 43  # 256 bits in base 62
CRC_LENGTH = 6
PREVIEW_LENGTH = 6
# The person and the name of the key that the first start creates.
LOCAL_USER = "local"
FIRST_KEY_NAME = "first start"
# Imported keys have no id of their own; their id is derived from the hash.
IMPORTED_KEY_PATTERN = re.compile(r"zm_[0-9a-f]{64}")
SHA256_PATTERN = re.compile(r"[0-9a-fA-F]{64}")


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A stored key, without its secret. `own`: the person may see and change the key."""

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
    own: bool = False
    is_active: bool = True
    preview: str | None = None
    updated_at: datetime | None = None

    def works_at(self, now: datetime) -> bool:
        return self.is_active and self.revoked_at is None and (self.expires_at is None or now < self.expires_at)

    def state_at(self, now: datetime) -> str:
        """`works`, `off`, `expired` or `revoked`."""
        if self.revoked_at:
            return "revoked"
        if not self.is_active:
            return "off"
        return "works" if self.works_at(now) else "expired"

    def matches(self, secret: str) -> bool:
        return hmac.compare_digest(self.secret_sha256, hash_secret(secret))

    @property
    def credential(self) -> Credential:
        return Credential(f"{KEY_CREDENTIAL_PREFIX}{self.id}", self.agent_id, self.user_id, self.scopes)


def generate_key(prefix: str = KEY_PREFIX) -> tuple[str, str, str]:
    """A new (id, secret, text). The text is shown once and never stored."""
    key_id = "".join(secrets.choice(ALPHABET) for _ in range(ID_LENGTH))
    secret = "".join(secrets.choice(ALPHABET) for _ in range(SECRET_LENGTH))
    body = f"{prefix}{key_id}_{secret}"
    return key_id, secret, f"{body}_{_crc(body)}"


def parse_key(text: str) -> tuple[str, str] | None:
    """(id, secret) of a well-formed key. The checksum catches typing errors before any look-up."""
    if IMPORTED_KEY_PATTERN.fullmatch(text):
        return key_id_of_hash(hash_secret(text)), text
    body, _, crc = text.rpartition("_")
    prefix, _, rest = body.partition("_")
    key_id, _, secret = rest.partition("_")
    if f"{prefix}_" not in KEY_PREFIXES or len(key_id) != ID_LENGTH or len(secret) != SECRET_LENGTH:
        return None
    return (key_id, secret) if hmac.compare_digest(crc.encode(), _crc(body).encode()) else None


def with_new_secret(key: ApiKey) -> tuple[ApiKey, str]:
    """The key with a new id and a new secret, and its text."""
    key_id, secret, text = generate_key(OWN_KEY_PREFIX if key.own else KEY_PREFIX)
    return replace(key, id=key_id, secret_sha256=hash_secret(secret), preview=key_preview(text)), text


def rotated_key(old: ApiKey, now: datetime) -> tuple[ApiKey, str]:
    """A new key with the rights and the lifetime of an old key, and its text."""
    lifetime = old.expires_at - old.created_at if old.expires_at else None
    fresh = replace(old, created_at=now, expires_at=expiry(now, lifetime), last_used_at=None, replaces=old.id)
    return with_new_secret(fresh)


def expiry(now: datetime, lifetime: timedelta | None) -> datetime | None:
    return now + lifetime if lifetime else None


def hash_imported_key(text: str, *, hashed: bool) -> tuple[bytes, str]:
    """(SHA-256, preview) of a key that was issued elsewhere, given as text or as its hash."""
    if hashed:
        if not SHA256_PATTERN.fullmatch(text):
            raise Invalid("The hash of a key is its SHA-256, written as 64 hexadecimal digits")
        return bytes.fromhex(text), f"{OWN_KEY_PREFIX}***"
    if not IMPORTED_KEY_PATTERN.fullmatch(text):
        raise Invalid("A key that was issued elsewhere is zm_ and 64 hexadecimal digits, in small letters")
    return hash_secret(text), key_preview(text)


def key_preview(text: str) -> str:
    """The part of a key that is shown in lists."""
    return f"{text[:3]}***{text[-PREVIEW_LENGTH:]}"


def hash_secret(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def key_id_of_hash(digest: bytes) -> str:
    return digest.hex()[:ID_LENGTH]


def _crc(body: str) -> str:
    number, digits = zlib.crc32(body.encode()), ""
    for _ in range(CRC_LENGTH):
        number, digit = divmod(number, len(ALPHABET))
        digits = ALPHABET[digit] + digits
    return digits
