"""What is wrong with an address, an audience or a scope that a manifest gives."""

import re
from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

from frontdesk.platform.declared.saying import quoted

VISIBLE = re.compile(r"[\x21-\x7e]+")
GUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
APP_URI = re.compile(r"api://[^\s/].*", re.IGNORECASE)
# What stands for "the one that all share" and "none".
DEFAULT_AUDIENCE = "default"
NO_SCOPE = "null"


def fault_of_address(url: str) -> str | None:
    """Why no request can be sent there, or None."""
    parts = _split(url)
    if parts is None or not parts.hostname or parts.scheme not in ("http", "https"):
        return "is no address; write https://host/path, and encode what is not ASCII"
    if "@" in parts.netloc:
        return "holds a login, which would be sent in place of the token; write it without"
    return None


def is_in_the_open(url: str) -> bool:
    """Whether a token sent there can be read on the way: plain HTTP to another machine."""
    parts = _split(url)
    return parts is not None and parts.scheme == "http" and not _is_loopback(parts.hostname or "")


def fault_of_audience(audience: str) -> str | None:
    said = audience.strip()
    if GUID.fullmatch(said) or APP_URI.fullmatch(said) or said.lower() == DEFAULT_AUDIENCE:
        return None
    return f"{quoted(audience)} is no application that gives tokens; write its GUID, api://… or {DEFAULT_AUDIENCE}"


def fault_of_scope(scope: str, audience: str | None) -> str | None:
    if audience is None:
        return "is not used without an audience: the server gets the token that all share; name its audience too"
    if len(scope.split()) > 1:
        return "names more than one scope, and none of them will be granted so; keep one"
    return None


def _split(url: str) -> SplitResult | None:
    # Python's own reader drops new lines without a word, and what is not ASCII must be encoded.
    if not VISIBLE.fullmatch(url):
        return None
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
