"""Tests the stores of the built-in agents on both databases: agents, their memory, and a person's data in them."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest
from sqlalchemy import select, text

from frontdesk.agents.embedded.store import KEPT_VERSIONS, AgentStore
from frontdesk.agents.host import Agent, HeldTool, MemoryBlock, NewAgent, only_agent
from frontdesk.app import App, open_app
from frontdesk.db.engine import Database
from frontdesk.db.schema import metadata
from frontdesk.errors import Invalid, NotFound
from frontdesk.identity.model import Caller
from frontdesk.llm.events import ToolReturn
from frontdesk.memory.model import PersonScope
from frontdesk.memory.people_export import export_chunks
from frontdesk.settings import Settings
from frontdesk.tools.agent_tools_store import ToolAttachmentStore
from tests.hosts.lab import of_kind, opened, said, script, take
from tests.requirements import shows

# The built-in host's agents: stored, edited concurrently, limited, and deleted completely


OWN = ("blocks", "conversations", "turns", "messages", "agent_tools", "held_tools", "agents")


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
        (NewAgent("Ada", blocks=[MemoryBlock("a", "xx", limit=1)]), "takes 1 characters"),
        (NewAgent("Ada", blocks=[MemoryBlock("a", ""), MemoryBlock("a", "")]), "same label"),
        (NewAgent("Ada", blocks=[MemoryBlock("", "")]), "label"),
        (NewAgent("Ada", blocks=[MemoryBlock(f"b{number}", "") for number in range(60)]), "at most 50"),
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
            await app.host.change_tools(agent.id, [shop("a")], ())
            await ToolAttachmentStore(app.database).record(agent.id, ["shop::a"], (), datetime.now(UTC))
        before = await _counts(app.database)
        await app.tools.delete_agent(gone.id)
        after = await _counts(app.database)
        assert {table: before[table] / 2 for table in OWN} == after
        with pytest.raises(NotFound):
            await app.host.delete(gone.id)
        assert said([one.event for one in await app.host.history(kept.id)]) == "hello"


async def test_edits_of_a_block_at_the_same_time_are_all_there(settings: Settings) -> None:
    async with opened(settings) as host:
        agent = await host.create(NewAgent("Ada", blocks=[MemoryBlock("notes", "")]))
        threads = [await host.start_conversation(agent.id) for _ in range(6)]

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
    memory = [MemoryBlock("short", "abc", limit=5), MemoryBlock("law", "never", read_only=True)]
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
                "The memory block 'short' takes 5 characters; this is 12",
                "The memory block 'law' is read-only; write to another one",
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
        ann, bob = await host.start_conversation(agent.id, "ann"), await host.start_conversation(agent.id, "bob")
        await take(host, agent.id, script({"text": "The vault code is 50% of 8_8"}), conversation_id=ann.id)
        search = {"tool": "conversation_search", "args": {"query": "VAULT code"}}
        events = await take(host, agent.id, script(search, {"text": "ok"}), conversation_id=bob.id)
        assert "50%" not in of_kind(events, ToolReturn)[0].text
        again = await host.start_conversation(agent.id, "ann")
        events = await take(host, agent.id, script(search, {"text": "ok"}), conversation_id=again.id)
        assert "you: The vault code is 50% of 8_8" in of_kind(events, ToolReturn)[0].text
        literal = {"tool": "conversation_search", "args": {"query": "0% 8_8"}}
        events = await take(host, agent.id, script(literal, {"text": "ok"}), conversation_id=again.id)
        assert "50%" in of_kind(events, ToolReturn)[0].text


def shop(name: str, description: str = "", *, needs_approval: bool = False) -> HeldTool:
    return HeldTool(f"shop__{name}", description, needs_approval, "shop", name, {"type": "object"})


async def test_tools_are_given_and_taken_in_one_change_and_the_newest_come_last(settings: Settings) -> None:
    async with opened(settings) as host:
        agent = (await host.create(NewAgent("Ada"))).id
        change = await host.change_tools(agent, [shop("b"), shop("z")], ())
        assert (list(change.attached), list(change.detached), change.failed) == (["shop__b", "shop__z"], [], {})
        again = shop("b", "Anew.\0", needs_approval=True)
        change = await host.change_tools(agent, [shop("a"), again], ["shop__z", "shop__nothing"])
        assert list(change.attached) == ["shop__a", "shop__b"]
        assert list(change.detached) == ["shop__z"]
        assert change.failed == {"shop__nothing": "the agent does not hold it"}
        assert await host.tools(agent) == [shop("b", "Anew.", needs_approval=True), shop("a")]
        await host.detach(agent, "shop__a")
        with pytest.raises(NotFound, match="shop__a"):
            await host.detach(agent, "shop__a")
        assert await host.host_tools() == ()


async def test_a_tool_that_cannot_be_held_keeps_no_other_from_being_given(settings: Settings) -> None:
    async with opened(settings) as host:
        agent = (await host.create(NewAgent("Ada"))).id
        wrong = [
            HeldTool("x" * 65, "", server="shop", remote_name="x", parameters={}),
            HeldTool("no server", "", parameters={}),
            HeldTool("shop__long", "", server="shop", remote_name="x" * 201, parameters={}),
            HeldTool("shop__torn", "", server="shop", remote_name="\ud800", parameters={}),
            HeldTool("gone__x", "", server="gone", remote_name="x"),
        ]
        change = await host.change_tools(agent, [*wrong, shop("fine")], ())
        assert list(change.attached) == ["shop__fine"]
        assert change.failed.keys() == {tool.name for tool in wrong}
        assert "at most 64" in change.failed["x" * 65]
        assert "not a tool of an MCP server" in change.failed["no server"]
        assert "There is no MCP server 'gone'" in change.failed["gone__x"]
        with pytest.raises(NotFound, match="agent-nobody"):
            await host.change_tools("agent-nobody", [shop("fine")], ())
        with pytest.raises(NotFound, match="agent-nobody"):
            await host.tools("agent-nobody")


async def test_the_same_tool_given_by_many_at_once_is_held_once(settings: Settings) -> None:
    async with opened(settings) as host:
        agent = (await host.create(NewAgent("Ada"))).id
        async with anyio.create_task_group() as tasks:
            for number in range(10):
                tasks.start_soon(host.change_tools, agent, [shop("a"), shop(f"b{number}")], ())
        assert sorted(tool.name for tool in await host.tools(agent)) == [
            "shop__a",
            *(f"shop__b{number}" for number in range(10)),
        ]


async def _counts(database: Database) -> dict[str, int]:
    async with database.read_transaction() as connection:
        return {table: (await connection.execute(text(f"SELECT count(*) FROM {table}"))).scalar_one() for table in OWN}


# Earlier contents of an agent's memory


NOW = datetime(2030, 5, 17, 9, 0, tzinfo=UTC)


async def test_each_change_of_a_block_keeps_what_stood_there_and_the_oldest_go(database: Database) -> None:
    store = AgentStore(database)
    for agent in ("agent-1", "agent-2"):
        await store.add(Agent(agent, agent, ""), [MemoryBlock("human", "0"), MemoryBlock("notes", "x")], NOW)
    for number in range(1, KEPT_VERSIONS + 6):
        at = NOW + timedelta(minutes=number)
        await store.edit_block("agent-1", "human", lambda _before, number=number: str(number), at)
    await store.edit_block("agent-1", "human", lambda before: before, NOW)
    found = await store.versions("agent-1", "human")
    assert [version.value for version in found] == [str(number) for number in range(KEPT_VERSIONS + 4, 4, -1)]
    assert found[0].until == NOW + timedelta(minutes=KEPT_VERSIONS + 5)
    assert await store.versions("agent-1", "notes") == []
    assert await store.versions("agent-2", "human") == []
    await store.delete("agent-1")
    assert await store.versions("agent-1", "human") == []


# A person's data with agents is in their export, and is erased with them: from every table, and from the files


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
