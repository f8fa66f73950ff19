"""An address taken apart into what a connection needs and what a request says."""

import re
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

# Anything else (names beyond ASCII, blanks, odd brackets) is for a library that knows how to write it down.
PLAIN = re.compile(r"(?:/[A-Za-z0-9\-._~!$&'()*+,;=:@/%]*)?(?:\?[A-Za-z0-9\-._~!$&'()*+,;=:@/?%]*)?")
PLAIN_HOST = re.compile(r"[A-Za-z0-9\-._]+|[0-9A-Fa-f:.]+")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where to connect, and whether under TLS."""

    host: str
    port: int
    tls: bool


@dataclass(frozen=True, slots=True)
class Address:
    """An origin, the `Host` header that names it, and the target of the request line."""

    origin: Origin
    host: str
    target: str


@lru_cache(maxsize=1000)
def address_of(url: str) -> Address | None:
    """The parts of a plain http(s) address; None where it is not plain."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return None
    rest = parts.path + (f"?{parts.query}" if parts.query else "")
    if parts.scheme not in ("http", "https") or not PLAIN.fullmatch(rest) or not PLAIN_HOST.fullmatch(host):
        return None
    if "@" in parts.netloc:
        return None
    tls = parts.scheme == "https"
    usual = 443 if tls else 80
    name = f"[{host}]" if ":" in host else host
    target = rest if rest.startswith("/") else f"/{rest}"
    shown = name if port in (None, usual) else f"{name}:{port}"
    return Address(Origin(host, port or usual, tls), shown, target)
