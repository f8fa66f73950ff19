"""What becomes of each row of a PromptYoSelf file."""

import random
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from frontdesk.errors import Invalid, NotFound
from frontdesk.schedules.create import ScheduleLimits
from frontdesk.schedules.model import Trigger, TriggerKind, to_us
from frontdesk.schedules.promptyoself import PlannedImport, PromptYoSelfRow, plan_import, read_promptyoself
from tests.requirements import shows
from tests.support.promptyoself import reminder, schedule, write

NOW = to_us(datetime(2026, 3, 4, 12, tzinfo=UTC))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "promptyoself.db"


def only(file: Path, **values: Any) -> PlannedImport:
    planned = plan_import(read_promptyoself(write(file, [reminder(**values)])), ScheduleLimits(), NOW)
    assert planned.left_out == []
    return planned.taken[0]


def reason(file: Path, **values: Any) -> str:
    planned = plan_import(read_promptyoself(write(file, [reminder(**values)])), ScheduleLimits(), NOW)
    assert planned.taken == []
    ((name, why),) = planned.left_out
    assert name == "unified_reminders 1"
    return why


def test_a_cron_rule_goes_on_in_utc(file: Path) -> None:
    taken = only(file)
    assert taken.new.trigger == Trigger(TriggerKind.CRON, "0 9 * * *")
    assert (taken.new.agent_id, taken.new.prompt) == ("agent-1", "Daily report")
    assert taken.intended_us == to_us(datetime(2026, 3, 5, 9, tzinfo=UTC))


@shows("KEPT-14")
def test_space_around_an_agent_id_is_not_part_of_it(file: Path) -> None:
    assert only(file, agent_id=" agent-1\n").new.agent_id == "agent-1"


def test_an_interval_goes_on_from_its_next_run(file: Path) -> None:
    taken = only(file, schedule_type="interval", schedule_value="30m", next_run="2026-03-04 11:50:00.250000")
    assert taken.intended_us == to_us(datetime(2026, 3, 4, 12, 20, 0, 250_000, tzinfo=UTC))
    assert taken.new.trigger.value == "30m"


def test_a_naive_time_is_utc_and_an_offset_that_its_user_wrote_counts(file: Path) -> None:
    naive = only(file, schedule_type="once", schedule_value="2026-03-05T10:00:00", next_run="2026-03-05 10:00:00")
    assert naive.intended_us == to_us(datetime(2026, 3, 5, 10, tzinfo=UTC))
    offset = only(
        file.with_name("b"),
        schedule_type="once",
        schedule_value="2026-03-05T10:00:00+05:30",
        next_run="2026-03-05 10:00:00",
    )
    assert offset.intended_us == to_us(datetime(2026, 3, 5, 4, 30, tzinfo=UTC))


def test_a_prompt_that_was_due_while_nobody_ran_it_is_still_due_within_a_day(file: Path) -> None:
    late = only(file, schedule_type="once", schedule_value="", next_run="2026-03-04 02:00:00")
    assert late.intended_us == to_us(datetime(2026, 3, 4, 2, tzinfo=UTC))
    told = reason(file.with_name("b"), schedule_type="once", schedule_value="", next_run="2026-03-02 02:00:00")
    assert told.startswith("it was due at 2026-03-02T02:00:00+00:00, and never ran")


def test_what_has_run_counts_against_the_maximum(file: Path) -> None:
    taken = only(file, max_repetitions=10, repetition_count=3)
    assert (taken.new.max_repetitions, taken.fired) == (10, 3)
    assert only(file.with_name("c"), repetition_count=3).fired == 3
    assert reason(file.with_name("b"), max_repetitions=3, repetition_count=3) == "it has run 3 times of 3"


@shows("SCHEDULE-IMPORT")
@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"active": 0}, "it is not active any more"),
        ({"status": "cancelled"}, "its status is 'cancelled'"),
        ({"status": "Completed"}, "its status is 'completed'"),
        ({"agent_id": None}, "'None' is not an agent id"),
        ({"agent_id": "null"}, "'null' is not an agent id"),
        ({"agent_id": "no such/agent"}, "'no such/agent' is not an agent id"),
        ({"message": "  "}, "it has no text"),
        ({"message": "x" * 20_001}, "The prompt has 20001 characters; at most 20000 are allowed"),
        ({"schedule_value": "99 * * * *"}, "Invalid cron expression: 99 * * * *"),
        (
            {"schedule_type": "interval", "schedule_value": "-5m"},
            "Invalid interval format: -5m. Use formats like '30s', '5m', '1h'",
        ),
        ({"schedule_type": "sometimes"}, "its kind is 'sometimes', and there are once, cron and interval"),
        ({"schedule_type": "once", "schedule_value": "28", "next_run": None}, "'28' is no time"),
        ({"schedule_type": "interval", "schedule_value": "1h", "next_run": "later"}, "'later' is no time"),
        ({"max_repetitions": 0}, "its max_repetitions is 0"),
        ({"max_repetitions": 2**31}, "its max_repetitions is 2147483648"),
        ({"repetition_count": 2**31}, "it has run 2147483648 times of 2147483647"),
        ({"max_repetitions": "many"}, "its max_repetitions is 'many', which is no number"),
    ],
)
def test_what_is_left_out_is_told_with_its_reason(file: Path, values: dict[str, Any], why: str) -> None:
    assert reason(file, **values) == why


def test_a_pace_that_is_not_allowed_is_left_out(file: Path) -> None:
    assert "must be at least 10 s apart" in reason(file, schedule_type="interval", schedule_value="1s")


def test_what_both_tables_have_is_taken_once(file: Path) -> None:
    write(file, [reminder(), reminder()], [schedule(), schedule(prompt_text="Only here")])
    planned = plan_import(read_promptyoself(file), ScheduleLimits(), NOW)
    assert [taken.new.prompt for taken in planned.taken] == ["Daily report", "Daily report", "Only here"]
    assert planned.left_out == [("schedules 1", "it is in unified_reminders too")]


def test_a_file_with_the_older_table_alone_is_read(file: Path) -> None:
    planned = plan_import(read_promptyoself(write(file, None, [schedule()])), ScheduleLimits(), NOW)
    assert [taken.new.prompt for taken in planned.taken] == ["Daily report"]


def test_a_row_is_known_again_however_often_it_has_run() -> None:
    row = PromptYoSelfRow(
        "unified_reminders", 1, "agent-1", "Hi", "cron", "@daily", next_run="2026-01-01", repetition_count=1
    )
    later = PromptYoSelfRow(
        "unified_reminders", 1, "agent-1", "Hi", "cron", "@daily", next_run="2026-02-01", repetition_count=9
    )
    other = PromptYoSelfRow(
        "unified_reminders", 2, "agent-1", "Hi", "cron", "@daily", next_run="2026-01-01", repetition_count=1
    )
    assert row.mark == later.mark != other.mark


@shows("SCHEDULE-IMPORT")
def test_a_foreign_file_is_told_as_one(file: Path, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="There is no file"):
        read_promptyoself(tmp_path / "nowhere.db")
    with pytest.raises(NotFound):
        read_promptyoself(tmp_path)
    file.write_text("this is a letter, and no database at all\n" * 99)
    with pytest.raises(Invalid, match="no SQLite file"):
        read_promptyoself(file)
    with pytest.raises(Invalid, match="it is not PromptYoSelf's"):
        read_promptyoself(write(tmp_path / "empty.db"))


def test_a_table_of_the_same_name_with_other_columns_is_somebody_elses(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE schedules (id INTEGER, train TEXT, platform TEXT)")
    with pytest.raises(Invalid, match="without agent_id, message, schedule_type"):
        read_promptyoself(path)


@shows("SCHEDULE-IMPORT")
@pytest.mark.parametrize("seed", range(8))
def test_a_damaged_file_is_read_whole_or_not_at_all(file: Path, seed: int) -> None:
    write(file, [reminder(message=f"Prompt {number}" * 20) for number in range(200)])
    whole = len(read_promptyoself(file))
    damaged = bytearray(file.read_bytes())
    chance = random.Random(seed)
    start = chance.randrange(100, len(damaged) - 4096)
    damaged[start : start + 4096] = chance.randbytes(4096)
    file.write_bytes(bytes(damaged))
    try:
        found = len(read_promptyoself(file))
    except Invalid:
        return
    assert found == whole


def test_reading_changes_nothing(file: Path) -> None:
    write(file, [reminder()])
    before = file.read_bytes()
    read_promptyoself(file)
    assert file.read_bytes() == before
    assert [found.name for found in file.parent.iterdir()] == [file.name]
