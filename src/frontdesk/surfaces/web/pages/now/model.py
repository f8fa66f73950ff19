"""What the first page knows of the house at one moment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from frontdesk.journal.model import Entry, Failures
from frontdesk.schedule.asked import Executor
from frontdesk.schedule.past.store import Holder, Late
from frontdesk.surfaces.web.pages.now.pace import Pace
from frontdesk.tools.catalogue.roster.model import ServerState


@dataclass(frozen=True, slots=True)
class Host:
    """What runs the agents, where, and what is wrong with it; `agents` says whether it has any, as far as is known."""

    name: str
    place: str = ""
    trouble: str = ""
    agents: bool = True
    pretends: bool = False


@dataclass(frozen=True, slots=True)
class Work:
    """How the schedule stands: the worker of this process, who else delivers just now, and what is overdue."""

    here: Executor
    others: Sequence[Holder] = ()
    late: Sequence[Late] = ()


@dataclass(frozen=True, slots=True)
class Facts:
    """What was found; of a database that does not answer, only that it does not."""

    now: datetime
    database: str
    host: Host
    servers: Sequence[ServerState] = ()
    search_trouble: str = ""
    asked_every: timedelta = timedelta(minutes=15)
    database_trouble: str = ""
    write_trouble: str = ""
    work: Work | None = None
    failures: Failures = field(default_factory=Failures)
    rows: Sequence[tuple[int, Entry]] = ()
    # Of the agents that are shown, those whose names are known.
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    pace: Pace = field(default_factory=Pace)
    new: bool = False


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that is wrong, what to do about it, and where; `kind` is `bad`, or `warn` for what can wait."""

    what: str
    do: str
    kind: str = "bad"
    link: str = ""
    to: str = ""
    command: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """A number to look at, and the page where one acts on it."""

    name: str
    value: str
    link: str = ""
    note: str = ""
    kind: str = ""
    # A moment to be told relative to now, after the note.
    at: datetime | None = None
