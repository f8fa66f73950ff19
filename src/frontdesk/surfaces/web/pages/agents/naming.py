"""How agents were named lately, in figures and words."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from frontdesk.identity.model import Source
from frontdesk.journal.model import Kind
from frontdesk.journal.store import Naming

# So many rows of the journal are looked at for each agent; a share is one of those.
NEWEST = 200
CALLS = (Kind.CALL, Kind.DENIAL)
# (where an id came from, how far that goes), the most trusted first.
WORDS: dict[Source, tuple[str, str]] = {
    Source.CREDENTIAL: ("its key or token", "proves who calls"),
    Source.HEADER: ("the header x-agent-id", "asserted by the client, on every request alike"),
    Source.PARAMETER: ("the parameter agent_id", "asserted by whoever writes the call, a model among them"),
    Source.METADATA: ("the metadata of the request", "asserted by the client"),
    Source.ENVIRONMENT: ("a setting of this server", "nobody was named; the setting stood in"),
    Source.SINGLE_AGENT: ("being the only agent", "nobody was named; there was no other"),
    Source.SCHEDULE: ("a schedule of its own", "this server itself woke it"),
    Source.OPERATOR: ("nothing in the request", "whoever sits at this machine spoke to it, or of it"),
    Source.NONE: ("nothing in the request", "nobody was named"),
}


@dataclass(frozen=True, slots=True)
class Way:
    """One way in which an agent was named."""

    source: Source
    words: str
    trust: str
    verified: bool
    times: int
    last_at: datetime


@dataclass(frozen=True, slots=True)
class Share:
    """How many of an agent's newest calls named it by header, and how many by parameter."""

    header: int = 0
    parameter: int = 0

    @property
    def all(self) -> int:
        return self.header + self.parameter

    @property
    def percent(self) -> int | None:
        """Of those by header; None where there were neither."""
        return round(100 * self.header / self.all) if self.all else None


def share(namings: Sequence[Naming]) -> Share:
    """Of calls alone: what follows from a call would count it again."""

    def of(source: Source) -> int:
        return sum(one.times for one in namings if one.source is source and one.kind in CALLS)

    return Share(of(Source.HEADER), of(Source.PARAMETER))


def last_seen(namings: Sequence[Naming]) -> datetime | None:
    return max((one.last_at for one in namings), default=None)


def ways(namings: Sequence[Naming]) -> Sequence[Way]:
    """Each way once, the most trusted first, and proven before asserted."""
    found = sorted(
        {(one.source, one.verified) for one in namings}, key=lambda way: (list(Source).index(way[0]), not way[1])
    )
    return [
        _way(source, [one for one in namings if (one.source, one.verified) == (source, verified)])
        for source, verified in found
    ]


def _way(source: Source, same: Sequence[Naming]) -> Way:
    words, trust = WORDS[source]
    times, last = sum(one.times for one in same), max(one.last_at for one in same)
    return Way(source, words, trust, same[0].verified, times, last)
