"""`frontdesk chat`: in a terminal as a person uses it, and with one message as a script does."""

import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest

from frontdesk.agents.host import HeldTool, NewAgent
from frontdesk.app import App, open_app
from frontdesk.errors import Conflict
from frontdesk.interfaces.cli.agents import find_agent
from frontdesk.interfaces.cli.chat import ChatThread, begin_conversation, show_history, take_one_turn
from frontdesk.interfaces.cli.chat_display import TerminalState
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.desk import START_SECONDS, Desk, clean_environment
from tests.support.terminal import CONTROL_C, CONTROL_D, Terminal, open_terminal

APPROVE = "approve? [y]es / [n]o (reason) / [a]lways for this tool in this chat: "
PROMPT = "you> "
# None: whoami is told by a header whom it is for.
WHOAMI = {"name": "desk__whoami", "args": {"agent_id": "none"}}
# Escaped, so that what is typed cannot pass for what is answered.
SLOW = '@@[{"text": "' + r"\u0073low " * 100 + '", "chunk_delay": 0.1}]@@'


@dataclass(frozen=True, slots=True)
class Installation:
    """A data folder with the agent Ann, who may ask a desk who she is when somebody approves."""

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
        # Before it stands what the agent knew by then.
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
