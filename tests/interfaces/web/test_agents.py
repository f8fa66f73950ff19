"""Tests the pages of agents: their contents, their actions, and a host that never answers."""

import re
import socket
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import anyio
import pytest

from frontdesk.agents import host
from frontdesk.agents.embedded.store import KEPT_VERSIONS
from frontdesk.agents.host import Agent, HeldTool, MemoryBlock, NewAgent
from frontdesk.app import App, open_app
from frontdesk.identity.model import AgentIdSource, Caller
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.web.pages import agents
from frontdesk.interfaces.web.pages.agents import SHOWN_CHANGES
from frontdesk.interfaces.web.text_diff import ChangedWords, diff_words
from frontdesk.journal.model import EntryKind, JournalEntry, Outcome
from frontdesk.schedules.requests import NewSchedule
from frontdesk.settings import Settings
from frontdesk.tools.agent_tools_store import ToolAttachmentStore
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.browsers import Browser, browsing, text_of
from tests.support.chat import script
from tests.support.postgres import Ready

# The pages of agents: their contents, their actions, and that no text on them becomes active


OPERATOR = Caller("test", local=True, any_agent=True)
SCRIPT = '<script>alert("x")</script>'
BACKWARDS = "\u202eevil\u2066"


@pytest.fixture
async def app_on_each_database(settings: Settings) -> AsyncGenerator[App]:
    """The services, on both databases."""
    async with open_app(settings) as opened:
        yield opened


@pytest.fixture
async def web(app_on_each_database: App) -> AsyncGenerator[Browser]:
    async with browsing(build_application(app_on_each_database)) as browser:
        yield browser


@pytest.fixture
async def ada(app_on_each_database: App) -> Agent:
    return await app_on_each_database.host.create(
        NewAgent("Ada", "Counts things", blocks=[MemoryBlock("notes", "likes tea")])
    )


def called(app: App, agent_id: str, source: AgentIdSource, times: int, *, verified: bool = False) -> None:
    for _ in range(times):
        at = datetime.now(UTC) - timedelta(minutes=3)
        app.journal.record(
            JournalEntry(
                at,
                EntryKind.CALL,
                "mcp",
                "whoami",
                Outcome.OK,
                900,
                agent_id=agent_id,
                source=source,
                verified=verified,
            )
        )


def held(name: str, *, needs_approval: bool = False) -> HeldTool:
    return HeldTool(f"shop__{name}", f"To {name}", needs_approval, "shop", name, {"type": "object"})


@shows("WEB-AGENTS")
async def test_an_empty_list_says_how_to_make_an_agent_and_the_form_makes_one(web: Browser) -> None:
    empty = text_of(await web.get("/agents"))
    assert "No agents yet" in empty
    assert "frontdesk agents create NAME" in empty
    made = text_of(await web.post("/agents/new", {"name": "Ada", "description": "Counts things", "model": ""}))
    assert "Ada is made" in made
    assert "Counts things" in made
    listed = text_of(await web.get("/agents"))
    assert "1 agent;" in listed
    assert "Ada agent-" in listed


async def test_an_agent_without_a_name_is_refused_in_words(web: Browser) -> None:
    assert "name must have 1 to 200 characters" in text_of(await web.post("/agents/new", {"name": " "}, 400))


@shows("WEB-AGENTS")
async def test_the_list_tells_when_each_was_seen_how_it_was_named_and_what_is_next(
    app_on_each_database: App, web: Browser, ada: Agent
) -> None:
    called(app_on_each_database, ada.id, AgentIdSource.HEADER, 3)
    called(app_on_each_database, ada.id, AgentIdSource.PARAMETER, 1)
    await app_on_each_database.journal.flush()
    await app_on_each_database.schedules.add(
        OPERATOR, NewSchedule(agent_id=ada.id, prompt="Count the cups", when="in 2 hours")
    )
    listed = text_of(await web.get("/agents"))
    assert "3 min ago" in listed
    assert "75 % 3 by header, 1 by parameter" in listed
    assert "in 2 h" in listed


async def test_the_list_is_searched_and_paged_by_address(app_on_each_database: App, web: Browser) -> None:
    for number in range(22):
        await app_on_each_database.host.create(NewAgent(f"Agent {number:02}"))
    first = await web.get("/agents")
    assert "Agent 19" in first
    assert "Agent 20" not in first
    after = first.split("after=")[1].split('"')[0]
    second = await web.get("/agents", after=after)
    assert "Agent 21" in second
    assert "Agent 19" not in second
    found = text_of(await web.get("/agents", q="agent 07"))
    assert "Agent 07" in found
    assert "Agent 08" not in found
    assert "No agent's name" in text_of(await web.get("/agents", q="nobody"))


@shows("WEB-AGENTS")
async def test_one_agent_shows_how_it_was_named_and_how_far_that_is_to_be_trusted(
    app_on_each_database: App, web: Browser, ada: Agent
) -> None:
    called(app_on_each_database, ada.id, AgentIdSource.CREDENTIAL, 2, verified=True)
    called(app_on_each_database, ada.id, AgentIdSource.PARAMETER, 1)
    await app_on_each_database.journal.flush()
    shown = text_of(await web.get(f"/agents/{ada.id}"))
    assert "its key or token proves who calls verified 2 3 min ago" in shown
    assert "the parameter agent_id asserted by the writer of the call, possibly a model unproven 1" in shown
    assert "0 by header, 1 by parameter" in shown
    assert "Let its client send the header x-agent-id" in shown


@shows("WEB-AGENTS")
async def test_tools_say_who_gave_them_and_can_be_taken_away(
    app_on_each_database: App, web: Browser, ada: Agent
) -> None:
    await app_on_each_database.host.change_tools(ada.id, [held("buy"), held("sell", needs_approval=True)], ())
    holdings = ToolAttachmentStore(app_on_each_database.database)
    await holdings.record(ada.id, ["shop::buy"], (), datetime.now(UTC) - timedelta(hours=3))
    shown = text_of(await web.get(f"/agents/{ada.id}"))
    assert "find_tools attached it 3 h ago , because it matched a search of the agent" in shown
    assert "makes room when others fit better" in shown
    assert "a person attached it; it asks before each call stays until somebody detaches it" in shown
    gone = text_of(await web.post(f"/agents/{ada.id}/detach", {"tool": "shop__buy"}))
    assert "shop__buy is detached" in gone
    assert [tool.name for tool in await app_on_each_database.host.tools(ada.id)] == ["shop__sell"]
    assert await holdings.attachments(ada.id) == {}
    assert "has no tool 'shop__buy'" in text_of(await web.post(f"/agents/{ada.id}/detach", {"tool": "shop__buy"}, 404))


async def test_prompts_to_come_stand_in_order_with_the_soonest_first(
    app_on_each_database: App, web: Browser, ada: Agent
) -> None:
    for prompt, when in (("Later", "in 3 hours"), ("Sooner", "in 1 hour")):
        await app_on_each_database.schedules.add(OPERATOR, NewSchedule(agent_id=ada.id, prompt=prompt, when=when))
    html = await web.get(f"/agents/{ada.id}")
    shown = text_of(html)
    assert shown.index("Sooner") < shown.index("Later")
    for one in (await app_on_each_database.schedules.queries.list(OPERATOR)).schedules:
        assert f'<a href="/schedule/{one.id}">Schedule {one.id}</a>' in html


@shows("WEB-AGENTS")
async def test_a_block_is_written_and_shows_what_was_changed(
    app_on_each_database: App, web: Browser, ada: Agent
) -> None:
    where = f"/agents/{ada.id}/memory"
    page = await web.get(where, block="notes")
    assert "There are no earlier versions" in text_of(page)
    seen = page.split('name="seen" value="')[1].split('"')[0]
    form = {"label": "notes", "value": "likes coffee\r\nand cake", "seen": seen}
    after = await web.post(where, form)
    assert "Saved notes: 21 of 5,000" in text_of(after).replace("5000", "5,000")
    assert "likes <del>tea</del><ins>coffee\nand cake</ins>" in after
    [notes] = [block for block in await app_on_each_database.host.blocks(ada.id) if block.label == "notes"]
    assert notes.value == "likes coffee\nand cake"
    assert "was changed meanwhile" in text_of(await web.post(where, form, 409))


async def test_a_block_that_the_agent_rewrote_in_a_turn_shows_that_change(web: Browser, ada: Agent) -> None:
    steps = script(
        {"tool": "memory_rethink", "args": {"label": "notes", "new_memory": "likes water"}}, {"text": "Noted"}
    )
    said = text_of(await web.post(f"/agents/{ada.id}/talk", {"text": steps}))
    assert "remembers in notes likes water" in said
    assert "<del>tea</del><ins>water</ins>" in await web.get(f"/agents/{ada.id}/memory", block="notes")


async def test_blocks_that_are_not_there_or_read_only_are_refused(app_on_each_database: App, web: Browser) -> None:
    agent = await app_on_each_database.host.create(
        NewAgent("Law", blocks=[MemoryBlock("law", "never", read_only=True)])
    )
    where = f"/agents/{agent.id}/memory"
    shown = await web.get(where, block="law")
    assert "neither the agent nor these pages may write to it" in shown
    assert "<textarea" not in shown
    assert "There is no memory block 'no'" in text_of(await web.get(where, 404, block="no"))


@shows("WEB-AGENTS")
async def test_a_message_is_answered_on_the_page_and_the_journal_has_the_turn(
    app_on_each_database: App, web: Browser, ada: Agent
) -> None:
    said = text_of(await web.post(f"/agents/{ada.id}/talk", {"text": script({"text": "Four cups"})}))
    assert "Ada , now Four cups" in said
    await app_on_each_database.journal.flush()
    shown = text_of(await web.get(f"/agents/{ada.id}"))
    assert "turn: turn web ok" in shown
    assert "end_turn" not in shown
    assert re.search(r"turn-[\w-]+… done", shown)


async def test_a_new_conversation_is_begun_and_talked_in(app_on_each_database: App, web: Browser, ada: Agent) -> None:
    begun = await web.post(f"/agents/{ada.id}/talk/new")
    assert "There are no messages yet" in begun
    where = begun.split('name="conversation" value="')[1].split('"')[0]
    await web.post(f"/agents/{ada.id}/talk", {"text": script({"text": "Here"}), "conversation": where})
    assert "Here" in text_of(await web.get(f"/agents/{ada.id}/talk", conversation=where))
    assert len(await app_on_each_database.host.history(ada.id)) == 0
    assert "has no conversation" in text_of(await web.get(f"/agents/{ada.id}/talk", 404, conversation="no"))


def shown_in(html: str) -> str:
    """The conversation that the page displays."""
    [select] = re.findall(r'<select name="conversation">(.*?)</select>', html, re.DOTALL)
    [chosen] = re.findall(r'<option value="([^"]*)" selected>', select)
    return chosen


@shows("WEB-AGENTS")
async def test_the_conversation_that_is_chosen_is_the_one_that_is_shown(
    app_on_each_database: App, web: Browser, ada: Agent
) -> None:
    talk = f"/agents/{ada.id}/talk"
    [own] = await app_on_each_database.host.conversations(ada.id, 10)
    await web.post(talk, {"text": script({"text": "In its own"})})
    others = [
        await app_on_each_database.host.start_conversation(ada.id, title=f"Number {number}") for number in range(22)
    ]
    html = await web.get(talk)
    assert shown_in(html) == ""
    assert "Its own conversation" in text_of(html)
    assert "In its own" in text_of(html)
    for where in (others[-1].id, others[0].id, own.id):
        html = await web.get(talk, conversation=where)
        assert shown_in(html) == where
        assert ("In its own" in text_of(html)) == (where == own.id)


async def test_an_agents_own_conversation_stands_once_among_few(
    app_on_each_database: App, web: Browser, ada: Agent
) -> None:
    [own] = await app_on_each_database.host.conversations(ada.id, 10)
    await app_on_each_database.host.start_conversation(ada.id, title="Another")
    html = await web.get(f"/agents/{ada.id}/talk", conversation=own.id)
    assert shown_in(html) == ""
    assert html.count("<option") == 2


async def test_a_turn_that_fails_is_told_with_its_reason(web: Browser, ada: Agent) -> None:
    told = await web.post(f"/agents/{ada.id}/talk", {"text": script({"error": 400})})
    assert 'role="alert"' in told
    assert "Send a message, or approve" in text_of(await web.post(f"/agents/{ada.id}/talk", {"text": " "}, 400))


async def test_a_call_that_waits_for_a_word_gets_it_here(app_on_each_database: App, web: Browser, ada: Agent) -> None:
    await app_on_each_database.host.change_tools(ada.id, [held("buy", needs_approval=True)], ())
    steps = script({"tool": "shop__buy", "args": {"text": "cups"}}, {"text": "Not bought, then"})
    waits = await web.post(f"/agents/{ada.id}/talk", {"text": steps})
    assert "May it call shop__buy?" in waits
    [request] = await app_on_each_database.host.pending(ada.id)
    done = await web.post(f"/agents/{ada.id}/talk/decide", {f"call.{request.call_id}": "reject"})
    assert "Not bought, then" in text_of(done)
    assert "May it call" not in done


@shows("WEB-AGENTS")
async def test_deleting_asks_first_and_ends_the_keys_too(app_on_each_database: App, web: Browser, ada: Agent) -> None:
    key, _ = await app_on_each_database.identity.create_key(name="laptop", agent_id=ada.id, user_id=None)
    page = await web.get(f"/agents/{ada.id}")
    assert "Yes, delete" in page
    gone = text_of(await web.post(f"/agents/{ada.id}/delete"))
    assert f"Ada is deleted; its keys no longer work: {key.id}" in gone
    assert await app_on_each_database.host.find(ada.id) is None
    await web.get(f"/agents/{ada.id}", 404)
    await web.get("/agents/" + quote("../x y", safe=""), 404)


async def test_an_agent_that_only_calls_here_is_shown_from_the_journal(app_on_each_database: App, web: Browser) -> None:
    called(app_on_each_database, "agent-of-others", AgentIdSource.PARAMETER, 1)
    await app_on_each_database.journal.flush()
    shown = text_of(await web.get("/agents/agent-of-others"))
    assert "The agent host has no agent of this id" in shown
    assert "Delete" not in shown


async def test_whatever_agents_and_tools_write_is_inert_on_their_pages(app_on_each_database: App, web: Browser) -> None:
    evil = f"{SCRIPT}{BACKWARDS}"
    blocks = [MemoryBlock(evil, evil + "x" * 4000)]
    agent = await app_on_each_database.host.create(NewAgent(evil, evil + "y" * 1_000_000, blocks=blocks))
    tool = HeldTool("shop__x", evil, False, "shop", evil, {"type": "object"})
    await app_on_each_database.host.change_tools(agent.id, [tool], ())
    await app_on_each_database.schedules.add(OPERATOR, NewSchedule(agent_id=agent.id, prompt=evil, when="in 2 hours"))
    await app_on_each_database.host.start_conversation(agent.id, title=evil)
    base = f"/agents/{agent.id}"
    pages = [
        await web.post(f"{base}/talk", {"text": script({"text": evil + "z" * 100_000})}),
        await web.get("/agents"),
        await web.get("/agents", q=SCRIPT),
        await web.get(base),
        await web.get(f"{base}/memory", block=evil),
        await web.get(f"{base}/talk"),
    ]
    for page in pages:
        assert "<script>" not in page
        assert "&lt;script&gt;" in page
        assert len(page) < 400_000
    for name in (pages[1], pages[3]):
        assert (
            f"<bdi>{SCRIPT.replace('<', '&lt;').replace('>', '&gt;').replace(chr(34), '&#34;')}{BACKWARDS}</bdi>"
            in name
        )


def test_a_diff_shows_the_words_that_changed_and_costs_little_whatever_the_texts() -> None:
    assert diff_words("a b c", "a x c") == [
        ChangedWords("same", "a "),
        ChangedWords("gone", "b"),
        ChangedWords("new", "x"),
        ChangedWords("same", " c"),
    ]
    assert diff_words("", "new") == [ChangedWords("new", "new")]
    assert diff_words("a a", "a a a") == [ChangedWords("same", "a a"), ChangedWords("new", " a")]
    [gone, new] = diff_words("a b " * 5000, "c d\n" * 5000)
    assert (gone.kind, len(gone.text), new.kind, len(new.text)) == ("gone", 20_000, "new", 20_000)
    assert len(diff_words("same " * 500 + "old", "same " * 500 + "new")[0].text) < 300


# An agent's memory page compares no more than it shows


async def test_only_the_changes_that_are_shown_are_compared(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []

    def counted(before: str, after: str) -> list[ChangedWords]:
        compared.append(after)
        return diff_words(before, after)

    monkeypatch.setattr(agents, "diff_words", counted)
    agent = await app.host.create(NewAgent("Ada", blocks=[MemoryBlock("human", "0")]))
    for number in range(KEPT_VERSIONS):
        await app.host.write_block(agent.id, "human", str(number + 1))
    async with browsing(build_application(app)) as web:
        page = await web.get(f"/agents/{agent.id}/memory", block="human")
        assert (len(compared), f"All {KEPT_VERSIONS} changes" in page) == (SHOWN_CHANGES, True)
        compared.clear()
        await web.get(f"/agents/{agent.id}/memory", block="human", all="1")
        assert len(compared) == KEPT_VERSIONS


# A host that accepts connections and never answers delays no page for long, and pages report it


# For each page: far less than the usual wait for Letta.
SECONDS = 10


@pytest.fixture
async def silent_web(tmp_path: Path, ready: Ready, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Browser]:
    monkeypatch.setattr(host, "HOST_LOOK_SECONDS", 0.2)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(50)
        settings = settings_with(
            FRONTDESK_DATA=ready.in_folder(tmp_path / "data"),
            LETTA_BASE_URL=f"http://127.0.0.1:{silent.getsockname()[1]}",
        )
        async with open_app(settings) as app, browsing(build_application(app)) as browser:
            yield browser


@pytest.mark.parametrize("path", ["/schedule", "/schedule/new", "/turns", "/start"])
async def test_a_page_that_needs_no_more_than_names_says_that_the_host_is_silent(
    silent_web: Browser, path: str
) -> None:
    with anyio.fail_after(SECONDS):
        page = text_of(await silent_web.get(path))
    assert "host has not answered" in page


@pytest.mark.parametrize("path", ["/", "/tools", "/tools/use", "/access"])
async def test_a_page_on_which_names_do_not_matter_is_shown_without_them(silent_web: Browser, path: str) -> None:
    with anyio.fail_after(SECONDS):
        assert "<h1" in await silent_web.get(path)


@pytest.mark.parametrize("path", ["/agents", "/agents/agent-1"])
async def test_a_page_of_agents_themselves_is_refused_soon(silent_web: Browser, path: str) -> None:
    with anyio.fail_after(SECONDS):
        assert "host has not answered" in text_of(await silent_web.get(path, 503))
