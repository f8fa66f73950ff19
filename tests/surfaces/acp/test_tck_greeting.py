"""Introductions: what acp-tck asks of versions, of what is offered, and of authentication."""

from pathlib import Path

import pytest

from frontdesk import __version__
from tests.requirements import shows
from tests.support.acp import schema
from tests.support.acp.client import Client
from tests.support.acp.schema import Json
from tests.support.acp.words import Refused, script
from tests.surfaces.acp.conftest import Opening

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
    """What the agent said first."""
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
    # Every frame was held against the schema, unknown keys too, as it came.
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
