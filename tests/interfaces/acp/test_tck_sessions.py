"""Tests handshakes, sessions, modes and options, as acp-tck requires."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from frontdesk import __version__
from tests.interfaces.acp.conftest import Opening
from tests.requirements import shows
from tests.support.acp import schema
from tests.support.acp.client import Client
from tests.support.acp.schema import GOING_ON, Json, Refused, outcome, script

# Handshakes: acp-tck's checks of versions, capabilities and authentication


AUTH_REQUIRED = -32000
FUTURE = 65535
EVERYTHING: Json = {
    "fs": {"readTextFile": True, "writeTextFile": True},
    "terminal": True,
    "auth": {"terminal": True},
    "elicitation": {"form": {}, "url": {}},
    "session": {"configOptions": {"boolean": {}}, "notices": {}, "compaction": {}},
}


def greeting_of(client: Client) -> Json:
    """The agent's first message."""
    return client.received()[0].json["result"]


@shows("ACP-INIT-001")
async def test_the_agent_introduces_itself_as_the_schema_asks(client: Client) -> None:
    answer = client.received()[0].json
    schema.check_answer("initialize", answer)
    assert type(answer["result"]["protocolVersion"]) is int


@shows("ACP-INIT-002")
async def test_version_1_is_answered_with_version_1(client: Client) -> None:
    assert greeting_of(client)["protocolVersion"] == 1


@shows("ACP-INIT-003")
async def test_a_version_of_the_future_is_not_echoed(opening: Opening) -> None:
    info = {"name": "tomorrow", "version": "9"}
    async with opening() as client:
        told = await client.initialize(FUTURE, clientInfo=info, info=info, capabilities={})
        assert told["protocolVersion"] == 1


@shows("ACP-INIT-004")
async def test_the_agent_says_who_it_is(client: Client) -> None:
    told = greeting_of(client)["agentInfo"]
    assert (told["name"], told["version"]) == ("frontdesk", __version__)


@shows("ACP-SCHEMA-001")
@shows("ACP-SCHEMA-002")
async def test_a_whole_exchange_is_as_the_schema_has_it(client: Client, work: Path) -> None:
    (work / "notes.txt").write_text("one\ntwo\n")
    session = await client.open_session(work)
    steps: list[Json] = [
        {"reasoning": "let me see", "tool": "read_file", "args": {"path": "notes.txt"}},
        {"tool": "write_file", "args": {"path": "new.txt", "content": "three\n"}},
        {"tool": "no_such_tool", "args": {}},
        {"text": "done"},
    ]
    await client.prompt(session, script(*steps))
    told = [update["sessionUpdate"] for update in client.updates(session_id=session)]
    assert {"agent_thought_chunk", "tool_call", "tool_call_update", "agent_message_chunk"} <= set(told)
    # Every frame was checked against the schema when it came, unknown keys included.
    assert client.faults == []


@shows("ACP-AUTH-001")
async def test_ways_to_authenticate_have_ids_of_their_own(client: Client) -> None:
    ids = [method["id"] for method in greeting_of(client)["authMethods"]]
    assert ids
    assert len(set(ids)) == len(ids)


@shows("ACP-AUTH-002")
async def test_no_way_to_authenticate_needs_a_terminal_that_is_not_there(client: Client) -> None:
    assert {method.get("type", "agent") for method in greeting_of(client)["authMethods"]} == {"agent"}


@shows("ACP-AUTH-003")
async def test_whoever_has_authenticated_can_open_a_session(client: Client, work: Path) -> None:
    for method in greeting_of(client)["authMethods"]:
        assert await client.request("authenticate", {"methodId": method["id"]}) == {}
        assert await client.open_session(work)


@shows("ACP-AUTH-004")
async def test_whoever_logs_out_has_to_authenticate_again(client: Client, work: Path) -> None:
    [method] = greeting_of(client)["authMethods"]
    assert greeting_of(client)["agentCapabilities"]["auth"]["logout"] == {}
    assert await client.request("logout", {}) == {}
    with pytest.raises(Refused) as refused:
        await client.open_session(work)
    assert refused.value.code == AUTH_REQUIRED
    await client.request("authenticate", {"methodId": method["id"]})
    assert await client.open_session(work)


@shows("ACP-AUTH-005")
async def test_nobody_has_to_authenticate_here(opening: Opening, work: Path) -> None:
    async with opening(capabilities=EVERYTHING) as client:
        await client.initialize()
        assert await client.open_session(work)


# Sessions: acp-tck's checks of opening, loading, resuming, listing, closing and deleting them


HISTORY = frozenset({"user_message_chunk", "agent_message_chunk", "agent_thought_chunk"})


def opened(session: str, work: Path) -> Json:
    return {"sessionId": session, "cwd": str(work), "mcpServers": []}


async def spoken(client: Client, work: Path) -> str:
    """A session with one exchange of messages."""
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


# Settings of a session: acp-tck's checks of modes and options


INVALID_PARAMS = -32602


def values(option: Json) -> Sequence[str]:
    """The values of an option, in groups or not."""
    flat = [one for entry in option["options"] for one in entry.get("options", [entry])]
    return [one["value"] for one in flat]


@shows("ACP-MODES-001")
async def test_a_session_is_in_one_of_its_modes(client: Client, work: Path) -> None:
    modes = (await client.new_session(work))["modes"]
    assert modes["currentModeId"] in [mode["id"] for mode in modes["availableModes"]]


@shows("ACP-MODES-002")
async def test_every_mode_can_be_entered(client: Client, work: Path) -> None:
    told, since = await client.new_session(work), len(client.frames)
    session, modes = told["sessionId"], [mode["id"] for mode in told["modes"]["availableModes"]]
    wanted = [mode for mode in modes if mode != told["modes"]["currentModeId"]]
    for mode in wanted:
        assert await client.request("session/set_mode", {"sessionId": session, "modeId": mode}) == {}
    seen = client.updates("current_mode_update", session_id=session, since=since)
    assert [update["currentModeId"] for update in seen] == wanted
    assert wanted


@shows("ACP-MODES-002")
async def test_a_mode_that_is_not_there_is_refused(client: Client, work: Path) -> None:
    session = await client.open_session(work)
    with pytest.raises(Refused) as refused:
        await client.request("session/set_mode", {"sessionId": session, "modeId": "dream"})
    assert refused.value.code == INVALID_PARAMS


@shows("ACP-CONFIG-001")
async def test_every_option_stands_at_one_of_its_values(client: Client, work: Path) -> None:
    options = (await client.new_session(work))["configOptions"]
    assert {"mode", "model"} <= {option["id"] for option in options}
    for option in options:
        assert option["currentValue"] in values(option)


@shows("ACP-CONFIG-002")
async def test_setting_an_option_tells_all_of_them(client: Client, work: Path) -> None:
    told = await client.new_session(work)
    session, before = told["sessionId"], told["configOptions"]
    for option in before:
        for value in values(option):
            given = {"sessionId": session, "configId": option["id"], "value": value}
            after = (await client.request("session/set_config_option", given))["configOptions"]
            assert [one["id"] for one in after] == [one["id"] for one in before]
            assert {one["id"]: one["currentValue"] for one in after}[option["id"]] == value


@shows("ACP-CONFIG-002")
async def test_setting_the_mode_as_an_option_enters_it(client: Client, work: Path) -> None:
    session, since = await client.open_session(work), len(client.frames)
    given = {"sessionId": session, "configId": "mode", "value": "plan"}
    await client.request("session/set_config_option", given)
    [seen] = client.updates("current_mode_update", session_id=session, since=since)
    assert seen["currentModeId"] == "plan"


@shows("ACP-CONFIG-003")
async def test_no_option_is_a_switch_for_an_editor_that_shows_none(client: Client, work: Path) -> None:
    options = (await client.new_session(work))["configOptions"]
    assert {option["type"] for option in options} == {"select"}
