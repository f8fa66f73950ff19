"""Memories, activities, the timeline, categories and the work queue over HTTP."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from frontdesk.app import App, open_app
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.http.context import ASGIApp
from frontdesk.settings import Settings
from tests.requirements import shows
from tests.support.chat import key
from tests.support.rest import Rest, speaking

pytestmark = pytest.mark.anyio


@pytest.fixture
async def app(settings: Settings) -> AsyncGenerator[App]:
    async with open_app(settings) as opened:
        yield opened


@pytest.fixture
def asgi(app: App) -> ASGIApp:
    return build_application(app)


@pytest.fixture
async def rest(app: App, asgi: ASGIApp) -> AsyncGenerator[Rest]:
    async with speaking(asgi, await key(app, "ada")) as somebody:
        yield somebody


@shows("MEMORY-REST")
async def test_a_memory_is_made_listed_superseded_deleted_and_brought_back(rest: Rest) -> None:
    first = await rest.post("/memories", {"title": "Seat", "note": "Ada likes the aisle", "tags": ["trip"]})
    assert (first["memory_type"], first["status"], first["tags"]) == ("note", "active", ["trip"])
    path = f"/memories/{first['id']}"
    better = await rest.post("/memories", {"note": "Ada likes the window", "supersedes": first["id"]})
    assert better["title"] == "Ada likes the window"
    assert [one["id"] for one in await rest.get("/memories")] == [better["id"]]
    assert rest.headers["x-total-count"] == "1"
    assert (await rest.get(path))["superseded_by"] == better["id"]
    assert len(await rest.get("/memories", include_superseded=True, tags="trip,other")) == 1
    changed = await rest.put(path, {"salience_score": 0.9, "is_highlight": True, "tags": None})
    assert (changed["salience_score"], changed["is_highlight"], changed["tags"]) == (0.9, True, [])
    assert await rest.delete(path) == {"message": "Memory deleted"}
    assert await rest.get(path, 404) == {"error": "Memory not found"}
    assert [one["id"] for one in await rest.get("/memories", status="deleted")] == [first["id"]]
    assert (await rest.put(path, {"status": "active"}))["status"] == "active"
    stats = await rest.get("/memories/stats")
    assert (stats["total"], stats["highlights"]) == (2, 1)
    nothing = await rest.post("/memories", {"note": " "}, 400)
    assert nothing == {"error": "A memory needs a note that says something, or a title at least"}


@shows("MEMORY-REST")
async def test_a_memory_is_anchored_to_what_it_is_about(rest: Rest) -> None:
    task = await rest.post("/tasks", {"content": {"title": "Book the train"}})
    memory = await rest.post("/memories", {"title": "Window seat"})
    path = f"/memories/{memory['id']}/anchors"
    anchor = (await rest.post(path, {"anchor_item_id": task["id"], "relation": "context_of"}))["anchor"]
    assert (anchor["weight"], anchor["relation"]) == (1, "context_of")
    assert await rest.get(path) == {"anchors": [anchor]}
    hung = (await rest.get(f"/timeline-items/{task['id']}/anchors"))["anchors"]
    assert [(one["anchor"], one["memory"]["id"]) for one in hung] == [(anchor, memory["id"])]
    await rest.post(path, {"anchor_item_id": memory["id"]}, 400)
    await rest.delete(f"{path}/{task['id']}", 404, relation="about")
    assert await rest.delete(f"{path}/{task['id']}") == {"message": "Anchor deleted"}
    assert await rest.get(path) == {"anchors": []}


@shows("MEMORY-REST")
async def test_memories_and_the_timeline_are_searched_and_the_best_comes_first(rest: Rest) -> None:
    seat = await rest.post("/memories", {"note": "On trains Ada likes the window seat", "is_highlight": True})
    await rest.post("/memories", {"note": "The train leaves at eight", "tags": ["trip"]})
    task = await rest.post("/tasks", {"content": {"title": "Book the window seat"}})
    found = await rest.get("/memories/search", q="window seat on the train", search_type="full_text")
    assert set(found) == {"results", "total_count", "search_type", "query", "filters"}
    assert (found["total_count"], found["search_type"], found["filters"]) == (len(found["results"]), "full_text", {})
    best = found["results"][0]
    assert set(best) == {"memory", "relevance_score", "match_type", "highlights"}
    assert (best["memory"]["id"], best["match_type"]) == (seat["id"], "full_text")
    assert 0 < best["relevance_score"] <= 1
    assert "window seat" in best["highlights"][0]
    narrowed = await rest.get("/memories/search", q="train", tags="trip", limit=5)
    assert [one["memory"]["tags"] for one in narrowed["results"]] == [["trip"]]
    assert narrowed["filters"] == {"tags": ["trip"], "limit": 5}
    everything = await rest.get("/timeline-items/search", q="window seat", search_type="full_text")
    assert {one["item"]["id"] for one in everything["results"][:2]} == {seat["id"], task["id"]}
    tasks = await rest.get("/timeline-items/search", q="window seat", include_types="task,habit", context_depth=1)
    assert [one["item"]["id"] for one in tasks["results"]] == [task["id"]]
    assert {"before", "after"} >= {near["tie"] for near in tasks["results"][0]["context"]} != set()
    await rest.get("/memories/search", 400, q=" ")


@shows("MEMORY-REST")
async def test_an_activity_keeps_all_that_is_said_of_it(rest: Rest) -> None:
    times = {"started_at": "2026-01-05T10:00:00Z", "ended_at": "2026-01-05T11:00:00Z"}
    felt = {"mood_before": 4, "mood_after": 8, "satisfaction_level": 9, "insights": "Quiet", "gratitude": "Sun"}
    how = {"intensity_level": "moderate", "companions": ["Bo"], "status": "cancelled"}
    said = {"title": "Walk", "activity_type": "walking", **times, **felt, **how}
    activity = (await rest.post("/activities", said))["activity"]
    assert {name: activity[name] for name in said} == said
    assert activity["duration_minutes"] == 60
    path = f"/activities/{activity['id']}"
    assert await rest.get(path) == {"activity": activity}
    changed = (await rest.put(path, {"status": "completed", "weather": "Clear"}))["activity"]
    assert (changed["status"], changed["weather"]) == ("completed", "Clear")
    listed = await rest.get("/activities", **{"from": "2026-01-05", "to": "2026-01-05", "intensity_level": "moderate"})
    assert listed == {"activities": [changed], "count": 1}
    assert (await rest.get("/activities", to="2026-01-04"))["count"] == 0
    assert (await rest.get("/activities/stats"))["average_mood_change"] == 4
    entry = {"start_at": "2026-01-05T10:00:00Z", "end_at": "2026-01-05T10:30:00Z"}
    spent = (await rest.post(f"{path}/time-entries", entry))["entry"]
    assert await rest.get(f"{path}/time-entries") == {"entries": [spent]}
    await rest.get(f"/tasks/{activity['id']}/time-entries", 404)
    assert await rest.delete(path) == {"message": "Activity deleted"}
    assert await rest.get(path, 404) == {"error": "Activity not found"}


@shows("MEMORY-REST")
async def test_the_timeline_has_everything_in_one_line(rest: Rest) -> None:
    habit = (await rest.post("/timeline-items", {"type": "habit", "title": "Read", "tags": ["evening"]}))["item"]
    await rest.post("/memories", {"title": "Window seat", "is_highlight": True})
    await rest.post("/tasks", {"content": {"title": "Book the train"}})
    page = await rest.get("/timeline-items", sort_by="title", sort_order="asc", limit=2)
    assert ([one["title"] for one in page["items"]], page["count"], page["has_more"]) == (
        ["Book the train", "Read"],
        3,
        True,
    )
    assert [one["title"] for one in (await rest.get("/timeline-items/highlights"))["items"]] == ["Window seat"]
    assert [one["type"] for one in (await rest.get("/timeline-items/memories"))["items"]] == ["memory"]
    assert [one["id"] for one in (await rest.get("/timeline-items", tags="evening"))["items"]] == [habit["id"]]
    path = f"/timeline-items/{habit['id']}"
    assert (await rest.put(path, {"title": "Read more", "tags": None}))["item"]["tags"] == []
    insights = await rest.get("/timeline-items/insights", date_range="today")
    assert (insights["counts"]["habit"], insights["total"]) == (1, 3)
    assert (await rest.delete(path))["id"] == habit["id"]
    assert await rest.get(path, 404) == {"error": "Timeline item not found"}


@shows("MEMORY-REST")
async def test_categories_are_found_by_name_and_named_once(rest: Rest) -> None:
    work = (await rest.post("/categories", {"name": "Work"}))["category"]
    assert (work["color"], work["name"]) == ("#6B7280", "Work")
    assert "already" in (await rest.post("/categories", {"name": "work"}, 409))["error"]
    await rest.post("/categories", {"name": "x", "color": "red"}, 400)
    assert await rest.get("/categories/WORK") == {"category": work}
    changed = (await rest.put(f"/categories/{work['id']}", {"color": "#2563EB"}))["category"]
    assert await rest.get("/categories") == {"categories": [changed]}
    assert await rest.delete("/categories/work") == {"message": "Category deleted"}
    assert await rest.get(f"/categories/{work['id']}", 404) == {"error": "Category not found"}


async def queued(rest: Rest, agent: str, **more: Any) -> dict[str, Any]:
    task = await rest.post("/tasks", {"content": {"title": "Trip"}})
    said = {"objective": "Compare trains", "task_type": "research", "task_id": task["id"], "agent_id": agent, **more}
    return (await rest.post("/ai-tasks", said))["ai_task"]


@shows("MEMORY-REST")
async def test_work_is_queued_approved_claimed_and_completed(app: App, asgi: ASGIApp, rest: Rest) -> None:
    one = await queued(rest, "agent-1", mode="execute")
    assert (one["status"], one["agent_id"], one["history"][0]["by_agent"]) == ("assigned", "agent-1", None)
    path = f"/ai-tasks/{one['id']}"
    listed = await rest.get("/ai-tasks", agent_name="agent-1")
    assert ([work["id"] for work in listed["ai_tasks"]], listed["count"]) == ([one["id"]], 1)
    assert (await rest.get("/ai-tasks", agent_name="agent-2"))["ai_tasks"] == []
    async with speaking(asgi, await key(app, "ada", agent="agent-1")) as agent:
        assert await agent.post("/ai-tasks/claim", {}, 200) == {"ai_task": None}
        await agent.post(f"{path}/approve", None, 403)
        await rest.post(f"{path}/approve", None, 200)
        taken = (await agent.post("/ai-tasks/claim", {"lease_seconds": 60}, 200))["ai_task"]
        assert (taken["id"], taken["status"], taken["claims"]) == (one["id"], "in_progress", 1)
        assert (await agent.post("/ai-tasks/claim", None, 200)) == {"ai_task": None}
        await agent.post(f"{path}/renew", {"claims": 1, "lease_seconds": 600}, 200)
        said = {"output": "The 8:15", "artifacts": [{"type": "text", "name": "list", "content": 3}], "logs": ["ok"]}
        done = (await agent.post(f"{path}/complete", {**said, "actual_cost_usd": 0.5}, 200))["ai_task"]
    assert (done["status"], done["execution_result"], done["actual_cost_usd"]) == ("completed", said, 0.5)
    assert [event["to_status"] for event in done["history"]][-2:] == ["in_progress", "completed"]
    final = await rest.put(path, {"status": "pending"}, 409)
    assert "is final" in final["error"]
    stats = (await rest.get("/ai-tasks/stats"))["stats"]
    assert (stats["by_status"], stats["success_rate"], stats["completed_today"]) == ({"completed": 1}, 1, 1)


@shows("MEMORY-REST")
async def test_work_is_accepted_failed_assigned_again_and_taken_out(rest: Rest) -> None:
    one = await queued(rest, "agent-1")
    path = f"/ai-tasks/{one['id']}"
    again = {"objective": "x", "task_type": "coding", "task_id": one["task_id"], "agent_id": "agent-1"}
    assert "already has an AI task" in (await rest.post("/ai-tasks", again, 409))["error"]
    assert (await rest.post("/ai-tasks", {"objective": "x"}, 400))["error"] == "Validation failed"
    taken = (await rest.post(f"{path}/accept", {"estimated_duration_min": 5}, 200))["ai_task"]
    assert (taken["status"], taken["estimated_duration_min"]) == ("in_progress", 5)
    failed = (await rest.post(f"{path}/fail", {"error_message": "No trains"}, 200))["ai_task"]
    assert (failed["status"], failed["error_message"]) == ("failed", "No trains")
    assert (await rest.put(path, {"status": "assigned"}))["ai_task"]["status"] == "assigned"
    assert (await rest.delete(path))["id"] == one["id"]
    assert await rest.get(path, 404) == {"error": "AI task not found"}


@shows("MEMORY-REST")
async def test_a_person_says_where_they_live_counts_takes_and_erases_everything(rest: Rest) -> None:
    assert await rest.get("/user/settings") == {"timezone": "UTC"}
    assert await rest.put("/user/settings", {"timezone": "europe/berlin"}) == {"timezone": "Europe/Berlin"}
    await rest.put("/user/settings", {"timezone": "Mars"}, 400)
    task = await rest.post("/tasks", {"content": {"title": "Book the train"}})
    await rest.post(f"/tasks/{task['id']}/timer/start")
    stats = await rest.get("/stats")
    assert set(stats) == {"tasks", "memories", "activities", "time", "ai_tasks"}
    assert (stats["tasks"]["total"], stats["time"]["running"]["timeline_item_id"]) == (1, task["id"])
    exported = await rest.get("/user/export")
    assert [one["id"] for one in exported["records"]["tasks"]] == [task["id"]]
    await rest.delete("/user/data", 400, {"confirm": "yes"})
    erased = await rest.delete("/user/data", 200, {"confirm": "erase"})
    assert erased["erased"]["tasks"] == 1
