"""What a person says while the agent works: heard before its next step where it works, and otherwise a prompt to be."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.requirements import shows
from tests.support.acp.client import Client
from tests.support.acp.schema import Json
from tests.support.acp.words import Refused, outcome, script
from tests.support.ready import Ready
from tests.surfaces.acp.showing import Desk, folder, introduced, said_in, set_option

pytestmark = shows("ACP-STEER")
NOT_FOUND = -32002
# At work until somebody lets it go on.
UNTIL_TOLD = {"command": "until [ -e go ]; do sleep 0.02; done"}
SLOWLY = ({"text": "I look", "tool": "run_command", "args": UNTIL_TOLD}, {"text": "never said"})


@pytest.fixture(scope="module")
async def desk(tmp_path_factory: pytest.TempPathFactory, ready: Ready) -> AsyncGenerator[Desk]:
    async with introduced(ready.in_folder(tmp_path_factory.mktemp("steering") / "data")) as opened:
        yield opened


@pytest.fixture
def client(desk: Desk) -> Client:
    return desk.client


async def steer(client: Client, session: str, text: str) -> Json:
    asked = {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
    return await client.request("_session/steering", asked)


async def at_work(client: Client, work: Path) -> tuple[str, int, asyncio.Future[Json]]:
    """A session whose agent is in the middle of something, and since when."""
    session = await client.open_session(work)
    await set_option(client, session, "mode", "auto")
    since = len(client.frames)
    under_way = await client.begin(session, script(*SLOWLY))
    await client.update("agent_message_chunk", since=since)
    return session, since, under_way


async def test_steering_is_offered(client: Client) -> None:
    assert client.received()[0].json["result"]["_meta"]["steering"] == {"supported": True}


async def test_what_is_said_meanwhile_is_heard_before_the_next_step(client: Client, tmp_path: Path) -> None:
    work = folder(tmp_path)
    session, since, under_way = await at_work(client, work)
    # The model acts out whatever was said last.
    said = f"Rather this: {script({'text': 'As you say'})}"
    assert await steer(client, session, said) == {"outcome": "injected"}
    work.joinpath("go").touch()
    assert await outcome(under_way) == {"stopReason": "end_turn"}
    assert list(said_in(client, session, since=since).values()) == ["I look", "As you say"]
    [heard] = said_in(client, session, "user_message_chunk", since).items()
    assert heard[1] == said
    since = len(client.frames)
    await client.request("session/load", {"sessionId": session, "cwd": str(work), "mcpServers": []})
    again = said_in(client, session, "user_message_chunk", since)
    assert list(again.values()) == [script(*SLOWLY), said]
    assert heard[0] in again
    assert list(said_in(client, session, since=since).values()) == ["I look", "As you say"]


async def test_several_words_are_heard_in_their_order(client: Client, tmp_path: Path) -> None:
    work = folder(tmp_path)
    session, since, under_way = await at_work(client, work)
    for text in ("First this", "then that", script({"text": "All three"})):
        assert await steer(client, session, text) == {"outcome": "injected"}
    work.joinpath("go").touch()
    await outcome(under_way)
    told = "".join(said_in(client, session, "user_message_chunk", since).values())
    assert told.index("First this") < told.index("then that") < told.index("All three")
    assert list(said_in(client, session, since=since).values())[-1] == "All three"


async def test_an_agent_that_does_nothing_needs_a_prompt(client: Client, tmp_path: Path) -> None:
    session, since = await client.open_session(folder(tmp_path)), len(client.frames)
    told = await steer(client, session, "hello")
    assert (told["outcome"], told["reason"]) == ("promptRequired", "noRunningTurn")
    await client.prompt(session, script({"text": "now"}))
    assert (await steer(client, session, "hello"))["outcome"] == "promptRequired"
    assert said_in(client, session, "user_message_chunk", since) == {}


async def test_a_session_that_is_not_open_is_not_steered(client: Client) -> None:
    with pytest.raises(Refused) as refused:
        await steer(client, "nobody", "hello")
    assert refused.value.code == NOT_FOUND


async def test_a_prompt_meanwhile_waits_for_its_turn(client: Client, tmp_path: Path) -> None:
    session, since = await client.open_session(folder(tmp_path)), len(client.frames)
    first = await client.begin(session, script({"text": "one", "tool": "list_files"}, {"delay": 0.5, "text": "two"}))
    await client.update("agent_message_chunk", since=since)
    second = await client.begin(session, script({"text": "three"}))
    assert await outcome(second) == {"stopReason": "end_turn"}
    assert first.done()
    assert await outcome(first) == {"stopReason": "end_turn"}
    assert list(said_in(client, session, since=since).values()) == ["one", "two", "three"]
