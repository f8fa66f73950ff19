"""Runs one case with the SDK or with our client, compares the two runs, and checks what holds for every run."""

import json
import os
import re
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any
from uuid import UUID

from microsoft_agents_a365.runtime.utility import Utility
from microsoft_agents_a365.tooling import models as sdk_models
from microsoft_agents_a365.tooling.services import mcp_tool_server_configuration_service as sdk_service

from frontdesk.agent365 import PlatformError, agent_identity, model
from frontdesk.agent365 import client as ours
from tests.agent365_sdk.cases import MANIFEST, PLATFORM, Case, Chat, Listing
from tests.agent365_sdk.relay import Recorded, Relay

# Runs one case with one client, and returns the requests to the platform and the outcome


Fields = Mapping[str, Any]
Asked = tuple[int, tuple[str, ...], str]
# The variables that a case may set, and so must not inherit.
FILES = (MANIFEST, f"../{MANIFEST}", "pyproject.toml")


@dataclass(frozen=True, slots=True)
class Listed:
    servers: tuple[Fields, ...]


@dataclass(frozen=True, slots=True)
class Sent:
    succeeded: bool
    text: str
    errors: tuple[Exception, ...]


@dataclass(frozen=True, slots=True)
class Raised:
    error: BaseException


Outcome = Listed | Sent | Raised


@dataclass(frozen=True, slots=True)
class Run:
    """The actions and the result of one side; `exchanges` are the requested tokens, with all arguments."""

    requests: tuple[Recorded, ...]
    outcome: Outcome
    exchanges: tuple[Asked, ...]


@dataclass(frozen=True, slots=True)
class Side:
    """A client: how to make its service, and its own types of options and messages."""

    service: Callable[[Case], Any]
    options: Callable[[str | None], object]
    message: Callable[..., object]


def _sdk_service(case: Case) -> Any:
    sdk_service.DEFAULT_REQUEST_TIMEOUT_SECONDS = case.seconds
    return sdk_service.McpToolServerConfigurationService()


def _our_service(case: Case) -> Any:
    if case.retries is None:
        return ours.McpToolServerConfigurationService(timeout=case.seconds)
    return ours.McpToolServerConfigurationService(timeout=case.seconds, retries=case.retries)


SDK = Side(_sdk_service, sdk_models.ToolOptions, sdk_models.ChatHistoryMessage)
OURS = Side(_our_service, model.ToolOptions, model.ChatHistoryMessage)


async def run(case: Case, side: Side, relay: Relay, folder: Path) -> Run:
    """One side alone, in a state as if nothing had run before."""
    relay.begin(case.answers)
    exchange = _Exchange(case)
    with _surroundings(case, relay, folder):
        outcome = await _outcome(_call(case, side, exchange))
    return Run(tuple(relay.recorded), outcome, tuple(exchange.asked))


async def _call(case: Case, side: Side, exchange: "_Exchange") -> Outcome:
    service = side.service(case)
    match case.call:
        case Listing() as call:
            servers = await service.list_tool_servers(
                call.app_id,
                call.token,
                side.options(call.orchestrator),
                exchange if call.exchanging else None,
                call.handler,
                call.turn,
            )
            return Listed(tuple(asdict(server) for server in servers))
        case Chat() as call:
            messages = None if call.messages is None else [side.message(**said) for said in call.messages]
            result = await service.send_chat_history(call.turn, messages, side.options(call.orchestrator))
            return Sent(result.succeeded, str(result), tuple(error.exception for error in result.errors))


async def _outcome(call: Awaitable[Outcome]) -> Outcome:
    try:
        return await call
    # Any error: the comparison is about what was raised.
    except Exception as error:  # noqa: BLE001
        return Raised(error)


class _Exchange:
    """Exchanges tokens as the case says, and records the scopes."""

    def __init__(self, case: Case) -> None:
        given = case.call.exchanging if isinstance(case.call, Listing) else None
        self._gives = given.gives if given else None
        self.asked: list[Asked] = []

    async def exchange_token(self, context: object, scopes: list[str], handler: str) -> object:
        self.asked.append((id(context), tuple(scopes), handler))
        if isinstance(self._gives, Exception):
            raise self._gives
        return self._gives(scopes[0]) if callable(self._gives) else self._gives


@contextmanager
def _surroundings(case: Case, relay: Relay, folder: Path) -> Generator[None]:
    """The environment and the folder of the case; everything is restored afterwards."""
    for name in FILES:
        path = folder / name
        if (content := case.files.get(name)) is None:
            path.unlink(missing_ok=True)
        else:
            path.write_bytes(content)
    before, here = dict(os.environ), Path.cwd()
    _replace_environment({name: value.replace(PLATFORM, relay.url) for name, value in case.environment.items()})
    os.chdir(folder)
    Utility.reset_application_name_cache()
    agent_identity.reset_application_name_cache()
    try:
        yield
    finally:
        os.chdir(here)
        _replace_environment(before)
        Utility.reset_application_name_cache()
        agent_identity.reset_application_name_cache()


def _replace_environment(values: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(values)


# Compares two runs of one case, and returns every difference with its place


# A client may word these as it likes; they say nothing to the platform.
OWN = frozenset({"host", "accept", "accept-encoding", "connection", "content-length"})
CORRELATION = "x-ms-correlation-id"


@dataclass(frozen=True, slots=True)
class Difference:
    """A place, and the value of each side there; None is nothing."""

    where: str
    sdk: Any
    ours: Any


def differences(sdk: Run, ours: Run) -> list[Difference]:
    return [
        *_of_requests(sdk, ours),
        *_of_outcomes(sdk, ours),
        *_unless_same("exchanges", sdk.exchanges, ours.exchanges),
    ]


def _of_requests(sdk: Run, ours: Run) -> Iterator[Difference]:
    yield from _unless_same("requests", len(sdk.requests), len(ours.requests))
    for theirs, mine in zip(sdk.requests, ours.requests, strict=False):
        yield from _unless_same("method", theirs.method, mine.method)
        yield from _unless_same("target", theirs.target, mine.target)
        yield from _unless_same("body", _json(theirs.body), _json(mine.body))
        yield from _of_headers(theirs, mine)


def _of_headers(theirs: Recorded, mine: Recorded) -> Iterator[Difference]:
    said, heard = dict(theirs.headers), dict(mine.headers)
    for name in sorted((said.keys() | heard.keys()) - OWN):
        if name == CORRELATION and _is_fresh(said.get(name)) and _is_fresh(heard.get(name)):
            continue
        yield from _unless_same(f"header {name}", said.get(name), heard.get(name))
    yield from _unless_same("repeated headers", len(theirs.headers) - len(said), len(mine.headers) - len(heard))


def _of_outcomes(sdk: Run, ours: Run) -> Iterator[Difference]:
    match sdk.outcome, ours.outcome:
        case Listed(servers=theirs), Listed(servers=mine):
            yield from _of_servers(theirs, mine)
        case Sent() as theirs, Sent() as mine:
            yield from _of_results(theirs, mine)
        case Raised(error=theirs), Raised(error=mine):
            yield from _of_errors(theirs, mine)
        case theirs, mine:
            yield Difference("outcome", theirs, mine)


def _of_servers(theirs: tuple[Fields, ...], mine: tuple[Fields, ...]) -> Iterator[Difference]:
    pairs = SequenceMatcher(
        None, [_key(server) for server in theirs], [_key(server) for server in mine], autojunk=False
    )
    for kind, start, end, other, other_end in pairs.get_opcodes():
        if kind == "equal":
            for server, beside in zip(theirs[start:end], mine[other:other_end], strict=True):
                yield from _of_fields(server, beside)
            continue
        yield from (Difference("server left out", server, None) for server in theirs[start:end])
        yield from (Difference("server added", None, server) for server in mine[other:other_end])


def _of_fields(server: Fields, beside: Fields) -> Generator[Difference]:
    for name in beside:
        if server.get(name) != beside[name]:
            yield Difference(f"server {name}", {**server, "value": server.get(name)}, {**beside, "value": beside[name]})


def _of_errors(theirs: BaseException, mine: BaseException) -> Iterator[Difference]:
    """Types, if the SDK has one; and messages, of which the first must be equal and an HTTP answer all."""
    if type(theirs) is Exception or not isinstance(mine, type(theirs)):
        yield Difference("type", theirs, mine)
    said, heard = str(theirs), str(mine)
    head, colon, _ = said.partition(": ")
    known = head.startswith("Failed to") and colon and not said.removeprefix(f"{head}: ").startswith("HTTP ")
    yield from _unless_same("words", f"{head}: " if known else said, heard[: len(head) + 2] if known else heard)
    if known:
        yield from _unless_same("status", None, getattr(mine, "status", None))
    if known and said == f"{head}: ":
        yield Difference("reason", said, heard)


def _of_results(theirs: Sent, mine: Sent) -> Iterator[Difference]:
    """Whether the call succeeded; if not, the status and text of an answer if there was one, and the reason."""
    yield from _unless_same("succeeded", theirs.succeeded, mine.succeeded)
    yield from _unless_same("errors", len(theirs.errors), len(mine.errors))
    for said, heard in zip(theirs.errors, mine.errors, strict=False):
        yield Difference("type", said, heard)
        yield from _unless_same("status", getattr(said, "status", None), getattr(heard, "status", None))
        if hasattr(said, "status"):
            yield from _unless_same("message", getattr(said, "message", None), getattr(heard, "message", None))
        if not str(said):
            yield Difference("reason", str(said), str(heard))


def _key(server: Fields) -> tuple[str, str]:
    return server["mcp_server_name"], server["mcp_server_unique_name"]


def _unless_same(where: str, sdk: object, ours: object) -> Iterator[Difference]:
    if sdk != ours:
        yield Difference(where, sdk, ours)


def _json(body: bytes) -> object:
    return json.loads(body) if body else None


def _is_fresh(text: str | None) -> bool:
    try:
        return text is not None and UUID(text).version == 4
    except ValueError:
        return False


# What holds for every request and error of our client, whatever the SDK does and whatever the input


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
    """Everything that is wrong with a run of our client, as sentences."""
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
