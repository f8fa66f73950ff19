"""Tests one day of a person, with every tool at `/mcp/memory`, by real MCP clients of both eras, on both databases."""

from collections.abc import AsyncGenerator
from copy import copy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit
from zoneinfo import ZoneInfo

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from pydantic import SecretStr

from frontdesk.identity.model import KEY_CREDENTIAL_PREFIX
from frontdesk.interfaces.mcp.login_tools import with_login_tools
from frontdesk.interfaces.mcp.server import build_server, offer_tools, tools_by_path, url_path
from frontdesk.interfaces.mcp.stdio import identify_stdio_client
from frontdesk.memory.model import PersonScope
from frontdesk.operations import McpPath
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.memory import ERAS, Asking, Desk, open_memory
from tests.support.postgres import Postgres, Ready

CALLBACK = "http://localhost:3000/callback"
BERLIN = ZoneInfo("Europe/Berlin")
AUTH = {
    *("authenticate", "exchange_code_for_token", "refresh_token", "get_user_info", "get_auth_status", "clear_auth"),
    "set_access_token",
}
AGENTS = {
    *("get_system_status", "create_task", "search_tasks", "get_task", "update_task", "get_task_stats"),
    *("get_task_updates_for_today", "get_task_updates_for_date", "add_memory", "search_memories", "get_memory"),
    *("delete_memory", "update_memory", "get_memory_stats", "create_activity", "search_activities", "get_activity"),
    *("update_activity", "get_activity_stats", "get_timeline_items", "create_timeline_item", "get_timeline_insights"),
    *("search_across_timeline", "get_day_time_spending", "get_task_time_entries", "start_task_timer"),
    *("stop_task_timer", "get_running_timer", "get_ai_tasks", "get_queued_tasks_for_agent", "get_ai_task"),
    *("accept_ai_task", "update_ai_task", "complete_ai_task", "fail_ai_task", "get_ai_task_stats"),
}
CATEGORIES = {"get_categories", "create_category", "get_category", "update_category"}


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
async def desk(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, ready: Ready
) -> AsyncGenerator[Desk]:
    folder: Path = tmp_path_factory.mktemp("memory") / "data"
    where: dict[str, object] = {"FRONTDESK_DATA": folder, "OAUTH_CLIENT_ID": "zmemory-mcp"}
    if request.param == "sqlite":
        ready.in_folder(folder)
    else:
        server: Postgres = request.getfixturevalue("postgres")
        where["FRONTDESK_DATABASE_URL"] = ready.on(server)
    async with open_memory(settings_with(**where)) as opened:
        yield opened


@shows("MEMORY-TOOLS")
@pytest.mark.parametrize("mode", ERAS)
async def test_all_tools_round_trip_in_one_day(desk: Desk, mode: str) -> None:
    person = f"ann-{mode}"
    key = await desk.key(person, zone="Europe/Berlin")
    async with desk.ask(key, mode, x_agent_id="clerk") as ask:
        await the_desk(ask, person)
        await the_plan(ask)
        await the_time(ask)
        await the_memories(ask)
        await the_activities(ask)
        await the_work(desk, ask, person)
        await the_timeline(ask)
        assert ask.called == (AGENTS | CATEGORIES | {"get_user_info", "get_auth_status"})
    await the_login(desk, mode, key, person)


async def the_desk(ask: Asking, person: str) -> None:
    told = await ask("get_auth_status")
    assert (told.data["authenticated"], told.data["user_id"], told.data["by"]) == (True, person, "key")
    assert (await ask("get_user_info")).data == {"sub": person, "email": None, "name": None}
    assert "not found" in await ask.error("get_task", id="gone")
    told = await ask("get_system_status")
    assert (told.data["status"], told.data["parts"], told.data["user_id"]) == ("healthy", {"database": "ok"}, person)
    assert "get_task: refused (NotFound)" in told.text
    assert told.data["recent_errors"][0]["action"] == "get_task"
    told = await ask("get_system_status", include_recent_errors=False, check_connectivity=False)
    assert (told.data["parts"], told.data["recent_errors"]) == ({}, [])


async def the_plan(ask: Asking) -> None:
    assert "create_category" in (await ask("get_categories")).text
    made = (await ask("create_category", name="Travel", icon="train")).data["category"]
    assert (await ask("get_category", id="travel")).data["category"] == made
    changed = (await ask("update_category", id="TRAVEL", color="#1E88E5")).data["category"]
    assert (changed["color"], changed["icon"], changed["id"]) == ("#1E88E5", "train", made["id"])
    assert [one["name"] for one in (await ask("get_categories")).data["categories"]] == ["Travel"]
    told = await ask("create_task", title="Book the train", due_date="2040-11-20", category="travel", priority="high")
    task = told.data["task"]
    assert (task["due_date"], task["category_id"]) == ("2040-11-20T22:59:59Z", made["id"])
    assert f"Book the train (id {task['id']}): pending, high priority, due Tue 2040-11-20 23:59 CET" in told.text
    for number in range(3):
        await ask("create_task", title=f"Pack bag {number}", tags=["packing"])
    told = await ask("search_tasks", keyword="bag", sort_by="title", sort_order="asc", limit=2)
    assert [one["title"] for one in told.data["tasks"]] == ["Pack bag 0", "Pack bag 1"]
    assert "3 tasks, showing 1-2 of 3; offset 2 for more:" in told.text
    told = await ask("update_task", id=task["id"], status="completed", notes=None)
    assert (told.data["task"]["progress"], "completed" in told.text) == (100, True)
    assert (await ask("get_task", id=task["id"])).data == told.data
    stats = (await ask("get_task_stats")).data["stats"]
    assert (stats["total"], stats["by_status"]["completed"], stats["by_category"]["Travel"]) == (4, 1, 1)
    told = await ask("get_task_updates_for_today")
    assert (told.data["total"], told.data["tasks"][0]["id"]) == (4, task["id"])
    today = datetime.now(BERLIN).date().isoformat()
    assert (await ask("get_task_updates_for_date", date=today)).data["total"] == 4
    assert "No task was last changed" in (await ask("get_task_updates_for_date", date="2001-01-01")).text


async def the_time(ask: Asking) -> None:
    [task] = (await ask("search_tasks", keyword="bag 0")).data["tasks"]
    assert (await ask("get_running_timer")).data == {"entry": None}
    told = await ask("start_task_timer", task_id=task["id"], description="Socks first")
    assert (told.data["entry"]["note"], told.data["entry"]["timeline_item_id"]) == ("Socks first", task["id"])
    assert f"Started.\nPack bag 0 (task {task['id']}): since" in told.text
    running = await ask("get_running_timer")
    assert (running.data, "still running (Socks first)" in running.text) == (told.data, True)
    stopped = await ask("stop_task_timer", task_id=task["id"])
    assert (stopped.data["entry"]["duration_minutes"], "Stopped." in stopped.text) == (1, True)
    told = await ask("get_task_time_entries", task_id=task["id"])
    assert (told.data["entries"], told.data["total_minutes"]) == ([stopped.data["entry"]], 1)
    day = stopped.data["entry"]["start_at"]
    there = datetime.fromisoformat(day).astimezone(BERLIN).date().isoformat()
    spending = (await ask("get_day_time_spending", date=there)).data["spending"]
    assert (spending["zone"], spending["total_minutes"]) == ("Europe/Berlin", 1)
    assert [one["name"] for one in spending["by_item"]] == ["Pack bag 0"]


async def the_memories(ask: Asking) -> None:
    told = await ask("add_memory", note="Ann must not eat nuts: she is allergic.", tags=["health"], salience_score=0.9)
    nuts = told.data["memory"]
    assert f"(id {nuts['id']})" in told.text
    view = (await ask("add_memory", note="The view from the tower over Lisbon", is_highlight=True)).data["memory"]
    found = await ask("search_memories", search="nuts allergic")
    assert found.data["memories"][0]["id"] == nuts["id"]
    assert [one["id"] for one in (await ask("search_memories", is_highlight=True)).data["memories"]] == [view["id"]]
    told = await ask("update_memory", id=nuts["id"], place_name="Lisbon", emotion_valence=-2)
    assert (await ask("get_memory", id=nuts["id"])).data == told.data
    assert "valence -2 of -5 to 5" in told.text
    stats = (await ask("get_memory_stats")).data["stats"]
    assert (stats["total"], stats["highlights"], stats["by_place"]) == (2, 1, {"Lisbon": 1})
    assert (await ask("delete_memory", id=view["id"])).data == {"id": view["id"], "deleted": True}
    assert (await ask("search_memories")).data["total"] == 1


async def the_activities(ask: Asking) -> None:
    told = await ask(
        "create_activity",
        title="Run along the river",
        activity_type="exercise",
        started_at="2025-06-20T07:00",
        duration_minutes=35,
        mood_before=5,
        mood_after=8,
    )
    run = told.data["activity"]
    assert (run["started_at"], run["ended_at"]) == ("2025-06-20T05:00:00Z", "2025-06-20T05:35:00Z")
    assert "Fri 2025-06-20 07:00-07:35 CEST, 35 min" in told.text
    told = await ask("update_activity", id=run["id"], satisfaction_level=9, gratitude="The sun")
    assert (await ask("get_activity", id=run["id"])).data == told.data
    found = (await ask("search_activities", **{"from": "2025-06-20", "to": "2025-06-20"})).data
    assert [one["id"] for one in found["activities"]] == [run["id"]]
    stats = (await ask("get_activity_stats")).data["stats"]
    assert (stats["total"], stats["total_minutes"], stats["average_mood_change"]) == (1, 35, 3)


async def the_work(desk: Desk, ask: Asking, person: str) -> None:
    first, second = [await given_work(desk, person, objective) for objective in ("Compare hotels", "Call the hotel")]
    waiting = await ask("get_queued_tasks_for_agent", agent_name="clerk")
    assert [one["objective"] for one in waiting.data["ai_tasks"]] == ["Compare hotels", "Call the hotel"]
    assert (await ask("get_ai_tasks", agent_name="somebody else")).data["total"] == 0
    assert (await ask("get_ai_tasks", agent_name="clerk", status="assigned")).data["total"] == 2
    told = await ask("accept_ai_task", id=first, estimated_duration_min=20)
    work = told.data["ai_task"]
    assert (work["status"], work["leased_by"], work["estimated_duration_min"]) == ("in_progress", "clerk", 20)
    assert "It is yours now." in told.text
    told = await ask("update_ai_task", id=first, progress_message="Two of three")
    assert told.data["ai_task"]["progress_message"] == "Two of three"
    artifact = {"type": "markdown", "name": "comparison", "content": "| hotel | price |"}
    told = await ask("complete_ai_task", id=first, output="The Astoria", artifacts=[artifact], logs=["asked"])
    assert told.data["ai_task"]["execution_result"] == {
        "output": "The Astoria",
        "artifacts": [artifact],
        "logs": ["asked"],
    }
    assert (await ask("get_ai_task", id=first)).data == told.data
    await ask("accept_ai_task", id=second)
    told = await ask("fail_ai_task", id=second, error_message="Nobody answers")
    assert (told.data["ai_task"]["status"], "Nobody answers" in told.text) == ("failed", True)
    stats = (await ask("get_ai_task_stats")).data["stats"]
    assert (stats["by_status"], stats["success_rate"]) == ({"completed": 1, "failed": 1}, 0.5)
    assert (stats["active"], stats["completed"], stats["failed"]) == (0, 1, 1)


async def given_work(desk: Desk, person: str, objective: str) -> str:
    """The id of a piece of work for the agent `clerk`; people give agents their work over HTTP."""
    scope = PersonScope(person)
    task = await desk.app.memory.tasks.create(scope, {"title": objective})
    fields: dict[str, Any] = {
        "objective": objective,
        "task_type": "research",
        "task_id": task.id,
        "agent_id": "clerk",
        "mode": "plan_only",
    }
    return (await desk.app.memory.work_queue.create(scope, fields)).id


async def the_timeline(ask: Asking) -> None:
    told = await ask("create_timeline_item", type="habit", title="Stretch", start_time="2025-06-20T07:00:00+02:00")
    habit = told.data["item"]
    assert (habit["start_time"], habit["status"]) == ("2025-06-20T05:00:00Z", "active")
    assert [one["id"] for one in (await ask("get_timeline_items", type="habit")).data["items"]] == [habit["id"]]
    assert (await ask("get_timeline_items")).data["total"] >= 7
    insights = (await ask("get_timeline_insights", date_range="today")).data["insights"]
    assert (insights["tasks"]["completed"], insights["timezone"]) == (1, "Europe/Berlin")
    found = await ask("search_across_timeline", query="allergic to nuts", include_types=["memory", "task"])
    assert "allergic" in found.data["results"][0]["item"]["title"]


async def the_login(desk: Desk, mode: str, key: str, person: str) -> None:
    async with desk.ask(None, mode) as ask, desk.ask(None, mode) as other:
        assert (await ask("get_auth_status")).data["authenticated"] is False
        begun = (await ask("authenticate", client_id="zmemory-mcp", scope="tasks.read tasks.write")).data
        said = asked_in(begun["authorization_url"])
        async with desk.web(key) as web:
            allowed = await web.post("/oauth/authorize/issue", json=said)
        back = asked_in(allowed.json()["redirect"])
        assert back["state"] == begun["state"]
        proof = {"redirect_uri": begun["redirect_uri"], "code_verifier": begun["code_verifier"]}
        tokens = (await ask("exchange_code_for_token", code=back["code"], **proof)).data
        assert (tokens["user_id"], tokens["scope"]) == (person, "tasks.read tasks.write")
        renewed = (await ask("refresh_token", refresh_token=tokens["refresh_token"])).data
        assert renewed["access_token"] != tokens["access_token"]
        kept = mode == "legacy"
        told = await ask("set_access_token", access_token=f"Bearer {renewed['access_token']}")
        assert told.data == {"user_id": person, "kept": kept}
        assert ("remembered for this session" if kept else "send it with every request") in told.text
        assert (await ask("get_auth_status")).data["authenticated"] is kept
        assert (await other("get_auth_status")).data["authenticated"] is False, "no other session knows of it"
        await ask("clear_auth")
        assert (await ask("get_auth_status")).data["authenticated"] is False
        assert ask.called >= AUTH - {"get_user_info"}


def asked_in(address: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(address).query))


@shows("MEMORY-TOOLS")
@pytest.mark.parametrize("mode", ERAS)
async def test_the_listed_tools_are_those_of_the_contract_and_show_their_schemas_whole(desk: Desk, mode: str) -> None:
    async with desk.ask(None, mode) as ask:
        tools = {tool.name: tool for tool in (await ask.client.list_tools()).tools}
    assert set(tools) == AUTH | AGENTS, "those of categories are not listed, and can be called"
    assert (len(tools), len(AGENTS)) == (43, 36)
    for tool in tools.values():
        assert "$ref" not in str(tool.input_schema) + str(tool.output_schema)
        assert tool.output_schema is not None
        assert len(tool.description or "") > 40
    assert tools["create_task"].input_schema["required"] == ["title"]
    assert tools["search_activities"].input_schema["properties"]["from"]["anyOf"][0]["type"] == "string"
    async with desk.web() as web:
        card = await web.get("/.well-known/mcp/catalog.json")
    assert "/mcp/memory/server-card" in card.text


async def test_what_models_send_for_what_they_have_no_word_on_counts_as_not_said(desk: Desk) -> None:
    async with desk.ask(await desk.key("nil")) as ask:
        nothing = {"limit": None, "offset": None, "sort_by": None, "status": None, "tags": None}
        assert (await ask("search_tasks", **nothing)).data["tasks"] == []
        task = (await ask("create_task", title="Once", notes="kept", due_date=None)).data["task"]
        changed = (await ask("update_task", id=task["id"], notes=None, title=None, priority="low")).data["task"]
        assert (changed["notes"], changed["title"], changed["priority"]) == ("kept", "Once", "low")
        assert "title: Field required" in await ask.error("create_task", title=None)


async def test_what_is_the_callers_mistake_is_told_in_words_that_say_what_to_do(desk: Desk) -> None:
    async with desk.ask(await desk.key("slip")) as ask:
        assert "must be a day (2026-11-20)" in await ask.error("create_task", title="x", due_date="soon")
        assert "use one of: none yet" in await ask.error("create_task", title="x", category="nowhere")
        assert "Unknown time zone" in await ask.error("create_task", title="x", timezone="Nowhere/City")
        assert "status: Input should be" in await ask.error("search_tasks", status="done")
        assert "colour: Extra inputs" in await ask.error("create_category", name="x", colour="#000000")
        assert "not valid" in await ask.error("set_access_token", access_token="zm_wrong")


async def test_a_session_is_of_the_one_person_whose_token_was_left_there_and_never_of_two(desk: Desk) -> None:
    ada, ben, other = await desk.key("ada"), await desk.key("ben"), await desk.key("ben")
    async with desk.ask(None, "legacy") as hers, desk.ask(None, "legacy") as his:
        await hers("set_access_token", access_token=ada)
        await his("set_access_token", access_token=ben)
        await hers("create_task", title="Hers")
        assert (await his("search_tasks")).data["total"] == 0
        await his("set_access_token", access_token=other)
        assert (await his("search_tasks")).data["total"] == 0, "a new token of the same person"
        assert "acts for nobody by itself" in await his.error("set_access_token", access_token=ada)
        with pytest.raises(MCPError, match="Authentication required"):
            await his.client.call_tool("search_tasks", {})
        assert "acts for nobody by itself" in await his.error("set_access_token", access_token=ben)
        assert (await hers("search_tasks")).data["total"] == 1
    async with desk.ask(ben, "legacy") as ask:
        assert (await ask("set_access_token", access_token=ben)).data == {"user_id": "ben", "kept": False}
        with pytest.raises(MCPError, match="another person"):
            await ask.client.call_tool("set_access_token", {"access_token": ada})


@shows("KEPT-02")
async def test_a_program_that_was_started_for_a_person_is_theirs_while_their_key_does_not_hold(desk: Desk) -> None:
    path, key = url_path(McpPath.MEMORY), await desk.key("ivy")
    settings = desk.app.settings.with_values(zmemory_api_key=SecretStr(key))
    own = copy(desk.app)
    own.settings = settings
    starter = await identify_stdio_client(own)
    tools = tools_by_path(with_login_tools(desk.app, desk.app.operations()))[path]
    server = build_server(offer_tools(desk.app, tools, path, starter.request_context), path)
    async with Client(server) as client:
        ask = Asking(client)
        assert (await ask("get_auth_status")).data["user_id"] == "ivy"
        await desk.app.identity.revoke_key(
            (await desk.app.identity.authenticate(key)).id.removeprefix(KEY_CREDENTIAL_PREFIX)
        )
        assert (await ask("get_auth_status")).data["user_id"] is None
        with pytest.raises(MCPError, match="another person"):
            await client.call_tool("set_access_token", {"access_token": await desk.key("max")})
        assert (await ask("get_auth_status")).data["user_id"] is None
        await ask("set_access_token", access_token=await desk.key("ivy"))
        assert (await ask("get_auth_status")).data["user_id"] == "ivy", "a new one of the same person"


async def test_times_are_told_on_the_persons_clock(desk: Desk) -> None:
    async with desk.ask(await desk.key("tokyo", zone="Asia/Tokyo")) as ask:
        told = await ask("create_task", title="Tea", due_date="2040-01-02T09:00")
        assert told.data["task"]["due_date"] == "2040-01-02T00:00:00Z"
        assert "due Mon 2040-01-02 09:00 JST" in told.text
        told = await ask("create_task", title="Tea", due_date="2040-01-02", timezone="America/New_York")
        assert told.data["task"]["due_date"] == datetime(2040, 1, 3, 4, 59, 59, tzinfo=UTC).isoformat().replace(
            "+00:00", "Z"
        )
        assert "due Mon 2040-01-02 23:59 EST" in told.text
