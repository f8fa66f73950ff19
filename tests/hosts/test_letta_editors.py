"""Tests an editor whose agent is on the real Letta server: sessions, permitted coding tools, memory, history."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.hosts.conftest import PASSWORD
from tests.interfaces.acp.conftest import (
    TERMINAL,
    Desk,
    calling,
    calls,
    folder,
    introduced,
    is_quiet,
    is_shown_by_its_file,
    only_call,
    said_in,
    set_option,
    values,
)
from tests.requirements import shows
from tests.support.acp.schema import GOING_ON, Json, outcome, script
from tests.support.letta import LettaServer
from tests.support.postgres import Ready
from tests.support.waiting import until

pytestmark = shows("ACP-LETTA")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory, ready: Ready) -> Path:
    return ready.in_folder(tmp_path_factory.mktemp("acp") / "data")


@pytest.fixture(scope="module")
async def opened(data: Path, letta: LettaServer) -> AsyncGenerator[Desk]:
    async with introduced(data, LETTA_BASE_URL=letta.url, LETTA_SERVER_PASSWORD=PASSWORD) as desk:
        yield desk


@pytest.fixture
def desk(opened: Desk) -> Desk:
    opened.person.chooses("allow_once")
    return opened


def where(session: str, cwd: Path) -> Json:
    return {"sessionId": session, "cwd": str(cwd), "mcpServers": []}


async def test_a_session_on_letta_is_opened_prompted_and_loaded(desk: Desk, tmp_path: Path) -> None:
    client, work = desk.client, folder(tmp_path)
    opened = await client.new_session(work)
    session = opened["sessionId"]
    assert {"mode", "model", "agent"} <= set(values(opened))
    # Letta cannot wait for permission before an edit of memory.
    assert "memory" not in values(opened)
    assert await client.prompt(session, script({"reasoning": "Hm", "text": "Hello from Letta"})) == {
        "stopReason": "end_turn"
    }
    assert list(said_in(client, session).values()) == ["Hello from Letta"]
    since = len(client.frames)
    await client.request("session/load", where(session, work))
    assert list(said_in(client, session, since=since).values()) == ["Hello from Letta"]
    assert list(said_in(client, session, "agent_thought_chunk", since).values()) == ["Hm"]
    assert len(said_in(client, session, "user_message_chunk", since)) == 1


async def test_coding_tools_run_here_when_the_person_allows_it(desk: Desk, tmp_path: Path) -> None:
    client, work = desk.client, folder(tmp_path)
    session = await client.open_session(work)
    await client.prompt(session, calling("write_file", path="note.txt", content="by an agent on Letta\n"))
    assert (work / "note.txt").read_text() == "by an agent on Letta\n"
    call = only_call(client, session)
    [asked] = desk.person.asked
    assert asked["toolCall"]["toolCallId"] == call["toolCallId"]
    assert (call["status"], call["kind"]) == ("completed", "edit")
    [diff] = [part for part in call["content"] if part["type"] == "diff"]
    assert (diff["path"], diff["newText"]) == (str(work / "note.txt"), "by an agent on Letta\n")
    desk.person.chooses("reject_once")
    since = len(client.frames)
    await client.prompt(session, calling("run_command", command="rm note.txt"))
    assert only_call(client, session, since)["status"] == "failed"
    assert (work / "note.txt").exists()
    since = len(client.frames)
    await client.request("session/load", where(session, work))
    again = calls(client, session, since).values()
    assert [(one["name"], one["status"]) for one in again] == [("write_file", "completed"), ("run_command", "failed")]


async def test_an_edit_of_memory_on_letta_is_a_diff_of_a_real_file(desk: Desk, tmp_path: Path) -> None:
    client = desk.client
    session, since = await client.open_session(folder(tmp_path)), len(client.frames)
    await client.prompt(session, "/remember Lives by the sea")
    [call] = [one for one in calls(client, session, since).values() if "memory://" in str(one.get("_meta"))]
    [diff] = call["content"]
    assert diff["newText"].endswith("Lives by the sea")
    assert is_shown_by_its_file(diff)
    since = len(client.frames)
    change = {"label": "human", "old_string": "by the sea", "new_string": "in the hills"}
    words = script({"tool": "memory_replace", "args": change}, {"text": "Noted"})
    assert await client.prompt(session, words) == {"stopReason": "end_turn"}
    [call] = [one for one in calls(client, session, since).values() if "memory://" in str(one.get("_meta"))]
    [diff] = call["content"]
    assert diff["newText"].endswith("Lives in the hills")
    assert is_shown_by_its_file(diff)


async def test_a_turn_on_letta_is_cancelled(desk: Desk, tmp_path: Path) -> None:
    client, work = desk.client, folder(tmp_path)
    session = await client.open_session(work)
    await set_option(client, session, "mode", "auto")
    running = {"tool": "run_command", "args": {"command": "touch begun; sleep 600"}}
    under_way = await client.ask(
        "session/prompt",
        {"sessionId": session, "prompt": [{"type": "text", "text": script(running, *GOING_ON)}]},
        number="on-letta",
    )
    await until((work / "begun").exists)
    await client.notify("session/cancel", {"sessionId": session})
    assert await outcome(under_way) == {"stopReason": "cancelled"}
    await until(lambda: not client.agent.descendants())
    await is_quiet(client, session, client.place("on-letta"), folder(tmp_path, "other"))
    assert {one["status"] for one in calls(client, session).values()} <= TERMINAL
    since = len(client.frames)
    assert await client.prompt(session, script({"text": "and on"})) == {"stopReason": "end_turn"}
    assert "and on" in client.said(since=since)


async def test_agents_of_one_folder_are_one_on_letta_too(desk: Desk, tmp_path: Path) -> None:
    work = folder(tmp_path)
    first, second = [await desk.client.new_session(work) for _ in range(2)]
    assert values(first)["agent"] == values(second)["agent"]
    assert first["sessionId"] != second["sessionId"]
