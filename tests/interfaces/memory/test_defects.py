"""Tests the known defects of the reference's tools (contract, section 9), row by row, with a real MCP client."""

from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from frontdesk.memory.model import PersonScope
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.memory import Asking, Desk, open_memory
from tests.support.postgres import Postgres, Ready


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
async def desk(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, ready: Ready
) -> AsyncGenerator[Desk]:
    folder: Path = tmp_path_factory.mktemp("defects") / "data"
    where: dict[str, object] = {"FRONTDESK_DATA": folder}
    if request.param == "sqlite":
        ready.in_folder(folder)
    else:
        server: Postgres = request.getfixturevalue("postgres")
        where["FRONTDESK_DATABASE_URL"] = ready.on(server)
    async with open_memory(settings_with(**where)) as opened:
        yield opened


@pytest.fixture
def person(request: pytest.FixtureRequest) -> str:
    """A person without any records yet."""
    return request.node.name[:100]


@pytest.fixture
async def ask(desk: Desk, person: str) -> AsyncGenerator[Asking]:
    async with desk.ask(await desk.key(person, zone="America/Los_Angeles"), "legacy", x_agent_id="clerk") as asking:
        yield asking


def ids(records: list[dict[str, Any]]) -> list[str]:
    return [one["id"] for one in records]


@shows("MEMORY-DEFECTS")
async def test_add_memory_without_title(ask: Asking) -> None:
    memory = (await ask("add_memory", note="Ann likes tea. She drinks it without milk.")).data["memory"]
    assert memory["title"].startswith("Ann likes tea")
    assert memory["note"] == "Ann likes tea. She drinks it without milk."


@shows("MEMORY-DEFECTS")
async def test_create_update_and_search_tasks_with_a_mere_day_and_a_timezone(ask: Asking) -> None:
    task = (await ask("create_task", title="Pay", due_date="2040-11-20")).data["task"]
    assert task["due_date"] == "2040-11-21T07:59:59Z", "the end of the day where the person lives"
    given = {"due_date": "2040-11-22", "timezone": "Asia/Tokyo"}
    task = (await ask("update_task", id=task["id"], **given)).data["task"]
    assert task["due_date"] == "2040-11-22T14:59:59Z", "the zone counts on writes too"
    for which, found in (
        ({"due_after": "2040-11-22", "due_before": "2040-11-22"}, 1),
        ({"due_before": "2040-11-21"}, 0),
        ({"due_after": "2040-11-23"}, 0),
        ({"due_after": "2040-11-23", "timezone": "Pacific/Kiritimati"}, 1),
    ):
        assert (await ask("search_tasks", **which)).data["total"] == found, which


@shows("MEMORY-DEFECTS")
async def test_search_and_update_task_with_a_custom_category(ask: Asking) -> None:
    garden = (await ask("create_category", name="Garden & Yard")).data["category"]
    task = (await ask("create_task", title="Rake")).data["task"]
    assert (await ask("update_task", id=task["id"], category="garden & yard")).data["task"]["category_id"] == garden[
        "id"
    ]
    for category in ("Garden & Yard", garden["id"]):
        assert ids((await ask("search_tasks", category=category)).data["tasks"]) == [task["id"]]
    assert "There is no category 'Attic'" in await ask.error("search_tasks", category="Attic")


@shows("MEMORY-DEFECTS")
async def test_search_activities_and_get_task_time_entries_answer_with_what_they_found(ask: Asking) -> None:
    made = (await ask("create_activity", title="Chess", activity_type="gaming")).data["activity"]
    found = await ask("search_activities", search="chess")
    assert (found.data["activities"], found.data["total"], "Chess" in found.text) == ([made], 1, True)
    task = (await ask("create_task", title="Write")).data["task"]
    await ask("start_task_timer", task_id=task["id"])
    stopped = (await ask("stop_task_timer", task_id=task["id"])).data["entry"]
    assert (await ask("get_task_time_entries", task_id=task["id"])).data["entries"] == [stopped]


@shows("MEMORY-DEFECTS")
async def test_get_task_time_entries_needs_no_more_than_the_task(ask: Asking) -> None:
    task = (await ask("create_task", title="Write")).data["task"]
    told = await ask("get_task_time_entries", task_id=task["id"])
    assert (told.data, "No time was tracked" in told.text) == ({"entries": [], "total_minutes": 0}, True)
    told = await ask("get_task_time_entries", task_id=task["id"], start_date="2025-01-01", end_date="2025-12-31")
    assert told.data["entries"] == []


@shows("MEMORY-DEFECTS")
async def test_start_and_stop_task_timer_tell_real_times_and_keep_the_description(ask: Asking) -> None:
    task = (await ask("create_task", title="Write")).data["task"]
    started = await ask("start_task_timer", task_id=task["id"], description="The first chapter")
    entry = started.data["entry"]
    assert (entry["note"], entry["item_title"], entry["end_at"]) == ("The first chapter", "Write", None)
    assert f"Write (task {task['id']}): since" in started.text
    assert "still running (The first chapter)" in started.text
    stopped = await ask("stop_task_timer", task_id=task["id"])
    assert (
        stopped.data["entry"] | {"end_at": None, "duration_minutes": None, "updated_at": entry["updated_at"]} == entry
    )
    assert "1 min (The first chapter)" in stopped.text
    assert datetime.fromisoformat(stopped.data["entry"]["end_at"]) > datetime.fromisoformat(entry["start_at"])


@shows("MEMORY-DEFECTS")
async def test_create_activity_keeps_everything_and_takes_every_status_and_intensity(ask: Asking) -> None:
    said: dict[str, Any] = {
        "title": "Hike",
        "activity_type": "walking",
        "status": "cancelled",
        "satisfaction_level": 7,
        "intensity_level": "moderate",
        "insights": "Start earlier",
        "gratitude": "Good shoes",
        "companions": ["Ben", "Cleo"],
    }
    activity = (await ask("create_activity", **said)).data["activity"]
    assert {name: activity[name] for name in said} == said
    found = await ask("search_activities", intensity_level="moderate", status="cancelled", min_satisfaction=7)
    assert ids(found.data["activities"]) == [activity["id"]]


@shows("MEMORY-DEFECTS")
async def test_get_memory_stats_counts_memories(ask: Asking) -> None:
    await ask("create_task", title="No memory")
    for note, kind in (("One", "quote"), ("Two", "insight"), ("Three", "insight")):
        await ask("add_memory", note=note, memory_type=kind)
    stats = (await ask("get_memory_stats")).data["stats"]
    assert (stats["total"], stats["by_type"]) == (3, {"insight": 2, "quote": 1})


@shows("MEMORY-DEFECTS")
async def test_get_ai_tasks_and_queued_go_by_the_agents_name_and_know_every_type(
    desk: Desk, ask: Asking, person: str
) -> None:
    mine = await given(desk, person, "clerk", task_type="news_search")
    other = await given(desk, person, "porter", task_type="stt")
    assert ids((await ask("get_ai_tasks", agent_name="clerk")).data["ai_tasks"]) == [mine]
    assert ids((await ask("get_queued_tasks_for_agent", agent_name="porter")).data["ai_tasks"]) == [other]
    assert ids((await ask("get_ai_tasks", task_type="stt")).data["ai_tasks"]) == [other]
    assert ids((await ask("get_ai_tasks", agent_id="clerk")).data["ai_tasks"]) == [mine]


@shows("MEMORY-DEFECTS")
async def test_accept_ai_task_takes_one_that_was_assigned(desk: Desk, ask: Asking, person: str) -> None:
    work = await given(desk, person, "clerk")
    assert (await ask("get_ai_task", id=work)).data["ai_task"]["status"] == "assigned"
    taken = (await ask("accept_ai_task", id=work)).data["ai_task"]
    assert (taken["status"], taken["history"][-1]["from_status"]) == ("in_progress", "assigned")
    for status in ("paused", "in_progress"):
        assert (await ask("update_ai_task", id=work, status=status)).data["ai_task"]["status"] == status
    assert "You hold this AI task already" in await ask.error("accept_ai_task", id=work)


@shows("MEMORY-DEFECTS")
async def test_complete_ai_task_keeps_what_came_of_it(desk: Desk, ask: Asking, person: str) -> None:
    work = await given(desk, person, "clerk")
    await ask("accept_ai_task", id=work)
    result: dict[str, Any] = {
        "output": "Done",
        "artifacts": [{"type": "text", "name": "notes", "content": "Line"}],
        "logs": ["began", "ended"],
        "metrics": {"tokens": 12},
    }
    await ask("complete_ai_task", id=work, actual_cost_usd=0.5, **result)
    kept = (await ask("get_ai_task", id=work)).data["ai_task"]
    assert (kept["execution_result"], kept["actual_cost_usd"], kept["status"]) == (result, 0.5, "completed")


@shows("MEMORY-DEFECTS")
async def test_get_ai_task_stats_answers(desk: Desk, ask: Asking, person: str) -> None:
    await given(desk, person, "clerk")
    told = await ask("get_ai_task_stats")
    assert (told.data["stats"]["total"], told.data["stats"]["by_agent"]) == (1, {"clerk": 1})
    assert "1 piece of work" in told.text


@shows("MEMORY-DEFECTS")
async def test_search_across_timeline_ranks_by_what_is_meant_and_keeps_its_filters(desk: Desk, ask: Asking) -> None:
    for note in ("The dentist moved the appointment to Monday", "We planted tulips by the fence"):
        await ask("add_memory", note=note)
    await ask("create_task", title="Buy tulip bulbs")
    await ask("create_activity", title="Planting tulips", activity_type="other", started_at="2020-04-01T10:00")
    await desk.app.memory_indexer.index_all()
    found = [await ask("search_across_timeline", query="tulips in the garden") for _ in range(2)]
    assert found[0].data == found[1].data, "nothing about it is left to chance"
    titles = [one["item"]["title"] for one in found[0].data["results"]]
    assert "tulip" in titles[0].lower()
    assert "dentist" not in " ".join(titles[:3])
    scores = [one["relevance_score"] for one in found[0].data["results"]]
    assert scores == sorted(scores, reverse=True)
    only = (await ask("search_across_timeline", query="tulips", include_types=["task"])).data["results"]
    assert {one["item"]["type"] for one in only} == {"task"}
    early = (await ask("search_across_timeline", query="tulips", date_to="2020-12-31")).data["results"]
    assert [one["item"]["title"] for one in early] == ["Planting tulips"]
    asked = [await ask("search_across_timeline", query="dentist", context_depth=depth, limit=1) for depth in (1, 3)]
    near, wide = [one.data["results"][0]["context"] for one in asked]
    assert len(near) < len(wide)


@shows("MEMORY-DEFECTS")
async def test_get_timeline_insights_are_worked_out_from_the_range_that_was_asked_for(ask: Asking) -> None:
    nothing = (await ask("get_timeline_insights", date_range="year")).data["insights"]
    assert (nothing["total"], nothing["tasks"]["completed"]) == (0, 0)
    task = (await ask("create_task", title="Paint the door", tags=["house"])).data["task"]
    await ask("update_task", id=task["id"], status="completed")
    long_ago = {"activity_type": "walking", "started_at": "2001-01-01T10:00", "ended_at": "2001-01-01T11:00"}
    await ask("create_activity", title="Long ago", **long_ago)
    told = await ask("get_timeline_insights", date_range="today")
    assert (told.data["insights"]["counts"]["task"], told.data["insights"]["tasks"]["completed"]) == (1, 1)
    assert (told.data["insights"]["date_range"], told.data["insights"]["timezone"]) == ("today", "America/Los_Angeles")
    assert "house" in told.text
    assert "Long ago" not in told.text


@shows("MEMORY-DEFECTS")
async def test_search_memories_goes_by_highlights_and_leaves_deleted_ones_out(ask: Asking) -> None:
    best = (await ask("add_memory", note="The sea at dawn", is_highlight=True)).data["memory"]["id"]
    gone = (await ask("add_memory", note="The sea at noon", is_highlight=True)).data["memory"]["id"]
    plain = (await ask("add_memory", note="The sea at night")).data["memory"]["id"]
    await ask("delete_memory", id=gone)
    assert ids((await ask("search_memories", is_highlight=True)).data["memories"]) == [best]
    assert ids((await ask("search_memories", is_highlight=False)).data["memories"]) == [plain]
    assert ids((await ask("search_memories", search="the sea", is_highlight=True)).data["memories"]) == [best]
    assert set(ids((await ask("search_memories", search="the sea")).data["memories"])) == {best, plain}
    assert ids((await ask("search_memories", status="deleted")).data["memories"]) == [gone]


@shows("MEMORY-DEFECTS")
async def test_get_day_time_spending_counts_the_day_where_the_person_is_and_nobody_elses(
    desk: Desk, ask: Asking, person: str
) -> None:
    task = (await ask("create_task", title="Night shift")).data["task"]
    times = {"start_at": "2025-03-01T23:30:00-08:00", "end_at": "2025-03-02T00:30:00-08:00"}
    await desk.app.memory.time_tracking.add(PersonScope(person), task["id"], times)
    for day, zone, minutes in (
        ("2025-03-01", None, 30),
        ("2025-03-02", None, 30),
        ("2025-03-02", "UTC", 60),
        ("2025-03-01", "UTC", 0),
        ("2025-03-02", "Asia/Tokyo", 60),
    ):
        spent = (await ask("get_day_time_spending", date=day, timezone=zone)).data["spending"]
        assert spent["total_minutes"] == minutes, (day, zone)
    assert (await ask("get_day_time_spending", date="2025-03-01", user_id=person)).data["spending"][
        "total_minutes"
    ] == 30
    with pytest.raises(MCPError, match="Only your own time"):
        await ask.client.call_tool("get_day_time_spending", {"date": "2025-03-01", "user_id": "somebody"})


async def given(desk: Desk, person: str, agent: str, *, task_type: str = "coding") -> str:
    """The id of a new piece of work for an agent."""
    scope = PersonScope(person)
    task = await desk.app.memory.tasks.create(scope, {"title": f"Work of {datetime.now(UTC)}"})
    fields = {"objective": "Do it", "task_type": task_type, "task_id": task.id, "agent_id": agent}
    return (await desk.app.memory.work_queue.create(scope, fields)).id
