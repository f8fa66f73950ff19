"""Tests which due runs happen, are skipped or come next, however long no worker ran."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontdesk.schedules.delivery_rules import FirePlan, SkippedFires, plan_fire
from frontdesk.schedules.model import SECOND, Misfire, Overlap, SchedulePolicy, Trigger, TriggerKind, to_us
from frontdesk.schedules.triggers import cron_trigger, first_fire, preview_fires
from tests.requirements import shows

MINUTE = 60 * SECOND
YEAR = 366 * 24 * 60 * MINUTE
T0 = to_us(datetime(2025, 3, 1, tzinfo=UTC))
EVERY_MINUTE = Trigger(TriggerKind.INTERVAL, "1m", start_us=T0)
T1, T2, T3, T4 = (T0 + number * MINUTE for number in range(1, 5))


def due(misfire: Misfire, now_us: int, **more: int | None) -> FirePlan:
    return plan_fire(EVERY_MINUTE, SchedulePolicy(misfire=misfire), T0, now_us, **more)  # type: ignore[arg-type]


@shows("SCHEDULE-MISFIRE")
@pytest.mark.parametrize("misfire", Misfire)
def test_a_fire_that_is_on_time_is_run(misfire: Misfire) -> None:
    assert due(misfire, T0) == FirePlan(T0, None, T1)
    assert due(misfire, T0 + 10 * SECOND) == FirePlan(T0, None, T1)


@shows("SCHEDULE-MISFIRE")
def test_missed_fires_are_caught_up_once_with_the_latest() -> None:
    assert due(Misfire.ONCE, T3 + SECOND) == FirePlan(T3, SkippedFires(3, T0, T2, "caught up once"), T4)


def test_a_fire_that_was_missed_alone_is_run_however_late() -> None:
    once = Trigger(TriggerKind.ONCE, "2025-03-01T00:00:00+00:00")
    assert plan_fire(once, SchedulePolicy(), T0, T0 + YEAR) == FirePlan(T0, None, None)


@shows("SCHEDULE-MISFIRE")
def test_all_missed_fires_are_run_one_after_the_other() -> None:
    assert due(Misfire.ALL, T3 + SECOND) == FirePlan(T0, None, T1)
    assert plan_fire(EVERY_MINUTE, SchedulePolicy(misfire=Misfire.ALL), T1, T3 + SECOND) == FirePlan(T1, None, T2)


@shows("SCHEDULE-MISFIRE")
def test_missed_fires_are_skipped_and_the_one_that_is_just_due_is_run() -> None:
    assert due(Misfire.SKIP, T3 + SECOND) == FirePlan(T3, SkippedFires(3, T0, T2, "missed"), T4)


def test_with_nothing_just_due_all_are_skipped() -> None:
    hourly = Trigger(TriggerKind.INTERVAL, "1h", start_us=T0)
    late = T0 + MINUTE
    assert plan_fire(hourly, SchedulePolicy(misfire=Misfire.SKIP), T0, late) == FirePlan(T0, None, T0 + 60 * MINUTE)
    assert plan_fire(hourly, SchedulePolicy(misfire=Misfire.SKIP), T0, late + 1) == FirePlan(
        None, SkippedFires(1, T0, T0, "missed"), T0 + 60 * MINUTE
    )


@pytest.mark.parametrize("misfire", Misfire)
def test_a_one_time_prompt_that_is_too_late_is_skipped_for_good(misfire: Misfire) -> None:
    once = Trigger(TriggerKind.ONCE, "2025-03-01T00:00:00+00:00")
    policy = SchedulePolicy(misfire=misfire, max_late_s=30)
    assert plan_fire(once, policy, T0, T0 + 30 * SECOND).fire_us == T0
    assert plan_fire(once, policy, T0, T0 + 31 * SECOND) == FirePlan(None, SkippedFires(1, T0, T0, "too late"), None)


@shows("SCHEDULE-MISFIRE")
def test_what_is_too_late_is_left_out_even_where_all_are_to_be_run() -> None:
    policy = SchedulePolicy(misfire=Misfire.ALL, max_late_s=90)
    assert plan_fire(EVERY_MINUTE, policy, T0, T3 + SECOND) == FirePlan(T2, SkippedFires(2, T0, T1, "too late"), T3)


def test_every_reason_is_told() -> None:
    policy = SchedulePolicy(max_late_s=150)
    assert plan_fire(EVERY_MINUTE, policy, T0, T4 + SECOND) == FirePlan(
        T4, SkippedFires(4, T0, T3, "too late, caught up once"), T4 + MINUTE
    )


def test_what_fell_into_the_run_before_is_left_out_where_the_policy_says_so() -> None:
    policy = SchedulePolicy(overlap=Overlap.SKIP, misfire=Misfire.ALL)
    now = T2 + 10 * SECOND
    assert plan_fire(EVERY_MINUTE, policy, T0, now, last_ended_us=T1) == FirePlan(
        T2, SkippedFires(2, T0, T1, "still running"), T3
    )
    assert plan_fire(EVERY_MINUTE, policy, T0, now, last_ended_us=now) == FirePlan(
        None, SkippedFires(3, T0, T2, "still running"), T3
    )
    assert plan_fire(EVERY_MINUTE, policy, T0, now, last_ended_us=T0 - 1) == FirePlan(T0, None, T1)
    assert plan_fire(EVERY_MINUTE, SchedulePolicy(misfire=Misfire.ALL), T0, now, last_ended_us=now) == FirePlan(
        T0, None, T1
    )


@shows("SCHEDULE-MISFIRE")
def test_only_what_is_run_counts_as_a_repetition() -> None:
    assert due(Misfire.ONCE, T3, fired=1, max_repetitions=3).next_us == T4
    assert due(Misfire.ONCE, T3, fired=2, max_repetitions=3) == FirePlan(
        T3, SkippedFires(3, T0, T2, "caught up once"), None
    )
    assert due(Misfire.ONCE, T3, fired=3, max_repetitions=3) == FirePlan(None, None, None)


def test_after_the_end_nothing_is_next() -> None:
    ends = Trigger(TriggerKind.INTERVAL, "1m", start_us=T0, end_us=T2)
    assert plan_fire(ends, SchedulePolicy(), T0, T4) == FirePlan(T2, SkippedFires(2, T0, T1, "caught up once"), None)


def test_within_its_jitter_no_fire_is_missed() -> None:
    jittery = Trigger(TriggerKind.INTERVAL, "1m", start_us=T0, jitter_s=180)
    assert plan_fire(jittery, SchedulePolicy(), T0, T2 + SECOND) == FirePlan(T0, None, T1)
    assert plan_fire(jittery, SchedulePolicy(misfire=Misfire.SKIP), T0, T3 + SECOND) == FirePlan(T0, None, T1)
    assert plan_fire(jittery, SchedulePolicy(max_late_s=1), T0, T3 + SECOND) == FirePlan(T0, None, T1)


@shows("SCHEDULE-MISFIRE")
@pytest.mark.parametrize("misfire", Misfire)
def test_a_second_after_second_that_was_down_for_a_year_is_planned_at_once(misfire: Misfire) -> None:
    every = Trigger(TriggerKind.INTERVAL, "1s", start_us=T0)
    policy, last = SchedulePolicy(misfire=misfire, max_late_s=200 * 24 * 3600), T0 + YEAR
    # Second by second, a thousand plans would take hours.
    (found,) = {plan_fire(every, policy, T0, last) for _ in range(1000)}
    assert found.skipped is not None
    if misfire is Misfire.ALL:
        assert found.next_us == last - 200 * 24 * 3600 * SECOND + SECOND
    else:
        assert (found.fire_us, found.next_us, found.skipped.count) == (last, last + SECOND, YEAR // SECOND)


def test_a_minute_after_minute_that_was_down_for_a_year_is_planned_and_counted_at_once() -> None:
    every = cron_trigger("* * * * *", "Europe/Berlin")
    found = plan_fire(every, SchedulePolicy(), T0, T0 + YEAR)
    assert found == FirePlan(
        T0 + YEAR, SkippedFires(YEAR // MINUTE, T0, T0 + YEAR - MINUTE, "caught up once"), T0 + YEAR + MINUTE
    )


TRIGGERS = st.sampled_from(
    [
        Trigger(TriggerKind.INTERVAL, "7s", start_us=T0 + 123),
        Trigger(TriggerKind.INTERVAL, "45s", start_us=T0 - 999_999, jitter_s=20),
        Trigger(TriggerKind.INTERVAL, "10m", start_us=T0, end_us=T0 + 3600 * SECOND),
        cron_trigger("* * * * *"),
        cron_trigger("*/7 0-2 * * *", "America/New_York"),
        cron_trigger("0,1,30 1,2 * * *", "Europe/Berlin"),
    ]
)
POLICIES = st.builds(
    SchedulePolicy,
    overlap=st.sampled_from(Overlap),
    misfire=st.sampled_from(Misfire),
    max_late_s=st.none() | st.integers(0, 8000),
)


@given(
    trigger=TRIGGERS,
    policy=POLICIES,
    since_s=st.integers(0, 40 * 86400),
    late_us=st.integers(0, 2 * 3600 * SECOND),
    ended=st.none() | st.integers(-3600, 7200),
    fired=st.integers(0, 3),
    most=st.none() | st.integers(1, 4),
)
@settings(max_examples=250, deadline=None)
def test_a_plan_is_what_one_would_do_fire_by_fire(
    trigger: Trigger,
    policy: SchedulePolicy,
    since_s: int,
    late_us: int,
    ended: int | None,
    fired: int,
    most: int | None,
) -> None:
    intended = first_fire(trigger, min(T0 + since_s * SECOND, (trigger.end_us or 2**60) - 1))
    assert intended is not None
    now = intended + late_us
    ended_us = None if ended is None else intended + ended * SECOND
    assert plan_fire(trigger, policy, intended, now, fired, most, ended_us) == slowly(
        trigger, policy, intended, now, fired, most, ended_us
    )


def slowly(
    trigger: Trigger,
    policy: SchedulePolicy,
    intended: int,
    now: int,
    fired: int,
    most: int | None,
    ended_us: int | None,
) -> FirePlan:
    """The plan, from a loop over every due fire."""
    if most is not None and fired >= most:
        return FirePlan(None, None, None)
    slack = trigger.jitter_s * SECOND
    listed = [intended, *preview_fires(trigger, intended, (now - intended) // (7 * SECOND) + 2)]
    fires = [fire for fire in listed if fire == intended or fire + slack <= now]
    why = [reason(fire, fires, policy, now - slack, ended_us) for fire in fires]
    runs = [fire for fire, each in zip(fires, why, strict=True) if each is None]
    run = (runs[0] if policy.misfire is Misfire.ALL else runs[-1]) if runs else None
    before = [(fire, each) for fire, each in zip(fires, why, strict=True) if run is None or fire < run]
    skipped = None
    if before:
        reasons = ", ".join(dict.fromkeys(each or "?" for _, each in before))
        skipped = SkippedFires(len(before), before[0][0], before[-1][0], reasons)
    following = [fire for fire in listed if fire > (fires[-1] if run is None else run)]
    ends = not following or (run is not None and fired + 1 == most)
    return FirePlan(run, skipped, None if ends else following[0])


def reason(fire: int, fires: Sequence[int], policy: SchedulePolicy, now: int, ended_us: int | None) -> str | None:
    if policy.max_late_s is not None and now - fire > policy.max_late_s * SECOND:
        return "too late"
    if policy.overlap is Overlap.SKIP and ended_us is not None and fire <= ended_us:
        return "still running"
    if policy.misfire is Misfire.SKIP and (fire < fires[-1] or now - fire > 60 * SECOND):
        return "missed"
    if policy.misfire is Misfire.ONCE and fire < fires[-1]:
        return "caught up once"
    return None


@pytest.mark.parametrize("misfire", Misfire)
@pytest.mark.parametrize("overlap", Overlap)
def test_no_plan_goes_back_in_time_or_repeats_itself(misfire: Misfire, overlap: Overlap) -> None:
    policy, intended, seen = SchedulePolicy(overlap, misfire, max_late_s=300), T0, list[int]()
    for _ in range(20):
        found = plan_fire(EVERY_MINUTE, policy, intended, T0 + 17 * MINUTE, last_ended_us=T0 + 2 * MINUTE)
        seen += [fire for fire in (found.fire_us,) if fire is not None]
        assert found.next_us is not None
        assert found.next_us > intended
        intended = found.next_us
        if intended > T0 + 17 * MINUTE:
            break
    assert seen == sorted(set(seen))
    assert intended == T0 + 18 * MINUTE
