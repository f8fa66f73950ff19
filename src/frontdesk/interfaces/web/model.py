"""Defines a page: its request, its results, its address, and the navigation."""

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode

from frontdesk.app import App
from frontdesk.identity.model import Caller
from frontdesk.identity.sign_in import CALLBACK_PATH

SIGN_IN_PATH = "/sign-in"
SIGN_IN_WITH_PATH = "/sign-in/with"
SIGNED_IN_PATH = CALLBACK_PATH
SIGN_OUT_PATH = "/sign-out"
STATIC_PATH = "/static/"
# The first segment of each page's path. Other paths belong to other interfaces.
FIRST_PARTS = frozenset(
    {"", "access", "agents", "live", "people", "schedule", "sign-in", "sign-out", "start", "static", "tools", "turns"}
)
PARTS_WITHOUT_PAGE = frozenset({"live", "sign-in", "sign-out", "static"})
# Visible ASCII without the backslash, which browsers read as a slash. Two slashes would start another site's address.
LOCAL_ADDRESS = re.compile(r"/(?!/)[!-\[\]-~]{0,2000}")


def is_page(path: str) -> bool:
    return _first_part(path) in FIRST_PARTS


def is_public(path: str) -> bool:
    """Whether this needs no credential: the sign-in pages and static files."""
    return path in (SIGN_IN_PATH, SIGN_IN_WITH_PATH, SIGNED_IN_PATH) or path.startswith(STATIC_PATH)


def section_path(path: str) -> str:
    """The navigation section that an address belongs to."""
    first = _first_part(path)
    return f"/{first}" if first in FIRST_PARTS - PARTS_WITHOUT_PAGE else "/"


def safe_return_path(address: str | None) -> str:
    """The address if it is one of these pages, otherwise the first page. It never leads to another site."""
    if not address or not LOCAL_ADDRESS.fullmatch(address):
        return "/"
    path = address.partition("?")[0].partition("#")[0]
    return address if section_path(path) != "/" or path == "/" else "/"


def _first_part(path: str) -> str | None:
    return path.split("/", 2)[1] if path.startswith("/") else None


@dataclass(frozen=True, slots=True)
class PageRequest:
    """One request for a page, with its caller. `form` holds the fields of a POST without the form token, which is
    already checked.
    """

    app: App
    caller: Caller
    now: datetime
    path_params: Mapping[str, str] = field(default_factory=dict[str, str])
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    form: Mapping[str, str] = field(default_factory=dict[str, str])
    # Whether htmx requests only a part of the page.
    part: bool = False


@dataclass(frozen=True, slots=True)
class PageContent:
    """A page to render: its template, title and values."""

    template: str
    title: str
    context: Mapping[str, Any] = field(default_factory=dict[str, Any])
    status: int = 200


@dataclass(frozen=True, slots=True)
class PageRedirect:
    """The result of an action: the next page, and a message to show there."""

    location: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class FileDownload:
    """A file to download: its content in parts, and its name."""

    content: Iterable[bytes]
    name: str
    media_type: str = "application/json"


ViewFunction = Callable[[PageRequest], Awaitable[PageContent | FileDownload]]
# An action redirects, or returns a page where its result is shown only once, such as a new key.
ActionFunction = Callable[[PageRequest], Awaitable[PageRedirect | PageContent | FileDownload]]


@dataclass(frozen=True, slots=True)
class PageRoute:
    """A page at an address."""

    path: str
    view: ViewFunction


@dataclass(frozen=True, slots=True)
class ActionRoute:
    """An action, by POST to an address."""

    path: str
    action: ActionFunction


@dataclass(frozen=True, slots=True)
class StreamRoute:
    """A stream of server-sent events, each with a JSON object."""

    path: str
    events: Callable[[PageRequest], AsyncGenerator[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class NavSection:
    """A section of the navigation, with its keyboard shortcut."""

    name: str
    path: str
    key: str = ""


SECTIONS = (
    NavSection("Now", "/", "n"),
    NavSection("Agents", "/agents", "a"),
    NavSection("Tools", "/tools", "t"),
    NavSection("Schedule", "/schedule", "s"),
    NavSection("People", "/people", "p"),
    NavSection("Turns", "/turns", "u"),
    NavSection("Access", "/access", "k"),
)


def tool_path(tool_id: str) -> str:
    """The address of a tool's page. Names may contain any character, slashes included."""
    return f"/tools/tool/{quote(tool_id, safe='')}"


def server_path(name: str) -> str:
    return f"/tools/server/{quote(name, safe='')}"


def path_with_query(path: str, **parameters: str) -> str:
    """A path with a query. Empty values are left out."""
    return f"{path}?{urlencode({name: value for name, value in parameters.items() if value})}"
