"""Many callers at once through one server and one client: nobody gets another's answer."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import cycle

import anyio
import httpx2
import pytest
from mcp import Client

from frontdesk.app import App, open_app
from frontdesk.identity.model import Caller, Signals
from frontdesk.identity.service import Identity
from frontdesk.interfaces.http.application import build_application
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.desk import Desk
from tests.support.wire import ERAS, MODERN, Answer, call, send

pytestmark = pytest.mark.anyio
CALLERS = 50
CALLS = 12
AT_ONCE = 100
SECONDS = 120

# Sends one request and gives (agent, user, request id) as the server saw them.
Ask = Callable[[str, str], Awaitable[tuple[str | None, str | None, str]]]


async def strangers(ask: Ask) -> list[tuple[str, str | None]]:
    """Every answer that does not belong to the one who asked."""
    wrong: list[tuple[str, str | None]] = []
    limit = anyio.CapacityLimiter(AT_ONCE)

    async def one(agent: str, number: int) -> None:
        async with limit:
            request = f"{agent}-{number}"
            agent_id, user_id, request_id = await ask(agent, request)
        if (agent_id, request_id) != (agent, request) or user_id not in (None, f"user-of-{agent}"):
            wrong.append((agent, agent_id))

    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as callers:
            for number in range(CALLS):
                for caller in range(CALLERS):
                    callers.start_soon(one, f"agent-{caller}", number)
    return wrong


def told(answer: Answer) -> tuple[str | None, str | None, str]:
    who = answer.structured
    return who["agent_id"], who["user_id"], who["request_id"]


@shows("ID-ISOLATION")
async def test_over_http_every_answer_belongs_to_its_caller(desk: Desk) -> None:
    eras = cycle(ERAS)
    async with httpx2.AsyncClient(timeout=SECONDS) as client:

        async def ask(agent: str, request: str) -> tuple[str | None, str | None, str]:
            said, body = call(next(eras))
            response = await client.post(
                desk.mcp, headers=said | {"x-agent-id": agent, "x-request-id": request}, content=body
            )
            return told(Answer(response.status_code, response.headers, response.content))

        assert await strangers(ask) == []


async def test_with_keys_every_answer_belongs_to_the_keys_agent_and_user(desk: Desk) -> None:
    keys: dict[str, str] = {}
    async with open_app(settings_with(FRONTDESK_DATA=desk.data)) as app:
        for agent in (f"agent-{number}" for number in range(CALLERS // 2)):
            made = await app.identity.create_key(name="", agent_id=agent, user_id=f"user-of-{agent}")
            keys[agent] = made[1]
    async with httpx2.AsyncClient(timeout=SECONDS) as client:

        async def ask(agent: str, request: str) -> tuple[str | None, str | None, str]:
            said, body = call(MODERN)
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


class SharingIdentity(Identity):
    """Nor this: a caller that stands, for a moment, where the next request's caller stands too."""

    current: Caller | None = None

    async def identify(self, signals: Signals) -> Caller:
        self.current = await super().identify(signals)
        await anyio.lowlevel.checkpoint()
        return replace(self.current, request_id=signals.request_id)


@pytest.mark.parametrize(("kind", "least"), [(RememberingIdentity, CALLS * (CALLERS - 1)), (SharingIdentity, 1)])
async def test_an_identity_that_is_kept_is_caught(app: App, kind: type[Identity], least: int) -> None:
    keeping = kind.__new__(kind)
    keeping.__dict__ |= app.identity.__dict__
    asgi = build_application(replace(app, identity=keeping))

    async def ask(agent: str, request: str) -> tuple[str | None, str | None, str]:
        said, body = call(MODERN)
        return told(await send(asgi, said | {"x-agent-id": agent, "x-request-id": request}, body))

    assert len(await strangers(ask)) >= least
