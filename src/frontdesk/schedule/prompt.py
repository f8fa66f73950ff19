"""The words in which an occurrence reaches its agent: a head that says what this is, then the prompt as given."""

from datetime import UTC, datetime

from frontdesk.schedule.model import Occurrence, moment


def composed(occurrence: Occurrence, now_us: int) -> str:
    """The whole text, for a delivery at this time."""
    return f"[{' '.join(_head(occurrence, now_us))}]\n\n{occurrence.prompt}"


def _head(occurrence: Occurrence, now_us: int) -> list[str]:
    due, now = told(moment(occurrence.intended_us)), told(moment(now_us))
    run = f"This is a scheduled run of schedule {occurrence.schedule_id}, number {occurrence.number}"
    said = [
        f"{run}, and not a request to schedule anything again.",
        f"It was started by hand at {due}." if occurrence.manual else f"It was due at {due} and comes at {now}.",
        _outlook(occurrence),
        f"Attempt {occurrence.attempt}, delivery {occurrence.id}.",
    ]
    if occurrence.in_doubt:
        said.append("An earlier attempt may have reached you: what you did for this delivery id, do not do twice.")
    return [sentence for sentence in said if sentence]


def _outlook(occurrence: Occurrence) -> str:
    if not occurrence.recurring:
        return ""
    return "It is the last one." if occurrence.last else "The schedule repeats by itself."


def told(at: datetime) -> str:
    """A time as it is told to agents and webhooks: UTC, to the second."""
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
