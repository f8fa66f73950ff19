"""The options by which a schedule is made or changed."""

from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from cyclopts import Parameter


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class RuleOptions:
    """When.

    Parameters
    ----------
    time
        Once, at this time: 2025-12-25T10:00:00Z, or in plain words.
    cron
        By a rule of five fields, e.g. '0 9 * * MON-FRI', or @daily and the like.
    every
        At an interval: 30s, 5m, 1h, 2d.
    zone
        The time zone as an IANA name, e.g. Europe/Berlin; UTC when left out.
    start_at
        Not before this time.
    end_at
        Not after this time.
    """

    time: str | None = None
    cron: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None
    every: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None
    zone: str | None = None
    start_at: str | None = None
    end_at: str | None = None

    def given(self) -> dict[str, Any]:
        return asdict(self)


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Options(RuleOptions):
    """When, and what to do when things do not go as planned.

    Parameters
    ----------
    max_repetitions
        Stop after so many runs.
    jitter
        Let each run come up to this much later, e.g. 30s.
    overlap
        What a run does that falls into the one before it: wait for it, be left out, or run beside it.
    misfire
        What happens to runs that nobody was there for: one run makes up for all, each is run, or none.
    max_late
        Leave out a run that would be later than this, e.g. 1h.
    attempts
        How often one run is tried.
    webhook
        Where the agent's answer is sent.
    conversation_id
        The conversation to speak in; the agent's first when left out.
    """

    max_repetitions: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None
    jitter: str | None = None
    overlap: Literal["queue", "skip", "allow"] | None = None
    misfire: Literal["once", "all", "skip"] | None = None
    max_late: str | None = None
    attempts: str | None = None
    webhook: str | None = None
    conversation_id: str | None = None
