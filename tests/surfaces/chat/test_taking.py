"""When a message is taken: its turn began and the words are kept, or it waits, or it is refused."""

import anyio
import httpx2
import pytest

from frontdesk.app import App
from tests.requirements import shows
from tests.support.chat import SECONDS, Person, kinds, script

pytestmark = pytest.mark.anyio
LONG = script({"text": "word " * 400, "chunk_delay": 0.01})
BEGIN_SECONDS = "frontdesk.agents.chat.replies.BEGIN_SECONDS"


async def said(person: Person, session: str) -> list[str]:
    messages = (await person.get("/sessions", sessionId=session)).json()["messages"]
    return [message["content"] for message in messages if message["type"] == "user"]


async def test_what_is_answered_is_kept_and_what_waits_is_said_to_wait(
    local: Person, agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await local.open(agent)
    first = (await local.post("/messages", sessionId=session, message=LONG)).json()
    assert (first["success"], first["queued"]) == (True, False)
    assert await said(local, session) == [LONG]
    monkeypatch.setattr(BEGIN_SECONDS, 0.01)
    second = (await local.post("/messages", sessionId=session, message="hello")).json()
    assert (second["success"], second["queued"]) == (True, True)
    assert await said(local, session) == [LONG]
    await local.post("/cancel", sessionId=session)


@shows("CHAT-CANCEL")
async def test_a_message_that_is_cancelled_before_its_turn_is_not_said_to_be_taken(
    app: App, local: Person, agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BEGIN_SECONDS, SECONDS)
    session = await local.open(agent)
    await local.say(session, LONG)
    answers: list[httpx2.Response] = []

    async def say() -> None:
        answers.append(await local.post("/messages", sessionId=session, message="hello"))

    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(say)
            while len(app.chat._replies._jobs) < 2:
                await anyio.lowlevel.checkpoint()
            await local.post("/cancel", sessionId=session)
    assert [(answer.status_code, "cancelled" in answer.json()["error"]) for answer in answers] == [(409, True)]
    assert await said(local, session) == [LONG]


@shows("CHAT-ERRORS")
async def test_what_the_host_refuses_is_the_answer_and_no_later_stream_tells_it(
    app: App, local: Person, agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BEGIN_SECONDS, SECONDS)
    monkeypatch.setattr("frontdesk.agents.turns.service.WAIT_SECONDS", 0.1)
    monkeypatch.setattr("frontdesk.agents.chat.feed.IDLE_SECONDS", 0.1)
    session = await local.open(agent)
    await local.say(session, LONG)
    with anyio.fail_after(SECONDS):
        busy = await local.post("/messages", sessionId=session, message="hello")
        assert (busy.status_code, set(busy.json())) == (409, {"error"})
        await local.post("/cancel", sessionId=session)
        events = await local.listen(session)
    assert kinds(events) == ["connected", "start", "token", "error"]
    assert await said(local, session) == [LONG]
