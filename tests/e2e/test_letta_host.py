"""Agents on a Letta server: a stand-in that speaks the part of its REST API we use."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from frontdesk.agents.host import Agent, only_agent
from frontdesk.errors import Unavailable
from tests.conftest import settings_with
from tests.hosts.lab import opened
from tests.support.serving import serve

pytestmark = pytest.mark.anyio
AGENT = {"id": "agent-1", "name": "Support", "description": None}


async def retrieve(request: Request) -> JSONResponse:
    if request.headers.get("authorization") != "Bearer password":
        return JSONResponse({"detail": "Unauthorized"}, 401)
    if request.path_params["agent_id"] == "not-of-its-form":
        return JSONResponse({"detail": "Invalid agent ID format"}, 422)
    found = request.path_params["agent_id"] == AGENT["id"]
    return JSONResponse(AGENT) if found else JSONResponse({"detail": "Agent not found"}, 404)


async def listing(request: Request) -> JSONResponse:
    assert request.query_params["order"] == "asc"
    return JSONResponse([AGENT])


@pytest.fixture(scope="module")
def letta() -> Iterator[str]:
    app = Starlette(routes=[Route("/v1/agents/", listing), Route("/v1/agents/{agent_id}", retrieve)])
    with serve(app) as address:
        yield address


async def test_an_agent_is_found_or_is_not(letta: str, tmp_path: Path) -> None:
    async with opened(settings_with(FRONTDESK_DATA=tmp_path, LETTA_BASE_URL=letta, LETTA_API_KEY="password")) as host:
        assert await host.find("agent-1") == Agent("agent-1", "Support", "")
        assert await host.find("agent-2") is None
        assert await host.find("not-of-its-form") is None
        assert await only_agent(host) == "agent-1"


@pytest.mark.parametrize("case", ["wrong password", "not there"])
async def test_a_server_that_does_not_answer_says_what_to_check(letta: str, case: str, tmp_path: Path) -> None:
    url = letta if case == "wrong password" else "http://127.0.0.1:1"
    async with opened(settings_with(FRONTDESK_DATA=tmp_path, LETTA_BASE_URL=url, LETTA_API_KEY="wrong")) as host:
        with pytest.raises(Unavailable, match="LETTA_BASE_URL"):
            await host.find("agent-1")
