"""An installation full of hostile texts: scripts, markup, marks that turn text round, a megabyte."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import anyio

from frontdesk.agents.host import NewAgent, Prompt
from frontdesk.app import open_app
from frontdesk.identity.model import Caller
from frontdesk.memory.model import PersonScope
from frontdesk.schedules.requests import NewSchedule
from frontdesk.tools.servers import ServerSpec
from tests.conftest import settings_with
from tests.support.desk import open_desk
from tests.support.tool_servers import open_tool_server, tool
from tests.web.conftest import Installation

ATTACK = (
    "<script>window.pwned = 1</script><img src=x onerror='window.pwned = 1'>"
    "\"'><svg onload=window.pwned=1></svg>{{ 7 * 7 }}\u202etxt.exe"
)
MEGABYTE = ATTACK + "A" * 1_000_000
PERSON = "eve <img src=x onerror=window.pwned=1>"


@contextmanager
def hostile_installation(folder: Path) -> Generator[Installation]:
    """Every capability of it holds the attack."""
    data = folder / "data"
    with open_tool_server("evil", [tool("attack", MEGABYTE[:100_000]), tool("plain", ATTACK)]) as server:
        anyio.run(_fill, data, server.url)
        with open_desk(data) as desk:
            yield Installation((desk,), data, {})


async def _fill(data: Path, url: str) -> None:
    operator = Caller("hostile", local=True, any_agent=True)
    async with open_app(settings_with(FRONTDESK_DATA=data)) as app:
        agent = await app.host.create(NewAgent(ATTACK[:190], description=ATTACK))
        await app.host.write_block(agent.id, "human", ATTACK)
        await app.host.write_block(agent.id, "human", ATTACK[::-1])
        prompt = Prompt(agent.id, Caller("hostile", user_id=PERSON), MEGABYTE)
        async for _ in app.host.send(prompt):
            continue
        await app.tools.administration.add_server(operator, ServerSpec("evil", url=url, description=ATTACK))
        scheduled = Caller("hostile", agent.id, local=True, any_agent=True)
        await app.schedules.add(scheduled, NewSchedule(ATTACK, every="1h"))
        scope = PersonScope.for_caller(Caller("hostile", user_id=PERSON, local=True, any_agent=True))
        await app.memory.tasks.create(scope, {"title": ATTACK[:200], "description": ATTACK})
        await app.memory.memories.create(scope, {"title": ATTACK[:200], "note": ATTACK})
