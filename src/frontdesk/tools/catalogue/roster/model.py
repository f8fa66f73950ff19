"""A tool server as it was last found."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from frontdesk.tools.catalogue.servers import ServerSpec

REMEMBERED = 10


class Status(StrEnum):
    """NEW was not asked yet; the tools of a FAILED one are those it last listed."""

    NEW = "new"
    OK = "ok"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Noted:
    """Something that a server did to its tools, and when: `3 new (a, b, c)`."""

    at: datetime
    what: str


@dataclass(frozen=True, slots=True)
class ServerState:
    """`problems` are those of its last listing, `changes` the latest few, the newest first.

    `declared_at`: when a replica last found it named in its settings or manifest.
    """

    spec: ServerSpec
    status: Status = Status.NEW
    error: str = ""
    problems: Sequence[str] = ()
    changes: Sequence[Noted] = ()
    tools: int = 0
    crawled_at: datetime | None = None
    answered_at: datetime | None = None
    declared_at: datetime | None = None

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def stale(self) -> bool:
        return self.status is Status.FAILED
