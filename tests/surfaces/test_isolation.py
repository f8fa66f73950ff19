"""Many callers at once through one server and one client: nobody gets another's answer."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

import anyio
import httpx2
import pytest
from mcp import Client

from frontdesk.app import App
from frontdesk.identity.model import Caller, Signals
from frontdesk.identity.service import Identity
from frontdesk.surfaces.http import build
from tests.requirements import shows
from tests.support.desk import Desk, frontdesk
from tests.support.wire import ERAS, Answer, Era, call, send

pytestmark = pytest.mark.anyio
CALLERS = 50
CALLS = 40

# Sends one request and gives (agent, user, request id) as the server saw them.
Ask = Callable[[str, str], Awaitable[tuple[str | None, str | None, str]]]


async def strangers(ask: Ask) -> list[tuple[str, str | None]]:
    """Every answer that does not belong to the one who asked."""
    wrong: list[tuple[str, str | None]] = []
    limit = anyio.CapacityLimiter(100)

    async def one(agent: str, number: int) -> None:
        async with limit:
            request = f"{agent}-{number}"
            agent_id, user_id, request_id = await ask(agent, request)
        if (agent_id, request_id) != (agent, request) or user_id not in (None, f"user-of-{agent}"):
            wrong.append((agent, agent_id))

    async with anyio.create_task_group() as callers:
        for number in range(CALLS):
            for caller in range(CALLERS):
                callers.start_soon(one, f"agent-{caller}", number)
    return wrong


def told(answer: Answer) -> tuple[str | None, str | None, str]:
    who = answer.structured
    return who["agent_id"], who["user_id"], who["request_id"]


@shows("ID-ISOLATION")
@pytest.mark.parametrize("era", ERAS)
async def test_over_http_every_answer_belongs_to_its_caller(desk: Desk, era: Era) -> None:
    async with httpx2.AsyncClient(timeout=60) as client:

        async def ask(agent: str, request: str) -> tuple[str | None, str | None, str]:
            said, body = call(era)
            response = await client.post(
                desk.mcp, headers=said | {"x-agent-id": agent, "x-request-id": request}, content=body
            )
            return told(Answer(response.status_code, response.headers, response.content))

        assert await strangers(ask) == []


async def test_with_keys_every_answer_belongs_to_the_keys_agent_and_user(desk: Desk) -> None:
    def key(agent: str) -> str:
        made = frontdesk("keys", "create", "--agent", agent, "--user", f"user-of-{agent}", data=desk.data)
        assert made.returncode == 0, made.stderr
        return made.stdout.strip()

    keys = {agent: key(agent) for agent in (f"agent-{number}" for number in range(5))}
    async with httpx2.AsyncClient(timeout=60) as client:

        async def ask(agent: str, request: str) -> tuple[str | None, str | None, str]:
            said, body = call("2026-07-28")
            shown = keys.get(agent)
            proof = {"authorization": f"Bearer {shown}"} if shown else {"x-agent-id": agent}
            response = await client.post(desk.mcp, headers=said | proof | {"x-request-id": request}, content=body)
            answer = told(Answer(response.status_code, response.headers, response.content))
            assert (answer[1] is None) == (shown is None)
            return answer

        assert await strangers(ask) == []


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_one_mcp_client_can_speak_for_many(desk: Desk, mode: str) -> None:
    async with Client(desk.mcp, mode=mode) as client:

        async def ask(agent: str, request: str) -> tuple[str | None, str | None, str]:
            answer = await client.call_tool("whoami", {"agent_id": agent})
            assert answer.structured_content is not None
            return answer.structured_content["agent_id"], answer.structured_content["user_id"], request

        assert await strangers(ask) == []


class RememberingIdentity(Identity):
    """What must never be: a caller that is kept from one request to the next."""

    kept: Caller | None = None

    async def identify(self, signals: Signals) -> Caller:
        self.kept = self.kept or await super().identify(signals)
        await anyio.lowlevel.checkpoint()
        return replace(self.kept, request_id=signals.request_id)


async def test_an_identity_that_is_kept_is_caught(app: App) -> None:
    keeping = RememberingIdentity.__new__(RememberingIdentity)
    keeping.__dict__ |= app.identity.__dict__
    asgi = build(replace(app, identity=keeping))

    async def ask(agent: str, request: str) -> tuple[str | None, str | None, str]:
        said, body = call("2026-07-28")
        return told(await send(asgi, said | {"x-agent-id": agent, "x-request-id": request}, body))

    assert len(await strangers(ask)) == CALLS * (CALLERS - 1)
