"""Compares two runs of one case, and gives every difference by its place."""

import json
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any
from uuid import UUID

from tests.referees.platform.relay import Recorded
from tests.referees.platform.running import Fields, Listed, Raised, Run, Sent

# How a client words these is its own affair, and says nothing to the platform.
OWN = frozenset({"host", "accept", "accept-encoding", "connection", "content-length"})
CORRELATION = "x-ms-correlation-id"


@dataclass(frozen=True, slots=True)
class Difference:
    """A place, and what each side has there; None is nothing."""

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
    """Types, where the SDK has one; and words, of which the first must be the same and an HTTP answer all."""
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
    """Whether it went well; else the status and the words of the answer, where there was one, and why where not."""
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
