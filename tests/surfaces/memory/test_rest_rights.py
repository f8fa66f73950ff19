"""Who gets in at the routes of the memory capability, and who is told what they lack."""

import re
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from frontdesk.app import App, open_app
from frontdesk.identity import rights
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.http.context import ASGIApp
from frontdesk.settings import Settings
from tests.requirements import shows
from tests.support.chat import key
from tests.support.rest import Rest, speaking

pytestmark = pytest.mark.anyio
NOWHERE = "00000000-0000-7000-8000-000000000000"


@dataclass(frozen=True, slots=True)
class Route:
    """A route as the description tells it: what it needs, and an address that fits it."""

    method: str
    path: str
    needed: tuple[str, ...]


@pytest.fixture
async def app(settings: Settings) -> AsyncGenerator[App]:
    async with open_app(settings) as opened:
        yield opened


@pytest.fixture
def asgi(app: App) -> ASGIApp:
    return build_application(app)


async def routes(asgi: ASGIApp, token: str) -> list[Route]:
    async with speaking(asgi, token) as somebody:
        return [*_routes(await somebody.get("/openapi.json"))]


def _routes(document: dict[str, Any]) -> Iterator[Route]:
    """Those of the memory capability, which are the ones that need a scope of it, and the look at one's settings."""
    for path, methods in document["paths"].items():
        for method, told in methods.items():
            needed = tuple(scope for scheme in told["security"] for scopes in scheme.values() for scope in scopes)
            if needed or path == "/user/settings":
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
