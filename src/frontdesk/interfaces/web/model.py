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
# The first part of each address; other addresses belong to other interfaces.
FIRST_PARTS = frozenset(
    {"", "access", "agents", "live", "people", "schedule", "sign-in", "sign-out", "start", "static", "tools", "turns"}
)
PARTS_WITHOUT_PAGE = frozenset({"live", "sign-in", "sign-out", "static"})
# Visible ASCII but for the backslash, which browsers take for a slash; two slashes would begin somebody else's address.
LOCAL_ADDRESS = re.compile(r"/(?!/)[!-\[\]-~]{0,2000}")


def is_page(path: str) -> bool:
    return _first_part(path) in FIRST_PARTS


def is_public(path: str) -> bool:
    """Whether anybody may have this: what one signs in with, and what pages are drawn with."""
    return path in (SIGN_IN_PATH, SIGN_IN_WITH_PATH, SIGNED_IN_PATH) or path.startswith(STATIC_PATH)


def section_path(path: str) -> str:
    """The page that an address belongs to."""
    first = _first_part(path)
    return f"/{first}" if first in FIRST_PARTS - PARTS_WITHOUT_PAGE else "/"


def safe_return_path(address: str | None) -> str:
    """An address to lead somebody to: one of these pages, with what follows it, and nobody else's."""
    if not address or not LOCAL_ADDRESS.fullmatch(address):
        return "/"
    path = address.partition("?")[0].partition("#")[0]
    return address if section_path(path) != "/" or path == "/" else "/"


def _first_part(path: str) -> str | None:
    return path.split("/", 2)[1] if path.startswith("/") else None


@dataclass(frozen=True, slots=True)
class PageRequest:
    """One request, with whoever made it resolved. `at` are the parts of the address, `query` what follows it.

    `form` is what was sent with a POST; the token against forgery was checked and is not in it.
    """

    app: App
    caller: Caller
    now: datetime
    path_params: Mapping[str, str] = field(default_factory=dict[str, str])
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    form: Mapping[str, str] = field(default_factory=dict[str, str])
    # Whether htmx asks for a part of the page.
    part: bool = False


@dataclass(frozen=True, slots=True)
class PageContent:
    """A page to be drawn: its template, what it is given, and what it is called in the window."""

    template: str
    title: str
    context: Mapping[str, Any] = field(default_factory=dict[str, Any])
    status: int = 200


@dataclass(frozen=True, slots=True)
class PageRedirect:
    """Something was done: where to go next, and the sentence to say there."""

    location: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class FileDownload:
    """A download: its content, a part at a time, and its name."""

    content: Iterable[bytes]
    name: str
    media_type: str = "application/json"


ViewFunction = Callable[[PageRequest], Awaitable[PageContent | FileDownload]]
# What it did, or a page to show where something has to be seen at once, such as a key that is shown once.
ActionFunction = Callable[[PageRequest], Awaitable[PageRedirect | PageContent | FileDownload]]


@dataclass(frozen=True, slots=True)
class PageRoute:
    """Something to look at, at an address."""

    path: str
    view: ViewFunction


@dataclass(frozen=True, slots=True)
class ActionRoute:
    """Something to do, by POST to an address."""

    path: str
    action: ActionFunction


@dataclass(frozen=True, slots=True)
class StreamRoute:
    """Something that is told as it happens, as server-sent events with a JSON object each."""

    path: str
    events: Callable[[PageRequest], AsyncGenerator[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class NavSection:
    """A part of the pages as the navigation names it: with its key, where it has one."""

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
    """The address of a tool's page; a server may put anything into a name, slashes among it."""
    return f"/tools/tool/{quote(tool_id, safe='')}"


def server_path(name: str) -> str:
    return f"/tools/server/{quote(name, safe='')}"


def path_with_query(path: str, **said: str) -> str:
    """A path with what is said after it; what is empty is left out."""
    return f"{path}?{urlencode({name: value for name, value in said.items() if value})}"
