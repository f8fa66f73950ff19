"""The signature by which a receiver knows that an answer comes from here, is unchanged, and is not an old one."""

import hashlib
import hmac

from pydantic import SecretStr

SIGNATURE = "X-Frontdesk-Signature"


def signature(secret: SecretStr, body: bytes, now_s: int) -> str:
    """The header's value: `t=…,v1=…`, where v1 is HMAC-SHA256 of "t.body" under the shared secret, in hex."""
    mac = hmac.new(secret.get_secret_value().encode(), b"%d." % now_s + body, hashlib.sha256)
    return f"t={now_s},v1={mac.hexdigest()}"
