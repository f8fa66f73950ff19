"""Defines a turn, its record, and the process that owns it."""

import os
import secrets
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from uuid import getnode

from frontdesk.identity.authority import UNLIMITED, Authority
from frontdesk.llm.events import ApprovalRequest, StopReason

LEASE = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class NewTurn:
    """A turn to be taken. Turns of one lock follow each other; those of different locks do not wait.

    `otid` is the sender's own name for it, the same when it is sent again. `authority` is on whose word it is taken.
    """

    id: str
    lane: str
    agent_id: str
    conversation_id: str
    user_id: str | None = None
    otid: str | None = None
    authority: Authority = UNLIMITED


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """A turn as it is kept, whichever host took it.

    `waits`: a tool call of it waits for somebody's word, as far as we know; `failure` is the kind of failure.
    """

    id: str
    lane: str
    agent_id: str
    conversation_id: str
    user_id: str | None
    otid: str | None
    running: bool
    stop: StopReason | None
    pending: Sequence[ApprovalRequest]
    waits: bool
    cancel_asked: bool
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    failure: str | None
    started_at: datetime
    ended_at: datetime | None
    authority: Authority = UNLIMITED


@dataclass(frozen=True, slots=True)
class TurnQuery:
    """Which turns to list, the newest first: from the newest on, or those `before` or `after` one of them, by its id.

    A turn that is `running` has not stopped, and one that is `waiting` goes on once somebody has given their word.
    """

    agent_id: str | None = None
    stop: StopReason | None = None
    running: bool = False
    waiting: bool = False
    before: str | None = None
    after: str | None = None
    limit: int = 25


def this_machine() -> str:
    """Where process ids mean what they mean here: a boot of a machine and, in a container, the container."""
    name = socket.gethostname()
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{name}/{boot}/{Path('/proc/self/ns/pid').readlink()}"
    return f"{name}/{getnode():x}"


@dataclass(frozen=True, slots=True)
class LeaseOwner:
    """One process that runs turns, named so that another can tell whether it still lives."""

    host: str = field(default_factory=this_machine)
    pid: int = field(default_factory=os.getpid)
    token: str = field(default_factory=lambda: secrets.token_hex(8))

    def __str__(self) -> str:
        return f"{self.host}:{self.pid}:{self.token}"

    def knows_ended(self, other: str) -> bool:
        """Whether another owner is surely gone: only to be told of one on the same machine."""
        host, pid, token = other.rsplit(":", 2)
        if host != self.host:
            return False
        if int(pid) == self.pid:
            return token != self.token
        try:
            os.kill(int(pid), 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        return False
