"""The history of a test: the database's rows by plain SQL, the receiver's log, and the faults of workers."""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from frontdesk.settings import Settings

# The database as another connection sees it: plain SQL over a connection that stays open


SECONDS = 30
Row = dict[str, Any]


class Books:
    """A connection of its own; it reconnects after a break."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._connection: psycopg.Connection | sqlite3.Connection | None = None

    def rows(self, query: str) -> list[Row]:
        try:
            return self._read(query)
        except psycopg.OperationalError:
            self.close()
            return self._read(query)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _read(self, query: str) -> list[Row]:
        if self._connection is None:
            self._connection = self._connect()
        if isinstance(self._connection, psycopg.Connection):
            found = self._connection.execute(query.encode())
        else:
            found = self._connection.execute(query)
        names = [column[0] for column in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    def _connect(self) -> psycopg.Connection | sqlite3.Connection:
        if self._settings.database_url is not None:
            return psycopg.connect(self._settings.database_url.get_secret_value(), autocommit=True)
        file = self._settings.data / "frontdesk.db"
        return sqlite3.connect(file, timeout=SECONDS, isolation_level=None, check_same_thread=False)


# The history, read afterwards: the database's rows, the receiver's own log, and the faults of the workers


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
    """One delivery as the receiver saw it; `how` is None if it has not ended, or never did."""

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
    """A worker that was killed or stopped, and the last time when it surely still ran."""

    worker: int
    ns: int


@dataclass(frozen=True, slots=True)
class Cancelled:
    """An acknowledged cancel: its time, and the fences of its schedule's occurrences right after it."""

    schedule_id: int
    at_us: int
    fences: frozenset[tuple[str, int]]


@dataclass(slots=True)
class Diary:
    """The test's actions on the scheduler; `known_us` is when each schedule had surely been created."""

    known_us: dict[int, int] = field(default_factory=dict[int, int])
    lost: list[Lost] = field(default_factory=list[Lost])
    cancelled: list[Cancelled] = field(default_factory=list[Cancelled])
    receiver_killed: list[int] = field(default_factory=list[int])


@dataclass(frozen=True, slots=True)
class History:
    """The whole history, once nothing changes any more."""

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
