"""Tests `frontdesk agents` and `frontdesk chat` as typed commands."""

import io
import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest
from typing_extensions import override

from frontdesk.agents.host import HeldTool, NewAgent
from frontdesk.app import App, open_app
from frontdesk.errors import Conflict
from frontdesk.interfaces.cli.agents import find_agent
from frontdesk.interfaces.cli.chat import ChatThread, begin_conversation, show_history, take_one_turn
from frontdesk.interfaces.cli.chat_display import TerminalState
from frontdesk.interfaces.cli.main import main
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.desk import START_SECONDS, Desk, clean_environment, frontdesk, frontdesk_here
from tests.support.terminal import CONTROL_C, CONTROL_D, Terminal, open_terminal

# `frontdesk agents`


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a command."""

    code: object
    out: str
    err: str


Typed = Callable[..., Done]
# The command gets its words as a shell passes them, not as the library's test helper does.
as_typed = pytest.mark.filterwarnings("ignore:Cyclopts application invoked without tokens")


class Person(io.StringIO):
    """A person at a terminal, as far as a command can see."""

    @override
    def isatty(self) -> bool:
        return True


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One data folder for all: each test names its agents differently."""
    return tmp_path_factory.mktemp("agents") / "data"


@pytest.fixture
def typed(data: Path, desk: Desk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Typed:
    """Runs the command in this process, with a Frontdesk server among its MCP servers."""
    monkeypatch.setenv("FRONTDESK_DATA", str(data))
    monkeypatch.setenv("FRONTDESK_MCP_SERVERS", json.dumps([{"name": "desk", "url": desk.mcp}]))

    def run(*arguments: str, given: io.StringIO | None = None) -> Done:
        monkeypatch.setattr(sys, "argv", ["frontdesk", "agents", *arguments])
        monkeypatch.setattr(sys, "stdin", given or io.StringIO())
        with pytest.raises(SystemExit) as left:
            main()
        said = capsys.readouterr()
        return Done(left.value.code, said.out, said.err)

    return run


@as_typed
def test_an_agent_is_made_and_deleted_by_whoever_types_its_name(data: Path, typed: Typed) -> None:
    agent_id = frontdesk("agents", "create", "Support", data=data).stdout.strip()
    assert agent_id in typed("list").out
    unasked = typed("delete", "Support")
    assert unasked.code == 2
    assert "add --yes" in unasked.err
    assert "nothing was deleted" in typed("delete", "Support", given=Person("support\n")).err
    with open_terminal("agents", "delete", "Support", data=data) as terminal:
        terminal.until("Type Support to delete it: ")
        terminal.type("Support")
        terminal.until(f"Support ({agent_id}) is deleted.")
        assert terminal.ended() == 0
    assert agent_id not in typed("list").out


@as_typed
@shows("CLI-AGENTS")
def test_agents_are_listed_for_a_script(typed: Typed) -> None:
    agent_id = typed("create", "Scribe", "--description", "Two\nlines").out.strip()
    told = {one["id"]: one for one in map(json.loads, typed("list", "--json").out.splitlines())}
    facts = {"name": "Scribe", "description": "Two\nlines", "model": None, "owner": None, "serves": ""}
    assert told[agent_id] == {"id": agent_id, **facts}


@as_typed
def test_the_keys_that_name_an_agent_end_with_it_and_no_others(data: Path, typed: Typed) -> None:
    agent_id = typed("create", "Holder").out.strip()
    its, others = [
        frontdesk_here("keys", "create", "--agent", agent, data=data).stderr.split()[1].rstrip(":")
        for agent in (agent_id, "*")
    ]
    deleted = typed("delete", "Holder", "--yes").out
    assert deleted == f"Holder ({agent_id}) is deleted.\nIts keys no longer work: {its}\n"
    states = {row.split()[0]: row for row in frontdesk_here("keys", "list", data=data).stdout.splitlines()}
    assert "revoked" in states[its]
    assert "revoked" not in states[others]


@as_typed
@shows("CLI-AGENTS")
def test_an_agent_is_shown_with_its_memory_tools_and_conversations(typed: Typed) -> None:
    made = typed("create", "Clerk", "--description", "Helps", "--persona", "I am kind", "--block", "notes=a=b")
    agent_id = made.out.strip()
    assert typed("attach", "Clerk", "desk", "whoami", "--needs-approval").out == "desk__whoami\n"
    shown = typed("show", "Clerk").out
    rows = [line.split() for line in shown.splitlines()]
    assert ["id", agent_id] in rows
    assert ["description", "Helps"] in rows
    assert ["model", "the", "host's", "default"] in rows
    assert ["persona", "9", "of", "5000", "-", "shared"] in rows
    assert ["human", "0", "of", "5000", "-", "each", "person's", "own"] in rows
    assert ["notes", "3", "of", "5000", "-", "shared"] in rows
    assert ["desk__whoami", "desk", "asks", "first"] in rows
    assert f"conv-{agent_id.removeprefix('agent-')}" in shown
    assert typed("detach", agent_id, "desk__whoami").code == 0
    assert "No tools besides its own." in typed("show", agent_id).out


@as_typed
@shows("KEPT-01")
def test_the_operator_of_an_agent_says_whose_a_memory_block_is_and_writes_each_persons(typed: Typed) -> None:
    typed("create", "Shared", "--block", "human=Speaks French", "--block", "notes=Open at nine", "--owner", "olga")
    assert typed("block", "Shared", "human", "--user", "ann", "Likes tea").out.startswith("human: 9 of")
    assert typed("block", "Shared", "human", "--user", "ann").out == "Likes tea\n"
    assert typed("block", "Shared", "human", "--user", "bob").out == "Speaks French\n"
    typed("block", "Shared", "human", "--start", "Speaks Dutch")
    assert typed("block", "Shared", "human").out == typed("block", "Shared", "human", "--start").out == "Speaks Dutch\n"
    assert "Give --user or --start" in typed("block", "Shared", "human", "--start", "--user", "ann").err
    assert (
        typed("block", "Shared", "notes", "--people-write").out == "notes: shared, and people's turns may change it\n"
    )
    assert typed("block", "Shared", "notes", "--per-person").out == "notes: each person's own\n"
    shown = typed("show", "Shared").out
    assert "It keeps something of its own of: ann" in shown
    assert ["owner", "olga"] in [line.split() for line in shown.splitlines()]


@as_typed
def test_a_memory_block_is_printed_and_written_from_an_argument_or_from_standard_input(typed: Typed) -> None:
    typed("create", "Keeper")
    assert typed("block", "Keeper", "persona").out == "I am Keeper.\n"
    assert typed("block", "Keeper", "human", "- likes tea").out == "human: 11 of 5000 characters\n"
    assert typed("block", "Keeper", "human").out == "- likes tea\n"
    assert typed("block", "Keeper", "human", "-", given=io.StringIO("two\nlines\n")).code == 0
    assert typed("block", "Keeper", "human").out == "two\nlines\n"
    assert "there are: persona, human" in typed("block", "Keeper", "nope").err
    assert typed("block", "Keeper", "human", "x" * 5001).code == 2


@as_typed
def test_a_name_that_two_agents_have_is_refused_with_their_ids(typed: Typed) -> None:
    first, second = typed("create", "Twin").out.strip(), typed("add", "Twin", "--description", "the other").out.strip()
    refused = typed("show", "Twin")
    assert refused.code == 2
    assert f"{first}, {second}" in refused.err
    assert typed("delete", first, "--yes").code == 0
    assert second in typed("show", "Twin").out


@as_typed
def test_where_there_are_no_agents_one_is_told_how_to_make_one(
    tmp_path: Path, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRONTDESK_DATA", str(tmp_path / "empty"))
    assert "agents create NAME" in typed("list").out


@as_typed
def test_what_an_agent_is_called_cannot_draw_on_the_terminal(typed: Typed) -> None:
    typed("create", "Bad\x1b[2J\nname", "--description", "\x1b]0;title\x07two\nlines")
    listed = typed("list").out
    assert "\x1b" not in listed
    assert "Bad name" in listed
    assert "two lines" in listed


@as_typed
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("show", "nobody"), 1, "There is no agent 'nobody'; `frontdesk agents list` shows them"),
        (("delete", "nobody", "--yes"), 1, "There is no agent 'nobody'"),
        (("create", "Novice", "--block", "notes"), 2, "write LABEL=TEXT"),
        (("create", "Novice", "--model", "clever"), 2, "'clever' is not a model"),
        (("create", ""), 2, "1 to 200 characters"),
        (("attach", "ONE", "nowhere", "x"), 2, "There is no MCP server 'nowhere'; there are: desk"),
        (("attach", "ONE", "desk", "nope"), 1, "has no tool 'nope'; it has: "),
        (("detach", "ONE", "nope"), 1, "has no tool 'nope'"),
    ],
)
def test_a_mistake_says_what_to_do(typed: Typed, arguments: tuple[str, ...], code: int, said: str) -> None:
    known = {"ONE": typed("create", "One").out.strip()} if "ONE" in arguments else {}
    done = typed(*(known.get(argument, argument) for argument in arguments))
    assert done.code == code
    assert said in done.err
    assert done.out == ""


# `frontdesk chat`: in a terminal for a person, and with one message for a script


APPROVE = "approve? [y]es / [n]o (reason) / [a]lways for this tool in this chat: "
PROMPT = "you> "
# None: a header names the agent for whoami.
WHOAMI = {"name": "desk__whoami", "args": {"agent_id": "none"}}
# Escaped, so that the typed text cannot pass for the answer.
SLOW = '@@[{"text": "' + r"\u0073low " * 100 + '", "chunk_delay": 0.1}]@@'


@dataclass(frozen=True, slots=True)
class Installation:
    """A data folder with the agent Ann, who may call whoami on a server after somebody approves."""

    data: Path
    servers: str

    def chat(self, *arguments: str, **settings: str) -> AbstractContextManager[Terminal]:
        """The command in a terminal."""
        given = {"FRONTDESK_MODEL": "offline", "FRONTDESK_MCP_SERVERS": self.servers, **settings}
        return open_terminal("chat", "Ann", *arguments, data=self.data, **given)

    def pipe(self, given: str, *arguments: str, model: str = "offline") -> subprocess.CompletedProcess[str]:
        """The command in a script."""
        return subprocess.run(
            [sys.executable, "-m", "frontdesk", "chat", "Ann", *arguments],
            env=clean_environment(FRONTDESK_DATA=str(self.data), FRONTDESK_MODEL=model),
            cwd=self.data.parent,
            input=given,
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
            check=False,
        )

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[App]:
        servers = json.loads(self.servers)
        settings = settings_with(FRONTDESK_DATA=self.data, FRONTDESK_MODEL="offline", FRONTDESK_MCP_SERVERS=servers)
        async with open_app(settings) as app:
            yield app

    async def furnish(self) -> None:
        tool = HeldTool("whoami", "", needs_approval=True, server="desk", remote_name="whoami")
        async with self.open() as app:
            await app.host.attach((await app.host.create(NewAgent("Ann"))).id, tool)


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory, desk: Desk) -> Installation:
    data = tmp_path_factory.mktemp("installation") / "data"
    made = Installation(data, json.dumps([{"name": "desk", "url": desk.mcp}]))
    anyio.run(made.furnish)
    return made


@pytest.fixture
async def app(installation: Installation) -> AsyncGenerator[App]:
    async with installation.open() as opened:
        yield opened


@pytest.fixture
async def thread(app: App) -> ChatThread:
    """A new conversation with Ann."""
    return await begin_conversation(app.host, ChatThread(await find_agent(app.host, "Ann")))


def script(*steps: Mapping[str, object]) -> str:
    return f"@@{json.dumps(steps)}@@"


@shows("CLI-CHAT")
def test_a_person_sees_a_turn_as_it_goes_and_stops_it_and_leaves(installation: Installation) -> None:
    with installation.chat() as terminal:
        terminal.until(PROMPT)
        edit = {"label": "human", "new_string": "Likes tea"}
        terminal.type(script({"reasoning": "Hm.", "tool": "memory_insert", "args": edit}, {"text": "Noted."}))
        shown = terminal.until("\nNoted.\n")
        assert "\x1b[2mHm.\x1b[0m\n" in shown
        assert '→ memory_insert(label="human", new_string="Likes tea")' in shown
        # The agent's earlier knowledge is before it.
        assert "\x1b[32m  + Likes tea\x1b[0m\n" in shown.partition("  memory: human\n")[2]
        assert "tokens in" in terminal.until(PROMPT)
        terminal.type(SLOW)
        terminal.until("slow slow ")
        assert "slow " * 50 not in terminal.until("Cancelled.", pressing=CONTROL_C)
        terminal.until(PROMPT)
        terminal.type("/nope")
        assert "There is no /nope.\n/help" in terminal.until(PROMPT)
        terminal.press("half a line")
        terminal.until("half a line")
        terminal.until("Ctrl-C again leaves", pressing=CONTROL_C)
        terminal.until(PROMPT)
        assert terminal.ended(pressing=CONTROL_C) == 0


@shows("CLI-APPROVE")
async def test_what_was_left_waiting_or_cut_off_is_there_when_one_comes_back(
    installation: Installation, app: App, thread: ChatThread, capsys: pytest.CaptureFixture[str]
) -> None:
    asking = script({"tools": [WHOAMI, WHOAMI]}, {"text": "One of two."})
    assert not await take_one_turn(app, thread, asking, as_json=False)
    assert f"--conversation {thread.conversation_id}` in a terminal" in capsys.readouterr().err
    with pytest.raises(Conflict, match="waits for your approval"):
        await take_one_turn(app, thread, "hello", as_json=False)
    await anyio.to_thread.run_sync(come_back, installation, str(thread.conversation_id))


def come_back(installation: Installation, conversation: str) -> None:
    with installation.chat("--conversation", conversation) as terminal:
        terminal.until(APPROVE)
        terminal.until(PROMPT, pressing=CONTROL_C)
        terminal.type("never mind")
        terminal.until("waits for your approval first")
        assert '(1 of 2)\x1b[0m\n{\n  "agent_id": "none"\n}\n' in terminal.until(APPROVE)
        terminal.type("perhaps")
        terminal.until(APPROVE)
        terminal.type("n not now")
        assert "(2 of 2)" in terminal.until(APPROVE)
        terminal.type("a")
        shown = terminal.until("\nOne of two.\n")
        assert "desk__whoami denied: \x1b[2mThe call was rejected: not now\x1b[0m" in shown
        assert "\x1b[32m✓\x1b[0m desk__whoami" in shown
        terminal.until(PROMPT)
        terminal.type(script({"tools": [WHOAMI]}, {"text": "Again."}))
        assert "as always in this chat" in terminal.until("\nAgain.\n")
        terminal.until(PROMPT)
        terminal.type("/tools")
        assert "desk__whoami\x1b[0m (asks first)" in terminal.until(PROMPT)
        terminal.type("/memory")
        assert "persona (9 of 5000 characters)\x1b[0m\nI am Ann.\n" in terminal.until(PROMPT)
        terminal.type(SLOW)
        terminal.until("slow slow ")
        terminal.process.kill()
    with installation.chat("--conversation", conversation, NO_COLOR="1") as terminal:
        assert "The last turn was interrupted." in terminal.until(PROMPT)
        terminal.type("/history")
        assert "\n  ✗ desk__whoami denied: The call was rejected: not now\n" in terminal.until("\nOne of two.\n")
        terminal.until("Interrupted: ")
        terminal.until(PROMPT)
        terminal.type("/new")
        assert conversation not in terminal.until(PROMPT)
        assert terminal.ended(pressing=CONTROL_D) == 0


async def test_a_script_gets_the_answer_alone_and_nothing_in_it_can_draw(
    app: App, thread: ChatThread, capsys: pytest.CaptureFixture[str]
) -> None:
    first = {"text": "Wait.", "reasoning": "Hm", "tool": "memory_insert", "args": {"label": "human", "new_string": "x"}}
    assert await take_one_turn(app, thread, script(first, {"text": "\x1b[2JDone."}), as_json=False)
    assert capsys.readouterr() == ("Wait.\nDone.\n", "")


async def test_a_script_gets_every_event_as_a_line_of_json(
    app: App, thread: ChatThread, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await take_one_turn(app, thread, script({"text": "\x9b2JHi."}), as_json=True)
    out, err = capsys.readouterr()
    assert (out.isascii(), err) == (True, "")
    events = [json.loads(line) for line in out.splitlines()]
    assert [event["event"] for event in events] == ["started", "text_chunk", "usage", "done"]
    assert events[1]["text"] == "\x9b2JHi."
    assert events[-1]["stop"] == "end_turn"


@pytest.mark.parametrize("as_json", [False, True])
async def test_an_agent_that_says_nothing_has_not_answered(
    app: App, thread: ChatThread, capsys: pytest.CaptureFixture[str], as_json: bool
) -> None:
    assert not await take_one_turn(app, thread, script({"text": ""}), as_json=as_json)
    assert capsys.readouterr().err == "frontdesk: The agent said nothing.\n"


async def test_a_history_shows_which_turns_failed(app: App, thread: ChatThread) -> None:
    assert not await take_one_turn(app, thread, script({"error": 400}), as_json=False)
    assert (await show_history(app.host, thread, TerminalState())).endswith("✗ The turn failed.\n")


def test_the_message_comes_from_standard_input_and_a_turn_that_failed_is_exit_code_one(
    installation: Installation,
) -> None:
    done = installation.pipe("hello\n", "--new", model="clever")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("frontdesk: the turn failed (invalid): 'clever' is not a model")
    assert done.stderr.count("\n") == 1


def test_a_chat_without_a_word_to_say_is_a_mistake_to_mend(installation: Installation) -> None:
    done = installation.pipe(" \n")
    assert done.returncode == 2
    assert done.stderr == "frontdesk: There is no message; give --message, or the message on standard input\n"
