"""Of two who change the same memory at once, one is told that the other came first."""

import anyio
import pytest

from frontdesk.agents.host import AgentHost
from frontdesk.agents.memory_blocks import value_fingerprint
from frontdesk.errors import Conflict
from tests.hosts.lab import Lab

pytestmark = pytest.mark.anyio


async def value_of(host: AgentHost, agent_id: str) -> str:
    return {block.label: block.value for block in await host.blocks(agent_id)}["human"]


async def test_a_block_is_written_only_over_what_was_seen(lab: Lab) -> None:
    async with lab.open() as host:
        agent = (await lab.agent(host, human="one")).id
        assert (await host.write_block(agent, "human", "two", value_fingerprint("one"))).value == "two"
        for stale in (value_fingerprint("one"), ""):
            with pytest.raises(Conflict, match="was changed meanwhile"):
                await host.write_block(agent, "human", "three", stale)
        assert await value_of(host, agent) == "two"


@pytest.mark.parametrize("lab", ["sqlite", "postgresql"], indirect=True)
async def test_of_several_who_saw_the_same_one_gets_to_write(lab: Lab) -> None:
    async with lab.open() as host:
        agent = (await lab.agent(host, human="first")).id
        for number in range(10):
            seen = value_fingerprint(await value_of(host, agent))
            written: list[str] = []

            async def write(value: str, seen: str = seen, written: list[str] = written) -> None:
                try:
                    written.append((await host.write_block(agent, "human", value, seen)).value)
                except Conflict:
                    return

            async with anyio.create_task_group() as tasks:
                for who in "ABCD":
                    tasks.start_soon(write, f"{who}{number}")
            assert written == [await value_of(host, agent)]
