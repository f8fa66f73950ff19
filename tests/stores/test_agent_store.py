"""The built-in host's agents, on both databases: kept, edited by many at once, limited, and forgotten whole."""

import anyio
import pytest
from sqlalchemy import text

from frontdesk.agents.events import ToolReturn
from frontdesk.agents.host import Block, NewAgent, only_agent
from frontdesk.app import open_app
from frontdesk.db.engine import Database
from frontdesk.errors import Invalid, NotFound
from frontdesk.settings import Settings
from tests.hosts.lab import of_kind, opened, said, script, take

pytestmark = pytest.mark.anyio
OWN = ("blocks", "conversations", "turns", "messages", "agent_tools", "agents")


async def test_an_agent_is_found_by_its_id(settings: Settings) -> None:
    async with opened(settings) as host:
        made = await host.create(NewAgent("Support", "answers questions", "offline"))
        assert await host.find(made.id) == made
        assert await host.find("agent-nobody") is None
        assert await host.list(10) == [made]


async def test_only_a_single_agent_can_stand_in_for_all(settings: Settings) -> None:
    async with opened(settings) as host:
        assert await only_agent(host) is None
        made = await host.create(NewAgent("Support"))
        assert await only_agent(host) == made.id
        await host.create(NewAgent("Research"))
        assert await only_agent(host) is None


@pytest.mark.parametrize(
    ("new", "why"),
    [
        (NewAgent(""), "name"),
        (NewAgent("x" * 201), "name"),
        (NewAgent("Ada", model="nonsense"), "PROVIDER:MODEL"),
        (NewAgent("Ada", model="nobody:knows"), "cannot be used"),
        (NewAgent("Ada", blocks=[Block("a", "xx", limit=1)]), "takes 1 characters"),
        (NewAgent("Ada", blocks=[Block("a", ""), Block("a", "")]), "same label"),
        (NewAgent("Ada", blocks=[Block("", "")]), "label"),
        (NewAgent("Ada", blocks=[Block(f"b{number}", "") for number in range(60)]), "at most 50"),
    ],
)
async def test_an_agent_that_cannot_be_is_refused_with_the_reason(settings: Settings, new: NewAgent, why: str) -> None:
    async with opened(settings) as host:
        with pytest.raises(Invalid, match=why):
            await host.create(new)
        assert await host.list(10) == []


async def test_what_an_agent_leaves_is_forgotten_with_it(settings: Settings) -> None:
    async with open_app(settings) as app:
        kept, gone = [await app.host.create(NewAgent(name)) for name in ("Kept", "Gone")]
        for agent in (kept, gone):
            await take(app.host, agent.id, script({"text": "hello"}))
        before = await _counts(app.database)
        await app.host.delete(gone.id)
        after = await _counts(app.database)
        assert {table: before[table] / 2 for table in OWN} == after
        with pytest.raises(NotFound):
            await app.host.delete(gone.id)
        assert said([one.event for one in await app.host.history(kept.id)]) == "hello"


async def test_edits_of_a_block_at_the_same_time_are_all_there(settings: Settings) -> None:
    async with opened(settings) as host:
        agent = await host.create(NewAgent("Ada", blocks=[Block("notes", "")]))
        threads = [await host.converse(agent.id) for _ in range(6)]

        async def note(number: int) -> None:
            args = {"label": "notes", "new_string": f"note {number}"}
            steps = script({"tool": "memory_insert", "args": args}, {"text": "ok"})
            await take(host, agent.id, steps, conversation_id=threads[number].id)

        async with anyio.create_task_group() as tasks:
            for number in range(6):
                tasks.start_soon(note, number)
        [notes] = [block for block in await host.blocks(agent.id) if block.label == "notes"]
        assert sorted(notes.value.splitlines()) == [f"note {number}" for number in range(6)]


async def test_a_block_keeps_its_limit_and_its_lock(settings: Settings) -> None:
    memory = [Block("short", "abc", limit=5), Block("law", "never", read_only=True)]
    async with opened(settings) as host:
        agent = await host.create(NewAgent("Ada", blocks=memory))
        calls = [
            {"name": "memory_insert", "args": {"label": "short", "new_string": "too long"}},
            {"name": "memory_rethink", "args": {"label": "law", "new_memory": "always"}},
            {"name": "memory_replace", "args": {"label": "short", "old_string": "zzz", "new_string": "a"}},
            {"name": "memory_insert", "args": {"label": "nowhere", "new_string": "a"}},
        ]
        events = await take(host, agent.id, script({"tools": calls}, {"text": "ok"}))
        told = sorted(back.text for back in of_kind(events, ToolReturn))
        assert told == sorted(
            [
                "The block 'short' takes 5 characters; this would be 12",
                "The block 'law' is read-only",
                "The passage is not in the block",
                "There is no memory block 'nowhere'; there are: persona, human, short, law",
            ]
        )
        assert {block.label: block.value for block in await host.blocks(agent.id)}["law"] == "never"
        with pytest.raises(Invalid, match="5 characters"):
            await host.write_block(agent.id, "short", "too long")


async def test_an_agent_searches_its_talks_with_one_person_and_no_others(settings: Settings) -> None:
    async with opened(settings) as host:
        agent = await host.create(NewAgent("Ada"))
        ann, bob = await host.converse(agent.id, "ann"), await host.converse(agent.id, "bob")
        await take(host, agent.id, script({"text": "The vault code is 50% of 8_8"}), conversation_id=ann.id)
        search = {"tool": "conversation_search", "args": {"query": "VAULT code"}}
        events = await take(host, agent.id, script(search, {"text": "ok"}), conversation_id=bob.id)
        assert "50%" not in of_kind(events, ToolReturn)[0].text
        again = await host.converse(agent.id, "ann")
        events = await take(host, agent.id, script(search, {"text": "ok"}), conversation_id=again.id)
        assert "you: The vault code is 50% of 8_8" in of_kind(events, ToolReturn)[0].text
        literal = {"tool": "conversation_search", "args": {"query": "0% 8_8"}}
        events = await take(host, agent.id, script(literal, {"text": "ok"}), conversation_id=again.id)
        assert "50%" in of_kind(events, ToolReturn)[0].text


async def _counts(database: Database) -> dict[str, int]:
    async with database.reading() as connection:
        return {table: (await connection.execute(text(f"SELECT count(*) FROM {table}"))).scalar_one() for table in OWN}
