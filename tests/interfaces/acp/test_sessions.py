"""Tests sessions after their process has ended, and two editors in one folder."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.interfaces.acp.conftest import (
    calling,
    calls,
    folder,
    introduced,
    is_shown_by_its_file,
    only_call,
    said_in,
    values,
)
from tests.requirements import shows
from tests.support.acp.client import Client
from tests.support.acp.schema import Json, Refused, outcome, script, update_in
from tests.support.postgres import Ready

# Sessions after their process has ended: listed, loaded, resumed, forked, renamed, moved and deleted in the next


NOT_FOUND, INVALID_PARAMS = -32002, -32602
MANY = 55
PLAN = [{"text": "Look", "status": "in_progress"}, {"text": "Leap", "status": "pending"}]
TALK = script(
    {"reasoning": "First a look.", "text": "I look around. ", "tool": "list_files"},
    {"tool": "update_plan", "args": {"steps": PLAN}},
    {"text": "Now I write.", "tool": "write_file", "args": {"path": "note.txt", "content": "a note\n"}},
    {"tools": [{"name": "memory_insert", "args": {"label": "human", "new_string": "Writes notes"}}]},
    {"tool": "read_file", "args": {"path": "nowhere.txt"}},
    {"reasoning": "Enough.", "text": "All is done."},
)


@dataclass(frozen=True, slots=True)
class EarlierSession:
    """The messages to an editor before its process ended."""

    data: Path
    work: Path
    session: str
    thoughts: dict[str, str]
    words: dict[str, str]
    calls: dict[str, dict[str, Any]]
    renamed: str
    many: Sequence[str]


@pytest.fixture(scope="module")
async def past(tmp_path_factory: pytest.TempPathFactory, ready: Ready) -> EarlierSession:
    place = tmp_path_factory.mktemp("sessions")
    data, work, many = ready.in_folder(place / "data"), folder(place), folder(place, "many")
    async with introduced(data) as desk:
        client = desk.client
        session = await client.open_session(work)
        await client.prompt(session, f"Please look around\nand write {TALK}")
        await client.prompt(session, script({"text": "And a second time."}))
        renamed = await client.open_session(work)
        await client.request("session/set_title", {"sessionId": renamed, "title": "A name\nof my own"})
        opened = [await client.open_session(many) for _ in range(MANY)]
        told = calls(client, session)
        thoughts = said_in(client, session, "agent_thought_chunk")
        return EarlierSession(data, work, session, thoughts, said_in(client, session), told, renamed, opened)


@pytest.fixture(scope="module")
async def client(past: EarlierSession) -> AsyncGenerator[Client]:
    """Another process on the same data folder."""
    async with introduced(past.data) as desk:
        yield desk.client


def where(session: str, cwd: Path, **more: Any) -> Json:
    return {"sessionId": session, "cwd": str(cwd), "mcpServers": [], **more}


async def listed(client: Client, **asked: str) -> Json:
    return await client.request("session/list", asked)


async def info(client: Client, session: str, cwd: Path) -> Json | None:
    found = (await listed(client, cwd=str(cwd)))["sessions"]
    return next((one for one in found if one["sessionId"] == session), None)


async def spoken(client: Client, cwd: Path, words: str = "as said before") -> str:
    session = await client.open_session(cwd)
    await client.prompt(session, script({"text": words}))
    return session


def seen(call: Json) -> Json:
    """The visible part of a call that is the same when it runs and when it is loaded."""
    return {key: call[key] for key in ("title", "kind", "status") if key in call}


@shows("ACP-SESSIONS")
async def test_sessions_are_listed_by_folder_with_their_titles(client: Client, past: EarlierSession) -> None:
    found = await info(client, past.session, past.work)
    assert found is not None
    assert (found["title"], found["cwd"]) == ("Please look around", str(past.work))
    named = await info(client, past.renamed, past.work)
    assert named is not None
    assert named["title"] == "A name of my own"
    assert not {past.session, past.renamed} & {one["sessionId"] for one in await all_of(client, past.work.parent)}


async def all_of(client: Client, cwd: Path) -> list[Json]:
    """Page by page."""
    found, more = [], {}
    while True:
        page = await listed(client, cwd=str(cwd), **more)
        found += page["sessions"]
        if "nextCursor" not in page:
            return found
        more = {"cursor": page["nextCursor"]}


@shows("ACP-SESSIONS")
async def test_a_long_list_comes_in_pages(client: Client, past: EarlierSession) -> None:
    first = await listed(client, cwd=str(past.work.parent / "many"))
    assert len(first["sessions"]) < MANY
    found = [one["sessionId"] for one in await all_of(client, past.work.parent / "many")]
    assert found == list(reversed(past.many))


@shows("ACP-SESSIONS")
async def test_a_cursor_that_is_none_is_refused_in_words(client: Client) -> None:
    with pytest.raises(Refused, match="cursor") as refused:
        await listed(client, cursor="page 2")
    assert refused.value.code == INVALID_PARAMS


@shows("ACP-SESSIONS")
async def test_loading_tells_everything_again_under_the_same_ids(client: Client, past: EarlierSession) -> None:
    since = len(client.frames)
    await client.request("session/load", where(past.session, past.work), number="the-load")
    await client.heard()
    loaded = client.place("the-load")
    told = client.updates(session_id=past.session, since=since)
    after = client.updates(session_id=past.session, since=loaded)
    assert after == []
    [first, _] = said_in(client, past.session, "user_message_chunk", since).values()
    assert first.startswith("Please look around\nand write")
    assert said_in(client, past.session, since=since) == past.words
    assert said_in(client, past.session, "agent_thought_chunk", since) == past.thoughts
    again = calls(client, past.session, since)
    assert [(number, seen(call)) for number, call in again.items()] == [
        (number, seen(call)) for number, call in past.calls.items()
    ]
    assert [entry["content"] for one in told if one["sessionUpdate"] == "plan" for entry in one["entries"]]


@shows("ACP-SESSIONS")
async def test_what_was_written_and_remembered_is_shown_again_as_a_diff(client: Client, past: EarlierSession) -> None:
    since = len(client.frames)
    await client.request("session/load", where(past.session, past.work))
    diffs = [
        part
        for call in calls(client, past.session, since).values()
        for part in call.get("content", ())
        if part["type"] == "diff"
    ]
    assert {"a note\n", "Writes notes"} == {diff["newText"] for diff in diffs}
    assert all(Path(diff["path"]).is_absolute() for diff in diffs)


@shows("ACP-SESSIONS")
async def test_a_resumed_session_tells_nothing_again_and_goes_on(client: Client, past: EarlierSession) -> None:
    await client.request("session/close", {"sessionId": past.renamed})
    since = len(client.frames)
    await client.request("session/resume", {"sessionId": past.renamed, "cwd": str(past.work)})
    await client.heard()
    told = client.updates(session_id=past.renamed, since=since)
    assert [one["sessionUpdate"] for one in told] == ["available_commands_update"]
    await client.prompt(past.renamed, script({"text": "and on"}))
    assert "and on" in said_in(client, past.renamed, since=since).values()


@shows("ACP-SESSIONS")
async def test_a_closed_session_takes_no_prompt_until_it_is_opened_again(client: Client, tmp_path: Path) -> None:
    work = folder(tmp_path)
    session = await spoken(client, work)
    assert await client.request("session/close", {"sessionId": session}) == {}
    with pytest.raises(Refused) as refused:
        await client.prompt(session, "hello")
    assert refused.value.code == NOT_FOUND
    assert await info(client, session, work) is not None
    await client.request("session/resume", {"sessionId": session, "cwd": str(work)})
    assert (await client.prompt(session, script({"text": "again"})))["stopReason"] == "end_turn"


@shows("ACP-SESSIONS")
async def test_a_deleted_session_is_gone_however_often_it_is_deleted(client: Client, tmp_path: Path) -> None:
    work = folder(tmp_path)
    session = await spoken(client, work)
    for _ in range(2):
        assert await client.request("session/delete", {"sessionId": session}) == {}
    assert (await listed(client, cwd=str(work)))["sessions"] == []
    for method in ("session/load", "session/fork"):
        with pytest.raises(Refused) as refused:
            await client.request(method, where(session, work))
        assert refused.value.code == NOT_FOUND


@shows("ACP-SESSIONS")
async def test_a_fork_has_the_past_and_goes_its_own_way(client: Client, tmp_path: Path) -> None:
    work = folder(tmp_path)
    session = await spoken(client, work, "in common")
    fork = (await client.request("session/fork", where(session, work)))["sessionId"]
    assert fork != session
    await client.prompt(fork, script({"text": "only in the fork"}))
    await client.prompt(session, script({"text": "only in the first"}))
    for one, words in ((fork, "only in the fork"), (session, "only in the first")):
        since = len(client.frames)
        await client.request("session/load", where(one, work))
        assert list(said_in(client, one, since=since).values()) == ["in common", words]


@shows("ACP-SESSIONS")
async def test_a_session_that_is_not_open_is_renamed_too(client: Client, past: EarlierSession) -> None:
    asked = {"sessionId": past.many[0], "title": " Of \n another time "}
    assert await client.request("session/set_title", asked) == {"title": "Of another time"}
    found = await all_of(client, past.work.parent / "many")
    assert [one["sessionId"] for one in found if one.get("title") == "Of another time"] == [past.many[0]]
    with pytest.raises(Refused) as refused:
        await client.request("session/set_title", {"sessionId": f"sess_{'0' * 32}", "title": "Nobody's"})
    assert refused.value.code == NOT_FOUND


@shows("ACP-SESSIONS")
async def test_a_new_title_is_told_and_kept(client: Client, tmp_path: Path) -> None:
    work = folder(tmp_path)
    session, since = await spoken(client, work), len(client.frames)
    await client.request("session/set_title", {"sessionId": session, "title": "Mine"})
    assert client.updates("session_info_update", session_id=session, since=since)[0]["title"] == "Mine"
    await client.prompt(session, "This is no title any more")
    found = await info(client, session, work)
    assert found is not None
    assert found["title"] == "Mine"
    with pytest.raises(Refused) as refused:
        await client.request("session/set_title", {"sessionId": session, "title": " "})
    assert refused.value.code == INVALID_PARAMS


@shows("ACP-SESSIONS")
async def test_a_session_that_is_loaded_elsewhere_works_there(client: Client, tmp_path: Path) -> None:
    work, moved = folder(tmp_path), folder(tmp_path, "moved")
    session = await spoken(client, work)
    await client.request("session/load", where(session, moved))
    assert await info(client, session, work) is None
    assert await info(client, session, moved) is not None
    await client.prompt(session, calling("write_file", path="here.txt", content="x"))
    assert (moved / "here.txt").exists()
    since = len(client.frames)
    await client.prompt(session, calling("read_file", path=str(work / "note.txt")))
    assert only_call(client, session, since)["status"] == "failed"


@shows("ACP-SESSIONS")
@pytest.mark.parametrize("method", ["session/load", "session/resume", "session/fork", "session/close"])
async def test_a_session_that_nobody_has_is_not_found(client: Client, tmp_path: Path, method: str) -> None:
    for unknown in (f"sess_{'0' * 32}", "nobody", "", "../../etc"):
        with pytest.raises(Refused, match="Session not found") as refused:
            await client.request(method, where(unknown, tmp_path))
        assert refused.value.code == NOT_FOUND


@shows("ACP-SESSIONS")
async def test_further_folders_are_inside_and_all_others_outside(client: Client, tmp_path: Path) -> None:
    work, further, outside = folder(tmp_path), folder(tmp_path, "further"), folder(tmp_path, "outside")
    (outside / "secret.txt").write_text("not for you")
    (further / "way-out").symlink_to(outside)
    session = await client.open_session(work, additionalDirectories=[str(further)])
    await client.prompt(session, calling("write_file", path=str(further / "in.txt"), content="in"))
    assert (further / "in.txt").read_text() == "in"
    for path in (outside / "secret.txt", further / "way-out" / "secret.txt", work / ".." / "outside" / "secret.txt"):
        since = len(client.frames)
        await client.prompt(session, calling("read_file", path=str(path)))
        call = only_call(client, session, since)
        assert call["status"] == "failed"
        assert "not for you" not in str(call)
    found = await info(client, session, work)
    assert found is not None
    assert found["additionalDirectories"] == [str(further)]


@shows("ACP-SESSIONS")
@pytest.mark.parametrize("cwd", ["relative", "/does/not/exist", ""])
async def test_a_folder_that_cannot_be_worked_in_is_refused(client: Client, cwd: str) -> None:
    with pytest.raises(Refused) as refused:
        await client.request("session/new", {"cwd": cwd, "mcpServers": []})
    assert refused.value.code == INVALID_PARAMS
    assert "\n" not in refused.value.message


# Two editors in one folder, each with a process of its own: one agent, one memory, and neither loses anything


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


async def opened_at_once(pair: Pair, work: Path) -> Sequence[Json]:
    return await asyncio.gather(pair.left.new_session(work), pair.right.new_session(work))


async def at_once(client: Client, session: str, name: str) -> Sequence[str]:
    """How many of the prompts that were sent without waiting have ended."""
    texts = [script({"text": f"{name} {number}", "tool": "list_files"}, {"text": "ok"}) for number in range(PROMPTS)]
    waiting = [await client.begin(session, text) for text in texts]
    return [(await outcome(one))["stopReason"] for one in waiting]


def history(client: Client, session: str, since: int) -> tuple[list[str], list[str]]:
    """The messages to the agent, and from it."""
    heard, said = (said_in(client, session, kind, since) for kind in ("user_message_chunk", "agent_message_chunk"))
    return list(heard.values()), list(said.values())


@shows("ACP-TWO-EDITORS")
async def test_a_folder_that_both_open_at_once_has_one_agent(pair: Pair, tmp_path: Path) -> None:
    work = folder(tmp_path, "opened-at-once")
    left, right = await opened_at_once(pair, work)
    assert values(left)["agent"] == values(right)["agent"]
    assert left["sessionId"] != right["sessionId"]
    # The second process has left no other agent behind.
    later = await pair.left.new_session(work)
    agents = next(one for one in later["configOptions"] if one["id"] == "agent")["options"]
    assert [one["value"] for one in agents if one["name"] == "opened-at-once"] == [values(left)["agent"]]


@shows("ACP-TWO-EDITORS")
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
    # A process does not report its own edit as news.
    await pair.left.prompt(left, "/memory")
    mine = [one for one in pair.left.updates("tool_call", session_id=left) if "memory://" in str(one.get("_meta"))]
    assert len(mine) == 1


@shows("ACP-TWO-EDITORS")
async def test_many_prompts_in_both_lose_nothing(pair: Pair, tmp_path: Path) -> None:
    work = folder(tmp_path)
    left, right = [one["sessionId"] for one in await opened_at_once(pair, work)]
    ended = await asyncio.gather(at_once(pair.left, left, "left"), at_once(pair.right, right, "right"))
    assert ended == [["end_turn"] * PROMPTS] * 2
    # Each looks at the other's messages.
    for client, session, name in ((pair.right, left, "left"), (pair.left, right, "right")):
        since = len(client.frames)
        await client.request("session/load", where(session, work))
        heard, said = history(client, session, since)
        assert len(heard) == PROMPTS
        assert said == [words for number in range(PROMPTS) for words in (f"{name} {number}", "ok")]


@shows("ACP-TWO-EDITORS")
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


@shows("ACP-TWO-EDITORS")
async def test_a_session_that_one_deletes_is_not_found_by_the_other(pair: Pair, tmp_path: Path) -> None:
    work = folder(tmp_path)
    session = await pair.left.open_session(work)
    await pair.right.request("session/delete", {"sessionId": session})
    assert (await pair.left.request("session/list", {"cwd": str(work)}))["sessions"] == []
