"""Keeps a scheduled run from planting more of itself: prompts such as "each Monday…" would multiply."""

from collections.abc import Sequence
from dataclasses import dataclass

from frontdesk.errors import Conflict
from frontdesk.schedule.model import Trigger, TriggerKind

ONE_SHOTS = 3


@dataclass(frozen=True, slots=True)
class Run:
    """A run that an agent has under way: its delivery id, and whether its schedule repeats by itself."""

    delivery_id: str
    schedule_id: int
    recurring: bool


def recurs(trigger: Trigger, max_repetitions: int | None) -> bool:
    """Whether it may fire more than once; an interval that fires once is a delay."""
    return trigger.kind is not TriggerKind.ONCE and max_repetitions != 1


def check(runs: Sequence[Run], made: int, *, recurring: bool) -> None:
    """Refuse what an agent should not plan in the middle of these runs; `made` is how many they planned already."""
    again = next((run for run in runs if run.recurring), None)
    if recurring and again is not None:
        raise Conflict(
            f"This is a scheduled run of schedule {again.schedule_id}, which repeats by itself; "
            "it needs no other schedule. Answer its prompt, or change that schedule"
        )
    if runs and made >= ONE_SHOTS:
        raise Conflict(
            f"This run of schedule {runs[0].schedule_id} has made {made} schedules, which is as many as one run may"
        )


def check_start(runs: Sequence[Run]) -> None:
    """Refuse to have a run start another one, which could go on for ever."""
    if runs:
        raise Conflict(
            f"This is a scheduled run of schedule {runs[0].schedule_id}, and a run cannot start another; "
            "ask again when it has ended"
        )
