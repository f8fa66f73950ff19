"""What agents keep of a person is in their export, and goes with them: from every table, and from the files."""

import json
from typing import Any

import pytest
from sqlalchemy import select

from frontdesk.agents.host import MemoryBlock, NewAgent
from frontdesk.app import App, open_app
from frontdesk.db.schema import metadata
from frontdesk.identity.model import Caller
from frontdesk.memory.model import PersonScope
from frontdesk.memory.people_export import export_chunks
from frontdesk.settings import Settings
from tests.hosts.lab import script, take
from tests.requirements import shows

pytestmark = pytest.mark.anyio
SECRET = "the-word-of"


def person(name: str) -> Caller:
    return Caller(f"req-{name}", user_id=name, verified=True, credential_id=f"key:{name}")


def tells(name: str, *labels: str) -> str:
    """A turn in which the agent keeps the person's words wherever it can."""
    word = f"{SECRET}-{name}"
    calls: list[dict[str, Any]] = [
        *({"name": "memory_insert", "args": {"label": label, "new_string": word}} for label in ("human", *labels)),
        {"name": "schedule_prompt", "args": {"prompt": word, "when": "tomorrow at 9"}},
        {"name": "update_plan", "args": {"steps": [{"text": word, "status": "pending"}]}},
        {"name": "conversation_search", "args": {"query": word}},
        {"name": "create_memory", "args": {"note": word}},
        {"name": "find_tools", "args": {"query": word}},
    ]
    return script({"tools": calls}, {"text": word})


async def kept(app: App) -> str:
    """Every row of every table, as text."""
    async with app.database.read_transaction() as connection:
        rows = [str((await connection.execute(select(table))).all()) for table in metadata.sorted_tables]
    return "\n".join(rows)


@shows("KEPT-01")
async def test_a_person_takes_with_them_what_agents_kept_of_them(settings: Settings) -> None:
    async with open_app(settings) as app:
        shared = NewAgent("Concierge", blocks=[MemoryBlock("team", "The team", people_write=True)])
        agent = (await app.host.create(shared)).id
        own = (await app.host.create(NewAgent("Ann's", blocks=[MemoryBlock("team", "")], owner="ann"))).id
        for name in ("bob", "ann", "eve"):
            labels = ["team"] if name == "ann" else []
            await take(app.host, agent, tells(name, *labels), caller=person(name))
        await take(app.host, own, tells("ann", "team"), caller=person("ann"))
        for name in ("ann", "bob"):
            blocks = await app.host.blocks(agent, name)
            await app.workspace.mirror.write_blocks(agent, blocks, name)
        document = json.loads("".join(export_chunks(await app.memory.people.export(PersonScope("ann")))))
        elsewhere = document["elsewhere"]
        assert {(row["agent_id"], row["value"]) for row in elsewhere["memory_blocks"]} == {
            (agent, f"{SECRET}-ann"),
            (own, f"{SECRET}-ann"),
        }
        assert len(elsewhere["turns"]) == len(elsewhere["schedules"]) == 2
        assert len(elsewhere["conversations"]) == 4, "each of those prompts is said in one of its own"
        assert f"{SECRET}-ann" in str(elsewhere["messages"])
        assert f"{SECRET}-bob" not in str(elsewhere["messages"]) + str(elsewhere["turns"])
        await app.memory.people.erase(PersonScope("ann"))
        await app.tools.learning.flush()
        everything = await kept(app)
        assert f"{SECRET}-ann" not in everything
        assert f"{SECRET}-bob" in everything
        assert "user:ann" not in everything
        assert await app.host.find(own) is None
        team = {block.label: block.value for block in await app.host.blocks(agent, "bob")}["team"]
        assert team == "The team", "a shared text is again what it was before she first changed it"
        folder = settings.data / "memory"
        assert f"{SECRET}-ann" not in "".join(file.read_text() for file in folder.rglob("*.md"))
        assert not list(folder.rglob("ann"))


@shows("KEPT-01")
async def test_an_erasure_says_which_text_of_several_people_it_could_not_part(settings: Settings) -> None:
    async with open_app(settings) as app:
        agents = [(await app.host.create(NewAgent(name))).id for name in ("Old", "Other", "New")]
        for agent in agents[:2]:
            await app.host.set_block(agent, "human", per_person=False)
            await app.host.write_block(agent, "human", "Ann likes tea, Bob does not")
        for agent in (agents[0], agents[2]):
            await take(app.host, agent, script({"text": "hello"}), caller=person("ann"))
        [left] = (await app.memory.people.erase(PersonScope("ann"))).left
        assert f"frontdesk agents block {agents[0]} human" in left
        assert not (await app.memory.people.erase(PersonScope("bob"))).left
