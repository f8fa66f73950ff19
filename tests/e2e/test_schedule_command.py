"""Tests `frontdesk schedule` and `frontdesk worker` as typed commands."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.requirements import shows
from tests.support.desk import ROOT, START_SECONDS, STOP_SECONDS, Desk, clean_environment, frontdesk_here, open_desk
from tests.support.scheduling import reminder, write

SECONDS = 60
Done = subprocess.CompletedProcess[str]
Typed = Callable[..., Done]


@pytest.fixture
def typed(tmp_path: Path) -> Typed:
    """Runs the command on a database of its own, where schedules may repeat every second."""

    def run(*arguments: str, **settings: str) -> Done:
        chosen = {"FRONTDESK_SCHEDULE_SHORTEST": "1", **settings}
        return frontdesk_here(*arguments, data=tmp_path / "data", **chosen)

    return run


@pytest.fixture
def ada(typed: Typed) -> str:
    return typed("agents", "create", "Ada").stdout.strip()


def told(done: Done) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@shows("CLI-SCHEDULE")
def test_a_schedule_is_added_listed_shown_changed_paused_resumed_and_cancelled(typed: Typed, ada: str) -> None:
    assert "frontdesk schedule add AGENT PROMPT WHEN" in typed("schedule", "list").stdout
    added = typed("schedule", "add", "Ada", "Write the report", "every weekday at 9 Berlin time")
    assert (added.stdout, added.stderr.startswith("Schedule 1: ")) == ("1\n", True)
    assert "Europe/Berlin" in added.stderr
    [one] = map(json.loads, typed("schedule", "list", "--json").stdout.splitlines())
    assert (one["id"], one["agent_id"], one["schedule_value"], one["zone"]) == (
        *(1, ada),
        *("0 9 * * MON-FRI", "Europe/Berlin"),
    )
    head, row = typed("schedule", "list", "--agent", "Ada").stdout.splitlines()
    assert head.split() == ["id", "agent", "rule", "next", "runs", "state", "prompt"]
    assert ("0 9 * * MON-FRI (Europe/Berlin)" in row, "Write the report" in row) == (True, True)
    shown = typed("schedule", "show", "1").stdout
    assert "misfire           once" in shown
    assert shown.endswith("Write the report\n")
    changed = told(typed("schedule", "update", "1", "every day at 7", "--max-repetitions", "3", "--json"))
    assert (changed["schedule_value"], changed["max_repetitions"]) == ("0 7 * * *", 3)
    assert told(typed("schedule", "update", "1", "--clear", "max-repetitions", "--json"))["max_repetitions"] is None
    assert typed("schedule", "pause", "1").stdout == "Schedule 1 paused\n"
    assert "paused" in typed("schedule", "list").stdout
    assert told(typed("schedule", "resume", "1", "--json"))["state"] == "active"
    assert typed("schedule", "cancel", "1").stdout == "Schedule 1 cancelled\n"
    again = typed("schedule", "cancel", "1")
    assert (again.returncode, again.stderr) == (1, "frontdesk: Schedule 1 not found or already cancelled\n")
    assert "No schedules" in typed("schedule", "list").stdout
    assert "cancelled" in typed("schedule", "list", "--all").stdout


def test_a_rule_is_tried_before_it_is_used(typed: Typed) -> None:
    shown = typed("schedule", "preview", "every weekday at 9 Berlin time", "--count", "3").stdout
    assert shown.count("T09:00:00+0") >= 3
    by_cron = told(typed("schedule", "preview", "--cron", "0 9 * * *", "--zone", "Asia/Kolkata", "--json"))
    assert [at["utc"][11:16] for at in by_cron["times"]] == ["03:30"] * 5


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("add", "Ada", "x"), "Must specify WHEN, or one of --time, --cron, or --every"),
        (("add", "Ada", "x", "--every", "0s"), "Invalid interval format: 0s"),
        (("add", "Ada", "x", "--every", "-5m"), "Invalid interval format: -5m"),
        (("add", "Ada", "x", "--cron", "nonsense"), "Invalid cron expression: nonsense"),
        (("add", "Ada", "x", "--time", "28"), "Invalid time format."),
        (("add", "Ada", "x", "--every", "5m", "--max-repetitions", "0"), "max-repetitions must be a positive integer"),
        (("add", "Nobody", "x", "--every", "5m"), "There is no agent 'Nobody'"),
        (("add", "Ada", "x", "sooner or later"), "is no rule that can be read"),
        (("show", "7"), "Schedule 7 not found"),
        (("show", "seven"), "Schedule ID must be a number"),
        (("run", "7"), "Schedule 7 not found"),
        (("history", "7"), "Schedule 7 not found"),
        (("redrive", "run-7-7"), "run-7-7"),
        (("import",), "Say which file"),
        (("import", "nowhere.db"), "nowhere.db"),
    ],
)
def test_what_cannot_be_done_is_said(typed: Typed, ada: str, arguments: tuple[str, ...], said: str) -> None:
    done = typed("schedule", *arguments)
    assert (done.returncode in (1, 2), said in done.stderr) == (True, True), done.stderr


@contextmanager
def open_worker(data: Path, *arguments: str) -> Generator[subprocess.Popen[str]]:
    """A worker process, after it has reported its start."""
    process = subprocess.Popen(
        [sys.executable, "-m", "frontdesk", "worker", *arguments],
        env=clean_environment(FRONTDESK_DATA=str(data)) | {"PYTHONPATH": str(ROOT)},
        cwd=data.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=STOP_SECONDS)


@shows("CLI-SCHEDULE")
def test_a_worker_delivers_what_another_process_plans_and_stops_when_told(
    typed: Typed, ada: str, tmp_path: Path
) -> None:
    with open_worker(tmp_path / "data", "--json") as worker:
        assert worker.stdout is not None
        assert json.loads(worker.stdout.readline())["event"] == "started"
        typed("schedule", "add", "Ada", "Ping me", "in 1 second")
        run = delivered(typed)
        assert run["answer"]
        asked = told(typed("schedule", "run", "1", "--json"))
        assert asked["schedule_id"] == 1
        worker.send_signal(signal.SIGTERM)
        out, err = worker.communicate(timeout=STOP_SECONDS)
        assert worker.returncode == 0, err
        assert json.loads(out.splitlines()[-1])["event"] == "stopped"


def delivered(typed: Typed) -> dict[str, Any]:
    """The first delivered run."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        found = typed("schedule", "history", "--standing", "delivered", "--json").stdout.splitlines()
        if found:
            return json.loads(found[-1])
    raise AssertionError(f"nothing was delivered in {SECONDS} s")


@pytest.fixture
def working(tmp_path: Path) -> Iterator[Desk]:
    with open_desk(tmp_path / "data") as desk:
        yield desk


def test_a_run_is_waited_for_and_a_dead_one_is_tried_again(working: Desk, typed: Typed, ada: str) -> None:
    typed("schedule", "add", "Ada", "Say something", "--cron", "0 9 * * *")
    ran = told(typed("schedule", "run", "1", "--wait", "--json"))
    assert (ran["standing"], ran["manual"]) == ("delivered", True)
    assert typed("schedule", "run", "1", "--wait").stdout.strip() == ran["answer"].strip()
    typed("schedule", "add", "agent-gone", "x", "--cron", "0 9 * * *", "--skip-validation")
    dead = typed("schedule", "run", "2", "--wait")
    assert (dead.returncode, "agent-gone" in dead.stdout) == (1, True)
    [row] = [line for line in typed("schedule", "history", "--standing", "dead").stdout.splitlines() if "run-2" in line]
    assert typed("schedule", "redrive", row.split()[0]).stdout == f"{row.split()[0]} is tried again\n"


@shows("CLI-SCHEDULE")
def test_a_promptyoself_database_is_taken_over_once(typed: Typed, tmp_path: Path) -> None:
    later = (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%d %H:%M:%S.%f")
    rows = [
        reminder(next_run=later),
        reminder(message="Focus check", next_run=later, schedule_type="interval", schedule_value="5m"),
        reminder(message="Ping me once", next_run=later, schedule_type="once", schedule_value=later),
        reminder(message="Over", next_run=later, status="cancelled", active=0),
        reminder(message="Broken", next_run=later, schedule_value="every now and then"),
    ]
    path = write(tmp_path / "promptyoself.db", rows)
    first = typed("schedule", "import", PROMPTYOSELF_DB=str(path))
    assert first.returncode == 0, first.stderr
    assert first.stdout.startswith("3 taken over from ")
    assert "every now and then" in first.stdout
    taken = [json.loads(line) for line in typed("schedule", "list", "--json").stdout.splitlines()]
    assert [(one["prompt_text"], one["schedule_type"]) for one in taken] == [
        ("Daily report", "cron"),
        ("Focus check", "interval"),
        ("Ping me once", "once"),
    ]
    assert {one["agent_id"] for one in taken} == {"agent-1"}
    again = told(typed("schedule", "import", str(path), "--json"))
    assert (again["made"], again["known"]) == ([], 3)


def test_what_a_schedule_says_does_not_reach_the_terminal_as_control(typed: Typed, ada: str) -> None:
    typed("schedule", "add", "Ada", "\x1b[2Jwipe\x07", "--every", "1h")
    for shown in (typed("schedule", "list").stdout, typed("schedule", "show", "1").stdout):
        assert "wipe" in shown
        assert "\x1b" not in shown
        assert "\x07" not in shown


def test_the_worker_takes_its_turns_in_words_too(typed: Typed, tmp_path: Path) -> None:
    typed("schedule", "list")
    with open_worker(tmp_path / "data", "--concurrency", "2") as worker:
        assert worker.stdout is not None
        assert "worker started: concurrency 2" in worker.stdout.readline()
        worker.send_signal(signal.SIGINT)
        assert worker.wait(START_SECONDS) == 0
