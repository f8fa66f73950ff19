"""The options by which a schedule is made or changed."""

from dataclasses import asdict, dataclass
from typing import Annotated, Any

from cyclopts import Parameter

from frontdesk.schedule.model import Misfire, Overlap


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
        Stop after this many runs.
    jitter
        Delay each run by up to this much, e.g. 30s.
    overlap
        When the run before it has not ended: queue (wait for it), skip (leave it out) or allow (run beside it). A new
        schedule has queue.
    misfire
        Runs that fell due while no worker ran: once (one run for all of them), all (each), skip (none). A new
        schedule has once.
    max_late
        Skip a run that would start later than this, e.g. 1h.
    attempts
        Tries of one run before it is given up, 1 to 100. A new schedule has 10.
    webhook
        URL that the agent's answer is posted to; needs FRONTDESK_WEBHOOK_SECRET.
    conversation_id
        The conversation to speak in; the agent's first when left out.
    """

    max_repetitions: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None
    jitter: str | None = None
    overlap: Overlap | None = None
    misfire: Misfire | None = None
    max_late: str | None = None
    attempts: str | None = None
    webhook: str | None = None
    conversation_id: Annotated[str | None, Parameter(name=("--conversation", "--conversation-id"))] = None
