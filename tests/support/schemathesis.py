"""Schemathesis, run as a program against a desk: whatever it sends, the description must have told the answer."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx2

from tests.support.desk import Desk

PROGRAM = Path(sys.executable).with_name("schemathesis")
# Far more than it takes, for a machine that is busy with other things.
SECONDS = 300
# Of each kind so many, so that some are left when others were deleted.
PLANTED = 20
# What is told is checked, and not whether a rule could have been told in the schema: a day that is none is refused
# though it is a text, and null or 1 are taken for what is left out and for true.
LEFT_OUT = "negative_data_rejection,positive_data_acceptance"
DAYS = ("2026-01-05", "2026-01-05T10:30:00+01:00", "2027-03-28T02:30", "0001-01-01", "9999-12-31", "2026-13-01")
WORDS: Mapping[str, Sequence[str]] = {
    "days": DAYS,
    "zones": ("Europe/Berlin", "UTC", "America/New_York", "Nowhere"),
    "words": ("alpha", "beta task", "Memory 1"),
    "agents": ("agent-1", "agent-2"),
}
# Which fields are often given a value that makes sense there.
BOUND: Mapping[str, Mapping[str, str]] = {
    "path": {
        "task_id": "tasks",
        "memory_id": "memories",
        "activity_id": "activities",
        "item_id": "items",
        "entry_id": "entries",
        "relation_id": "relations",
        "ai_task_id": "work",
        "category_id": "categories",
    },
    "query": {
        "timezone": "zones",
        "task_id": "tasks",
        "parent_task_id": "tasks",
        "category_id": "categories",
        "category": "categories",
        "q": "words",
        "search": "words",
        "agent_name": "agents",
        **{f"{name}_{edge}": "days" for name in ("due", "created", "updated") for edge in ("after", "before")},
        **dict.fromkeys(("from", "to", "from_date", "to_date", "start_date", "end_date"), "days"),
        **dict.fromkeys(("captured_from", "captured_to", "date_from", "date_to"), "days"),
    },
    "body": {
        "timezone": "zones",
        "agent_id": "agents",
        "agent_name": "agents",
        "anchor_item_id": "items",
        "supersedes": "memories",
        "category_id": "categories",
        "content.category": "categories",
        **dict.fromkeys(("task_id", "related_task_id", "parent_task_id", "content.parent_task_id"), "tasks"),
        **dict.fromkeys(("start_at", "end_at", "overrideEndAt", "started_at", "ended_at", "due_at"), "days"),
        **dict.fromkeys(("start_time", "end_time", "captured_at", "expires_at", "content.due_date"), "days"),
        **dict.fromkeys(("local_start", "local_end", "happened_range.start", "happened_range.end"), "days"),
    },
}


def run(desk: Desk, key: str, folder: Path, *arguments: str, seconds: int = SECONDS) -> str:
    """What it says at the end; it has found nothing, or this fails with what it found."""
    config = folder / "schemathesis.toml"
    config.write_text("\n".join(_config(planted(desk, key))))
    done = subprocess.run(
        [
            *(PROGRAM, "--config-file", config, "run", f"{desk.url}/api/openapi.json"),
            *("--header", f"Authorization: Bearer {key}", "--exclude-checks", LEFT_OUT, "--seed", "1"),
            *("--continue-on-failure", "--request-timeout", "30", *arguments),
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]
    return done.stdout


def planted(desk: Desk, key: str) -> dict[str, list[str]]:
    """Records of every kind, by the names of the dictionaries."""
    with httpx2.Client(base_url=f"{desk.url}/api", headers={"authorization": f"Bearer {key}"}) as client:

        def made(path: str, body: object, within: str | None = None) -> str:
            answer = client.post(path, json=body)
            assert answer.status_code == 201, (path, answer.text)
            told: Any = answer.json()
            return (told[within] if within else told)["id"]

        numbers = range(PLANTED)
        tasks = [made("/tasks", {"content": {"title": f"Task {number}"}, "tags": ["a"]}) for number in numbers]
        memories = [made("/memories", {"title": f"Memory {number}", "note": "alpha"}) for number in numbers]
        walk = {"title": "Walk", "activity_type": "walking"}
        activities = [made("/activities", walk, "activity") for _ in numbers]
        habits = [made("/timeline-items", {"type": "habit", "title": f"beta {one}"}, "item") for one in numbers]
        entry = {"start_at": "2026-01-05T10:00:00Z", "end_at": "2026-01-05T11:00:00Z"}
        work = {"objective": "alpha", "task_type": "coding", "agent_id": "agent-1"}
        related = [{"task_id": one, "related_task_id": other, "relation": "related"} for one, other in pairwise(tasks)]
        return {
            "tasks": tasks,
            "memories": memories,
            "activities": activities,
            "items": [*habits, *tasks, *memories, *activities],
            "entries": [made(f"/tasks/{task}/time-entries", entry, "entry") for task in tasks],
            "relations": [made("/task-relations", one, "relation") for one in related],
            "work": [made("/ai-tasks", {**work, "task_id": task}, "ai_task") for task in tasks],
            "categories": [made("/categories", {"name": f"C{number}"}, "category") for number in numbers],
        }


def _config(records: Mapping[str, Sequence[str]]) -> Iterator[str]:
    yield "[dictionaries]"
    for name, values in {**WORDS, **records}.items():
        yield f"{name} = {{ values = {json.dumps(values)} }}"
    yield "[parameters]"
    for place, fields in BOUND.items():
        for field, dictionary in fields.items():
            yield f'"{place}.{field}" = {{ dictionary = "{dictionary}", probability = 0.6 }}'
