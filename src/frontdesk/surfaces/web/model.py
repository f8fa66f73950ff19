"""A request for a page and what becomes of it."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from frontdesk.app import App
from frontdesk.identity.model import Caller


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, with whoever made it resolved. `at` are the parts of the address, `query` what follows it.

    `form` is what was sent with a POST; the token against forgery was checked and is not in it.
    """

    app: App
    caller: Caller
    now: datetime
    at: Mapping[str, str] = field(default_factory=dict[str, str])
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    form: Mapping[str, str] = field(default_factory=dict[str, str])
    # Whether htmx asks for a part of the page.
    part: bool = False


@dataclass(frozen=True, slots=True)
class Shown:
    """A page to be drawn: its template, what it is given, and what it is called in the window."""

    template: str
    title: str
    context: Mapping[str, Any] = field(default_factory=dict[str, Any])
    status: int = 200


@dataclass(frozen=True, slots=True)
class Done:
    """Something was done: where to go next, and the sentence to say there."""

    to: str
    said: str = ""


@dataclass(frozen=True, slots=True)
class Sent:
    """A file to be kept by whoever looks: what it holds, a part at a time, and what it is called."""

    content: Iterable[bytes]
    name: str
    media_type: str = "application/json"


View = Callable[[Asked], Awaitable[Shown | Sent]]
# What it did, or a page to show where something has to be seen at once, such as a key that is shown once.
Deed = Callable[[Asked], Awaitable[Done | Shown | Sent]]


@dataclass(frozen=True, slots=True)
class Page:
    """Something to look at, at an address."""

    path: str
    view: View


@dataclass(frozen=True, slots=True)
class Act:
    """Something to do, by POST to an address."""

    path: str
    deed: Deed


@dataclass(frozen=True, slots=True)
class Live:
    """Something that is told as it happens, as server-sent events with a JSON object each."""

    path: str
    tell: Callable[[Asked], AsyncGenerator[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the pages as the navigation names it: with its key, where it has one."""

    name: str
    path: str
    key: str = ""
