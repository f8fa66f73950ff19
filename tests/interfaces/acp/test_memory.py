"""Tests an agent's memory in an editor: its edits as diffs of real files, by the agent, by the person, from outside."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.interfaces.acp.conftest import (
    Desk,
    Person,
    calling,
    calls,
    folder,
    introduced,
    is_shown_by_its_file,
    set_option,
    values,
)
from tests.requirements import shows
from tests.support.acp.client import Client
from tests.support.acp.schema import Json, script, update_in
from tests.support.desk import frontdesk
from tests.support.postgres import Ready

pytestmark = shows("ACP-MEMORY")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory, ready: Ready) -> Path:
    return ready.in_folder(tmp_path_factory.mktemp("memory") / "data")


@pytest.fixture(scope="module")
async def desk(data: Path) -> AsyncGenerator[Desk]:
    async with introduced(data) as opened:
        yield opened


@pytest.fixture
def client(desk: Desk) -> Client:
    return desk.client


@pytest.fixture
def person(desk: Desk) -> Person:
    desk.person.chooses("allow_once")
    return desk.person


def insert(text: str, label: str = "human") -> str:
    return calling("memory_insert", label=label, new_string=text)


def edits(client: Client, session: str, since: int = 0) -> list[Json]:
    """The shown diffs of memory, each in a call of its own that names the agent."""
    shown = [call for call in calls(client, session, since).values() if "memory://" in str(call.get("_meta"))]
    for call in shown:
        assert (call["kind"], call["status"]) == ("think", "completed")
        assert call["locations"] == [{"path": call["content"][0]["path"]}]
    return [call["content"][0] for call in shown]


async def memory(client: Client, session: str) -> str:
    since = len(client.frames)
    await client.prompt(session, "/memory human")
    return client.said(since=since)


async def test_an_edit_by_the_agent_is_a_diff_of_a_real_file(
    client: Client, person: Person, data: Path, tmp_path: Path
) -> None:
    session = await client.open_session(folder(tmp_path))
    await client.prompt(session, insert("Likes tea"))
    [first] = edits(client, session)
    assert (first["oldText"], first["newText"]) == ("", "Likes tea")
    assert is_shown_by_its_file(first)
    assert data in Path(first["path"]).parents
    since = len(client.frames)
    change = {"label": "human", "old_string": "tea", "new_string": "green tea"}
    await client.prompt(session, script({"tool": "memory_replace", "args": change}, {"text": "noted"}))
    [second] = edits(client, session, since)
    assert (second["oldText"], second["newText"], second["path"]) == ("Likes tea", "Likes green tea", first["path"])
    assert is_shown_by_its_file(second)
    assert person.asked == []
    [call] = [one for one in calls(client, session, since).values() if one.get("name") == "memory_replace"]
    assert (call["kind"], call["status"]) == ("think", "completed")


async def test_the_person_has_things_remembered_and_forgotten(client: Client, tmp_path: Path) -> None:
    session, since = await client.open_session(folder(tmp_path)), len(client.frames)
    assert await client.prompt(session, "/remember I live in Lisbon") == {"stopReason": "end_turn"}
    [known] = edits(client, session, since)
    assert known["newText"] == "I live in Lisbon"
    assert is_shown_by_its_file(known)
    assert "I live in Lisbon" in await memory(client, session)
    since = len(client.frames)
    await client.prompt(session, "/forget Lisbon")
    [gone] = edits(client, session, since)
    assert (gone["oldText"], gone["newText"]) == ("I live in Lisbon", "")
    assert is_shown_by_its_file(gone)
    assert "Lisbon" not in await memory(client, session)


async def test_all_sessions_of_a_folder_remember_the_same(client: Client, tmp_path: Path) -> None:
    work = folder(tmp_path)
    first, second = await client.open_session(work), await client.open_session(work)
    elsewhere = await client.open_session(folder(tmp_path, "elsewhere"))
    await client.prompt(first, insert("Likes walks"))
    assert "Likes walks" in await memory(client, second)
    assert "Likes walks" not in await memory(client, elsewhere)


async def test_memory_is_asked_for_first_where_the_person_wants_that(
    client: Client, person: Person, tmp_path: Path
) -> None:
    session = await client.open_session(folder(tmp_path))
    await set_option(client, session, "memory", "ask")
    await client.prompt(session, insert("Allowed"))
    [asked] = person.asked
    assert "human" in asked["toolCall"]["title"]
    assert asked["toolCall"]["toolCallId"] in calls(client, session)
    assert [diff["newText"] for diff in edits(client, session)] == ["Allowed"]
    since = len(client.frames)
    person.chooses("reject_once")
    assert await client.prompt(session, insert("Rejected")) == {"stopReason": "end_turn"}
    assert len(person.asked) == 1
    assert edits(client, session, since) == []
    assert [call["status"] for call in calls(client, session, since).values()] == ["failed"]
    assert "Rejected" not in await memory(client, session)


async def test_memory_is_not_asked_for_again_once_it_is_allowed_for_good(
    client: Client, person: Person, tmp_path: Path
) -> None:
    session, since = await client.open_session(folder(tmp_path)), len(client.frames)
    await set_option(client, session, "memory", "ask")
    person.chooses("allow_always")
    await client.prompt(session, insert("First"))
    await client.prompt(session, insert("Second"))
    assert len(person.asked) == 1
    told = client.updates("config_option_update", session_id=session, since=since)
    assert [values(one)["memory"] for one in told] == ["ask", "auto"]
    assert [diff["newText"] for diff in edits(client, session)] == ["First", "First\nSecond"]


async def test_a_chat_in_the_terminal_has_the_same_memory_and_its_edit_comes_by_itself(
    client: Client, data: Path, tmp_path: Path
) -> None:
    opened = await client.new_session(folder(tmp_path))
    session = opened["sessionId"]
    await client.prompt(session, "/remember Drinks tea")
    since = len(client.frames)
    change = {"label": "human", "old_string": "tea", "new_string": "coffee"}
    # To be replaced, the text has to be there.
    words = script({"tool": "memory_replace", "args": change}, {"text": "Coffee then"})
    chat = ("chat", values(opened)["agent"], "--message", words)
    done = await asyncio.to_thread(frontdesk, *chat, data=data)
    assert (done.returncode, done.stdout) == (0, "Coffee then\n")
    told = await client.until(lambda frame: "Drinks coffee" in str(update_in(frame)), since=since)
    assert told.json["params"]["sessionId"] == session
    [diff] = edits(client, session, since)
    assert (diff["oldText"], diff["newText"]) == ("Drinks tea", "Drinks coffee")
    assert is_shown_by_its_file(diff)
