"""Tests turns and the frames themselves, as acp-tck requires."""

import json
from base64 import b64encode
from pathlib import Path

import pytest

from tests.interfaces.acp.conftest import Opening
from tests.requirements import shows
from tests.support.acp.client import Client
from tests.support.acp.schema import GOING_ON, STOPS, Id, Json, Refused, outcome, script
from tests.support.waiting import until

# Turns: acp-tck's checks of prompts, of cancelling them, and of an editor's limits


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
    # And the session still works.
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
    """The agent accepts what it offers, and refuses the rest with a message."""
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


# The frames themselves: acp-tck's checks of the pipes, of JSON-RPC and of errors


SECRET, ANSWER = "xyzzy-4711", "plugh-0815"
METHOD_NOT_FOUND, INVALID_REQUEST, PARSE_ERROR, NOT_FOUND = -32601, -32600, -32700, -32002
# Each is wrong in a different way.
WRONG: tuple[tuple[str, Json], ...] = (
    ("session/nothing", {}),
    ("session/new", {}),
    ("session/new", {"cwd": "not/absolute", "mcpServers": []}),
    ("session/new", {"cwd": 7, "mcpServers": []}),
    ("session/new", {"cwd": "/no/such\nfolder", "mcpServers": []}),
    ("session/prompt", {"sessionId": "nobody\nknows", "prompt": [{"type": "text", "text": "hi"}]}),
    ("session/prompt", {"sessionId": "nobody", "prompt": "hi"}),
    ("session/prompt", {"sessionId": "nobody", "prompt": [{"type": "smell"}]}),
    ("session/load", {"sessionId": "nobody", "cwd": "/", "mcpServers": []}),
    ("session/set_mode", {"sessionId": "nobody", "modeId": "ask"}),
    ("authenticate", {"methodId": "by\nmagic"}),
    ("initialize", {"protocolVersion": 1}),
)


async def refusal(client: Client, method: str, params: Json) -> Refused:
    with pytest.raises(Refused) as refused:
        await client.request(method, params)
    return refused.value


async def still_works(client: Client) -> bool:
    return isinstance((await client.request("session/list", {}))["sessions"], list)


@shows("ACP-TRANSPORT-001")
async def test_words_over_many_lines_are_one_line_each_on_stdout(client: Client, work: Path) -> None:
    said = "one\ntwo\r\nthree\u2028four\x0bfive\n\n"
    session, since = await client.open_session(work), len(client.frames)
    await client.prompt(session, script({"reasoning": said, "text": said}))
    assert client.said(since=since) == said
    assert client.faults == []


@shows("ACP-TRANSPORT-002")
async def test_every_script_comes_as_utf_8(client: Client, work: Path) -> None:
    said = "Grüße, 世界, שלום, 👩‍💻 \U0010ffff"
    session, since = await client.open_session(work), len(client.frames)
    await client.prompt(session, script({"text": said}))
    assert client.said(since=since) == said


@shows("ACP-JSONRPC-001")
@pytest.mark.parametrize("number", [0, -1, 4711, 2**53 - 1, "", "4711", 'a b\n"c"', "世界"])
async def test_an_answer_has_the_id_of_its_request(client: Client, number: Id) -> None:
    since = len(client.frames)
    await client.request("session/list", {}, number=number)
    [answer] = client.received(since)
    assert answer.json["id"] == number
    assert type(answer.json["id"]) is type(number)


@shows("ACP-JSONRPC-001")
async def test_a_number_and_the_same_as_a_word_are_two_ids(client: Client) -> None:
    listed = await client.ask("session/list", {}, number=815)
    unknown = await client.ask("no/such", {}, number="815")
    assert "sessions" in await outcome(listed)
    with pytest.raises(Refused):
        await outcome(unknown)


@shows("ACP-JSONRPC-002")
async def test_an_answer_is_either_a_result_or_an_error(client: Client) -> None:
    since = len(client.frames)
    await client.request("session/list", {})
    await refusal(client, "no/such", {})
    good, bad = (frame.json for frame in client.received(since))
    assert set(good) == {"jsonrpc", "id", "result"}
    assert set(bad) == {"jsonrpc", "id", "error"}
    assert type(bad["error"]["code"]) is int
    assert type(bad["error"]["message"]) is str


@shows("ACP-JSONRPC-003")
async def test_no_notification_is_answered(client: Client) -> None:
    since = len(client.frames)
    for method in ("session/cancel", "$/cancel_request", "no/such", "_no/such", "session/new", "session/prompt"):
        await client.notify(method, {"sessionId": "nobody", "requestId": "nothing"})
    await client.write(b'{"jsonrpc": "2.0", "method": "session/cancel"}')
    await client.write(b'{"jsonrpc": "2.0", "method": "session/cancel", "params": [1]}')
    await client.request("session/list", {})
    assert len(client.received(since)) == 1


@shows("ACP-JSONRPC-004")
@pytest.mark.parametrize("method", ["no/such", "session/nothing", "fs/read_text_file", "Session/New", ""])
async def test_an_unknown_method_is_not_found(client: Client, method: str) -> None:
    assert (await refusal(client, method, {})).code == METHOD_NOT_FOUND


@shows("ACP-JSONRPC-005")
@pytest.mark.parametrize(("method", "params"), WRONG)
async def test_a_wrong_request_leaves_the_connection_as_it_was(client: Client, method: str, params: Json) -> None:
    await refusal(client, method, params)
    assert await still_works(client)


@shows("ACP-ERROR-001")
@pytest.mark.parametrize(("method", "params"), WRONG)
async def test_an_error_is_one_line_without_anything_from_inside(client: Client, method: str, params: Json) -> None:
    refused = await refusal(client, method, params)
    assert refused.message.strip()
    assert refused.message.splitlines() == [refused.message]
    told = f"{refused.message} {json.dumps(refused.data)}"
    assert not any(word in told for word in ("Traceback", "pydantic", "sqlalchemy", ".py", "<class"))


@shows("ACP-EXT-001")
async def test_a_request_of_somebodys_own_invention_is_answered(client: Client) -> None:
    assert (await refusal(client, "_example.com/play", {"tune": 1})).code == METHOD_NOT_FOUND


@shows("ACP-META-001")
async def test_what_is_under_meta_is_taken_and_overrides_nothing(client: Client, work: Path) -> None:
    session, other = await client.open_session(work), await client.open_session(work)
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    meta: Json = {"traceparent": trace, "session_id": other, "sessionId": other, "prompt": [], "self": 1}
    since = len(client.frames)
    told = await client.prompt(session, script({"text": "heard"}), _meta=meta)
    assert told["stopReason"] in STOPS
    assert client.said(since=since) == "heard"
    assert client.updates(session_id=other, since=since) == []


@shows("ACP-INFO-PARSE-001")
@pytest.mark.parametrize("line", [b"{not json", b"\xff\xfe{}", b'{"jsonrpc": "2.0", "id": NaN}', b"[" * 100_000])
async def test_what_is_not_json_is_answered_as_that(client: Client, line: bytes) -> None:
    since = len(client.frames)
    await client.write(line)
    told = await client.until(lambda frame: "error" in frame.json, since=since)
    assert (told.json["id"], told.json["error"]["code"]) == (None, PARSE_ERROR)
    assert await still_works(client)


@shows("ACP-INFO-INVALIDREQ-001")
@pytest.mark.parametrize("line", [b'{"foo": "bar"}', b"[]", b"42", b"null", b'"words"', b'{"jsonrpc": "1.0"}'])
async def test_what_is_no_message_is_answered_as_that(client: Client, line: bytes) -> None:
    since = len(client.frames)
    await client.write(line)
    told = await client.until(lambda frame: "error" in frame.json, since=since)
    assert (told.json["id"], told.json["error"]["code"]) == (None, INVALID_REQUEST)
    assert await still_works(client)


@shows("ACP-INFO-UNKNOWNSESSION-001")
@pytest.mark.parametrize("method", ["session/prompt", "session/load", "session/resume", "session/set_mode"])
async def test_a_session_that_is_not_there_is_not_found(client: Client, work: Path, method: str) -> None:
    words = [{"type": "text", "text": "hi"}]
    extra: dict[str, Json] = {
        "session/prompt": {"prompt": words},
        "session/load": {"cwd": str(work), "mcpServers": []},
        "session/resume": {"cwd": str(work)},
        "session/set_mode": {"modeId": "ask"},
    }
    refused = await refusal(client, method, {"sessionId": "sess_nobody", **extra[method]})
    assert refused.code == NOT_FOUND


@shows("ACP-STDERR-001")
async def test_the_log_holds_nothing_of_what_was_said(opening: Opening, work: Path) -> None:
    async with opening() as client:
        await client.initialize()
        session = await client.open_session(work)
        await client.prompt(session, f"my password is {SECRET} {script({'text': f'so it is {ANSWER}'})}")
        await refusal(client, "session/prompt", {"sessionId": SECRET, "prompt": [{"type": "text", "text": SECRET}]})
        assert client.said() == f"so it is {ANSWER}"
        await client.leave()
        assert SECRET not in client.agent.told()
        assert ANSWER not in client.agent.told()


@shows("ACP-SHUTDOWN-001")
async def test_the_agent_leaves_from_the_middle_of_a_turn(opening: Opening, work: Path) -> None:
    async with opening() as client:
        await client.initialize()
        session = await client.open_session(work)
        await client.begin(session, script(*GOING_ON))
        await client.update("agent_message_chunk")
        assert await client.leave() == 0


@shows("ACP-SHUTDOWN-001")
async def test_the_agent_leaves_though_nobody_has_introduced_himself(opening: Opening) -> None:
    async with opening() as client:
        assert await client.leave() == 0
