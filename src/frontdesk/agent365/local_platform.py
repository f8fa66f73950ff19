"""Keeps the state of the local platform: its manifest, answers, injected faults, logged requests and chats."""

import json
import random
import re
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import UUID

import anyio
import structlog

from frontdesk.agent365.environment import Constants
from frontdesk.agent365.errors import ManifestUnreadable
from frontdesk.agent365.local_tokens import TokenClaims, TokenMode, TokenSigner, read_claims
from frontdesk.agent365.manifest.model import (
    FIRST_STATE,
    DeclaredManifest,
    DeclaredServer,
    DeclaredTool,
    MockAnswer,
    ProblemLevel,
)
from frontdesk.agent365.manifest.reader import MOCK_FOLDER, MOCK_SUFFIX, read_manifest
from frontdesk.agent365.manifest.tools import PLACEHOLDER
from frontdesk.identity.outbound import TOKEN_CLAIMS

# A few placeholders could multiply one long argument.
LONGEST_FILLED_ANSWER = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class FilledTemplate:
    """A filled answer; `missing` names the placeholders without a value."""

    text: str
    missing: tuple[str, ...] = ()


def fill_template(template: str, arguments: Mapping[str, Any]) -> FilledTemplate:
    """The template with each `{{name}}` replaced, in any case; placeholders inside a value are not replaced."""
    given = {name.strip().casefold(): value for name, value in arguments.items()}
    parts, missing, end, length = list[str](), dict[str, None](), 0, 0
    for found in PLACEHOLDER.finditer(template):
        name = found[1].strip()
        parts.append(template[end : found.start()])
        end = found.end()
        # The exact spelling comes first: two arguments may differ only in case.
        if name in arguments or name.casefold() in given:
            parts.append(_value_text(arguments.get(name, given.get(name.casefold()))))
        else:
            missing[name] = None
        length += len(parts[-1])
        if length > LONGEST_FILLED_ANSWER:
            break
    parts.append(template[end:])
    return FilledTemplate("".join(parts)[:LONGEST_FILLED_ANSWER], tuple(missing))


def _value_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# Callers with ever new names push out the oldest states, so that memory stays bounded.
MOST_STATES = 10_000
MOST_DELAY_MS = 60_000


@dataclass(frozen=True, slots=True)
class MockResponse:
    """A tool's answer, and the state of its server after it."""

    text: str
    state: str
    is_error: bool = False
    template: str | None = None
    missing: tuple[str, ...] = ()


class ServerStates:
    """The state of each server for each calling agent: one agent's calls change nothing for another."""

    def __init__(self) -> None:
        self._now: OrderedDict[tuple[str, str], str] = OrderedDict()

    def current(self, server: str, agent: str) -> str:
        return self._now.get((server, agent), FIRST_STATE)

    def move(self, server: str, agent: str, state: str) -> None:
        self._now[server, agent] = state
        self._now.move_to_end((server, agent))
        if len(self._now) > MOST_STATES:
            self._now.popitem(last=False)


def answer_call(tool: DeclaredTool, state: str, arguments: Mapping[str, Any], luck: float) -> MockResponse:
    """The answer to one call; `luck`, from 0 to 1, is compared with the tool's error rate."""
    if luck < tool.error_rate:
        return MockResponse(
            f"{tool.name} failed on purpose: its errorRate is {tool.error_rate:g}", state, is_error=True
        )
    answer = _choose_answer(tool, state)
    if answer is None:
        return _no_answer(tool, state)
    filled = fill_template(answer.template, arguments)
    return MockResponse(filled.text, answer.next_state or state, answer.is_error, answer.template, filled.missing)


def delay_seconds(milliseconds: int) -> float:
    """How long to wait, a minute at most."""
    return max(0, min(milliseconds, MOST_DELAY_MS)) / 1000


def _choose_answer(tool: DeclaredTool, state: str) -> MockAnswer | None:
    return next((answer for answer in tool.answers if answer.state is None or answer.state == state), None)


def _no_answer(tool: DeclaredTool, state: str) -> MockResponse:
    if not tool.answers:
        return MockResponse(f"{tool.name} was called; the manifest says nothing about what it answers", state)
    known = ", ".join(dict.fromkeys(answer.state or "" for answer in tool.answers))
    return MockResponse(f"{tool.name} has no answer in the state '{state}', only in: {known}", state, is_error=True)


DISCOVERY_PART = "discovery"
CHAT_PART = "chat"
SERVER_PART_PREFIX = "server:"


@dataclass(frozen=True, slots=True)
class InjectedFault:
    """An answer that replaces the real one; with `close`, no answer. With `times` None, it lasts until removed."""

    status: int = 503
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    delay_ms: int = 0
    times: int | None = None
    close: bool = False


class InjectedFaults:
    """The present faults, by the part that they are for."""

    def __init__(self) -> None:
        self._of: dict[str, InjectedFault] = {}

    def put(self, part: str, fault: InjectedFault | None) -> None:
        """Replace the fault of a part; None removes it."""
        if fault is None:
            self._of.pop(part, None)
        else:
            self._of[part] = fault

    def clear(self) -> None:
        self._of.clear()

    def take(self, part: str) -> InjectedFault | None:
        """The fault that a request to this part meets; this uses up one of its times."""
        fault = self._of.get(part)
        if fault is not None and fault.times is not None:
            self.put(part, replace(fault, times=fault.times - 1) if fault.times > 1 else None)
        return fault

    @property
    def present(self) -> Mapping[str, InjectedFault]:
        return dict(self._of)


# The result of the token check for a request without a token.
NO_TOKEN = "none"  # noqa: S105
MOST_REQUESTS = 1000
MOST_HEADERS = 60
LONGEST_LOGGED_TEXT = 1000
# A header with any other name may hold a token or, where a client repeats the arguments of a call, an argument.
SHOWN_HEADERS = frozenset(
    {
        "accept",
        "accept-encoding",
        "accept-language",
        "connection",
        "content-length",
        "content-type",
        "host",
        "mcp-method",
        "mcp-name",
        "mcp-protocol-version",
        "mcp-session-id",
        "origin",
        "traceparent",
        "transfer-encoding",
        "user-agent",
        "x-agent-id",
        "x-request-id",
        Constants.Headers.AGENT_ID,
        Constants.Headers.CHANNEL_ID,
        Constants.Headers.CORRELATION_ID,
        Constants.Headers.SUBCHANNEL_ID,
    }
)
HIDDEN_VALUE = "(not shown)"
# A client may put a token where none belongs.
JWT = re.compile(r"eyJ[\w-]+\.[\w.-]+")
ORCHESTRATOR_PATTERN = re.compile(r"\([^;()]*; Python [^;()]*; ([^()]*)\)")


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """One logged request. `status` is None where it got no answer. `token` is the result of its token check."""

    time: str
    method: str
    path: str
    status: int | None
    ms: float
    agent_id: str | None = None
    agent_from: str = "not sent"
    correlation_id: str | None = None
    channel_id: str | None = None
    subchannel_id: str | None = None
    user_agent: str | None = None
    orchestrator: str | None = None
    server: str | None = None
    rpc_method: str | None = None
    tool: str | None = None
    token: str = NO_TOKEN
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


def describe_agent_source(agent_id: str | None, claims: TokenClaims) -> str:
    """Describe where an agent's id was taken from, as far as the request shows it."""
    if not agent_id:
        return "not sent"
    for name in TOKEN_CLAIMS:
        if name in claims and str(claims[name]) == agent_id:
            return f"token {name}"
    return "turn context" if _is_guid(agent_id) else "application name"


def read_orchestrator(user_agent: str | None) -> str | None:
    """The framework that a User-Agent names, where it has the SDK's form."""
    found = ORCHESTRATOR_PATTERN.search(user_agent or "")
    return found[1].strip() if found else None


def read_agent_id(headers: Mapping[str, str]) -> str | None:
    return redact_text(headers.get(Constants.Headers.AGENT_ID))


def identify_caller(headers: Mapping[str, str]) -> str:
    """The agent that calls, as far as the request shows: by its header, else by its token, else unknown."""
    claims = read_claims(headers.get("authorization"))
    claimed = next((str(claims[name]) for name in TOKEN_CLAIMS if claims.get(name)), "")
    return read_agent_id(headers) or claimed[:LONGEST_LOGGED_TEXT]


def redact_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers as sent; a header that may hold a secret or an argument keeps only its name."""
    kept = list(headers.items())[:MOST_HEADERS]
    return {_redact(name): _redact(value) if name in SHOWN_HEADERS else HIDDEN_VALUE for name, value in kept}


def redact_text(text: str | None) -> str | None:
    return None if text is None else _redact(text)


def _redact(text: str) -> str:
    # Replace tokens before the text is cut: a part of a token could be left otherwise.
    return JWT.sub("[token]", text)[:LONGEST_LOGGED_TEXT]


def _is_guid(text: str) -> bool:
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False


log = structlog.get_logger("frontdesk.agent365")

# (file, time of its last change, size)
FileMark = tuple[str, int, int]


class WatchedManifest:
    """A manifest and the files beside it; `problem` says why the served version is older than the one on disk."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._declared = read_manifest(path)
        self._marks = list(_file_marks(self._declared))
        self.problem: str | None = None

    def current(self) -> DeclaredManifest:
        """The declared manifest; it compares the files' marks, and reads the files only when those have changed."""
        marks = list(_file_marks(self._declared))
        if marks != self._marks:
            self._reread()
            # The marks of the files that count from now on, which may be other files.
            self._marks = marks if self.problem else list(_file_marks(self._declared))
        return self._declared

    def _reread(self) -> None:
        try:
            found = read_manifest(self._path)
            trouble = _unreadable_file(found)
        except ManifestUnreadable as error:
            found, trouble = self._declared, str(error)
        if trouble is None:
            self._declared = found
            log.info("platform_manifest_read", servers=len(found.servers), problems=len(found.problems))
        elif trouble != self.problem:
            log.warning("platform_manifest_kept", error=trouble)
        self.problem = trouble


def enabled_servers(declared: DeclaredManifest) -> list[DeclaredServer]:
    """The servers that are not disabled."""
    return [server for server in declared.servers if server.entry.get("enabled") is not False]


def find_server(declared: DeclaredManifest, name: str) -> DeclaredServer | None:
    """The server with this name, or else with this unique name."""
    servers = enabled_servers(declared)
    named = next((server for server in servers if server.name == name), None)
    return named or next((server for server in servers if server.unique_name == name), None)


def _unreadable_file(declared: DeclaredManifest) -> str | None:
    """The problem of a mock file that could not be read at all: its place is the file itself, not a part of it."""
    broken = (problem for problem in declared.problems if problem.level is ProblemLevel.ERROR)
    return next((str(problem) for problem in broken if problem.where.endswith(MOCK_SUFFIX)), None)


def _file_marks(declared: DeclaredManifest) -> Iterator[FileMark]:
    for file in sorted({*declared.files, declared.path, *_mock_files(declared.path)}):
        try:
            found = file.stat()
        except OSError:
            yield str(file), 0, -1
        else:
            yield str(file), found.st_mtime_ns, found.st_size


def _mock_files(path: Path) -> list[Path]:
    """The mock files that count for a server as soon as they exist."""
    try:
        return list((path.absolute().parent / MOCK_FOLDER).glob(f"*{MOCK_SUFFIX}"))
    except OSError:
        return []


MOST_CHATS = 200


@dataclass(slots=True)
class LocalPlatformState:
    """The state of one local platform; it ends with the process."""

    manifest: WatchedManifest
    mode: TokenMode = TokenMode.CLAIMS
    rng: random.Random = field(default_factory=random.Random)
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    clock: Callable[[], float] = time.time
    token_signer: TokenSigner = field(default_factory=TokenSigner)
    faults: InjectedFaults = field(default_factory=InjectedFaults)
    states: ServerStates = field(default_factory=ServerStates)
    seen: deque[LoggedRequest] = field(default_factory=lambda: deque[LoggedRequest](maxlen=MOST_REQUESTS))
    chats: deque[Mapping[str, Any]] = field(default_factory=lambda: deque[Mapping[str, Any]](maxlen=MOST_CHATS))

    @classmethod
    def for_manifest(
        cls, manifest: Path, mode: TokenMode = TokenMode.CLAIMS, seed: int | None = None
    ) -> "LocalPlatformState":
        """The state for a manifest; raises `ManifestUnreadable`. With a seed, random answers are the same each time."""
        # The random numbers are for tests; nothing about them is secret.
        return cls(WatchedManifest(manifest), mode, random.Random(seed))  # noqa: S311
