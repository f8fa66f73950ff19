"""Tests the memory API over HTTP: tasks, time, memories, the timeline and the work queue, and access to it."""

import re
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from frontdesk.app import App, open_app
from frontdesk.identity import rights
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.http.context import ASGIApp
from frontdesk.settings import Settings
from tests.requirements import shows
from tests.support.chat import key
from tests.support.memory import Rest, speaking

# Tasks and time over HTTP, exactly by the contract


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


# Memories, activities, the timeline, categories and the work queue over HTTP


@pytest.fixture
async def app(settings: Settings) -> AsyncGenerator[App]:
    async with open_app(settings) as opened:
        yield opened


@pytest.fixture
def asgi(app: App) -> ASGIApp:
    return build_application(app)


@pytest.fixture
async def records_rest(app: App, asgi: ASGIApp) -> AsyncGenerator[Rest]:
    async with speaking(asgi, await key(app, "ada")) as somebody:
        yield somebody


@shows("MEMORY-REST")
async def test_a_memory_is_made_listed_superseded_deleted_and_brought_back(records_rest: Rest) -> None:
    first = await records_rest.post("/memories", {"title": "Seat", "note": "Ada likes the aisle", "tags": ["trip"]})
    assert (first["memory_type"], first["status"], first["tags"]) == ("note", "active", ["trip"])
    path = f"/memories/{first['id']}"
    better = await records_rest.post("/memories", {"note": "Ada likes the window", "supersedes": first["id"]})
    assert better["title"] == "Ada likes the window"
    assert [one["id"] for one in await records_rest.get("/memories")] == [better["id"]]
    assert records_rest.headers["x-total-count"] == "1"
    assert (await records_rest.get(path))["superseded_by"] == better["id"]
    assert len(await records_rest.get("/memories", include_superseded=True, tags="trip,other")) == 1
    changed = await records_rest.put(path, {"salience_score": 0.9, "is_highlight": True, "tags": None})
    assert (changed["salience_score"], changed["is_highlight"], changed["tags"]) == (0.9, True, [])
    assert await records_rest.delete(path) == {"message": "Memory deleted"}
    assert await records_rest.get(path, 404) == {"error": "Memory not found"}
    assert [one["id"] for one in await records_rest.get("/memories", status="deleted")] == [first["id"]]
    assert (await records_rest.put(path, {"status": "active"}))["status"] == "active"
    stats = await records_rest.get("/memories/stats")
    assert (stats["total"], stats["highlights"]) == (2, 1)
    nothing = await records_rest.post("/memories", {"note": " "}, 400)
    assert nothing == {"error": "A memory needs a note that says something, or a title at least"}


@shows("MEMORY-REST")
async def test_a_memory_is_anchored_to_what_it_is_about(records_rest: Rest) -> None:
    task = await records_rest.post("/tasks", {"content": {"title": "Book the train"}})
    memory = await records_rest.post("/memories", {"title": "Window seat"})
    path = f"/memories/{memory['id']}/anchors"
    anchor = (await records_rest.post(path, {"anchor_item_id": task["id"], "relation": "context_of"}))["anchor"]
    assert (anchor["weight"], anchor["relation"]) == (1, "context_of")
    assert await records_rest.get(path) == {"anchors": [anchor]}
    hung = (await records_rest.get(f"/timeline-items/{task['id']}/anchors"))["anchors"]
    assert [(one["anchor"], one["memory"]["id"]) for one in hung] == [(anchor, memory["id"])]
    await records_rest.post(path, {"anchor_item_id": memory["id"]}, 400)
    await records_rest.delete(f"{path}/{task['id']}", 404, relation="about")
    assert await records_rest.delete(f"{path}/{task['id']}") == {"message": "Anchor deleted"}
    assert await records_rest.get(path) == {"anchors": []}


@shows("MEMORY-REST")
async def test_memories_and_the_timeline_are_searched_and_the_best_comes_first(records_rest: Rest) -> None:
    seat = await records_rest.post("/memories", {"note": "On trains Ada likes the window seat", "is_highlight": True})
    await records_rest.post("/memories", {"note": "The train leaves at eight", "tags": ["trip"]})
    task = await records_rest.post("/tasks", {"content": {"title": "Book the window seat"}})
    found = await records_rest.get("/memories/search", q="window seat on the train", search_type="full_text")
    assert set(found) == {"results", "total_count", "search_type", "query", "filters"}
    assert (found["total_count"], found["search_type"], found["filters"]) == (len(found["results"]), "full_text", {})
    best = found["results"][0]
    assert set(best) == {"memory", "relevance_score", "match_type", "highlights"}
    assert (best["memory"]["id"], best["match_type"]) == (seat["id"], "full_text")
    assert 0 < best["relevance_score"] <= 1
    assert "window seat" in best["highlights"][0]
    narrowed = await records_rest.get("/memories/search", q="train", tags="trip", limit=5)
    assert [one["memory"]["tags"] for one in narrowed["results"]] == [["trip"]]
    assert narrowed["filters"] == {"tags": ["trip"], "limit": 5}
    everything = await records_rest.get("/timeline-items/search", q="window seat", search_type="full_text")
    assert {one["item"]["id"] for one in everything["results"][:2]} == {seat["id"], task["id"]}
    tasks = await records_rest.get(
        "/timeline-items/search", q="window seat", include_types="task,habit", context_depth=1
    )
    assert [one["item"]["id"] for one in tasks["results"]] == [task["id"]]
    assert {"before", "after"} >= {near["tie"] for near in tasks["results"][0]["context"]} != set()
    await records_rest.get("/memories/search", 400, q=" ")


@shows("MEMORY-REST")
async def test_an_activity_keeps_all_that_is_said_of_it(records_rest: Rest) -> None:
    times = {"started_at": "2026-01-05T10:00:00Z", "ended_at": "2026-01-05T11:00:00Z"}
    felt = {"mood_before": 4, "mood_after": 8, "satisfaction_level": 9, "insights": "Quiet", "gratitude": "Sun"}
    how = {"intensity_level": "moderate", "companions": ["Bo"], "status": "cancelled"}
    said = {"title": "Walk", "activity_type": "walking", **times, **felt, **how}
    activity = (await records_rest.post("/activities", said))["activity"]
    assert {name: activity[name] for name in said} == said
    assert activity["duration_minutes"] == 60
    path = f"/activities/{activity['id']}"
    assert await records_rest.get(path) == {"activity": activity}
    changed = (await records_rest.put(path, {"status": "completed", "weather": "Clear"}))["activity"]
    assert (changed["status"], changed["weather"]) == ("completed", "Clear")
    listed = await records_rest.get(
        "/activities", **{"from": "2026-01-05", "to": "2026-01-05", "intensity_level": "moderate"}
    )
    assert listed == {"activities": [changed], "count": 1}
    assert (await records_rest.get("/activities", to="2026-01-04"))["count"] == 0
    assert (await records_rest.get("/activities/stats"))["average_mood_change"] == 4
    entry = {"start_at": "2026-01-05T10:00:00Z", "end_at": "2026-01-05T10:30:00Z"}
    spent = (await records_rest.post(f"{path}/time-entries", entry))["entry"]
    assert await records_rest.get(f"{path}/time-entries") == {"entries": [spent]}
    await records_rest.get(f"/tasks/{activity['id']}/time-entries", 404)
    assert await records_rest.delete(path) == {"message": "Activity deleted"}
    assert await records_rest.get(path, 404) == {"error": "Activity not found"}


@shows("MEMORY-REST")
async def test_the_timeline_has_everything_in_one_line(records_rest: Rest) -> None:
    habit = (await records_rest.post("/timeline-items", {"type": "habit", "title": "Read", "tags": ["evening"]}))[
        "item"
    ]
    await records_rest.post("/memories", {"title": "Window seat", "is_highlight": True})
    await records_rest.post("/tasks", {"content": {"title": "Book the train"}})
    page = await records_rest.get("/timeline-items", sort_by="title", sort_order="asc", limit=2)
    assert ([one["title"] for one in page["items"]], page["count"], page["has_more"]) == (
        ["Book the train", "Read"],
        3,
        True,
    )
    assert [one["title"] for one in (await records_rest.get("/timeline-items/highlights"))["items"]] == ["Window seat"]
    assert [one["type"] for one in (await records_rest.get("/timeline-items/memories"))["items"]] == ["memory"]
    assert [one["id"] for one in (await records_rest.get("/timeline-items", tags="evening"))["items"]] == [habit["id"]]
    path = f"/timeline-items/{habit['id']}"
    assert (await records_rest.put(path, {"title": "Read more", "tags": None}))["item"]["tags"] == []
    insights = await records_rest.get("/timeline-items/insights", date_range="today")
    assert (insights["counts"]["habit"], insights["total"]) == (1, 3)
    assert (await records_rest.delete(path))["id"] == habit["id"]
    assert await records_rest.get(path, 404) == {"error": "Timeline item not found"}


@shows("MEMORY-REST")
async def test_categories_are_found_by_name_and_named_once(records_rest: Rest) -> None:
    work = (await records_rest.post("/categories", {"name": "Work"}))["category"]
    assert (work["color"], work["name"]) == ("#6B7280", "Work")
    assert "already" in (await records_rest.post("/categories", {"name": "work"}, 409))["error"]
    await records_rest.post("/categories", {"name": "x", "color": "red"}, 400)
    assert await records_rest.get("/categories/WORK") == {"category": work}
    changed = (await records_rest.put(f"/categories/{work['id']}", {"color": "#2563EB"}))["category"]
    assert await records_rest.get("/categories") == {"categories": [changed]}
    assert await records_rest.delete("/categories/work") == {"message": "Category deleted"}
    assert await records_rest.get(f"/categories/{work['id']}", 404) == {"error": "Category not found"}


async def queued(rest: Rest, agent: str, **more: Any) -> dict[str, Any]:
    task = await rest.post("/tasks", {"content": {"title": "Trip"}})
    said = {"objective": "Compare trains", "task_type": "research", "task_id": task["id"], "agent_id": agent, **more}
    return (await rest.post("/ai-tasks", said))["ai_task"]


@shows("MEMORY-REST")
async def test_work_is_queued_approved_claimed_and_completed(app: App, asgi: ASGIApp, records_rest: Rest) -> None:
    one = await queued(records_rest, "agent-1", mode="execute")
    assert (one["status"], one["agent_id"], one["history"][0]["by_agent"]) == ("assigned", "agent-1", None)
    path = f"/ai-tasks/{one['id']}"
    listed = await records_rest.get("/ai-tasks", agent_name="agent-1")
    assert ([work["id"] for work in listed["ai_tasks"]], listed["count"]) == ([one["id"]], 1)
    assert (await records_rest.get("/ai-tasks", agent_name="agent-2"))["ai_tasks"] == []
    async with speaking(asgi, await key(app, "ada", agent="agent-1")) as agent:
        assert await agent.post("/ai-tasks/claim", {}, 200) == {"ai_task": None}
        await agent.post(f"{path}/approve", None, 403)
        await records_rest.post(f"{path}/approve", None, 200)
        taken = (await agent.post("/ai-tasks/claim", {"lease_seconds": 60}, 200))["ai_task"]
        assert (taken["id"], taken["status"], taken["claims"]) == (one["id"], "in_progress", 1)
        assert (await agent.post("/ai-tasks/claim", None, 200)) == {"ai_task": None}
        await agent.post(f"{path}/renew", {"claims": 1, "lease_seconds": 600}, 200)
        said = {"output": "The 8:15", "artifacts": [{"type": "text", "name": "list", "content": 3}], "logs": ["ok"]}
        done = (await agent.post(f"{path}/complete", {**said, "actual_cost_usd": 0.5}, 200))["ai_task"]
    assert (done["status"], done["execution_result"], done["actual_cost_usd"]) == ("completed", said, 0.5)
    assert [event["to_status"] for event in done["history"]][-2:] == ["in_progress", "completed"]
    final = await records_rest.put(path, {"status": "pending"}, 409)
    assert "is final" in final["error"]
    stats = (await records_rest.get("/ai-tasks/stats"))["stats"]
    assert (stats["by_status"], stats["success_rate"], stats["completed_today"]) == ({"completed": 1}, 1, 1)


@shows("MEMORY-REST")
async def test_work_is_accepted_failed_assigned_again_and_taken_out(records_rest: Rest) -> None:
    one = await queued(records_rest, "agent-1")
    path = f"/ai-tasks/{one['id']}"
    again = {"objective": "x", "task_type": "coding", "task_id": one["task_id"], "agent_id": "agent-1"}
    assert "already has an AI task" in (await records_rest.post("/ai-tasks", again, 409))["error"]
    assert (await records_rest.post("/ai-tasks", {"objective": "x"}, 400))["error"] == "Validation failed"
    taken = (await records_rest.post(f"{path}/accept", {"estimated_duration_min": 5}, 200))["ai_task"]
    assert (taken["status"], taken["estimated_duration_min"]) == ("in_progress", 5)
    failed = (await records_rest.post(f"{path}/fail", {"error_message": "No trains"}, 200))["ai_task"]
    assert (failed["status"], failed["error_message"]) == ("failed", "No trains")
    assert (await records_rest.put(path, {"status": "assigned"}))["ai_task"]["status"] == "assigned"
    assert (await records_rest.delete(path))["id"] == one["id"]
    assert await records_rest.get(path, 404) == {"error": "AI task not found"}


@shows("MEMORY-REST")
async def test_a_person_says_where_they_live_counts_takes_and_erases_everything(records_rest: Rest) -> None:
    assert await records_rest.get("/user/settings") == {"timezone": "UTC"}
    assert await records_rest.put("/user/settings", {"timezone": "europe/berlin"}) == {"timezone": "Europe/Berlin"}
    await records_rest.put("/user/settings", {"timezone": "Mars"}, 400)
    task = await records_rest.post("/tasks", {"content": {"title": "Book the train"}})
    await records_rest.post(f"/tasks/{task['id']}/timer/start")
    stats = await records_rest.get("/stats")
    assert set(stats) == {"tasks", "memories", "activities", "time", "ai_tasks"}
    assert (stats["tasks"]["total"], stats["time"]["running"]["timeline_item_id"]) == (1, task["id"])
    exported = await records_rest.get("/user/export")
    assert [one["id"] for one in exported["records"]["tasks"]] == [task["id"]]
    await records_rest.delete("/user/data", 400, {"confirm": "yes"})
    erased = await records_rest.delete("/user/data", 200, {"confirm": "erase"})
    assert erased["erased"]["tasks"] == 1


# Access to the routes of the memory capability, and messages about missing scopes


# Where the routes of other capabilities begin.
ELSEWHERE = ("/agents/", "/v1/", "/user/api-keys")


@dataclass(frozen=True, slots=True)
class Route:
    """A route as the description has it: the scope that it needs, and a matching address."""

    method: str
    path: str
    needed: tuple[str, ...]


async def routes(asgi: ASGIApp, token: str) -> list[Route]:
    async with speaking(asgi, token) as somebody:
        return [*_routes(await somebody.get("/openapi.json"))]


def _routes(document: dict[str, Any]) -> Iterator[Route]:
    """The routes of the memory capability."""
    for path, methods in document["paths"].items():
        for method, told in methods.items():
            needed = tuple(scope for scheme in told["security"] for scopes in scheme.values() for scope in scopes)
            if not path.startswith(ELSEWHERE):
                yield Route(method.upper(), re.sub(r"\{\w+\}", NOWHERE, path), needed)


async def refused(somebody: Rest, route: Route) -> tuple[int, Any]:
    answer = await somebody.client.request(route.method, route.path, json={})
    return answer.status_code, answer.json()


@shows("MEMORY-REST")
async def test_a_key_without_the_scope_is_told_what_was_needed(app: App, asgi: ASGIApp) -> None:
    token = await key(app, "ada", rights.TASKS_READ)
    known = await routes(asgi, token)
    assert {scope for route in known for scope in route.needed} == {*rights.MEMORY_SCOPES}
    async with speaking(asgi, token) as reader:
        for route in known:
            status, told = await refused(reader, route)
            missing = [scope for scope in route.needed if scope != rights.TASKS_READ]
            if not missing:
                assert status in (200, 400, 404), (route, told)
                continue
            assert (status, told["error"], told["required_scopes"], told["success"]) == (
                *(403, "Insufficient permissions", missing[:1], False),
            ), route


@shows("MEMORY-REST")
async def test_nobody_in_particular_has_no_records(app: App, asgi: ASGIApp) -> None:
    known = await routes(asgi, await key(app, "ada"))
    async with speaking(asgi) as nobody, speaking(asgi, await key(app, None, agent="agent-1")) as agent:
        for route in known:
            assert await refused(nobody, route) == (401, {"error": "Authentication required"}), route
            status, told = await refused(agent, route)
            assert (status, "speaks for no person" in told["error"]) == (403, True), route
    async with speaking(asgi, "fd_mistyped") as stranger:
        assert (await stranger.get("/tasks", 401))["error"] == "Authentication required"


@shows("MEMORY-REST")
async def test_admin_is_everything_of_ones_own(app: App, asgi: ASGIApp) -> None:
    async with speaking(asgi, await key(app, "ada", rights.MEMORY_ADMIN)) as admin:
        for route in await routes(asgi, await key(app, "ada")):
            status, told = await refused(admin, route)
            assert status in (200, 201, 400, 404), (route, told)


@shows("MEMORY-REST")
async def test_the_agent_in_a_body_is_whom_work_is_for_and_not_who_calls(app: App, asgi: ASGIApp) -> None:
    async with speaking(asgi, await key(app, "ada", agent="agent-1")) as agent:
        task = await agent.post("/tasks", {"content": {"title": "Trip"}})
        said = {"objective": "Compare", "task_type": "research", "task_id": task["id"], "agent_id": "agent-2"}
        work = (await agent.post("/ai-tasks", said))["ai_task"]
        assert (work["agent_id"], work["history"][0]["by_agent"]) == ("agent-2", "agent-1")
    async with speaking(asgi, await key(app, "ada"), **{"x-agent-id": "agent-2"}) as other:
        assert (await other.post("/ai-tasks/claim", {}, 200))["ai_task"]["leased_by"] == "agent-2"
