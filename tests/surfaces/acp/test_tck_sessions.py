"""Sessions: what acp-tck asks of opening, loading, resuming, listing, closing and deleting them."""

from collections.abc import Sequence
from pathlib import Path

from tests.requirements import shows
from tests.support.acp import schema
from tests.support.acp.client import Client
from tests.support.acp.schema import Json
from tests.support.acp.words import GOING_ON, outcome, script
from tests.surfaces.acp.conftest import Opening

HISTORY = frozenset({"user_message_chunk", "agent_message_chunk", "agent_thought_chunk"})


def opened(session: str, work: Path) -> Json:
    return {"sessionId": session, "cwd": str(work), "mcpServers": []}


async def spoken(client: Client, work: Path) -> str:
    """A session in which something was said."""
    session = await client.open_session(work)
    await client.prompt(session, script({"reasoning": "hm", "text": "as said before"}))
    return session


async def listed(client: Client, **asked: str) -> Sequence[str]:
    return [one["sessionId"] for one in (await client.request("session/list", asked))["sessions"]]


@shows("ACP-SESSION-001")
async def test_a_session_in_a_folder_gets_an_id(client: Client, work: Path) -> None:
    since = len(client.frames)
    session = await client.open_session(work)
    assert isinstance(session, str)
    assert session
    schema.check_answer("session/new", client.received(since)[0].json)


@shows("ACP-SESSION-002")
async def test_every_session_has_an_id_of_its_own(client: Client, work: Path) -> None:
    assert len({await client.open_session(work) for _ in range(5)}) == 5


@shows("ACP-LOAD-001")
async def test_a_session_is_loaded_by_its_id(client: Client, work: Path) -> None:
    session, since = await spoken(client, work), len(client.frames)
    told = await client.request("session/load", opened(session, work))
    schema.check_answer("session/load", {"jsonrpc": "2.0", "id": 1, "result": told})
    assert "as said before" in client.said(since=since)


@shows("ACP-LOAD-002")
async def test_what_was_said_before_a_restart_is_told_before_the_answer(opening: Opening, work: Path) -> None:
    async with opening() as client:
        await client.initialize()
        session = await spoken(client, work)
    async with opening() as client:
        await client.initialize()
        await client.request("session/load", opened(session, work), number="the-load")
        await client.heard()
        await client.leave()
        loaded = client.place("the-load")
        told = client.updates(session_id=session)
        assert {update["sessionUpdate"] for update in told} >= HISTORY
        assert "as said before" in client.said()
        assert client.updates(session_id=session, since=loaded) == []


@shows("ACP-LOAD-003")
async def test_loading_a_session_without_words_is_answered_with_an_object(client: Client, work: Path) -> None:
    session = await client.open_session(work)
    assert isinstance(await client.request("session/load", opened(session, work)), dict)


@shows("ACP-RESUME-001")
async def test_a_session_is_resumed_by_its_id(client: Client, work: Path) -> None:
    session = await spoken(client, work)
    told = await client.request("session/resume", {"sessionId": session, "cwd": str(work)})
    schema.check_answer("session/resume", {"jsonrpc": "2.0", "id": 1, "result": told})
    assert (await client.prompt(session, script({"text": "and on"})))["stopReason"] == "end_turn"


@shows("ACP-RESUME-002")
async def test_resuming_tells_nothing_again(client: Client, work: Path) -> None:
    session, since = await spoken(client, work), len(client.frames)
    await client.request("session/resume", {"sessionId": session, "cwd": str(work)})
    await client.heard()
    told = {update["sessionUpdate"] for update in client.updates(session_id=session, since=since)}
    assert told.isdisjoint(HISTORY | {"tool_call", "tool_call_update", "plan"})


@shows("ACP-LIST-001")
async def test_sessions_are_listed(client: Client, work: Path) -> None:
    session, since = await spoken(client, work), len(client.frames)
    assert session in await listed(client)
    schema.check_answer("session/list", client.received(since)[-1].json)
    assert await listed(client, cwd=str(work)) == [session]


@shows("ACP-LIST-002")
async def test_a_folder_without_sessions_has_an_empty_list(client: Client, work: Path) -> None:
    await spoken(client, work)
    assert await client.request("session/list", {"cwd": str(work.parent / "elsewhere")}) == {"sessions": []}


@shows("ACP-DELETE-001")
async def test_a_session_is_deleted(client: Client, work: Path) -> None:
    session = await spoken(client, work)
    assert session in await listed(client)
    assert await client.request("session/delete", {"sessionId": session}) == {}
    assert session not in await listed(client)


@shows("ACP-DELETE-002")
async def test_deleting_what_is_not_there_is_no_error(client: Client, work: Path) -> None:
    session = await client.open_session(work)
    for gone in (session, session, "sess_nobody", ""):
        assert await client.request("session/delete", {"sessionId": gone}) == {}


@shows("ACP-CLOSE-001")
async def test_a_session_that_does_nothing_is_closed(client: Client, work: Path) -> None:
    session = await spoken(client, work)
    assert await client.request("session/close", {"sessionId": session}) == {}
    assert session in await listed(client)


@shows("ACP-CLOSE-002")
async def test_closing_cancels_what_a_session_is_doing(client: Client, work: Path) -> None:
    session, since = await client.open_session(work), len(client.frames)
    under_way = await client.begin(session, script(*GOING_ON))
    await client.update("agent_message_chunk", since=since)
    assert await client.request("session/close", {"sessionId": session}) == {}
    assert await outcome(under_way) == {"stopReason": "cancelled"}


@shows("ACP-ADDDIRS-001")
async def test_a_session_works_in_further_folders(client: Client, work: Path) -> None:
    further = work.parent / "further"
    further.mkdir()
    (further / "note.txt").write_text("from further away")
    session, since = await client.open_session(work, additionalDirectories=[str(further)]), len(client.frames)
    reading = {"tool": "read_file", "args": {"path": str(further / "note.txt")}}
    await client.prompt(session, script(reading, {"text": "read"}))
    ended = [one for one in client.updates("tool_call_update", since=since) if one.get("status")]
    assert ended[-1]["status"] == "completed"
    assert "from further away" in str(ended)
