"""Session ids, and a token sealed so that only who shows the id can read it."""

import hashlib
import hmac
import re
import secrets
from datetime import UTC, datetime

from joserfc import jwe
from joserfc.errors import JoseError
from joserfc.jwk import OctKey

SESSION_ID = re.compile(r"[0-9a-f]{64}")
# The seconds since 1970 in hexadecimal, until the year 2106.
TIME_DIGITS = 8
HEADER = {"alg": "dir", "enc": "A256GCM"}
# Another derivation than the one whose result is in the database.
PURPOSE = b"frontdesk: the token of an MCP session"
OF_PERSON = b"frontdesk: the person of an MCP session: "


def new_session_id(now: datetime) -> str:
    """When the session began, and 224 random bits."""
    return f"{int(now.timestamp()):0{TIME_DIGITS}x}{secrets.token_hex(28)}"


def begun_at(session_id: str) -> datetime:
    """When the session of an id of this form began."""
    return datetime.fromtimestamp(int(session_id[:TIME_DIGITS], 16), UTC)


def id_hash(session_id: str) -> bytes:
    return hashlib.sha256(session_id.encode()).digest()


def person_hash(session_id: str, user_id: str) -> bytes:
    """Tells one person of a session from another, and only to who has the session's id."""
    return hmac.digest(session_id.encode(), OF_PERSON + user_id.encode(), "sha256")


def seal(session_id: str, token: str) -> str:
    return jwe.encrypt_compact(HEADER, token.encode(), _key(session_id))


def unseal(session_id: str, sealed: str) -> str | None:
    """The token; None where it was sealed for another id, or tampered with."""
    try:
        found = jwe.decrypt_compact(sealed, _key(session_id)).plaintext
    except JoseError:
        return None
    return None if found is None else found.decode()


def _key(session_id: str) -> OctKey:
    return OctKey.import_key(hmac.digest(session_id.encode(), PURPOSE, "sha256"))
