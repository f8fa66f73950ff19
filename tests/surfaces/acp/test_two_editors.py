"""Two editors in one folder, each with a process of its own: one agent, one memory, and nothing of either lost."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.requirements import shows
from tests.support.acp.client import Client
from tests.support.acp.schema import Json
from tests.support.acp.words import outcome, script, update_in
from tests.support.ready import Ready
from tests.surfaces.acp.showing import calling, folder, introduced, is_shown_by_its_file, said_in, values

pytestmark = shows("ACP-TWO-EDITORS")
PROMPTS = 20


@dataclass(frozen=True, slots=True)
class Pair:
    """Two processes on the same data folder."""

    left: Client
    right: Client


@pytest.fixture(scope="module")
async def pair(tmp_path_factory: pytest.TempPathFactory, ready: Ready) -> AsyncGenerator[Pair]:
    data = ready.in_folder(tmp_path_factory.mktemp("pair") / "data")
    async with introduced(data) as left, introduced(data) as right:
        yield Pair(left.client, right.client)


def where(session: str, cwd: Path) -> Json:
    return {"sessionId": session, "cwd": str(cwd), "mcpServers": []}


async def opened_at_once(pair: Pair, work: Path) -> Sequence[Json]:
    return await asyncio.gather(pair.left.new_session(work), pair.right.new_session(work))


async def at_once(client: Client, session: str, name: str) -> Sequence[str]:
    """How many prompts end that are sent without waiting."""
    texts = [script({"text": f"{name} {number}", "tool": "list_files"}, {"text": "ok"}) for number in range(PROMPTS)]
    waiting = [await client.begin(session, text) for text in texts]
    return [(await outcome(one))["stopReason"] for one in waiting]


def history(client: Client, session: str, since: int) -> tuple[list[str], list[str]]:
    """What was said to the agent, and by it."""
    heard, said = (said_in(client, session, kind, since) for kind in ("user_message_chunk", "agent_message_chunk"))
    return list(heard.values()), list(said.values())


async def test_a_folder_that_both_open_at_once_has_one_agent(pair: Pair, tmp_path: Path) -> None:
    work = folder(tmp_path, "opened-at-once")
    left, right = await opened_at_once(pair, work)
    assert values(left)["agent"] == values(right)["agent"]
    assert left["sessionId"] != right["sessionId"]
    # The one that came second has left no other behind.
    later = await pair.left.new_session(work)
    agents = next(one for one in later["configOptions"] if one["id"] == "agent")["options"]
    assert [one["value"] for one in agents if one["name"] == "opened-at-once"] == [values(left)["agent"]]


async def test_memory_that_is_edited_in_one_is_seen_in_the_other(pair: Pair, tmp_path: Path) -> None:
    left, right = [one["sessionId"] for one in await opened_at_once(pair, folder(tmp_path))]
    since = len(pair.right.frames)
    await pair.left.prompt(left, calling("memory_insert", label="human", new_string="Is left-handed"))
    told = await pair.right.until(lambda frame: "Is left-handed" in str(update_in(frame)), since=since)
    diff = update_in(told)["content"][0]
    assert (told.json["params"]["sessionId"], diff["oldText"], diff["newText"]) == (right, "", "Is left-handed")
    assert is_shown_by_its_file(diff)
    since = len(pair.right.frames)
    await pair.right.prompt(right, "/memory human")
    assert "Is left-handed" in pair.right.said(since=since)
    # An edit of one's own does not come back as news.
    await pair.left.prompt(left, "/memory")
    mine = [one for one in pair.left.updates("tool_call", session_id=left) if "memory://" in str(one.get("_meta"))]
    assert len(mine) == 1


async def test_many_prompts_in_both_lose_nothing(pair: Pair, tmp_path: Path) -> None:
    work = folder(tmp_path)
    left, right = [one["sessionId"] for one in await opened_at_once(pair, work)]
    ended = await asyncio.gather(at_once(pair.left, left, "left"), at_once(pair.right, right, "right"))
    assert ended == [["end_turn"] * PROMPTS] * 2
    # Each looks at what the other has said.
    for client, session, name in ((pair.right, left, "left"), (pair.left, right, "right")):
        since = len(client.frames)
        await client.request("session/load", where(session, work))
        heard, said = history(client, session, since)
        assert len(heard) == PROMPTS
        assert said == [words for number in range(PROMPTS) for words in (f"{name} {number}", "ok")]


async def test_prompts_of_both_to_one_session_lose_nothing(pair: Pair, tmp_path: Path) -> None:
    work = folder(tmp_path)
    session = await pair.left.open_session(work)
    await pair.right.request("session/load", where(session, work))
    ended = await asyncio.gather(at_once(pair.left, session, "left"), at_once(pair.right, session, "right"))
    assert ended == [["end_turn"] * PROMPTS] * 2
    since = len(pair.left.frames)
    await pair.left.request("session/load", where(session, work))
    heard, said = history(pair.left, session, since)
    assert len(heard) == 2 * PROMPTS
    for name in ("left", "right"):
        assert [one for one in said if one.startswith(name)] == [f"{name} {number}" for number in range(PROMPTS)]


async def test_a_session_that_one_deletes_is_not_found_by_the_other(pair: Pair, tmp_path: Path) -> None:
    work = folder(tmp_path)
    session = await pair.left.open_session(work)
    await pair.right.request("session/delete", {"sessionId": session})
    assert (await pair.left.request("session/list", {"cwd": str(work)}))["sessions"] == []
