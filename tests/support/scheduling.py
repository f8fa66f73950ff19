"""Callers of every kind with the schedules that each may see, and PromptYoSelf files."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from frontdesk.errors import Denied
from frontdesk.identity.inbound import IdentityPolicy, resolve_caller
from frontdesk.identity.model import ANY_AGENT, Caller, Credential, Signals
from frontdesk.identity.rights import SCHEDULES_ADMIN, SCHEDULES_READ, SCHEDULES_WRITE

# Callers of every kind, by their credentials and claims, and the owners whose schedules each may see


OPERATOR = Caller("test", local=True, any_agent=True)
ADA, BOB = "agent-ada", "agent-bob"
ANN, BEN = "ann", "ben"

Owner = tuple[str, str | None]
OWNERS: tuple[Owner, ...] = tuple(product((ADA, BOB), (None, ANN, BEN)))
LIMITED = frozenset({SCHEDULES_READ, SCHEDULES_WRITE})


@dataclass(frozen=True, slots=True)
class Visitor:
    """A request's origin, its credential, the agent it names, and the default agent if it names none."""

    trusted: bool = True
    forwarded: bool = False
    shows: Credential | None = None
    names: str | None = None
    stand_in: str | None = None

    def caller(self) -> Caller | None:
        """The caller as identity represents it; None if such a request is refused."""
        if self.shows is None and (self.forwarded or not self.trusted):
            return None
        policy = IdentityPolicy(proof_required=not self.trusted, default_agent=self.stand_in)
        signals = Signals("test", header=self.names, credential=self.shows, forwarded=self.forwarded)
        try:
            return resolve_caller(signals, policy)
        except Denied:
            return None

    def may_see(self, owner: Owner) -> bool:
        """The rule once more, written independently of the code."""
        agent, user = owner
        shown = self.shows or Credential("none")
        if shown.scopes is not None and SCHEDULES_ADMIN in shown.scopes:
            return True
        if self.shows is None and self.names is None:
            return True
        named = self.names or (shown.agent_id if shown.agent_id != ANY_AGENT else None)
        if shown.user_id is not None and named is not None:
            return agent == named and (user is None or user == shown.user_id)
        if shown.user_id is not None:
            return user == shown.user_id
        return agent == (named or self.stand_in)


def visitors() -> Iterator[tuple[Visitor, Caller]]:
    """Every kind that identity accepts."""
    agents, people = (None, ADA, BOB, ANY_AGENT), (None, ANN, BEN)
    scopes = (None, LIMITED, frozenset({SCHEDULES_ADMIN}))
    shown = [
        Credential(f"key:{agent}-{user}", agent, user, scope)
        for agent, user, scope in product(agents, people, scopes)
        if agent or user
    ]
    places = ((True, False), (True, True), (False, False))
    for (trusted, forwarded), credential, names, stand_in in product(
        places, (None, *shown), (None, ADA, BOB), (None, ADA)
    ):
        visitor = Visitor(trusted, forwarded, credential, names, stand_in)
        caller = visitor.caller()
        if caller is not None:
            yield visitor, caller


# PromptYoSelf database files for the import, written by hand from the description of its tables


REMINDERS = """CREATE TABLE unified_reminders (
    id INTEGER PRIMARY KEY, message TEXT, next_run TEXT, status TEXT, active BOOLEAN, schedule_type TEXT,
    schedule_value TEXT, max_repetitions INTEGER, repetition_count INTEGER, last_run TEXT, agent_id TEXT,
    created_at TEXT)"""
SCHEDULES = """CREATE TABLE schedules (
    id INTEGER PRIMARY KEY, agent_id TEXT, prompt_text TEXT, schedule_type TEXT, schedule_value TEXT, next_run TEXT,
    active BOOLEAN, created_at TEXT, last_run TEXT, max_repetitions INTEGER, repetition_count INTEGER)"""

Rows = Sequence[Mapping[str, Any]]


def reminder(**values: Any) -> Mapping[str, Any]:
    """A valid row of the newer table with these changes."""
    row = {
        "message": "Daily report",
        "next_run": "2026-03-05 09:00:00",
        "status": "pending",
        "active": 1,
        "schedule_type": "cron",
        "schedule_value": "0 9 * * *",
        "repetition_count": 0,
        "agent_id": "agent-1",
        "created_at": "2026-01-01 00:00:00",
    }
    return row | values


def schedule(**values: Any) -> Mapping[str, Any]:
    """A row of the older one."""
    row = {**reminder()}
    row["prompt_text"] = row.pop("message")
    del row["status"]
    return row | values


def write(path: Path, reminders: Rows | None = None, schedules: Rows | None = None) -> Path:
    """A file with these tables; None leaves a table out."""
    with closing(sqlite3.connect(path)) as database, database:
        for table, create, rows in (
            ("unified_reminders", REMINDERS, reminders),
            ("schedules", SCHEDULES, schedules),
        ):
            if rows is None:
                continue
            database.execute(create)
            for row in rows:
                places = ", ".join("?" * len(row))
                database.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({places})", tuple(row.values()))
    return path
