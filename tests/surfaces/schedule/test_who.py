"""Whose schedules one sees, changes and runs: one's own, and what is not one's own is not there."""

from collections.abc import Iterator
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from tests.requirements import shows
from tests.support.desk import Desk, open_desk
from tests.surfaces.schedule.conftest import NEXT_YEAR, Asking, connected, created, made_key

pytestmark = pytest.mark.anyio
LATER = f"{NEXT_YEAR}-12-25T10:00:00Z"
# Every tool that takes a schedule's number, and what it says of one that is not there.
BY_NUMBER: list[tuple[str, dict[str, Any], str]] = [
    ("cancel", {}, "Schedule {} not found or already cancelled"),
    ("pause", {}, "Schedule {} not found"),
    ("resume", {}, "Schedule {} not found"),
    ("update", {"prompt": "evil"}, "Schedule {} not found"),
    ("run_now", {}, "Schedule {} not found"),
    ("history", {}, "Schedule {} not found"),
    ("preview", {}, "Schedule {} not found"),
]


async def planned(ask: Asking, prompt: str = "mine", **more: Any) -> int:
    return (await ask("schedule_time", prompt=prompt, time=LATER, skip_validation=True, **more))["id"]


async def seen(ask: Asking, **arguments: Any) -> set[int]:
    return {one["id"] for one in (await ask("list", limit=1000, **arguments))["schedules"]}


@shows("SCHEDULE-OWN")
@pytest.mark.parametrize(("tool", "arguments", "said"), BY_NUMBER)
async def test_another_agents_schedule_is_not_there(
    desk: Desk, tool: str, arguments: dict[str, Any], said: str
) -> None:
    async with connected(desk, agent="agent-a") as ask, connected(desk, agent="agent-b") as other:
        number = await planned(ask)
        assert await other.error(tool, schedule_id=number, **arguments) == said.format(number)
        assert await other.error(tool, schedule_id=number + 1_000_000, **arguments) == said.format(number + 1_000_000)
        assert number in await seen(ask)
        assert number not in await seen(other)


@pytest.fixture(scope="module")
def afar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A desk that is reached from elsewhere, where everybody must prove who they are."""
    data = tmp_path_factory.mktemp("afar") / "data"
    with open_desk(data, FRONTDESK_REQUIRE_AUTH="true", FRONTDESK_WORKER="false") as desk:
        yield desk


@shows("SCHEDULE-OWN")
async def test_with_keys_one_sees_the_agents_and_of_these_no_other_persons(afar: Desk) -> None:
    agent = await created(afar, "Ada")
    ann, bob = [await made_key(afar, user, agent=agent) for user in ("ann", "bob")]
    bare, other = [await made_key(afar, agent=one) for one in (agent, "agent-2")]
    async with (
        connected(afar, proof=ann) as of_ann,
        connected(afar, proof=bob) as of_bob,
        connected(afar, proof=bare) as of_agent,
        connected(afar, proof=other) as of_other,
    ):
        anns, bobs, agents = await planned(of_ann), await planned(of_bob), await planned(of_agent)
        everyone = {anns, bobs, agents}
        assert await seen(of_ann) & everyone == {anns, agents}
        assert await seen(of_bob) & everyone == {bobs, agents}
        assert await seen(of_agent) & everyone == everyone
        assert await seen(of_other) & everyone == set()
        assert await of_bob.error("cancel", schedule_id=anns) == f"Schedule {anns} not found or already cancelled"
        assert (await of_ann("cancel", schedule_id=anns))["status"] == "success"


@shows("SCHEDULE-OWN")
async def test_an_admin_key_sees_everybodys_and_is_granted_by_name(afar: Desk) -> None:
    admin = await made_key(afar, "root", "schedules:admin", "schedules:read", "schedules:write")
    everything, own = await made_key(afar, "carol"), await made_key(afar, "dora", agent=await created(afar, "Cy"))
    async with (
        connected(afar, proof=own) as of_dora,
        connected(afar, proof=admin) as of_admin,
        connected(afar, proof=everything) as of_carol,
    ):
        number = await planned(of_dora)
        assert number in await seen(of_admin)
        assert number not in await seen(of_carol), "no scopes at all is not the scope for everybody's"
        assert (await of_admin("cancel", schedule_id=number))["cancelled_id"] == number


@shows("SCHEDULE-OWN")
@pytest.mark.parametrize(
    ("tool", "arguments", "scope"),
    [
        ("list", {}, "schedules:read"),
        ("history", {}, "schedules:read"),
        ("schedule_time", {"prompt": "x", "time": LATER}, "schedules:write"),
        ("cancel", {"schedule_id": 1}, "schedules:write"),
        ("execute", {}, "schedules:write"),
    ],
)
async def test_each_tool_asks_for_its_scope(afar: Desk, tool: str, arguments: dict[str, Any], scope: str) -> None:
    others = {"schedules:read", "schedules:write", "tools:read"} - {scope}
    async with connected(afar, proof=await made_key(afar, None, *others, agent="agent-1")) as ask:
        with pytest.raises(MCPError) as refused:
            await ask.client.call_tool(f"promptyoself_{tool}", arguments)
    assert refused.value.code == -32011
    assert scope in str(refused.value)


async def test_a_key_speaks_for_its_own_agent_alone(afar: Desk) -> None:
    async with connected(afar, proof=await made_key(afar, agent="agent-1")) as ask:
        with pytest.raises(MCPError, match="cannot speak for 'agent-2'"):
            await ask.client.call_tool("promptyoself_list", {"agent_id": "agent-2"})


async def test_a_platforms_key_plans_for_the_agent_it_names(afar: Desk) -> None:
    async with connected(afar, proof=await made_key(afar, agent="*")) as ask:
        number = await planned(ask, agent_id="agent-9")
        assert number in await seen(ask, agent_id="agent-9")
        assert number not in await seen(ask, agent_id="agent-8")
        assert await ask.error("list") == "agent_id is required and could not be inferred"
