"""Schedules as the table holds them."""

from typing import Any, Protocol

from frontdesk.identity.authority import Authority
from frontdesk.schedule.model import (
    Forward,
    Misfire,
    NewSchedule,
    Overlap,
    Policy,
    Schedule,
    State,
    Trigger,
    TriggerKind,
)

# What may run beside other things stands in a line of its own.
BESIDE = " beside"


class Columns(Protocol):
    """A row of the table, or what becomes one."""

    def __getitem__(self, name: str, /) -> Any: ...  # noqa: ANN401 - a column's


def lane_of(agent_id: str, overlap: Overlap) -> str:
    return agent_id + BESIDE if overlap is Overlap.ALLOW else agent_id


def written(what: NewSchedule) -> dict[str, Any]:
    """The columns that say what a schedule is."""
    trigger, policy, forward = what.trigger, what.policy, what.forward
    return {
        "agent_id": what.agent_id,
        "user_id": what.user_id,
        "lane": lane_of(what.agent_id, policy.overlap),
        "prompt": what.prompt,
        "kind": trigger.kind,
        "value": trigger.value,
        "zone": trigger.zone,
        "start_us": trigger.start_us,
        "end_us": trigger.end_us,
        "jitter_s": trigger.jitter_s,
        "max_repetitions": what.max_repetitions,
        "overlap": policy.overlap,
        "misfire": policy.misfire,
        "max_late_s": policy.max_late_s,
        "attempts": policy.attempts,
        "words": what.words,
        "webhook": forward.webhook,
        "timeline": forward.timeline,
        "conversation_id": what.conversation_id,
        "made_by": what.made_by,
        **what.authority.columns,
    }


def trigger_of(row: Columns) -> Trigger:
    times = (row["start_us"], row["end_us"], row["jitter_s"])
    return Trigger(TriggerKind(row["kind"]), row["value"], row["zone"], *times)


def on_its_last(row: Columns) -> dict[str, Any]:
    """What stands in a row whose last time is being run, as if it had been written when that began."""
    return {"intended_us": None, "fire_us": None, "fired": row["fired"] + 1, "last_us": row["began_us"]}


def schedule_of(row: Columns) -> Schedule:
    """From a row that says when its last time was begun, if that is being run."""
    times = row if row["began_us"] is None else on_its_last(row)
    what = NewSchedule(
        agent_id=row["agent_id"],
        prompt=row["prompt"],
        trigger=trigger_of(row),
        user_id=row["user_id"],
        policy=Policy(Overlap(row["overlap"]), Misfire(row["misfire"]), row["max_late_s"], row["attempts"]),
        max_repetitions=row["max_repetitions"],
        words=row["words"],
        forward=Forward(row["webhook"], row["timeline"]),
        conversation_id=row["conversation_id"],
        made_by=row["made_by"],
        authority=Authority.read(row["credentials"], row["scopes"]),
    )
    return Schedule(
        id=row["id"],
        what=what,
        state=State(row["state"]),
        intended_us=times["intended_us"],
        fire_us=times["fire_us"],
        fired=times["fired"],
        last_us=times["last_us"],
        created_us=row["created_us"],
        updated_us=row["updated_us"],
    )
