"""Tests the texts of insights and of the memory tools: numbers, lengths, times and lists."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.memory.insights import (
    FeelingFact,
    InsightFacts,
    InsightRange,
    ItemFact,
    TaskFact,
    TrackedTime,
    compute_insights,
    insight_period,
    longest_streak,
    task_figures,
    tone_of,
)
from frontdesk.memory.model import ItemType, TaskStatus
from frontdesk.memory.operations.base import (
    format_count,
    format_counts,
    format_minutes,
    format_page,
    format_span,
    format_time,
)
from frontdesk.memory.validation import RecordPage

# Insights state what the numbers show, and nothing else


BERLIN = ZoneInfo("Europe/Berlin")
TODAY = date(2026, 3, 31)
NOW = datetime(2026, 3, 31, 20, tzinfo=UTC)
WEEK = insight_period(InsightRange.WEEK, TODAY, BERLIN)
DONE, OPEN, DROPPED = TaskStatus.COMPLETED, TaskStatus.PENDING, TaskStatus.CANCELLED


def on(day: int, hour: int = 12, minute: int = 0) -> datetime:
    """In March, in the person's zone."""
    return datetime(2026, 3, day, hour, minute, tzinfo=BERLIN).astimezone(UTC)


def test_a_period_is_whole_days_up_to_today_and_as_many_before() -> None:
    # Clocks were set forward on the 29th: that week is an hour shorter.
    assert (WEEK.days, WEEK.first) == (7, date(2026, 3, 25))
    assert (WEEK.span.start, WEEK.span.end) == (on(25, 0), on(31, 0) + timedelta(days=1))
    assert WEEK.span.end - WEEK.span.start == timedelta(days=7, hours=-1)
    assert (WEEK.before.start, WEEK.before.end) == (on(18, 0), WEEK.span.start)
    lengths = {name: insight_period(name, TODAY, BERLIN).days for name in InsightRange}
    assert lengths == {"today": 1, "week": 7, "month": 30, "quarter": 90, "year": 365}


def test_nothing_to_tell_of_is_said_to_be_nothing() -> None:
    for name in InsightRange:
        found = compute_insights(name, InsightFacts(insight_period(name, TODAY, BERLIN), NOW))
        assert (found.total, found.tasks.completion_rate, found.busiest_day, found.tone) == (0, None, None, None)
        assert len(found.sentences) == 1
        assert "nothing was put down" in found.sentences[0]


def test_tasks_are_told_against_the_days_before() -> None:
    tasks = [
        TaskFact(DONE, on(26), on(27), on(27)),
        TaskFact(DONE, on(1), None, on(30)),
        TaskFact(OPEN, on(25), on(28)),
        TaskFact(OPEN, on(25), on(31, 23)),
        TaskFact(DROPPED, on(26), on(27)),
        TaskFact(DONE, on(19), None, on(20)),
        TaskFact(OPEN, on(19)),
        TaskFact(OPEN, on(2), on(3)),
    ]
    found = task_figures(InsightFacts(WEEK, NOW, tasks=tasks))
    assert (found.created, found.completed, found.overdue, found.completion_rate) == (4, 2, 1, 50.0)
    assert (found.completed_before, found.completion_rate_before) == (1, 50.0)
    told = compute_insights(InsightRange.WEEK, InsightFacts(WEEK, NOW, tasks=tasks)).sentences
    assert told[0] == (
        "You completed 2 tasks, 50% of those at hand, the same as in the days before; 1 that fell due is still open."
    )
    better = compute_insights(InsightRange.WEEK, InsightFacts(WEEK, NOW, tasks=[*tasks[:2], tasks[6]])).sentences
    assert "100% of those at hand, up from 0% in the days before" in better[0]
    worse = compute_insights(InsightRange.WEEK, InsightFacts(WEEK, NOW, tasks=[tasks[2], tasks[5]])).sentences
    assert "You completed no tasks, 0% of those at hand, down from 100%" in worse[0]


def test_time_is_counted_where_it_falls_on_the_clock() -> None:
    tracked = [
        # Half of it before midnight, and across the hour that was skipped on the 29th.
        TrackedTime(on(26, 23, 30), on(27, 0, 30), "Work"),
        TrackedTime(on(29, 1, 30), on(29, 3, 30), "Play"),
        # Begun before the period, still running, and without a category.
        TrackedTime(on(24, 23), on(25, 0, 10), None),
        TrackedTime(NOW - timedelta(minutes=50), None, None),
    ]
    found = compute_insights(InsightRange.WEEK, InsightFacts(WEEK, NOW, tracked=tracked))
    assert found.tracked_minutes == 60 + 60 + 10 + 50
    assert found.minutes_by_category == {"Work": 60, "Play": 60, "No category": 60}
    assert found.busiest_day is not None
    assert (found.busiest_day.date, found.busiest_day.minutes) == (date(2026, 3, 29), 60)
    assert found.busiest_hour is not None
    assert (found.busiest_hour.hour, found.busiest_hour.minutes) == (21, 50)
    assert "You tracked 3 h, the most under Work (1 h); the busiest day was Sunday, 2026-03-29" in found.sentences[0]


def test_feelings_tags_places_and_days_are_summed_up() -> None:
    things = [
        ItemFact(ItemType.MEMORY, on(25), ("Sea", "sun")),
        ItemFact(ItemType.MEMORY, on(26), ("sea",)),
        ItemFact(ItemType.ACTIVITY, on(26, 23, 59)),
        ItemFact(ItemType.HABIT, on(28)),
    ]
    feelings = [
        FeelingFact(mood_change=2, energy_change=-1, place="Beach"),
        FeelingFact(mood_change=1),
        FeelingFact(valence=4, place="Beach"),
        FeelingFact(valence=-1, place="Town"),
        FeelingFact(),
    ]
    found = compute_insights(InsightRange.WEEK, InsightFacts(WEEK, NOW, items=things, feelings=feelings))
    assert (found.total, found.counts) == (4, {"memory": 2, "activity": 1, "habit": 1})
    assert (found.average_mood_change, found.average_energy_change, found.average_valence) == (1.5, -1.0, 1.5)
    assert (found.tone, found.tags, found.places) == ("positive", {"sea": 2, "sun": 1}, {"Beach": 2, "Town": 1})
    assert (found.active_days, found.longest_streak) == (3, 2)
    felt = "the tone of your memories was positive (+1.5 on a scale of -5 to 5)"
    assert found.sentences == [
        "In the last 7 days you added 2 memories, 1 activity and 1 habit.",
        f"After activities your mood rose by 1.5 and your energy fell by 1 on average; {felt}.",
        "You most often used the tags sea (2), sun (1) and the places Beach (2), Town (1).",
        "There is something on 3 of 7 days; the longest streak was 2 in a row.",
    ]


def test_a_day_is_told_beside_the_one_before() -> None:
    day = insight_period(InsightRange.TODAY, TODAY, BERLIN)
    found = compute_insights(
        InsightRange.TODAY,
        InsightFacts(
            day,
            NOW,
            [ItemFact(ItemType.TASK, on(31, 9))],
            [TaskFact(OPEN, on(31, 9)), TaskFact(DONE, on(30), None, on(30))],
        ),
    )
    assert found.sentences == [
        "Today you added 1 task.",
        "You completed no tasks, 0% of those at hand, down from 100% the day before.",
        "The day before you completed 1 task.",
    ]


def test_an_average_near_the_middle_is_even() -> None:
    assert [tone_of(valence) for valence in (None, -1.0, -0.9, 0.0, 0.9, 1.0)] == [
        None,
        "negative",
        "even",
        "even",
        "even",
        "positive",
    ]


DAYS = st.sets(st.dates(date(2026, 1, 1), date(2026, 2, 28)))


@given(DAYS)
def test_the_longest_streak_is_the_longest_run_of_days(days: set[date]) -> None:
    def run(day: date) -> int:
        return 1 + run(day + timedelta(days=1)) if day in days else 0

    assert longest_streak(sorted(days)) == max((run(day) for day in days), default=0)


MOMENTS = st.integers(0, 32 * 24 * 60).map(lambda minute: on(1) + timedelta(minutes=minute))
FACTS = st.builds(
    InsightFacts,
    st.sampled_from([insight_period(name, TODAY, BERLIN) for name in InsightRange]),
    st.just(NOW),
    st.lists(st.builds(ItemFact, st.sampled_from(ItemType), MOMENTS, st.lists(st.sampled_from("abc"))), max_size=5),
    st.lists(
        st.builds(TaskFact, st.sampled_from(TaskStatus), MOMENTS, st.none() | MOMENTS, st.none() | MOMENTS), max_size=5
    ),
    st.lists(st.builds(TrackedTime, MOMENTS, st.none() | MOMENTS, st.sampled_from(["x", None])), max_size=5),
    st.lists(
        st.builds(FeelingFact, st.none() | st.integers(-9, 9), st.none(), st.none() | st.integers(-5, 5)), max_size=5
    ),
)


@given(FACTS)
def test_whatever_the_facts_there_are_one_to_six_whole_sentences_and_the_parts_make_the_sum(
    facts: InsightFacts,
) -> None:
    name = next(one for one in InsightRange if insight_period(one, TODAY, BERLIN) == facts.period)
    found = compute_insights(name, facts)
    assert 1 <= len(found.sentences) <= 6
    assert all(line[0].isupper() and line.endswith(".") and "None" not in line for line in found.sentences)
    assert abs(sum(found.minutes_by_category.values()) - found.tracked_minutes) <= len(found.minutes_by_category)
    assert sum(found.counts.values()) == found.total
    assert found.longest_streak <= found.active_days <= facts.period.days
    assert compute_insights(name, replace(facts)) == found


# The memory tools: counts, lengths, times on the person's clock, and lists that report what is missing


AT = datetime(2026, 11, 20, 8, 0, tzinfo=UTC)


@pytest.mark.parametrize(("minutes", "said"), [(0, "0 min"), (45, "45 min"), (120, "2 h"), (85, "1 h 25 min")])
def test_a_length_is_told_in_hours_and_minutes(minutes: int, said: str) -> None:
    assert format_minutes(minutes) == said


def test_a_time_is_told_on_the_persons_clock() -> None:
    assert format_time(AT, BERLIN) == "Fri 2026-11-20 09:00 CET"
    assert format_time(AT - timedelta(days=150), BERLIN) == "Tue 2026-06-23 10:00 CEST"


def test_a_span_names_the_day_once_where_it_can() -> None:
    assert format_span(AT, None, BERLIN) == "since Fri 2026-11-20 09:00 CET"
    assert format_span(AT, AT + timedelta(minutes=35), BERLIN) == "Fri 2026-11-20 09:00-09:35 CET"
    assert format_span(AT, AT + timedelta(hours=20), BERLIN) == "Fri 2026-11-20 09:00 CET to Sat 2026-11-21 05:00 CET"


def test_a_page_says_which_part_of_how_many_it_is_and_how_to_go_on() -> None:
    def told(page: RecordPage[int]) -> str:
        return format_page(page, str, "memory", "memories", none="None yet.")

    assert told(RecordPage([], 0)) == "None yet."
    assert told(RecordPage([7], 1)) == "1 memory, showing 1-1 of 1:\n7"
    assert told(RecordPage([7, 8], 57, 20)) == "57 memories, showing 21-22 of 57; offset 22 for more:\n7\n8"
    assert told(RecordPage([], 57, 60)) == "57 memories in all, but none from offset 60 on; begin again with offset 0"


def test_figures_leave_out_what_there_is_none_of() -> None:
    assert (
        format_counts("By status", {"in_progress": 2, "pending": 0, "done": 1200})
        == "By status: in progress 2, done 1,200"
    )
    assert format_counts("By status", {"pending": 0}) == ""
    assert (format_count(1, "task"), format_count(2, "task"), format_count(0, "activity", "activities")) == (
        "1 task",
        "2 tasks",
        "0 activities",
    )
