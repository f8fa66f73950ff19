"""Which addresses are pages, which of them are open to everybody, and where somebody may be led."""

import re

from frontdesk.identity.oauth.upstream import BACK

SIGN_IN = "/sign-in"
SIGN_IN_WITH = "/sign-in/with"
SIGNED_IN = BACK
SIGN_OUT = "/sign-out"
STATIC = "/static/"
# The first part of each address; what has none of them is another door's.
FIRST_PARTS = frozenset(
    {"", "access", "agents", "live", "people", "schedule", "sign-in", "sign-out", "start", "static", "tools", "turns"}
)
NOT_TO_LOOK_AT = frozenset({"live", "sign-in", "sign-out", "static"})
# Visible ASCII but for the backslash, which browsers take for a slash; two slashes would begin somebody else's address.
ADDRESS = re.compile(r"/(?!/)[!-\[\]-~]{0,2000}")


def is_page(path: str) -> bool:
    return _first_part(path) in FIRST_PARTS


def is_open(path: str) -> bool:
    """Whether anybody may have this: what one signs in with, and what pages are drawn with."""
    return path in (SIGN_IN, SIGN_IN_WITH, SIGNED_IN) or path.startswith(STATIC)


def section(path: str) -> str:
    """The page that an address belongs to."""
    first = _first_part(path)
    return f"/{first}" if first in FIRST_PARTS - NOT_TO_LOOK_AT else "/"


def ours(address: str | None) -> str:
    """An address to lead somebody to: one of these pages, with what follows it, and nobody else's."""
    if not address or not ADDRESS.fullmatch(address):
        return "/"
    path = address.partition("?")[0].partition("#")[0]
    return address if section(path) != "/" or path == "/" else "/"


def _first_part(path: str) -> str | None:
    return path.split("/", 2)[1] if path.startswith("/") else None
