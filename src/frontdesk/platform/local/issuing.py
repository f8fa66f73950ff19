"""Makes the tokens of the local platform: one key, made when it starts and gone when it ends."""

import secrets
from collections.abc import Mapping

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey

ALGORITHM = "ES256"
LIFETIME_SECONDS = 3600


class Mint:
    """Signs what is said of an audience, and knows its own tokens again."""

    def __init__(self) -> None:
        self._key_id = secrets.token_hex(8)
        self._key = ECKey.generate_key("P-256", {"kid": self._key_id, "use": "sig", "alg": ALGORITHM})

    def token(self, audience: str, now: float, claims: Mapping[str, object]) -> str:
        """A token; claims that are given replace the usual ones."""
        usual = {"aud": audience, "iat": int(now), "exp": int(now) + LIFETIME_SECONDS, "jti": secrets.token_hex(8)}
        header = {"alg": ALGORITHM, "typ": "JWT", "kid": self._key_id}
        return jwt.encode(header, {**usual, **claims}, self._key, [ALGORITHM])

    def made(self, token: str) -> bool:
        """Whether a token is one of ours; the algorithm is never the token's to say."""
        try:
            jwt.decode(token, self._key, algorithms=[ALGORITHM])
        except (JoseError, ValueError):
            return False
        return True
