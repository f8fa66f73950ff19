"""Tests prompts that end early, and messages of a person while the agent works."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.interfaces.acp.conftest import (
    AWAY,
    TERMINAL,
    Desk,
    calling,
    calls,
    folder,
    introduced,
    is_quiet,
    said_in,
    set_option,
)
from tests.requirements import shows
from tests.support.acp.client import Client
from tests.support.acp.schema import GOING_ON, Json, Refused, outcome, prompt, script
from tests.support.postgres import Ready
from tests.support.waiting import until

# Prompts that end early: cancelled in every state of a turn, or left by the editor


# It writes that it has begun, and has a child of its own.
LASTING = "echo begun > begun; sleep 600 & sleep 600"


@pytest.fixture(scope="module")
async def desk(tmp_path_factory: pytest.TempPathFactory, ready: Ready) -> AsyncGenerator[Desk]:
    data = ready.in_folder(tmp_path_factory.mktemp("prompts") / "data")
    async with introduced(data) as opened:
        yield opened


@pytest.fixture
def willing(desk: Desk) -> None:
    desk.person.chooses("allow_once")


@dataclass(frozen=True, slots=True)
class Turn:
    """A running prompt: the requests that led to it, the last of them the tested one."""

    session: str
    numbers: list[str]
    waiting: list[asyncio.Future[Json]]


Begin = Callable[[Desk, Path], Awaitable[Turn]]


async def begun(desk: Desk, work: Path, *texts: str) -> Turn:
    session = await desk.client.open_session(work)
    numbers = [f"{session}-{number}" for number, _ in enumerate(texts)]
    asked = zip(texts, numbers, strict=True)
    waiting = [await desk.client.ask("session/prompt", prompt(session, text), number=number) for text, number in asked]
    return Turn(session, numbers, waiting)


async def streaming(desk: Desk, work: Path) -> Turn:
    since = len(desk.client.frames)
    turn = await begun(desk, work, script({"text": "word " * 1000, "chunk_delay": 0.05}))
    await desk.client.update("agent_message_chunk", since=since)
    return turn


async def writing_a_call(desk: Desk, work: Path) -> Turn:
    since, long = len(desk.client.frames), {"path": "long.txt", "content": "x" * 16_000}
    turn = await begun(desk, work, script({"tool": "write_file", "args": long, "chunk_delay": 0.05}))
    await desk.client.update("tool_call", since=since)
    return turn


async def running(desk: Desk, work: Path) -> Turn:
    turn = await begun(desk, work, calling("run_command", command=LASTING))
    await until((work / "begun").exists)
    return turn


async def asking(desk: Desk, work: Path) -> Turn:
    desk.person.chooses(AWAY)
    turn = await begun(desk, work, calling("write_file", path="never.txt", content="x"))
    await until(lambda: bool(desk.person.asked))
    return turn


async def queued(desk: Desk, work: Path) -> Turn:
    since = len(desk.client.frames)
    turn = await begun(desk, work, script(*GOING_ON), script({"text": "never"}))
    await desk.client.update("agent_message_chunk", since=since)
    return turn


STATES: list[Begin] = [streaming, writing_a_call, running, asking, queued]


async def cancel_session(client: Client, turn: Turn) -> None:
    await client.notify("session/cancel", {"sessionId": turn.session})


async def cancel_request(client: Client, turn: Turn) -> None:
    """The last first: a waiting prompt can be cancelled by itself too."""
    for number in reversed(turn.numbers):
        await client.notify("$/cancel_request", {"requestId": number})


@shows("ACP-LEAKS")
@pytest.mark.usefixtures("willing")
@pytest.mark.parametrize("cancel", [cancel_session, cancel_request])
@pytest.mark.parametrize("begin", STATES)
async def test_a_prompt_is_cancelled_whatever_it_is_at(
    desk: Desk, tmp_path: Path, begin: Begin, cancel: Callable[[Client, Turn], Awaitable[None]]
) -> None:
    client, work, since = desk.client, folder(tmp_path), len(desk.client.frames)
    turn = await begin(desk, work)
    await cancel(client, turn)
    for waiting in turn.waiting:
        assert await outcome(waiting) == {"stopReason": "cancelled"}
    await is_quiet(
        client, turn.session, max(client.place(number) for number in turn.numbers), folder(tmp_path, "other")
    )
    assert {call["status"] for call in calls(client, turn.session, since).values()} <= TERMINAL
    assert not (work / "never.txt").exists()
    await until(lambda: not client.agent.descendants())
    desk.person.chooses("allow_once")
    assert await client.prompt(turn.session, calling("write_file", path="after.txt", content="x")) == {
        "stopReason": "end_turn"
    }
    assert (work / "after.txt").exists()


@shows("ACP-LEAKS")
@pytest.mark.usefixtures("willing")
async def test_a_prompt_that_waits_is_cancelled_alone(desk: Desk, tmp_path: Path) -> None:
    client = desk.client
    slow = script({"text": "first", "tool": "list_files"}, {"delay": 1, "text": "goes on"})
    turn = await begun(desk, folder(tmp_path), slow, script({"text": "never"}), script({"text": "third"}))
    await client.notify("$/cancel_request", {"requestId": turn.numbers[1]})
    assert [(await outcome(one))["stopReason"] for one in turn.waiting] == ["end_turn", "cancelled", "end_turn"]
    assert list(said_in(client, turn.session).values()) == ["first", "goes on", "third"]


@shows("ACP-LEAKS")
@pytest.mark.usefixtures("willing")
@pytest.mark.parametrize("cancel", [cancel_session, cancel_request])
async def test_a_prompt_is_cancelled_before_it_has_done_anything(
    desk: Desk, tmp_path: Path, cancel: Callable[[Client, Turn], Awaitable[None]]
) -> None:
    work = folder(tmp_path)
    for _ in range(10):
        # Both may come in one piece.
        turn = await begun(desk, work, script({"delay": 1, "text": "never"}))
        await cancel(desk.client, turn)
        assert await outcome(turn.waiting[0]) == {"stopReason": "cancelled"}


@shows("ACP-LEAKS")
@pytest.mark.usefixtures("willing")
async def test_prompts_at_once_are_answered_one_after_the_other(desk: Desk, tmp_path: Path) -> None:
    client = desk.client
    turn = await begun(desk, folder(tmp_path), *(script({"text": f"answer {number}"}) for number in range(5)))
    for waiting in turn.waiting:
        assert await outcome(waiting) == {"stopReason": "end_turn"}
    assert list(said_in(client, turn.session).values()) == [f"answer {number}" for number in range(5)]
    places = [client.place(number) for number in turn.numbers]
    assert places == sorted(places)


@shows("ACP-LEAKS")
@pytest.mark.usefixtures("willing")
async def test_cancelling_what_does_nothing_is_no_harm(desk: Desk, tmp_path: Path) -> None:
    client = desk.client
    session = await client.open_session(folder(tmp_path))
    for unknown in (session, "nobody"):
        await client.notify("session/cancel", {"sessionId": unknown})
    await client.notify("$/cancel_request", {"requestId": "none"})
    assert await client.prompt(session, script({"text": "still here"})) == {"stopReason": "end_turn"}


@shows("ACP-LEAKS")
@pytest.mark.usefixtures("willing")
async def test_what_was_cut_off_is_in_the_past_of_the_session(desk: Desk, tmp_path: Path) -> None:
    client, work = desk.client, folder(tmp_path)
    turn = await running(desk, work)
    await cancel_session(client, turn)
    await outcome(turn.waiting[0])
    [live], since = calls(client, turn.session).values(), len(client.frames)
    await client.request("session/load", {"sessionId": turn.session, "cwd": str(work), "mcpServers": []})
    [again] = calls(client, turn.session, since).values()
    assert (again["toolCallId"], again["status"]) == (live["toolCallId"], "failed")
    assert live["status"] == "failed"


@shows("ACP-LEAKS")
@pytest.mark.usefixtures("willing")
async def test_an_editor_that_leaves_in_the_middle_leaves_nothing_behind(tmp_path: Path, ready: Ready) -> None:
    data = ready.in_folder(tmp_path / "data")
    async with introduced(data) as desk:
        for begin in (streaming, writing_a_call, running, queued, asking):
            await begin(desk, folder(tmp_path, begin.__name__))
        assert desk.client.agent.descendants()


# Messages while the agent works: it reads them before its next step if it works, otherwise as a new prompt


NOT_FOUND = -32002
# Works until a test releases it.
UNTIL_TOLD = {"command": "until [ -e go ]; do sleep 0.02; done"}
SLOWLY = ({"text": "I look", "tool": "run_command", "args": UNTIL_TOLD}, {"text": "never said"})


@pytest.fixture(scope="module")
async def steering_desk(tmp_path_factory: pytest.TempPathFactory, ready: Ready) -> AsyncGenerator[Desk]:
    async with introduced(ready.in_folder(tmp_path_factory.mktemp("steering") / "data")) as opened:
        yield opened


@pytest.fixture
def client(steering_desk: Desk) -> Client:
    return steering_desk.client


async def steer(client: Client, session: str, text: str) -> Json:
    asked = {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
    return await client.request("_session/steering", asked)


async def at_work(client: Client, work: Path) -> tuple[str, int, asyncio.Future[Json]]:
    """A session whose agent is at work, and the time since when."""
    session = await client.open_session(work)
    await set_option(client, session, "mode", "auto")
    since = len(client.frames)
    under_way = await client.begin(session, script(*SLOWLY))
    await client.update("agent_message_chunk", since=since)
    return session, since, under_way


@shows("ACP-STEER")
async def test_steering_is_offered(client: Client) -> None:
    assert client.received()[0].json["result"]["_meta"]["steering"] == {"supported": True}


@shows("ACP-STEER")
async def test_what_is_said_meanwhile_is_heard_before_the_next_step(client: Client, tmp_path: Path) -> None:
    work = folder(tmp_path)
    session, since, under_way = await at_work(client, work)
    # The model follows the last message.
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


@shows("ACP-STEER")
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


@shows("ACP-STEER")
async def test_an_agent_that_does_nothing_needs_a_prompt(client: Client, tmp_path: Path) -> None:
    session, since = await client.open_session(folder(tmp_path)), len(client.frames)
    told = await steer(client, session, "hello")
    assert (told["outcome"], told["reason"]) == ("promptRequired", "noRunningTurn")
    await client.prompt(session, script({"text": "now"}))
    assert (await steer(client, session, "hello"))["outcome"] == "promptRequired"
    assert said_in(client, session, "user_message_chunk", since) == {}


@shows("ACP-STEER")
async def test_a_session_that_is_not_open_is_not_steered(client: Client) -> None:
    with pytest.raises(Refused) as refused:
        await steer(client, "nobody", "hello")
    assert refused.value.code == NOT_FOUND


@shows("ACP-STEER")
async def test_a_prompt_meanwhile_waits_for_its_turn(client: Client, tmp_path: Path) -> None:
    session, since = await client.open_session(folder(tmp_path)), len(client.frames)
    first = await client.begin(session, script({"text": "one", "tool": "list_files"}, {"delay": 0.5, "text": "two"}))
    await client.update("agent_message_chunk", since=since)
    second = await client.begin(session, script({"text": "three"}))
    assert await outcome(second) == {"stopReason": "end_turn"}
    assert first.done()
    assert await outcome(first) == {"stopReason": "end_turn"}
    assert list(said_in(client, session, since=since).values()) == ["one", "two", "three"]
