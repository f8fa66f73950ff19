"""What holds for every request and every error of ours, whatever the SDK does and whatever we were given."""

import re
from collections.abc import Iterable, Iterator

from frontdesk.agent365 import PlatformError
from tests.referees.platform.cases import Case, Chat
from tests.referees.platform.relay import Recorded
from tests.referees.platform.running import Fields, Listed, Raised, Run

PATH = re.compile(r"(/base)?/agents/(v2/[A-Za-z0-9._~%-]{1,2000}/mcpServers|real-time-threat-protection/chat-message)")
VISIBLE = re.compile(r"[\x20-\x7e]+")
KNOWN = frozenset(
    {
        "host",
        "accept",
        "accept-encoding",
        "connection",
        "content-length",
        "content-type",
        "authorization",
        "user-agent",
        "x-ms-agentid",
        "x-ms-channel-id",
        "x-ms-correlation-id",
        "x-ms-subchannel-id",
    }
)


def unsafe(case: Case, ours: Run) -> frozenset[str]:
    """Everything that is wrong with a run of ours, in words."""
    requests = [wrong for request in ours.requests for wrong in _of_request(case, request)]
    return frozenset([*requests, *_of_outcome(ours)])


def _of_request(case: Case, request: Recorded) -> Iterator[str]:
    names = [name for name, _ in request.headers]
    if not PATH.fullmatch(request.target):
        yield f"an address of its own: {request.target}"
    if len(names) != len(set(names)) or not KNOWN.issuperset(names):
        yield f"headers of its own: {names}"
    yield from (f"not plain: {name}" for name, value in request.headers if not VISIBLE.fullmatch(value))
    if (request.header("authorization") is None) != isinstance(case.call, Chat):
        yield "a token where none belongs, or none where one does"
    for name, value in case.sends.items():
        if request.header(name) != value:
            yield f"{name}: {request.header(name)}, not {value}"


def _of_outcome(ours: Run) -> Iterator[str]:
    match ours.outcome:
        case Raised(error=error) if not isinstance(error, PlatformError | ValueError) and not ours.exchanges:
            yield f"no error of ours: {error!r}"
        case Listed(servers=servers):
            yield from (f"an address: {url}" for server in servers if not VISIBLE.fullmatch(url := str(server["url"])))
            yield from ("a header of a server" for value in _headers(servers) if not VISIBLE.fullmatch(value))
        case _:
            pass


def _headers(servers: Iterable[Fields]) -> list[str]:
    given: list[dict[str, str]] = [server["headers"] for server in servers if server["headers"]]
    return [value for headers in given for value in headers.values()]
