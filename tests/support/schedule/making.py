"""Schedules for an installation under faults, in a few words each."""

from datetime import UTC, datetime, timedelta

from frontdesk.schedules.model import Misfire, Overlap, ScheduleDefinition, SchedulePolicy, Trigger, TriggerKind

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = 1_000_000
PROMPT = "Look after the garden."


def once(agent: str, at_us: int, *, attempts: int = 10, overlap: Overlap = Overlap.QUEUE) -> ScheduleDefinition:
    at = (EPOCH + timedelta(microseconds=at_us)).isoformat()
    return ScheduleDefinition(
        agent, PROMPT, Trigger(TriggerKind.ONCE, at), policy=SchedulePolicy(overlap=overlap, attempts=attempts)
    )


def every(
    agent: str,
    value: str,
    start_us: int,
    *,
    times: int | None = None,
    end_us: int | None = None,
    policy: SchedulePolicy | None = None,
) -> ScheduleDefinition:
    """At an interval; all that was missed is made up for, unless the policy says otherwise."""
    trigger = Trigger(TriggerKind.INTERVAL, value, start_us=start_us, end_us=end_us)
    return ScheduleDefinition(
        agent, PROMPT, trigger, policy=policy or SchedulePolicy(misfire=Misfire.ALL), max_repetitions=times
    )


def cron(agent: str, rule: str, start_us: int, *, policy: SchedulePolicy | None = None) -> ScheduleDefinition:
    trigger = Trigger(TriggerKind.CRON, rule, start_us=start_us)
    return ScheduleDefinition(agent, PROMPT, trigger, policy=policy or SchedulePolicy(misfire=Misfire.ALL))
