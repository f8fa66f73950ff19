"""Tokens as an issuer, or somebody who pretends to be one, would make them; nobody here checks signatures."""

import base64
import json
from collections.abc import Mapping


def token(claims: object, header: object = None, signature: bytes = b"signature") -> str:
    """A JWT with these claims."""
    head = {"alg": "RS256", "typ": "JWT"} if header is None else header
    return ".".join(coded(part) for part in (json.dumps(head).encode(), json.dumps(claims).encode(), signature))


def with_claims(text: str, header: Mapping[str, object] | None = None) -> str:
    """A JWT whose claims are this text, JSON or not."""
    return ".".join(coded(part) for part in (json.dumps(header or {"alg": "RS256"}).encode(), text.encode(), b"sig"))


def coded(part: bytes) -> str:
    return base64.urlsafe_b64encode(part).rstrip(b"=").decode()
