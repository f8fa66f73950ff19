"""Tests that the journal has the changes of `frontdesk schedule`, and that its errors use its own words."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.desk import frontdesk_here
from tests.support.scheduling import reminder, write


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def rows(data: Path) -> list[dict[str, Any]]:
    told = frontdesk_here("journal", "--json", data=data)
    return [json.loads(line) for line in told.stdout.splitlines()]


def test_every_change_is_in_the_journal_and_looking_is_not(data: Path, tmp_path: Path) -> None:
    def schedule(*arguments: str) -> int:
        return frontdesk_here("schedule", *arguments, data=data).returncode

    agent = frontdesk_here("agents", "create", "Ada", data=data).stdout.strip()
    before = len(rows(data))
    file = write(tmp_path / "old.db", [reminder()])
    done = [
        schedule("add", "Ada", "Say hello", "every day at 9", "--user", "ann"),
        *(schedule("pause", "1"), schedule("resume", "1"), schedule("update", "1", "--prompt", "Say more")),
        *(schedule("list"), schedule("show", "1"), schedule("history"), schedule("preview", "1")),
        *(schedule("run", "1"), schedule("cancel", "1"), schedule("cancel", "1"), schedule("import", str(file))),
    ]
    assert done == [0] * 10 + [1, 0]
    told = rows(data)[before:]
    assert [(row["surface"], row["action"], row["outcome"], row["reason"]) for row in told] == [
        ("cli", "schedule add 1", "ok", None),
        *[("cli", f"schedule {action} 1", "ok", None) for action in ("pause", "resume", "update", "run", "cancel")],
        ("cli", "schedule cancel 1", "refused", "NotFound"),
        ("cli", "schedule import", "ok", None),
    ]
    assert (told[0]["agent_id"], told[0]["user_id"]) == (agent, "ann")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("preview",), "Must specify WHEN, or one of --time, --cron, or --every"),
        (("preview", "0 9 * *"), "Invalid cron expression: 0 9 * * (it has 4 fields; give five"),
        (("preview", "every day at 9", "--count", "1000"), 'Invalid value "1000" for --count. Must be <= 100.'),
        (("list", "--limit", "10000"), 'Invalid value "10000" for --limit. Must be <= 1000.'),
    ],
)
def test_a_mistake_is_told_in_the_commands_own_words(data: Path, arguments: tuple[str, ...], said: str) -> None:
    done = frontdesk_here("schedule", *arguments, data=data)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
