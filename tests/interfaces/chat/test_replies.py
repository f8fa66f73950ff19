"""Tests when a message is accepted, and replies as streams send them."""

from pathlib import Path

import anyio
import httpx2
import pytest

from frontdesk.agents.host import NewAgent
from frontdesk.app import App, open_app, running
from frontdesk.interfaces.http.application import build_application
from frontdesk.journal.model import EntryKind, Outcome
from frontdesk.journal.store import JournalQuery
from frontdesk.llm.events import StopReason
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.chat import (
    SECONDS,
    Event,
    Person,
    all_made,
    first_token,
    kinds,
    script,
    somebody,
    stop_reasons,
    text_of,
)

# When a message is accepted: its turn has begun and the text is stored, or it waits, or it is refused


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


# Replies as streams: in order, to all listeners, to their end or until they are cancelled


@shows("CHAT-STREAM")
async def test_whoever_comes_after_the_reply_hears_all_of_it_in_order(app: App, local: Person, agent: str) -> None:
    session = await local.open(agent)
    message = await local.say(session, script({"text": "one two"}))
    await all_made(app)
    events = await local.listen(session)
    assert kinds(events) == ["connected", "start", "token", "end"]
    assert events[0] == {"id": None, "type": "connected", "sessionId": session}
    assert {(event["sessionId"], event["messageId"]) for event in events[1:]} == {(session, message)}
    ids = [f"{message}:{number}" for number in range(1, len(events))]
    assert [event["id"] for event in events[1:]] == [*ids[:-1], f"{ids[-1]}:end"]
    assert (events[1]["content"], text_of(events), events[-1]["content"]) == ("", "one two", "one two")
    assert events[-1]["stopReason"] == StopReason.END_TURN


@shows("CHAT-STREAM")
async def test_tools_are_told_before_and_after_they_run(local: Person, agent: str) -> None:
    session = await local.open(agent)
    steps = {"steps": [{"text": "look"}]}
    asked = script({"text": "Wait. ", "tool": "update_plan", "args": steps}, {"tool": "nothing"}, {"text": "Done."})
    await local.say(session, asked)
    events = await local.listen(session)
    assert kinds(events) == [
        *("connected", "start", "token", "tool_call", "tool_result", "plan", "tool_call", "tool_result"),
        *("token", "end"),
    ]
    planned, shown, missing, unknown = [event["toolCall"] for event in events if "toolCall" in event]
    assert planned == {"id": planned["id"], "name": "update_plan", "parameters": steps, "status": "running"}
    assert shown == {**planned, "status": "completed", "result": shown["result"]}
    assert (missing["status"], unknown["status"], unknown["id"]) == ("running", "error", missing["id"])
    assert "'nothing' not found" in unknown["error"]
    assert events[-1]["content"] == "Wait. Done."


@shows("CHAT-STREAM")
async def test_streams_that_wait_for_a_message_each_hear_everything(local: Person, agent: str) -> None:
    session = await local.open(agent)
    heard: list[list[Event]] = []

    async def listen() -> None:
        heard.append(await local.listen(session))

    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(listen)
            await local.say(session, script({"text": "hello there"}))
    assert [text_of(events) for events in heard] == ["hello there"] * 3


@shows("CHAT-STREAM")
async def test_what_was_read_to_its_end_is_not_told_again(app: App, local: Person, agent: str) -> None:
    session = await local.open(agent)
    first = await local.say(session, script({"text": "one two three"}))
    events = await local.listen(session)
    heard: list[list[Event]] = []

    async def listen(after: str | None) -> None:
        heard.append(await local.listen(session, after))

    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listen, None)
            tasks.start_soon(listen, events[-1]["id"])
            await anyio.wait_all_tasks_blocked()
            assert heard == []
            await local.say(session, script({"text": "four"}))
    assert [text_of(told) for told in heard] == ["four", "four"]
    assert text_of(await local.listen(session, f"{first}:3")) == "threefour"
    assert text_of(await local.listen(session, "0")) == "one two threefour"


@shows("CHAT-STREAM")
async def test_a_reader_of_a_reply_that_is_lost_is_told_at_once_and_once(
    local: Person, agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await local.open(agent)
    with anyio.fail_after(SECONDS):
        connected, lost = await local.listen(session, f"{'a' * 24}:7")
    assert connected["type"] == "connected"
    assert (lost["type"], lost["messageId"], lost["stopReason"]) == ("error", "a" * 24, "interrupted")
    assert "is lost" in lost["error"]
    assert lost["id"] == f"{'a' * 24}:8:end"
    monkeypatch.setattr("frontdesk.agents.chat.feed.IDLE_SECONDS", 0.1)
    assert kinds(await local.listen(session, lost["id"])) == ["connected"]


async def test_after_a_reply_that_is_lost_a_newer_one_is_told(local: Person, agent: str) -> None:
    session = await local.open(agent)
    await local.say(session, script({"text": "hello"}))
    events = await local.listen(session, f"{'a' * 24}:7")
    assert kinds(events) == ["connected", "error", "start", "token", "end"]
    assert text_of(events) == "hello"


async def test_texts_that_a_tool_call_parts_are_kept_apart(local: Person, agent: str) -> None:
    session = await local.open(agent)
    await local.say(session, script({"text": "Calling", "tool": "nothing"}, {"text": "bye now"}))
    events = await local.listen(session)
    said = (await local.get("/sessions", sessionId=session)).json()["messages"]
    assert text_of(events) == "Callingbye now"
    assert events[-1]["content"] == said[-1]["content"] == "Calling\n\nbye now"


async def test_messages_that_come_together_are_answered_in_turn_on_one_stream(local: Person, agent: str) -> None:
    session = await local.open(agent)
    first = await local.say(session, script({"text": "one two", "chunk_delay": 0.02}))
    second = await local.say(session, script({"text": "three"}))
    events = await local.listen(session)
    assert kinds(events) == ["connected", "start", "token", "end", "start", "token", "end"]
    assert [event["messageId"] for event in events if event["type"] == "end"] == [first, second]


async def test_silence_is_filled_with_heartbeats_and_does_not_last_for_ever(
    local: Person, agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontdesk.interfaces.rest.chat_stream.HEARTBEAT_SECONDS", 0.02)
    monkeypatch.setattr("frontdesk.agents.chat.feed.IDLE_SECONDS", 0.1)
    session = await local.open(agent)
    events = await local.listen(session)
    assert kinds(events) == ["connected", "heartbeat"]
    assert events[1]["sessionId"] == session


@shows("CHAT-CANCEL")
@pytest.mark.usefixtures("impatient")
async def test_a_cancel_stops_what_runs_and_what_waits(app: App, local: Person, agent: str) -> None:
    session = await local.open(agent)
    for _ in range(2):
        await local.say(session, LONG)
    await first_token(app, session)
    answer = await local.post("/cancel", sessionId=session)
    assert answer.json() == {"success": True, "sessionId": session, "cancelled": True}
    assert await stop_reasons(local, session) == ["cancelled"]
    events = await local.listen(session)
    ends = [(event["error"], event["stopReason"]) for event in events if event["type"] == "error"]
    assert ends == [("Stream cancelled by user", "cancelled")] * 2
    assert 0 < len(text_of(events)) < 2000
    assert (await local.post("/cancel", sessionId=session)).json()["cancelled"] is False
    await local.say(session, script({"text": "still here"}))
    assert text_of(await local.listen(session)) == "still here"


async def test_a_session_that_is_deleted_takes_its_work_along(app: App, local: Person, agent: str) -> None:
    session = await local.open(agent)
    await local.say(session, LONG)
    await first_token(app, session)
    assert (await local.delete("/sessions", sessionId=session)).json() == {"success": True}
    assert app.chat._replies._jobs == {}
    assert (await local.get("/sessions", sessionId=session)).status_code == 404
    assert (await local.post("/sessions/restore", sessionId=session, agentId=agent)).status_code == 404


@pytest.mark.usefixtures("impatient")
async def test_a_server_that_stops_says_so_in_the_journal_and_to_whoever_listens(tmp_path: Path) -> None:
    settings = settings_with(FRONTDESK_DATA=tmp_path / "data")
    async with open_app(settings) as app, somebody(build_application(app)) as person:
        async with running(app):
            session = await person.open((await app.host.create(NewAgent("Ada"))).id)
            for _ in range(2):
                await person.say(session, LONG)
            await first_token(app, session)
        events = await person.listen(session)
        assert [event["stopReason"] for event in events if event["type"] == "error"] == ["interrupted"] * 2
        assert await stop_reasons(person, session) == ["interrupted"]
        refused = await person.post("/messages", sessionId=session, message="hello")
        assert (refused.status_code, "stopping" in refused.json()["error"]) == (503, True)
        rows = [row for _, row in await app.journal.read(JournalQuery(kind=EntryKind.TURN))]
        assert [(row.outcome, row.reason) for row in rows] == [(Outcome.FAILED, "interrupted")] * 2
