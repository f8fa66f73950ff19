"""Tests every tool and route of the memory capability with every caller who must not see Ann's records."""

import base64
import json
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

import httpx2
import pytest

from frontdesk.app import App, open_app
from frontdesk.identity.rights import IDENTITY_READ
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.mcp.tools import tool_name
from frontdesk.memory.model import PersonScope, TaskRelation
from frontdesk.operation_table import MEMORY_OPERATIONS
from frontdesk.settings import Settings
from tests.requirements import shows
from tests.support.issuer import Issuer, open_issuer
from tests.support.wire import MODERN, Era, call

ANN, BEN = PersonScope("ann"), PersonScope("ben")
# Part of all of Ann's records, so that an answer shows its owner.
MARK = "Marmalade"
# The search text, which the callers send themselves.
WORD = "quince"
HERS = f"{MARK} of {WORD}"
AUDIENCE = "frontdesk"
LEGACY: Era = "2025-11-25"
DAY = "2026-11-20"
ENTRY = {"start_at": f"{DAY}T12:00:00Z", "end_at": f"{DAY}T13:00:00Z"}


@dataclass(frozen=True, slots=True)
class Hers:
    """Ids of Ann's records, by the names that routes and tools have for them."""

    ids: Mapping[str, str]

    def filled(self, path: str) -> str:
        return path.format(**self.ids)


@dataclass(frozen=True, slots=True)
class Installation:
    """An open server, its client, and the credential of each caller."""

    app: App
    client: httpx2.AsyncClient
    issuer: Issuer
    hers: Hers

    async def key(self, scopes: frozenset[str] | None = None, user: str = "ann") -> str:
        return (await self.app.identity.create_key(name="", agent_id=None, user_id=user, scopes=scopes))[1]

    async def strangers(self) -> Mapping[str, str | None]:
        """A caller with no credential, or with an invalid one."""
        key, revoked = await self.app.identity.create_key(name="old", agent_id=None, user_id="ann")
        await self.app.identity.revoke_key(key.id)
        claims = self.issuer.claims(sub="ann", aud=AUDIENCE)
        return {
            "nobody": None,
            "a revoked key": revoked,
            "an expired token": self.issuer.token(sub="ann", aud=AUDIENCE, exp=1),
            "a token for another audience": self.issuer.token(sub="ann", aud="https://elsewhere.example"),
            "a token that nobody signed": f"{_part({'alg': 'none'})}.{_part(claims)}.",
        }

    async def ask(self, method: str, path: str, shown: str | None, body: object = None) -> httpx2.Response:
        headers = {} if shown is None else {"authorization": f"Bearer {shown}"}
        return await self.client.request(method, path, headers=headers, json=body)

    async def use(self, tool: str, given: Mapping[str, object], shown: str | None, era: Era) -> httpx2.Response:
        headers, body = call(era, tool, given)
        proof = {} if shown is None else {"authorization": f"Bearer {shown}"}
        return await self.client.post("/mcp/memory", headers=headers | proof, content=body)


def _part(said: Mapping[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(said).encode()).rstrip(b"=").decode()


@pytest.fixture
async def installation(settings: Settings) -> AsyncGenerator[Installation]:
    with open_issuer() as issuer:
        trusted = [{"issuer": issuer.url, "audience": AUDIENCE, "jwks_url": issuer.jwks_url}]
        given = Settings.model_validate({**settings.model_dump(exclude_unset=True), "FRONTDESK_ISSUERS": trusted})
        async with open_app(given) as app, _client(app) as client:
            yield Installation(app, client, issuer, await _furnish(app))


@asynccontextmanager
async def _client(app: App) -> AsyncGenerator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(build_application(app))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:3020") as client:
        yield client


async def _furnish(app: App) -> Hers:
    """One record of everything, each with Ann's mark in it."""
    services = app.memory
    category = await services.categories.create(ANN, {"name": f"{HERS} jars"})
    task = await services.tasks.create(ANN, {"title": f"Cook {HERS}", "category": category.id, "tags": [HERS]})
    under = await services.tasks.create(ANN, {"title": f"Buy oranges for {HERS}", "parent_task_id": task.id})
    link = await services.tasks.link(ANN, task.id, under.id, TaskRelation.RELATED)
    memory = await services.memories.create(ANN, {"note": f"{HERS} needs sugar", "is_highlight": True})
    await services.memories.anchor(ANN, memory.id, {"anchor_item_id": task.id, "relation": "about", "notes": HERS})
    activity = await services.activities.create(ANN, {"title": f"Tasted {HERS}", "activity_type": "cooking"})
    habit = await services.timeline.create(ANN, {"type": "habit", "title": f"{HERS} on Sundays"})
    entry = await services.time_tracking.add(ANN, task.id, {**ENTRY, "note": HERS})
    await services.time_tracking.start(ANN, under.id, HERS)
    work = {"objective": f"Design {HERS} labels", "task_type": "writing", "task_id": task.id, "agent_id": "agent-1"}
    ai_task = await services.work_queue.create(ANN, work)
    ids = {"task_id": task.id, "relation_id": link.id, "entry_id": entry.id, "memory_id": memory.id}
    more = {"item_id": task.id, "activity_id": activity.id, "ai_task_id": ai_task.id, "category_id": category.id}
    return Hers({**ids, **more, "habit_id": habit.id, "under_id": under.id, "key_id": "0" * 12})


def _tools(hers: Hers) -> Mapping[str, Mapping[str, object]]:
    """The arguments of each tool: Ann's ids, if it takes any."""
    task, memory, ai_task = hers.ids["task_id"], hers.ids["memory_id"], hers.ids["ai_task_id"]
    activity, category = hers.ids["activity_id"], hers.ids["category_id"]
    everything: Mapping[str, Mapping[str, object]] = {
        "get_system_status": {},
        "create_task": {"title": "Mine"},
        "search_tasks": {"keyword": WORD},
        "get_task": {"id": task},
        "update_task": {"id": task, "title": "Mine"},
        "get_task_stats": {},
        "get_task_updates_for_today": {},
        "get_task_updates_for_date": {"date": DAY},
        "add_memory": {"note": "Mine", "supersedes": memory},
        "search_memories": {"search": WORD},
        "get_memory": {"id": memory},
        "update_memory": {"id": memory, "note": "Mine"},
        "delete_memory": {"id": memory},
        "get_memory_stats": {},
        "create_activity": {"title": "Mine", "activity_type": "walking", "category_id": category},
        "search_activities": {"search": WORD},
        "get_activity": {"id": activity},
        "update_activity": {"id": activity, "title": "Mine"},
        "get_activity_stats": {},
        "get_timeline_items": {"search": WORD},
        "create_timeline_item": {"type": "habit", "title": "Mine", "category_id": category},
        "get_timeline_insights": {},
        "search_across_timeline": {"query": WORD},
        "get_day_time_spending": {"date": DAY},
        "get_task_time_entries": {"task_id": task},
        "start_task_timer": {"task_id": task},
        "stop_task_timer": {"task_id": hers.ids["under_id"]},
        "get_running_timer": {},
        "get_ai_tasks": {"agent_id": "agent-1"},
        "get_queued_tasks_for_agent": {"agent_name": "agent-1"},
        "get_ai_task": {"id": ai_task},
        "accept_ai_task": {"id": ai_task},
        "update_ai_task": {"id": ai_task, "progress_message": "Mine"},
        "complete_ai_task": {"id": ai_task, "output": "Mine"},
        "fail_ai_task": {"id": ai_task, "error_message": "Mine"},
        "get_ai_task_stats": {},
        "get_categories": {},
        "create_category": {"name": "Mine"},
        "get_category": {"id": category},
        "update_category": {"id": category, "name": "Mine"},
    }
    tools = {tool_name(operation) for operation in MEMORY_OPERATIONS if operation.mcp is not None}
    assert everything.keys() == tools, "every tool is walked"
    return everything


@dataclass(frozen=True, slots=True)
class Route:
    """One entry, ready to be called; `needs` is the scope that a key must have."""

    method: str
    path: str
    body: object
    needs: tuple[str, ...]
    one_of_hers: bool


# Bodies of the routes whose description shows none; ids are Ann's.
BODIES: Mapping[str, object] = {
    "PUT /tasks/{task_id}/status": {"status": "completed"},
    "PUT /subtasks/reorder": {"parent_task_id": "{task_id}", "subtask_ids": ["{under_id}"]},
    "POST /task-relations": {"task_id": "{task_id}", "related_task_id": "{under_id}", "relation": "related"},
    "PUT /activities/{activity_id}": {"title": "Mine"},
    "PUT /timeline-items/{item_id}": {"title": "Mine"},
    "PUT /time-entries/{entry_id}": {"note": "Mine"},
    "PUT /ai-tasks/{ai_task_id}": {"objective": "Mine"},
    "POST /ai-tasks/claim": {"agent_name": "agent-1"},
    "POST /ai-tasks/{ai_task_id}/renew": {"claims": 1},
    "POST /ai-tasks/{ai_task_id}/fail": {"error_message": "Mine"},
    "PUT /categories/{category_id}": {"name": "Mine"},
    "PUT /user/settings": {"timezone": "Europe/Berlin"},
    "DELETE /user/data": {"confirm": "erase"},
    "POST /user/api-keys": {"name": "Mine"},
    "PUT /user/api-keys/{key_id}": {"name": "Mine"},
}
QUERIES = {"q": WORD, "parent_task_id": "{task_id}", "from": DAY, "to": DAY}
ELSEWHERE = ("/agents/", "/v1/")


async def _routes(installation: Installation) -> list[Route]:
    """Every route of the capability, from the API's own description."""
    described = (await installation.ask("GET", "/api/openapi.json", None)).json()
    return [
        _route(installation.hers, method.upper(), path, operation)
        for path, operations in described["paths"].items()
        if not path.startswith(ELSEWHERE)
        for method, operation in operations.items()
    ]


def _route(hers: Hers, method: str, path: str, operation: Mapping[str, Any]) -> Route:
    asked = [one["name"] for one in operation.get("parameters", ()) if one["in"] == "query" and one["required"]]
    query = "&".join(f"{name}={QUERIES[name]}" for name in asked)
    needs = tuple(operation["security"][0]["HTTPBearer"])
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    shown = None if content is None else BODIES.get(f"{method} {path}") or _example(content)
    known = path.replace("/activities/{item_id}", "/activities/{activity_id}")
    whole = hers.filled(f"/api{known}" + (f"?{query}" if query else ""))
    return Route(method, whole, _filled(hers, shown), needs, "{" in path)


def _example(content: Mapping[str, Any]) -> object:
    shown: Mapping[str, Mapping[str, object]] = content.get("examples", {})
    return next((one["value"] for one in shown.values()), None) or dict[str, object]()


def _filled(hers: Hers, value: Any) -> Any:
    """With Ann's ids in place of the example's invented ones."""
    if isinstance(value, dict):
        said = cast("Mapping[str, Any]", value)
        return {name: hers.ids.get(name, _filled(hers, one)) for name, one in said.items()}
    if isinstance(value, list):
        return [_filled(hers, one) for one in cast("Sequence[Any]", value)]
    return value.format(**hers.ids) if isinstance(value, str) and value.startswith("{") else value


def _told(wrong: list[str]) -> str:
    return "\n".join(wrong)


async def _ask_all(installation: Installation, shown: str | None) -> AsyncGenerator[tuple[Route, httpx2.Response]]:
    for route in await _routes(installation):
        yield route, await installation.ask(route.method, route.path, shown, route.body)


async def _use_all(installation: Installation, shown: str | None) -> AsyncGenerator[tuple[str, httpx2.Response]]:
    for era in (MODERN, LEGACY):
        for tool, given in _tools(installation.hers).items():
            yield f"{tool} in {era}", await installation.use(tool, given, shown, era)


async def _kept(installation: Installation) -> object:
    """All of Ann's records in their present state."""
    return (await installation.app.memory.people.export(ANN))["records"]


@shows("MEMORY-WHO")
async def test_who_proves_nothing_gets_nothing_from_any_tool_or_route(installation: Installation) -> None:
    before, wrong = await _kept(installation), list[str]()
    for who, shown in (await installation.strangers()).items():
        async for route, answer in _ask_all(installation, shown):
            if answer.status_code != 401 or MARK in answer.text:
                wrong.append(
                    f"{who}: {route.method} {route.path} is answered {answer.status_code}: {answer.text[:200]}"
                )
        async for tool, answer in _use_all(installation, shown):
            if answer.status_code != 401 or MARK in answer.text:
                wrong.append(f"{who}: {tool}: {answer.status_code} {answer.text[:200]}")
    assert not wrong, _told(wrong)
    assert await _kept(installation) == before


@shows("MEMORY-WHO")
async def test_a_key_without_the_scope_is_told_which_it_lacks_and_nothing_else(installation: Installation) -> None:
    before, wrong = await _kept(installation), list[str]()
    shown = await installation.key(frozenset({IDENTITY_READ}))
    async for route, answer in _ask_all(installation, shown):
        right = 401 if "api-keys" in route.path else 403 if route.needs else 200
        named = set(answer.json().get("required_scopes", ())) <= set(route.needs) if right == 403 else True
        if answer.status_code != right or MARK in answer.text or not named:
            wrong.append(f"{route.method} {route.path} is answered {answer.status_code}: {answer.text[:200]}")
    async for tool, answer in _use_all(installation, shown):
        harmless = tool.startswith("get_system_status") and answer.status_code == 200
        if not (answer.status_code == 403 or harmless) or MARK in answer.text:
            wrong.append(f"{tool} is answered {answer.status_code}: {answer.text[:200]}")
    assert not wrong, _told(wrong)
    assert await _kept(installation) == before


@shows("MEMORY-WHO")
async def test_somebody_else_finds_nothing_of_hers_and_changes_nothing(installation: Installation) -> None:
    before, wrong = await _kept(installation), list[str]()
    for shown in (await installation.key(user="ben"), installation.issuer.token(sub="ben", aud=AUDIENCE)):
        async for tool, answer in _use_all(installation, shown):
            if MARK in answer.text:
                wrong.append(f"{tool} is answered {answer.status_code}: {answer.text[:300]}")
        async for route, answer in _ask_all(installation, shown):
            hidden = answer.status_code in (401, 404) or not route.one_of_hers
            if not hidden or answer.status_code >= 500 or MARK in answer.text:
                wrong.append(f"{route.method} {route.path} is answered {answer.status_code}: {answer.text[:300]}")
    assert not wrong, _told(wrong)
    assert await _kept(installation) == before


async def test_she_herself_is_shown_what_is_hers_by_the_same_requests(installation: Installation) -> None:
    """The control: if the server never showed anything to anybody, the tests above would find nothing wrong."""
    shown = installation.issuer.token(sub="ann", aud=AUDIENCE)
    for route in await _routes(installation):
        if route.method == "GET":
            answer = await installation.ask("GET", route.path, shown)
            assert answer.status_code == (404 if "api-keys/" in route.path else 200), (route.path, answer.text)
    told = [
        tool
        for tool, given in _reading(installation.hers)
        if MARK in (await installation.use(tool, given, shown, MODERN)).text
    ]
    assert len(told) >= 12, told


def _reading(hers: Hers) -> Iterator[tuple[str, Mapping[str, object]]]:
    return ((tool, given) for tool, given in _tools(hers).items() if tool.startswith(("get_", "search_")))
