"""What the memory tools say: counts, lengths, times on the person's clock, and lists that tell what is missing."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from frontdesk.memory.operations.base import (
    format_count,
    format_counts,
    format_minutes,
    format_page,
    format_span,
    format_time,
)
from frontdesk.memory.validation import RecordPage

BERLIN = ZoneInfo("Europe/Berlin")
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
