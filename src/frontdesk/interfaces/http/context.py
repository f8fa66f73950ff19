"""Defines the context of an HTTP request: its id, its headers, its credential, and headers of the answer."""

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
# The prefix that an app which mounts us has before our paths, in the scope of a request.
URL_PREFIX_KEY = "frontdesk.prefix"
SESSION_HEADER = "mcp-session-id"
REQUEST_ID_PATTERN = re.compile(r"[A-Za-z0-9._:-]{1,128}")
FORWARDED_HEADERS = frozenset({"forwarded", "via", "x-real-ip", "x-client-ip", "true-client-ip", "cf-connecting-ip"})
_IS_FORWARDED = re.compile(r"x-forwarded-").match
# Ids must be unique, not secret: a random prefix and a counter cost a tenth of a UUID.
ID_PREFIX = secrets.token_hex(8)
ID_COUNTER = itertools.count()


@dataclass(slots=True)
class RequestContext:
    """The context of one request. The middleware creates it, and nothing of it outlives the answer."""

    request_id: str
    # Headers may contain secrets.
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    credential: Credential | None = None
    # The person's token, once it was checked, for tool servers that act for the person. A key is never passed on.
    token: SecretStr | None = None
    # The key or token that proves the person or the agent. It may be checked again, but is never passed on.
    proof: SecretStr | None = None
    # Whether the client may act for people by sending their tokens.
    trusted: bool = False
    # The only person whose tokens may be stored, if the server was started for one person.
    only_person: str | None = None
    # Whether this request itself proved the person, and not a token that is stored for its session.
    person_in_request: bool = False
    # Why tools may not be called, for clients that expect the error in the result of a call and not as a status.
    call_refusal: FrontdeskError | None = None
    errors_in_result: bool = False
    status: int | None = None
    answer_headers: list[tuple[bytes, bytes]] = field(default_factory=list[tuple[bytes, bytes]])
    # Whether a proxy passed the request on. Then a loopback address does not mean that it is local.
    forwarded: bool = False
    # Whether the request comes from this machine and needs no credential.
    local: bool = False

    def __post_init__(self) -> None:
        self.forwarded = not FORWARDED_HEADERS.isdisjoint(self.headers) or any(map(_IS_FORWARDED, self.headers))

    @property
    def session_id(self) -> str | None:
        """The MCP session of the request. Clients of older protocol versions have one."""
        return self.headers.get(SESSION_HEADER)

    def refuse_calls(self, error: FrontdeskError) -> None:
        """Drop the credential and refuse tool calls with this error."""
        self.credential = self.token = self.proof = None
        self.trusted = self.person_in_request = False
        self.call_refusal = error

    def set_answer_status(self, status: int | None, headers: Iterable[tuple[str, str]] = ()) -> None:
        """Send the current answer with this status and these additional headers."""
        self.status = status
        self.answer_headers.extend((name.encode(), value.encode()) for name, value in headers)


def request_context(scope: Scope) -> RequestContext:
    return scope[CONTEXT_KEY]


def ensure_request_id(offered: str | None) -> str:
    """The client's id if it is safe in headers and logs, otherwise a new one."""
    if offered and REQUEST_ID_PATTERN.fullmatch(offered):
        return offered
    return f"{ID_PREFIX}{next(ID_COUNTER):08x}"


def parse_headers(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers by name. Repeated headers are joined, so that the result equals neither value."""
    said: dict[str, str] = {}
    for name_bytes, value_bytes in raw:
        name, value = name_bytes.decode("latin-1"), value_bytes.decode("latin-1")
        said[name] = f"{said[name]}, {value}" if name in said else value
    return said


Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]
