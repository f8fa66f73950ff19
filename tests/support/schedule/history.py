"""All that happened, read afterwards: the database's rows, the receiver's own log, and what was done to the workers."""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.schedule.books import Books, Row

TABLES = {
    "schedules": "SELECT id, agent_id, state, fired, max_repetitions, intended_us FROM schedules ORDER BY id",
    "occurrences": (
        "SELECT id, schedule_id, agent_id, intended_us, standing, attempt, fence, manual, created_us, started_us, "
        "ended_us, reason, answer FROM occurrences ORDER BY intended_us, id"
    ),
    "journal": "SELECT request_id, outcome FROM journal WHERE surface = 'schedule' AND action = 'deliver' ORDER BY id",
    "attempts": "SELECT occurrence_id, number, started_us, ended_us, error FROM attempts ORDER BY id",
}


@dataclass(frozen=True, slots=True)
class Arrival:
    """One delivery as the receiver saw it; `how` is None while, or because, it never ended."""

    number: int
    id: str
    schedule_id: int
    agent: str
    intended_us: int
    attempt: int
    fence: int
    worker: int
    in_doubt: bool
    began_us: int
    began_ns: int
    ended_ns: int | None = None
    how: str | None = None


@dataclass(frozen=True, slots=True)
class Lost:
    """A worker that was killed or stopped, and when it was still known to go on."""

    worker: int
    ns: int


@dataclass(frozen=True, slots=True)
class Cancelled:
    """A cancel that was acknowledged: when, and which fences its schedule's occurrences had right after."""

    schedule_id: int
    at_us: int
    fences: frozenset[tuple[str, int]]


@dataclass(slots=True)
class Diary:
    """What a test did to the scheduler while it ran; `known_us` is when each schedule had surely been made."""

    known_us: dict[int, int] = field(default_factory=dict[int, int])
    lost: list[Lost] = field(default_factory=list[Lost])
    cancelled: list[Cancelled] = field(default_factory=list[Cancelled])
    receiver_killed: list[int] = field(default_factory=list[int])


@dataclass(frozen=True, slots=True)
class History:
    """Everything there is to know, once all is quiet."""

    now_us: int
    schedules: Sequence[Row]
    occurrences: Sequence[Row]
    attempts: Sequence[Row]
    journal: Sequence[Row]
    arrivals: Sequence[Arrival]
    diary: Diary


def read_history(books: Books, log: Path, diary: Diary, now_us: int) -> History:
    tables = {name: books.rows(query) for name, query in TABLES.items()}
    return History(now_us=now_us, arrivals=read_visits(log), diary=diary, **tables)


def read_visits(log: Path) -> list[Arrival]:
    """The deliveries of a receiver's log, in the order in which they began."""
    return arrivals(json.loads(line) for line in log.read_text().splitlines())


def arrivals(lines: Iterable[Row]) -> list[Arrival]:
    found: dict[int, Row] = {}
    for line in lines:
        if line["event"] == "begin":
            began = {"began_us": line.pop("at_us"), "began_ns": line.pop("ns")}
            found[line["number"]] = {name: value for name, value in line.items() if name != "event"} | began
        else:
            found[line["number"]] |= {"ended_ns": line["ns"], "how": line["how"]}
    return [Arrival(**one) for one in found.values()]


def by_delivery(arrivals: Iterable[Arrival]) -> dict[str, list[Arrival]]:
    found: dict[str, list[Arrival]] = defaultdict(list)
    for arrival in arrivals:
        found[arrival.id].append(arrival)
    return found
