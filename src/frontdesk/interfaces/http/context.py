"""Defines what is known of an HTTP request: its id, its headers, its credential, and how it is to be answered."""

import itertools
import re
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import SecretStr

from frontdesk.errors import FrontdeskError
from frontdesk.identity.model import Credential

Scope = MutableMapping[str, Any]

CONTEXT_KEY = "frontdesk.visit"
SESSION_HEADER = "mcp-session-id"
REQUEST_ID_PATTERN = re.compile(r"[A-Za-z0-9._:-]{1,128}")
FORWARDED_HEADERS = frozenset({"forwarded", "via", "x-real-ip", "x-client-ip", "true-client-ip", "cf-connecting-ip"})
_IS_FORWARDED = re.compile(r"x-forwarded-").match
# Ids need to differ, not to be secret: a random start and a count cost a tenth of a UUID.
ID_PREFIX = secrets.token_hex(8)
ID_COUNTER = itertools.count()


@dataclass(slots=True)
class RequestContext:
    """Made by the middleware for each request and dropped with it; nothing of it outlives the answer."""

    request_id: str
    # There may be secrets among the headers.
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    credential: Credential | None = None
    # The person's own token, once it is checked, for tool servers that act for them; a key is no such token.
    token: SecretStr | None = None
    # What proves the person or the agent, whatever it is: to be asked about, and never passed on.
    proof: SecretStr | None = None
    # Whether the client may name people by their tokens.
    trusted: bool = False
    # The one person whose tokens may be left, where the server was started for them.
    only_person: str | None = None
    # Whether the person was proven by what came with this request, and not by what was left in its session.
    person_in_request: bool = False
    # Why no tool may be called, where a client reads that in the answer to a call and not in a status.
    call_refusal: FrontdeskError | None = None
    errors_in_result: bool = False
    status: int | None = None
    answer_headers: list[tuple[bytes, bytes]] = field(default_factory=list[tuple[bytes, bytes]])
    # Whether a proxy passed this on: then loopback says nothing about where it came from.
    forwarded: bool = False
    # Whether it comes from this machine, and needs no credential.
    local: bool = False

    def __post_init__(self) -> None:
        self.forwarded = not FORWARDED_HEADERS.isdisjoint(self.headers) or any(map(_IS_FORWARDED, self.headers))

    @property
    def session_id(self) -> str | None:
        """The MCP session that the request says it belongs to; a client of the older era was given it."""
        return self.headers.get(SESSION_HEADER)

    def refuse_calls(self, error: FrontdeskError) -> None:
        """Whoever this is, they are nobody: no tool may be called, and this is why."""
        self.credential = self.token = self.proof = None
        self.trusted = self.person_in_request = False
        self.call_refusal = error

    def set_answer_status(self, status: int | None, headers: Iterable[tuple[str, str]] = ()) -> None:
        """Send the answer that is being written under this status, with these headers besides."""
        self.status = status
        self.answer_headers.extend((name.encode(), value.encode()) for name, value in headers)


def request_context(scope: Scope) -> RequestContext:
    return scope[CONTEXT_KEY]


def ensure_request_id(offered: str | None) -> str:
    """The client's id if it can be carried in headers and logs as it is, otherwise a new one."""
    if offered and REQUEST_ID_PATTERN.fullmatch(offered):
        return offered
    return f"{ID_PREFIX}{next(ID_COUNTER):08x}"


def parse_headers(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers by name; one that is said twice is joined, so that it cannot pass for either of its values."""
    said: dict[str, str] = {}
    for name_bytes, value_bytes in raw:
        name, value = name_bytes.decode("latin-1"), value_bytes.decode("latin-1")
        said[name] = f"{said[name]}, {value}" if name in said else value
    return said


Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]
