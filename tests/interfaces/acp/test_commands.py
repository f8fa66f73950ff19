"""Tests the slash commands on a real installation, and the Markdown of their answers."""

import re
from collections.abc import AsyncGenerator, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from frontdesk.agents.host import HeldTool, MemoryBlock, NewAgent, Prompt
from frontdesk.app import App, open_app
from frontdesk.coding.model import CodingSession
from frontdesk.identity.model import Caller
from frontdesk.identity.rights import AGENTS_CHAT, AGENTS_READ
from frontdesk.interfaces.acp import markdown
from frontdesk.interfaces.acp.commands import COMMANDS, CommandContext, CommandReply
from frontdesk.llm.events import Compacted, MemoryEdit, UserText
from frontdesk.schedules.requests import NewSchedule
from frontdesk.text import one_line
from frontdesk.tools.servers import ServerSpec
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.postgres import Ready
from tests.support.scheduling import OPERATOR
from tests.support.tool_servers import ToolServer, open_tool_server, tool

pytestmark = shows("ACP-COMMANDS")

PAGE = MarkdownIt("commonmark").enable(["table", "strikethrough"])
ANN = Caller("test", user_id="ann", local=True, any_agent=True)
# Characters with a meaning in Markdown, in any mixture with other text.
SIGNS = (
    *"`*_#+-=>|\\![)&:~\n\r\t ",
    "\n```\n",
    "\n````\n",
    "~~~",
    "**",
    "---",
    "](",
    "<b>",
    "<!--",
    "&amp;",
    "1.",
    "12)",
)
TEXTS = st.lists(st.sampled_from((*SIGNS, "    ")) | st.text(st.characters(codec="utf-8"))).map("".join)
HOSTILE = "a | b\n\n# Not a heading\n```\n<b>out</b> [x](http://evil) ![y](http://evil)"


@pytest.fixture(scope="module")
def shop() -> Iterator[ToolServer]:
    listed = [tool("send_mail", "Send a letter | by electronic mail."), tool("weather_forecast", "Tell the weather.")]
    with open_tool_server("shop", listed) as server:
        yield server


@pytest.fixture
async def installation(tmp_path: Path, ready: Ready) -> AsyncGenerator[App]:
    """Searches by words alone: the embedding model takes long to load."""
    data = ready.in_folder(tmp_path / "data")
    async with open_app(settings_with(FRONTDESK_DATA=data, FRONTDESK_EMBEDDINGS="off")) as app:
        yield app


@pytest.fixture
async def desk(installation: App, tmp_path: Path) -> CommandContext:
    """Ann, in a session with Ada."""
    return await opened(installation, tmp_path, ANN)


async def opened(installation: App, cwd: Path, caller: Caller) -> CommandContext:
    blocks = [
        MemoryBlock("project", "The build runs at night.\nTea is at four.", limit=60),
        MemoryBlock("rules", "Never push on Fridays.", read_only=True),
    ]
    agent = await installation.host.create(NewAgent("Ada", blocks=blocks, owner=caller.user_id))
    conversation = await installation.host.start_conversation(agent.id, caller.user_id)
    now = datetime.now(UTC)
    return CommandContext(
        installation, CodingSession("sess-1", agent.id, conversation.id, cwd, now, now, caller.user_id), caller
    )


async def say(desk: CommandContext, text: str) -> CommandReply:
    name, _, said = text.removeprefix("/").partition(" ")
    return await COMMANDS[name].run(desk, said)


async def value(desk: CommandContext, label: str) -> str:
    blocks = await desk.app.host.blocks(desk.session.agent_id, desk.caller.user_id)
    return next(one.value for one in blocks if one.label == label)


def cells(text: str) -> list[list[str]]:
    """The cells of a reply's table as a reader sees them, row by row."""
    rows: list[list[str]] = []
    for token in PAGE.parse(text):
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline" and rows:
            rows[-1].append(read(token))
    return rows


def read(inline: Token) -> str:
    return "".join(child.content for child in inline.children or ())


async def test_help_lists_every_command(desk: CommandContext) -> None:
    shown = cells((await say(desk, "/help")).text)[1:]
    assert [row[0].split()[0] for row in shown] == [f"/{name}" for name in COMMANDS]
    assert {"help", "memory", "remember", "forget", "tools", "schedule", "tasks", "compact", "model", "rewind"} == set(
        COMMANDS
    )
    assert all(row[1] for row in shown)


async def test_memory_shows_each_block_with_its_limit_and_its_file(desk: CommandContext) -> None:
    text = (await say(desk, "/memory")).text
    fences = [token.content for token in PAGE.parse(text) if token.type == "fence"]
    assert fences == ["I am Ada.\n", "\n", "The build runs at night.\nTea is at four.\n", "Never push on Fridays.\n"]
    assert "**project** (40 of 60 characters), in " in text
    assert "**rules** (22 of 5,000 characters, read-only)" in text
    assert str(desk.app.workspace.mirror.path_of(desk.session.agent_id, "project", "ann")) in text


async def test_memory_shows_one_block_alone_and_names_the_others_where_there_is_none(desk: CommandContext) -> None:
    text = (await say(desk, "/memory rules")).text
    assert "Never push" in text
    assert "The build" not in text
    assert "there are: persona, human, project, rules" in (await say(desk, "/memory nope")).text


async def test_what_is_remembered_is_a_line_of_the_block_about_the_person(desk: CommandContext) -> None:
    await say(desk, "/remember I work in Berlin")
    reply = await say(desk, "/remember note: tea, no sugar")
    after = "I work in Berlin\nnote: tea, no sugar"
    assert await value(desk, "human") == after
    assert reply.events == (MemoryEdit("human", "I work in Berlin", after),)
    assert "human" in reply.text


async def test_what_is_remembered_goes_into_the_block_that_is_named(desk: CommandContext) -> None:
    await say(desk, "/remember project: CI is green")
    assert await value(desk, "project") == "The build runs at night.\nTea is at four.\nCI is green"
    assert await value(desk, "human") == ""


async def test_what_a_block_does_not_take_is_told_and_changes_nothing(desk: CommandContext) -> None:
    before = await value(desk, "project")
    full = await say(desk, f"/remember project: {'x' * 50}")
    assert "takes 60 characters; this is 91" in full.text
    assert not full.events
    assert "is read-only" in (await say(desk, "/remember rules: push on Fridays")).text
    assert "Say what to remember" in (await say(desk, "/remember ")).text
    assert await value(desk, "project") == before


async def test_lines_that_hold_the_words_are_forgotten_in_every_block_that_can_be_written(desk: CommandContext) -> None:
    await say(desk, "/remember Fridays: TEA with the team")
    reply = await say(desk, "/forget tea")
    assert await value(desk, "human") == ""
    assert await value(desk, "project") == "The build runs at night."
    assert {(edit.label, edit.after) for edit in reply.events if isinstance(edit, MemoryEdit)} == {
        ("human", ""),
        ("project", "The build runs at night."),
    }
    assert "TEA with the team" in reply.text
    assert "Tea is at four." in reply.text


async def test_a_word_within_another_is_not_forgotten(desk: CommandContext) -> None:
    reply = await say(desk, "/forget night buil")
    assert "No line that can be changed holds the words" in reply.text
    assert not reply.events
    assert "No line" in (await say(desk, "/forget Fridays")).text
    assert await value(desk, "rules") == "Never push on Fridays."


async def test_only_the_block_that_is_named_forgets(desk: CommandContext) -> None:
    await say(desk, "/remember Tea is good")
    await say(desk, "/forget human: tea")
    assert await value(desk, "human") == ""
    assert "Tea is at four." in await value(desk, "project")


async def test_many_lines_are_not_forgotten_at_once(desk: CommandContext) -> None:
    for number in range(6):
        await say(desk, f"/remember a fact {number}")
    before = await value(desk, "human")
    assert (await say(desk, "/forget fact")).text.startswith("6 lines hold these words; say more exactly which")
    assert await value(desk, "human") == before
    await say(desk, "/forget fact 3")
    assert len((await value(desk, "human")).split("\n")) == 5


async def test_tools_that_the_agent_holds_are_listed(desk: CommandContext) -> None:
    assert "none besides its own" in (await say(desk, "/tools")).text
    held = HeldTool("mail", HOSTILE, needs_approval=True, server="shop", remote_name="mail", parameters={})
    await desk.app.host.attach(desk.session.agent_id, held)
    assert cells((await say(desk, "/tools")).text)[1:] == [["mail", one_line(HOSTILE, 100), "shop, asks first"]]


@shows("KEPT-03")
async def test_tools_are_told_to_those_alone_who_may_read_of_them(installation: App, tmp_path: Path) -> None:
    desk = await opened(installation, tmp_path, replace(ANN, scopes=frozenset({"agents:chat"})))
    assert (await say(desk, "/tools")).text == (await say(desk, "/tools a letter")).text
    assert "tools:read" in (await say(desk, "/tools")).text


async def test_tools_are_found_and_not_attached(desk: CommandContext, shop: ToolServer) -> None:
    await desk.app.tools.catalogue.add(ServerSpec("shop", url=shop.url))
    found = cells((await say(desk, "/tools send a letter")).text)[1:]
    assert found[0][1:3] == ["shop::send_mail", "Send a letter | by electronic mail."]
    assert not await desk.app.host.tools(desk.session.agent_id)
    assert "Nothing fits among 2 tools" in (await say(desk, "/tools zyzzyva")).text


async def test_a_prompt_is_scheduled_listed_and_cancelled(desk: CommandContext) -> None:
    assert "Nothing is scheduled" in (await say(desk, "/schedule")).text
    made = (await say(desk, '/schedule "every weekday at 9" check | mail')).text
    assert made.startswith("Scheduled with number 1: cron 0 9 \\* \\* MON-FRI (every weekday at 09:00), UTC; next at ")
    (row,) = cells((await say(desk, "/schedule list")).text)[1:]
    assert row[0] == "1"
    assert row[1].startswith("cron 0 9 * * MON-FRI (every weekday at 09:00), UTC; next at ")
    assert row[2] == "check | mail"
    assert "Schedule 1 cancelled: check" in (await say(desk, "/schedule cancel 1")).text
    assert "already cancelled" in (await say(desk, "/schedule cancel 1")).text
    assert "Nothing is scheduled" in (await say(desk, "/schedule")).text


@pytest.mark.parametrize(
    ("said", "rule", "prompt"),
    [
        ("in two hours: look at the build", "once", "look at the build"),
        ("tomorrow at 9:30: call: Ben", "T09:30:00", "call: Ben"),
        ("'every day at 9:15': tea", "cron 15 9 * * *", "tea"),
        ("\u201cevery 30m\u201d stretch:\nboth arms", "every 30m", "stretch:\nboth arms"),
    ],
)
async def test_a_rule_ends_at_its_colon_or_quote(desk: CommandContext, said: str, rule: str, prompt: str) -> None:
    assert rule in (await say(desk, f"/schedule {said}")).text.replace("\\", "")
    assert (await desk.app.schedules.queries.get(ANN, 1)).what.prompt == prompt


async def test_what_cannot_be_scheduled_is_told_in_words_that_help(desk: CommandContext) -> None:
    assert "Say when, a colon and the prompt" in (await say(desk, "/schedule something")).text
    assert "is no rule that can be read" in (await say(desk, "/schedule sooner or later: x")).text
    assert "must be a number" in (await say(desk, "/schedule cancel it")).text
    assert "not found" in (await say(desk, "/schedule cancel 9")).text


async def test_another_persons_and_another_agents_prompts_stay(desk: CommandContext, installation: App) -> None:
    mine = desk.session.agent_id
    ben = replace(ANN, user_id="ben")
    await installation.schedules.add(ben, NewSchedule("Ask Ben", mine, when="in 1 hour"))
    other = await installation.host.create(NewAgent("Bob"))
    await installation.schedules.add(ANN, NewSchedule("Ask Bob", other.id, when="in 1 hour"))
    assert "Nothing is scheduled" in (await say(desk, "/schedule")).text
    assert "Schedule 1 not found" in (await say(desk, "/schedule cancel 1")).text
    assert "not one of this agent" in (await say(desk, "/schedule cancel 2")).text
    assert (await installation.schedules.queries.get(ANN, 2)).state == "active"


async def test_a_prompt_is_scheduled_into_the_sessions_own_conversation_where_it_is_nobody_elses(
    installation: App, tmp_path: Path
) -> None:
    desk = await opened(installation, tmp_path, OPERATOR)
    await say(desk, "/schedule in two hours: look at the build")
    made = await installation.schedules.queries.get(OPERATOR, 1)
    assert made.what.conversation_id == desk.session.conversation_id


@pytest.mark.parametrize("caller", [ANN, OPERATOR], ids=["ann", "operator"])
async def test_tasks_are_added_found_and_done(installation: App, tmp_path: Path, caller: Caller) -> None:
    desk = await opened(installation, tmp_path, caller)
    assert "No open tasks" in (await say(desk, "/tasks")).text
    assert (await say(desk, "/tasks add Book | the train")).text.startswith("Added: Book \\| the train (id ")
    await say(desk, "/tasks add Buy milk")
    listed = cells((await say(desk, "/tasks")).text)[1:]
    assert [row[1] for row in listed] == ["Buy milk", "Book | the train"]
    (train,) = cells((await say(desk, "/tasks train")).text)[1:]
    assert "Done: Book" in (await say(desk, f"/tasks done {train[0]}")).text
    assert [row[1] for row in cells((await say(desk, "/tasks")).text)[1:]] == ["Buy milk"]
    assert "No open task holds the words" in (await say(desk, "/tasks train")).text


async def test_a_task_that_cannot_be_is_told_so(desk: CommandContext) -> None:
    assert "does not fit" in (await say(desk, "/tasks add")).text
    assert "is no id" in (await say(desk, "/tasks done it")).text


async def test_what_was_said_is_summed_up(desk: CommandContext) -> None:
    assert "too little to sum up" in (await say(desk, "/compact")).text
    await talk(desk, *(f"Fact {number}: {'tea ' * 50}" for number in range(4)))
    reply = await say(desk, "/compact")
    assert "no model that could sum up" in reply.text
    (event,) = reply.events
    assert isinstance(event, Compacted)
    assert (event.by_model, "Fact 0" in event.summary) == (False, True)


async def test_the_newest_turns_are_taken_back(desk: CommandContext) -> None:
    assert "no turn to take back" in (await say(desk, "/rewind")).text
    await talk(desk, "One", "Two", "Three")
    assert "The newest turn is forgotten" in (await say(desk, "/rewind")).text
    assert await said_in(desk) == ["One", "Two"]
    assert "The newest 2 turns are forgotten" in (await say(desk, "/rewind 7")).text
    assert await said_in(desk) == []
    for nonsense in ("0", "-1", "two", "1001"):
        assert "Say how many turns" in (await say(desk, f"/rewind {nonsense}")).text


async def test_models_are_shown_and_one_is_chosen_for_the_session(desk: CommandContext) -> None:
    offered = await desk.app.host.models()
    shown = cells((await say(desk, "/model")).text)[1:]
    assert [row[0] for row in shown] == [one.name for one in offered]
    assert [row[0] for row in shown if row[3]] == [offered[0].name]
    tuned = replace(desk, session=replace(desk.session, effort="no such effort"))
    reply = await say(tuned, f"/model {offered[-1].name.upper()}")
    assert reply.change == replace(desk.session, model=offered[-1].name, effort=None)
    assert offered[-1].name in reply.text


async def test_a_model_that_is_not_there_changes_nothing(desk: CommandContext) -> None:
    reply = await say(desk, "/model zyzzyva")
    assert reply.change is None
    assert "There is no model 'zyzzyva'" in reply.text


async def test_a_model_in_use_is_shown_also_where_it_is_not_offered(desk: CommandContext) -> None:
    own = replace(desk, session=replace(desk.session, model="my|model"))
    assert [row[0] for row in cells((await say(own, "/model")).text) if row[3] == "in use"] == ["my|model"]


@pytest.mark.parametrize("command", ["/remember tea", "/forget tea", "/compact", "/rewind"])
async def test_who_may_only_read_changes_nothing(desk: CommandContext, command: str) -> None:
    reader = replace(ANN, scopes=frozenset({AGENTS_READ}))
    reply = await say(replace(desk, caller=reader), command)
    assert f"lacks the scope '{AGENTS_CHAT}'" in reply.text
    assert not reply.events
    assert "Tea is at four." in await value(desk, "project")


@pytest.mark.parametrize("command", ["/memory", "/remember x", "/tools", "/compact", "/model x", "/schedule in 1h: x"])
async def test_an_agent_that_is_gone_fails_no_turn(desk: CommandContext, command: str) -> None:
    await desk.app.host.delete(desk.session.agent_id)
    assert re.search("There is no|validation failed", (await say(desk, command)).text)


@given(TEXTS)
def test_no_text_ends_its_fence(text: str) -> None:
    tokens = PAGE.parse(f"before\n\n{markdown.code_block(text)}\n\nafter")
    kinds = [token.type for token in tokens]
    paragraph = ["paragraph_open", "inline", "paragraph_close"]
    assert kinds == [*paragraph, "fence", *paragraph]
    assert "".join(tokens[3].content.split()) == "".join(seen(text).split())


@given(TEXTS)
def test_no_text_is_more_than_words_in_a_line_or_a_cell(text: str) -> None:
    line = one_line(seen(text), 10_000)
    told = PAGE.parse(f"{markdown.escape_line(text, 10_000)}\n")
    assert [token.type for token in told] == (["paragraph_open", "inline", "paragraph_close"] if line else [])
    assert [read(token) for token in told if token.type == "inline"] == ([line] if line else [])
    row = [markdown.escape_line(text, 10_000), markdown.inline_code(text, 10_000), "end"]
    tabled = markdown.render_table(("a", "b", "c"), [row])
    assert cells(tabled) == [["a", "b", "c"], [line, line, "end"]]
    for token in (token for token in PAGE.parse(tabled) if token.type == "inline"):
        assert {child.type for child in token.children or ()} <= {"text", "text_special", "code_inline"}


def seen(text: str) -> str:
    return markdown.INVISIBLE.sub("", text.replace("\r", "\n"))


async def talk(desk: CommandContext, *texts: str) -> None:
    session = desk.session
    for text in texts:
        prompt = Prompt(session.agent_id, desk.caller, text, conversation_id=session.conversation_id)
        assert [event async for event in desk.app.host.send(prompt)]


async def said_in(desk: CommandContext) -> list[str]:
    """The person's messages in the conversation."""
    found = await desk.app.host.history(desk.session.agent_id, desk.session.conversation_id)
    return [said.event.text for said in found if isinstance(said.event, UserText)]
