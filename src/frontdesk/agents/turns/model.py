"""Defines a turn, its record, and the process that runs it."""

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
    """A turn to take. Turns of one `lane`, the name of a lock, run one after another; others do not wait for them.

    `otid` is the sender's own id for the turn, and stays the same if it is sent again. `authority` limits what the turn
    may do.
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
    """A turn as it is stored, from any host.

    `waits`: one of its tool calls waits for approval, as far as we know; `failure` is the kind of failure.
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
    """Selects turns, the newest first: all, or those `before` or `after` the turn with this id.

    A `running` turn has not stopped; a `waiting` one continues once its tool calls are approved or denied.
    """

    agent_id: str | None = None
    stop: StopReason | None = None
    running: bool = False
    waiting: bool = False
    before: str | None = None
    after: str | None = None
    limit: int = 25


def this_machine() -> str:
    """The name of the space of process ids: a boot of a machine and, in a container, the container."""
    name = socket.gethostname()
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{name}/{boot}/{Path('/proc/self/ns/pid').readlink()}"
    return f"{name}/{getnode():x}"


@dataclass(frozen=True, slots=True)
class LeaseOwner:
    """A process that holds leases; other processes can tell from its name whether it is still alive."""

    host: str = field(default_factory=this_machine)
    pid: int = field(default_factory=os.getpid)
    token: str = field(default_factory=lambda: secrets.token_hex(8))

    def __str__(self) -> str:
        return f"{self.host}:{self.pid}:{self.token}"

    def knows_ended(self, other: str) -> bool:
        """Whether another owner has certainly ended; False if that is unknown, as on another machine."""
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
