"""Turns: what acp-tck asks of prompts, of cancelling them, and of an editor's limits."""

from base64 import b64encode
from pathlib import Path

import pytest

from tests.requirements import shows
from tests.support.acp.client import Client
from tests.support.acp.schema import Json
from tests.support.acp.words import GOING_ON, STOPS, Refused, outcome, script
from tests.support.waiting import until
from tests.surfaces.acp.conftest import Opening

INVALID_PARAMS = -32602
# One pixel, and one silent moment.
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SOUND = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQIAAACAgA=="


def text(words: str) -> Json:
    return {"type": "text", "text": words}


async def taken(client: Client, work: Path, block: Json) -> str:
    """How a prompt with a block besides its text ends."""
    session = await client.open_session(work)
    told = await client.prompt(session, [text(script({"text": "seen"})), block])
    return told["stopReason"]


@shows("ACP-PROMPT-001")
@pytest.mark.parametrize("words", ["hello", script({"text": "hello"}), script({"reasoning": "hm"})])
async def test_a_prompt_of_text_ends_with_a_reason(client: Client, work: Path, words: str) -> None:
    session = await client.open_session(work)
    assert await client.prompt(session, words) == {"stopReason": "end_turn"}


@shows("ACP-PROMPT-002")
async def test_a_turn_is_told_of_its_own_session(client: Client, work: Path) -> None:
    first, second = await client.open_session(work), await client.open_session(work)
    await client.heard()
    since = len(client.frames)
    one = await client.begin(first, script({"text": "first ", "tool": "list_files"}, {"text": "first "}))
    two = await client.begin(second, script({"text": "second ", "tool": "list_files"}, {"text": "second "}))
    assert (await outcome(one))["stopReason"] == (await outcome(two))["stopReason"] == "end_turn"
    for session, word in ((first, "first"), (second, "second")):
        chunks = client.updates("agent_message_chunk", session_id=session, since=since)
        assert "".join(chunk["content"]["text"] for chunk in chunks).split() == [word, word]
    told = {frame.json["params"]["sessionId"] for frame in client.received(since) if frame.method == "session/update"}
    assert told == {first, second}


@shows("ACP-PROMPT-003")
async def test_a_link_is_taken_beside_text(client: Client, work: Path) -> None:
    link = {"type": "resource_link", "uri": (work / "notes.txt").as_uri(), "name": "notes.txt"}
    assert await taken(client, work, link) == "end_turn"


@shows("ACP-CANCEL-001")
async def test_a_cancelled_turn_ends_as_cancelled(client: Client, work: Path) -> None:
    session, since = await client.open_session(work), len(client.frames)
    under_way = await client.begin(session, script(*GOING_ON))
    await client.update("agent_message_chunk", since=since)
    await client.notify("session/cancel", {"sessionId": session})
    assert await outcome(under_way) == {"stopReason": "cancelled"}
    # And the session is as good as before.
    assert await client.prompt(session, script({"text": "again"})) == {"stopReason": "end_turn"}


@shows("ACP-CANCEL-001")
async def test_cancelling_the_request_cancels_the_turn(client: Client, work: Path) -> None:
    session, since = await client.open_session(work), len(client.frames)
    asked = {"sessionId": session, "prompt": [text(script(*GOING_ON))]}
    under_way = await client.ask("session/prompt", asked, number="the-prompt")
    await client.update("agent_message_chunk", since=since)
    await client.notify("$/cancel_request", {"requestId": "the-prompt"})
    assert await outcome(under_way) == {"stopReason": "cancelled"}


@shows("ACP-CANCEL-001")
async def test_a_cancelled_command_ends_with_its_processes(client: Client, work: Path) -> None:
    session, since = await client.open_session(work), len(client.frames)
    running = {"tool": "run_command", "args": {"command": "echo started > started; sleep 600 & sleep 600"}}
    under_way = await client.begin(session, script(running, {"text": "never"}))
    await until((work / "started").exists)
    assert client.agent.descendants()
    await client.notify("session/cancel", {"sessionId": session})
    assert await outcome(under_way) == {"stopReason": "cancelled"}
    await until(lambda: not client.agent.descendants())
    assert client.updates("tool_call_update", since=since)[-1]["status"] == "failed"


@shows("ACP-CANCEL-002")
async def test_nothing_is_told_after_a_turn_was_cancelled(opening: Opening, work: Path) -> None:
    async with opening() as client:
        await client.initialize()
        session = await client.open_session(work)
        asked = {"sessionId": session, "prompt": [text(script({"text": "word " * 5000, "chunk_delay": 0.001}))]}
        under_way = await client.ask("session/prompt", asked, number="the-prompt")
        await client.update("agent_message_chunk")
        await client.notify("session/cancel", {"sessionId": session})
        assert await outcome(under_way) == {"stopReason": "cancelled"}
        await client.heard()
        await client.leave()
        assert client.updates(session_id=session, since=client.place("the-prompt")) == []


async def sensed(client: Client, work: Path, sense: str, block: Json) -> None:
    """What is offered is taken, and what is not is refused in words."""
    offered = client.received()[0].json["result"]["agentCapabilities"]["promptCapabilities"][sense]
    if offered:
        assert await taken(client, work, block) in STOPS
    else:
        with pytest.raises(Refused, match=f"takes no {sense}") as refused:
            await taken(client, work, block)
        assert refused.value.code == INVALID_PARAMS


@shows("ACP-PROMPTCAP-001")
async def test_images_are_taken_where_that_is_offered(client: Client, work: Path) -> None:
    await sensed(client, work, "image", {"type": "image", "data": PICTURE, "mimeType": "image/png"})


@shows("ACP-PROMPTCAP-002")
async def test_audio_is_taken_where_that_is_offered(client: Client, work: Path) -> None:
    await sensed(client, work, "audio", {"type": "audio", "data": SOUND, "mimeType": "audio/wav"})


@shows("ACP-PROMPTCAP-003")
async def test_files_that_come_whole_are_taken(client: Client, work: Path) -> None:
    uri = (work / "notes.txt").as_uri()
    whole: Json = {"type": "resource", "resource": {"uri": uri, "text": "one\ntwo", "mimeType": "text/plain"}}
    blob: Json = {"type": "resource", "resource": {"uri": uri, "blob": b64encode(b"\0\1").decode()}}
    assert client.received()[0].json["result"]["agentCapabilities"]["promptCapabilities"]["embeddedContext"] is True
    assert await taken(client, work, whole) == "end_turn"
    assert await taken(client, work, blob) == "end_turn"


@shows("ACP-CLIENTCAP-001")
async def test_files_are_worked_on_without_an_editor_that_does_not_offer_it(client: Client, work: Path) -> None:
    (work / "old.txt").write_text("as it was")
    session, since = await client.open_session(work), len(client.frames)
    reading = {"tool": "read_file", "args": {"path": "old.txt"}}
    writing = {"tool": "write_file", "args": {"path": "new.txt", "content": "as it is"}}
    await client.prompt(session, script(reading, writing, {"text": "done"}))
    assert (work / "new.txt").read_text() == "as it is"
    assert "as it was" in str(client.updates("tool_call_update", since=since))
    assert not [frame for frame in client.received() if frame.method.startswith("fs/")]


@shows("ACP-CLIENTCAP-002")
async def test_commands_run_without_an_editor_that_offers_no_terminals(client: Client, work: Path) -> None:
    session, since = await client.open_session(work), len(client.frames)
    await client.prompt(
        session, script({"tool": "run_command", "args": {"command": "echo $((6 * 7))"}}, {"text": "ok"})
    )
    assert "42" in str(client.updates("tool_call_update", since=since))
    assert not [frame for frame in client.received() if frame.method.startswith("terminal/")]


@shows("ACP-CLIENTCAP-003")
async def test_no_form_is_shown_by_an_editor_that_shows_none(client: Client, work: Path) -> None:
    session = await client.open_session(work)
    asking = {"tool": "ask_person", "args": {"question": "Which one?"}}
    assert await client.prompt(session, script(asking, {"text": "then not"})) == {"stopReason": "end_turn"}
    assert not [frame for frame in client.received() if frame.method.startswith("elicitation/")]
