"""Runs Schemathesis as a program against a server: the description must cover every answer to its requests."""

import json
import re
import subprocess
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx2
import jsonschema
import pytest

from frontdesk.app import App
from frontdesk.identity.rights import SCOPES
from frontdesk.interfaces.http.application import build_application
from frontdesk.settings import Settings
from tests.requirements import shows
from tests.support.chat import key
from tests.support.desk import Desk, frontdesk_here, open_desk
from tests.support.memory import speaking

PROGRAM = Path(sys.executable).with_name("schemathesis")
# Far longer than it takes, for a machine with other load.
SECONDS = 300
# This many of each kind, so that some are left when others were deleted.
PLANTED = 20
# It checks the described answers, not whether the schema could describe a rule: an impossible day is refused though
# it is a text, and null and 1 are accepted for a missing value and for true.
LEFT_OUT = "negative_data_rejection,positive_data_acceptance"
DAYS = ("2026-01-05", "2026-01-05T10:30:00+01:00", "2027-03-28T02:30", "0001-01-01", "9999-12-31", "2026-13-01")
WORDS: Mapping[str, Sequence[str]] = {
    "days": DAYS,
    "zones": ("Europe/Berlin", "UTC", "America/New_York", "Nowhere"),
    "words": ("alpha", "beta task", "Memory 1"),
    "agents": ("agent-1", "agent-2"),
}
# Fields that often get a value that makes sense there.
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
    """Its final output; fails with its findings if there are any."""
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


STATUSES = {"400", "401", "403", "404", "408", "409", "413", "429", "503"}
JSON = "application/json"
# Other capabilities, the route that erases everything, and two lists with the same parameters as a third.
NOT_NOW = r"^/(agents|v1|user/data|user/api-keys|timeline-items/(highlights|memories))"
# A stream has no end, and an MCP server is somewhere else.
NEVER = r"^/(agents/stream|user/data|v1/tools/(servers|refresh))"


@contextmanager
def served(data: Path, **settings: str) -> Generator[tuple[Desk, str, str]]:
    """A server that requires a key, and the keys of two people."""
    with open_desk(data, FRONTDESK_EMBEDDINGS="off", FRONTDESK_REQUIRE_AUTH="true", **settings) as desk:
        ada, bob = [
            re.findall(
                r"(?:fd|zm)_\S+", frontdesk_here("keys", "create", "--user", user, data=data, **settings).stdout
            )[0]
            for user in ("ada", "bob")
        ]
        yield desk, ada, bob


@shows("MEMORY-OPENAPI")
def test_no_request_is_answered_in_a_way_that_was_not_told(tmp_path: Path) -> None:
    with served(tmp_path / "data") as (desk, ada, _):
        run(desk, ada, tmp_path, "--exclude-path-regex", NOT_NOW, "--phases", "examples,coverage")


@pytest.mark.slow
@shows("MEMORY-OPENAPI")
def test_no_request_anywhere_is_answered_in_a_way_that_was_not_told(settings: Settings, tmp_path: Path) -> None:
    url = settings.database_url
    where = {"FRONTDESK_DATABASE_URL": url.get_secret_value()} if url else {}
    with served(settings.data, **where) as (desk, ada, bob):
        run(desk, ada, tmp_path, "--exclude-path-regex", NEVER, "-n", "30", seconds=1200)
        run(desk, bob, tmp_path, "--include-path", "/user/data", "-n", "10")


async def described(app: App) -> dict[str, Any]:
    async with speaking(build_application(app), await key(app, "ada")) as somebody:
        return await somebody.get("/openapi.json")


def operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The operations of the memory capability, by method and path."""
    for path, methods in document["paths"].items():
        if not path.startswith(("/agents/", "/v1/", "/user/api-keys")):
            yield from ((f"{method.upper()} {path}", told) for method, told in methods.items())


@shows("MEMORY-OPENAPI")
@pytest.mark.anyio
async def test_every_route_says_what_it_is_for_what_it_needs_and_how_it_refuses(app: App) -> None:
    found = dict(operations(await described(app)))
    assert len(found) >= 70
    for name, told in found.items():
        assert told["summary"], name
        assert set(told["responses"]) >= STATUSES, name
        assert "422" not in told["responses"], name
        needed = [scope for scheme in told["security"] for scope in scheme["HTTPBearer"]]
        assert set(needed) <= set(SCOPES), name


@shows("MEMORY-OPENAPI")
@pytest.mark.anyio
async def test_every_example_fits_its_schema(app: App) -> None:
    document = await described(app)
    found = [one for _, told in operations(document) for one in examples(told)]
    assert len(found) > 100
    for example, schema in found:
        jsonschema.validate(example, {**schema, "components": document["components"]})


def examples(told: dict[str, Any]) -> Iterator[tuple[Any, dict[str, Any]]]:
    """The examples of requests and answers, each with its schema."""
    for one in (*told["responses"].values(), told.get("requestBody", {})):
        content = one.get("content", {}).get(JSON, {})
        if "example" in content:
            yield content["example"], content["schema"]
        for given in content.get("examples", {}).values():
            yield given["value"], content["schema"]
