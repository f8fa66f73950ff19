"""Session ids, and a token sealed so that only who shows the id can read it."""

import hashlib
import hmac
import re
import secrets

from joserfc import jwe
from joserfc.errors import JoseError
from joserfc.jwk import OctKey

SESSION_ID = re.compile(r"[0-9a-f]{64}")
HEADER = {"alg": "dir", "enc": "A256GCM"}
# Another derivation than the one whose result is in the database.
PURPOSE = b"frontdesk: the token of an MCP session"


def new_session_id() -> str:
    """256 random bits."""
    return secrets.token_hex(32)


def id_hash(session_id: str) -> bytes:
    return hashlib.sha256(session_id.encode()).digest()


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
