"""kill -9 in the middle of a turn: the conversation is whole, the turn marked, and nothing is repeated."""

import sys
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from frontdesk.app import open_app
from frontdesk.llm.events import Done, StopReason, TextChunk, ToolCall, ToolReturn, ToolStatus, UserText
from frontdesk.settings import Settings
from tests.conftest import settings_with
from tests.hosts.lab import CALLER, of_kind, said, script, take
from tests.requirements import shows
from tests.support.desk import ROOT, clean_environment
from tests.support.postgres import Postgres

pytestmark = pytest.mark.anyio
SECONDS = 60

# Takes a turn with a tool that leaves a mark each time it runs, and says each event as it comes.
PROGRAM = """
import anyio, sys, json
from contextlib import aclosing
from pathlib import Path
from frontdesk.agents.host import NewAgent, Prompt
from frontdesk.app import open_app
from frontdesk.identity.model import Caller
from frontdesk.llm.tools import Tool, ToolOutcome
from frontdesk.settings import Settings

marks, text = Path(sys.argv[1]), sys.argv[2]

async def mark(arguments):
    with marks.open("a") as file:
        file.write("ran\\n")
    seconds = arguments.get("seconds", 0)
    print(f"ran for {seconds}", flush=True)
    await anyio.sleep(seconds)
    return ToolOutcome("marked")

async def main():
    async with open_app(Settings.read()) as app:
        agent = await app.host.create(NewAgent("Ada"))
        print(agent.id, flush=True)
        tool = Tool("mark", "", {"type": "object", "properties": {}}, mark)
        async with aclosing(app.host.send(Prompt(agent.id, Caller("r"), text, tools=[tool]))) as events:
            async for event in events:
                print(type(event).__name__, flush=True)

anyio.run(main)
"""


def killed_at(moment: str, text: str, marks: Path, environment: dict[str, str]) -> str:
    """The agent whose turn was killed as soon as it said `moment`."""
    command = [sys.executable, "-c", PROGRAM, str(marks), text]
    with Popen(command, env=environment | {"PYTHONPATH": str(ROOT)}, stdout=PIPE, text=True) as process:
        assert process.stdout is not None
        agent = process.stdout.readline().strip()
        for line in process.stdout:
            if line.strip() == moment:
                break
        process.kill()
        process.wait(SECONDS)
    return agent


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    shared: dict[str, str] = {}
    if request.param == "postgresql":
        server: Postgres = request.getfixturevalue("postgres")
        shared["FRONTDESK_DATABASE_URL"] = server.create_database()
    return {"FRONTDESK_DATA": str(tmp_path / "data"), **shared}


@shows("TURN-KILL")
async def test_a_kill_while_the_model_speaks(place: dict[str, str], tmp_path: Path) -> None:
    text = script({"text": "word " * 500, "chunk_delay": 0.02})
    agent = killed_at("TextChunk", text, tmp_path / "marks", clean_environment(**place))
    async with open_app(_settings(place)) as app:
        told = [one.event for one in await app.host.history(agent)]
        assert told == [UserText(text), Done(StopReason.INTERRUPTED)]
        assert said(await take(app.host, agent, script({"text": "here again"}))) == "here again"
        told = [one.event for one in await app.host.history(agent)]
        assert [event.stop for event in of_kind(told, Done)] == [StopReason.INTERRUPTED, StopReason.END_TURN]


@shows("TURN-KILL")
async def test_a_kill_while_a_tool_runs(place: dict[str, str], tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    text = script({"tool": "mark", "args": {}}, {"tool": "mark", "args": {"seconds": 60}}, {"text": "done"})
    agent = killed_at("ran for 60", text, marks, clean_environment(**place))
    async with open_app(_settings(place)) as app:
        told = [one.event for one in await app.host.history(agent)]
        calls, answers = of_kind(told, ToolCall), of_kind(told, ToolReturn)
        assert len(calls) == 2
        assert [answer.status for answer in answers] == [ToolStatus.OK, ToolStatus.INTERRUPTED]
        assert told[-1] == Done(StopReason.INTERRUPTED)
        events = await take(app.host, agent, script({"text": "what now"}))
        assert said(events) == "what now"
        told = [one.event for one in await app.host.history(agent)]
        assert len(of_kind(told, ToolCall)) == 2, "no call was made up or repeated"
        assert of_kind(told, TextChunk) == [TextChunk("what now")]
    assert marks.read_text() == "ran\n" * 2, "the tool did not run again"


@shows("TURN-KILL")
async def test_a_kill_between_two_rounds_leaves_the_first_whole(place: dict[str, str], tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    text = script({"tool": "mark", "args": {}}, {"text": "word " * 500, "chunk_delay": 0.02})
    agent = killed_at("TextChunk", text, marks, clean_environment(**place))
    async with open_app(_settings(place)) as app:
        told = [one.event for one in await app.host.history(agent)]
        assert [back.status for back in of_kind(told, ToolReturn)] == [ToolStatus.OK]
        assert told[-1] == Done(StopReason.INTERRUPTED)
        assert said(await take(app.host, agent, script({"text": "on we go"}), caller=CALLER)) == "on we go"
    assert marks.read_text() == "ran\n"


def _settings(place: dict[str, str]) -> Settings:
    return settings_with(**place)
