"""Tasks and time over HTTP, to the letter of the contract."""

from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from frontdesk.app import open_app
from frontdesk.interfaces.http.application import build_application
from frontdesk.settings import Settings
from tests.requirements import shows
from tests.support.chat import key
from tests.support.rest import Rest, speaking

pytestmark = pytest.mark.anyio
TASK_OBJECT = {
    *("id", "type", "content", "tags", "metadata", "created_at", "updated_at", "category_id"),
    *("hierarchy_level", "hierarchy_path", "subtask_count", "completed_subtask_count"),
}
WANTED = {
    *("title", "status", "priority", "description", "category_id", "due_date", "estimated_duration", "progress"),
    *("assignee", "notes", "parent_task_id", "subtask_order", "completion_behavior", "progress_calculation"),
    *("completion_date", "dependencies"),
}
NOWHERE = "00000000-0000-7000-8000-000000000000"


@pytest.fixture
async def rest(settings: Settings) -> AsyncGenerator[Rest]:
    async with open_app(settings) as app, speaking(build_application(app), await key(app, "ada")) as somebody:
        yield somebody


async def made(rest: Rest, title: str, **content: Any) -> dict[str, Any]:
    body = {"type": "task", "content": {"title": title, "status": "pending", "priority": "medium", **content}}
    return await rest.post("/tasks", body)


@shows("MEMORY-REST")
async def test_a_task_is_made_shown_changed_completed_and_deleted(rest: Rest) -> None:
    await rest.post("/categories", {"name": "Travel"})
    content = {"title": "Book", "status": "pending", "priority": "high", "category": "travel", "notes": "By train"}
    one = await rest.post("/tasks", {"type": "task", "content": content, "tags": ["trip"], "metadata": {"from": "app"}})
    assert set(one) == TASK_OBJECT
    assert set(one["content"]) >= WANTED
    assert (one["type"], one["tags"], one["metadata"]) == ("task", ["trip"], {"from": "app"})
    assert one["category_id"] == one["content"]["category_id"] is not None
    path = f"/tasks/{one['id']}"
    assert await rest.get(path) == one
    changed = await rest.put(path, {"content": {"progress": 50, "category_id": None}})
    assert changed["content"] == {**one["content"], "progress": 50, "category_id": None}
    done = await rest.put(f"{path}/status", {"status": "completed", "notes": "At last"})
    assert (done["content"]["progress"], done["content"]["description"]) == (100, "At last")
    assert done["content"]["completion_date"] is not None
    again = await rest.put(path, {"content": {"status": "in_progress"}})
    assert again["content"]["completion_date"] is None
    assert await rest.delete(path) == {"message": "Task deleted", "id": one["id"]}
    assert await rest.get(path, 404) == {"error": "Task not found"}


@shows("MEMORY-REST")
async def test_tasks_are_a_bare_list_in_pages_by_what_is_asked(rest: Rest) -> None:
    await rest.put("/user/settings", {"timezone": "America/New_York"})
    early = await made(rest, "Early", due_date="2031-03-01", tags=["home", "rare"])
    await made(rest, "Late", due_date="2031-03-02T00:30:00+01:00", priority="urgent", tags=["home"])
    assert early["content"]["due_date"] == "2031-03-02T04:59:59Z"
    found = await rest.get("/tasks", sort_by="title", sort_order="asc", limit=1, unknown="ignored")
    assert [task["content"]["title"] for task in found] == ["Early"]
    assert rest.headers["x-total-count"] == "2"
    for query, titles in (
        ({"tags": "rare,nothing"}, ["Early"]),
        ({"search": "lat"}, ["Late"]),
        ({"priority": "urgent"}, ["Late"]),
        ({"due_before": "2031-03-01"}, ["Late", "Early"]),
        ({"due_before": "2031-03-01", "timezone": "Europe/Berlin"}, []),
        ({"status": "completed"}, []),
        ({"hierarchy_level": 0, "offset": 1}, ["Early"]),
    ):
        found = await rest.get("/tasks", **query)
        assert [task["content"]["title"] for task in found] == titles, query
    stats = await rest.get("/tasks/stats")
    assert (stats["total"], stats["by_priority"]["urgent"], stats["completion_rate"]) == (2, 1, 0)
    updated = await rest.get("/tasks/updated-today")
    assert (updated["total"], set(updated["date_range"])) == (2, {"start", "end"})
    assert (await rest.get("/tasks/updated-today", end_date="2020-01-01"))["tasks"] == []


@shows("MEMORY-REST")
async def test_tasks_have_subtasks_an_order_and_relations(rest: Rest) -> None:
    loose = await made(rest, "Loose")
    top = await rest.post("/tasks", {"content": {"title": "Top", "subtasks": [loose["id"]]}})
    other = await rest.post("/subtasks", {"parent_task_id": top["id"], "content": {"title": "Other"}})
    assert (top["subtask_count"], other["hierarchy_level"], other["content"]["subtask_order"]) == (1, 1, 1)
    order = {"parent_task_id": top["id"], "task_ids": [other["id"], loose["id"]]}
    assert [one["id"] for one in await rest.put("/subtasks/reorder", order)] == order["task_ids"]
    assert [one["id"] for one in await rest.get("/subtasks", parent_task_id=top["id"])] == order["task_ids"]
    flat = await rest.get(f"/tasks/{top['id']}/tree")
    assert ([one["id"] for one in flat["tasks"]], flat["total"]) == ([top["id"], *order["task_ids"]], 3)
    tree = await rest.get(f"/tasks/{top['id']}/tree", format="tree", max_depth=1)
    assert [one["id"] for one in tree["tasks"][0]["subtasks"]] == order["task_ids"]
    waits = {"task_id": loose["id"], "related_task_id": other["id"], "relation": "blocked_by"}
    relation = (await rest.post("/task-relations", waits))["relation"]
    assert waits.items() <= relation.items()
    assert (await rest.get("/task-relations", task_id=other["id"]))["relations"] == [relation]
    blocked = await rest.put(f"/tasks/{loose['id']}/status", {"status": "completed"}, 409)
    assert "waits for 'Other'" in blocked["error"]
    assert (await rest.delete(f"/task-relations/{relation['id']}"))["id"] == relation["id"]
    assert await rest.get("/task-relations") == {"relations": []}
    await rest.put(f"/tasks/{top['id']}", {"content": {"parent_task_id": loose["id"]}}, 409)
    await rest.post("/tasks", {"content": {"title": "Half", "subtasks": [loose["id"], NOWHERE]}}, 404)
    assert len(await rest.get("/tasks", search="half")) == 0


@shows("MEMORY-REST")
async def test_one_timer_runs_and_another_is_told_of_it(rest: Rest) -> None:
    first, second = [f"/tasks/{(await made(rest, title))['id']}/timer" for title in ("First", "Second")]
    assert await rest.get("/time-entries/running") == {"entry": None}
    assert await rest.post(f"{first}/stop", {}, 200) == {"entry": None}
    started = await rest.post(f"{first}/start", {"description": "Looking"})
    assert (started["entry"]["end_at"], started["entry"]["note"]) == (None, "Looking")
    assert await rest.post(f"{first}/start", None, 200) == started
    busy = await rest.post(f"{second}/start", {}, 409)
    assert (set(busy), busy["running"]) == ({"error", "running"}, started["entry"])
    await rest.post(f"{second}/stop", None, 404)
    switched = await rest.post(f"{second}/start", {"autoSwitch": True})
    assert await rest.get("/time-entries/running") == switched
    too_early = {"overrideEndAt": "2020-01-01T00:00:00Z"}
    assert "not between" in (await rest.post(f"{second}/stop", too_early, 400))["error"]
    stopped = await rest.post(f"{second}/stop", {"overrideEndAt": datetime.now(UTC).isoformat()}, 200)
    assert stopped["entry"]["duration_minutes"] == 1
    await rest.post(f"/tasks/{NOWHERE}/timer/start", {}, 404)


@shows("MEMORY-REST")
async def test_time_is_written_down_found_by_overlap_changed_and_taken_away(rest: Rest) -> None:
    task = await made(rest, "Dig")
    path = f"/tasks/{task['id']}/time-entries"
    start, end = "2026-01-05T23:00:00Z", "2026-01-06T01:30:00Z"
    entry = (await rest.post(path, {"start_at": start, "end_at": end, "note": "Night"}))["entry"]
    assert (entry["duration_minutes"], entry["source"], entry["item_title"]) == (150, "manual", "Dig")
    assert await rest.get(path) == {"entries": [entry]}
    assert await rest.get(path, start_date="2026-01-07") == {"entries": []}
    for day, found in (("2026-01-04", []), ("2026-01-05", [entry]), ("2026-01-06", [entry]), ("2026-01-07", [])):
        assert await rest.get("/time-entries/day", **{"from": day, "to": day}) == {"entries": found}
    changed = await rest.put(f"/time-entries/{entry['id']}", {"end_at": "2026-01-06T00:00:00Z"})
    assert changed["entry"]["duration_minutes"] == 60
    assert (await rest.get(f"/tasks/{task['id']}"))["content"]["tracked_minutes_total"] == 60
    backwards = {"end_at": (datetime.fromisoformat(start) - timedelta(hours=1)).isoformat()}
    await rest.put(f"/time-entries/{entry['id']}", backwards, 400)
    assert (await rest.delete(f"/time-entries/{entry['id']}"))["id"] == entry["id"]
    await rest.delete(f"/time-entries/{entry['id']}", 404)
    await rest.get("/time-entries/day", 400, **{"from": "2026-01-06"})


@shows("MEMORY-REST")
async def test_mistakes_are_told_in_the_shapes_of_the_contract(rest: Rest) -> None:
    wrong = {"content": {"title": "", "status": "done"}, "colour": "red"}
    told = await rest.post("/tasks", wrong, 400)
    assert (told["error"], [detail["field"] for detail in told["details"]]) == ("Validation failed", ["body"])
    assert [said.split(":")[0] for said in told["details"][0]["errors"]] == [
        *("content.status", "content.title", "colour"),
    ]
    told = await rest.get("/tasks", 400, limit=1001, status="done")
    assert told["details"][0]["field"] == "query"
    assert (await rest.get("/tasks", 400, due_before="soon"))["error"].startswith("due_before must be a day")
    assert "no category 'Nope'" in (await made_wrong(rest, category="Nope"))["error"]
    assert (await made_wrong(rest, due_date="2026-02-30"))["error"].startswith("due_date must be")
    assert (await rest.post("/tasks", {"content": {"title": "x"}}, 400, timezone="Mars"))["error"]
    assert await rest.get(f"/tasks/{NOWHERE}", 404) == {"error": "Task not found"}
    assert await rest.get("/tasks/not-an-id", 404) == {"error": "Task not found"}
    assert await rest.put("/tasks", {}, 405) == {"error": "Method Not Allowed"}
    assert rest.headers["allow"] == "GET, POST"


async def made_wrong(rest: Rest, **content: Any) -> Any:
    return await rest.post("/tasks", {"content": {"title": "x", **content}}, 400)
