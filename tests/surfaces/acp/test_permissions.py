"""What an agent may do: by mode, by the person's word, and by the word that was given for good."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.requirements import shows
from tests.support.acp.client import Client
from tests.support.acp.words import outcome, script
from tests.support.ready import Ready
from tests.support.waiting import until
from tests.surfaces.acp.showing import (
    AWAY,
    CANCELLED,
    Desk,
    Person,
    calling,
    calls,
    folder,
    introduced,
    is_quiet,
    only_call,
    set_option,
)

pytestmark = shows("ACP-PERMISSIONS")
# Which of these is done by itself in a mode, which is asked for, and which is refused.
FREE, ASKED, REFUSED = "free", "asked", "refused"
REQUESTS = {
    "read": calling("read_file", path="old.txt"),
    "search": calling("search_files", query="old"),
    "edit": calling("edit_file", path="old.txt", old_string="old", new_string="new"),
    "delete": calling("delete_file", path="old.txt"),
    "run": calling("run_command", command="rm old.txt"),
}
TABLE = {
    "ask": {"read": FREE, "search": FREE, "edit": ASKED, "delete": ASKED, "run": ASKED},
    "accept-edits": {"read": FREE, "search": FREE, "edit": FREE, "delete": ASKED, "run": ASKED},
    "auto": {"read": FREE, "search": FREE, "edit": FREE, "delete": FREE, "run": FREE},
    "plan": {"read": FREE, "search": FREE, "edit": REFUSED, "delete": REFUSED, "run": REFUSED},
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory, ready: Ready) -> Path:
    return ready.in_folder(tmp_path_factory.mktemp("permissions") / "data")


@pytest.fixture(scope="module")
async def desk(data: Path) -> AsyncGenerator[Desk]:
    async with introduced(data) as opened:
        yield opened


@pytest.fixture
def client(desk: Desk) -> Client:
    return desk.client


@pytest.fixture
def person(desk: Desk) -> Person:
    desk.person.chooses("allow_once")
    return desk.person


def workshop(above: Path, name: str = "work") -> Path:
    """A folder with a file in it."""
    made = folder(above, name)
    (made / "old.txt").write_text("old")
    return made


@pytest.mark.parametrize(
    ("mode", "by"), [("ask", "option"), ("accept-edits", "mode"), ("auto", "option"), ("plan", "mode")]
)
async def test_a_mode_says_what_is_free_what_is_asked_and_what_is_refused(
    client: Client, person: Person, tmp_path: Path, mode: str, by: str
) -> None:
    for permission_request, expected in TABLE[mode].items():
        work = workshop(tmp_path, permission_request)
        session = await client.open_session(work)
        if by == "mode":
            await client.request("session/set_mode", {"sessionId": session, "modeId": mode})
        else:
            await set_option(client, session, "mode", mode)
        person.chooses("reject_once")
        assert await client.prompt(session, REQUESTS[permission_request]) == {"stopReason": "end_turn"}
        assert (permission_request, len(person.asked)) == (permission_request, 1 if expected is ASKED else 0)
        done = (
            permission_request in ("read", "search")
            or not (work / "old.txt").exists()
            or (work / "old.txt").read_text() != "old"
        )
        assert (permission_request, done) == (permission_request, expected is FREE)
        assert only_call(client, session)["status"] == ("completed" if expected is FREE else "failed")


async def test_a_person_sees_what_they_are_asked_about(client: Client, person: Person, tmp_path: Path) -> None:
    work = workshop(tmp_path)
    session = await client.open_session(work)
    await client.prompt(session, REQUESTS["edit"])
    [asked] = person.asked
    assert [one["kind"] for one in asked["options"]] == ["allow_once", "allow_always", "reject_once", "reject_always"]
    shown = asked["toolCall"]
    assert shown["toolCallId"] == only_call(client, session)["toolCallId"]
    path = str(work / "old.txt")
    assert shown["content"] == [{"type": "diff", "path": path, "oldText": "old", "newText": "new"}]
    assert shown["locations"][0]["path"] == path
    assert (work / "old.txt").read_text() == "new"


async def test_the_call_is_shown_before_it_is_asked_about(client: Client, person: Person, tmp_path: Path) -> None:
    session, since = await client.open_session(workshop(tmp_path)), len(client.frames)
    await client.prompt(session, REQUESTS["run"])
    methods = [frame.method for frame in client.received(since) if "id" in frame.json or "tool_call" in str(frame.json)]
    assert methods[0] == "session/update"
    assert "session/request_permission" in methods
    assert len(person.asked) == 1


async def test_a_rejection_is_told_to_the_agent_and_the_turn_goes_on(
    client: Client, person: Person, tmp_path: Path
) -> None:
    work = workshop(tmp_path)
    session, since = await client.open_session(work), len(client.frames)
    person.chooses("reject_once")
    told = await client.prompt(
        session, script({"tool": "delete_file", "args": {"path": "old.txt"}}, {"text": "Then not"})
    )
    assert told == {"stopReason": "end_turn"}
    assert only_call(client, session)["status"] == "failed"
    assert "rejected" in str(only_call(client, session)["rawOutput"])
    assert client.said(since=since) == "Then not"
    assert (work / "old.txt").exists()


async def test_an_answer_that_was_not_offered_is_a_no(client: Client, person: Person, tmp_path: Path) -> None:
    work = workshop(tmp_path)
    session = await client.open_session(work)
    person.chooses("yes of course")
    await client.prompt(session, REQUESTS["delete"])
    assert (work / "old.txt").exists()


async def test_a_person_who_cancels_when_asked_stops_the_turn(client: Client, person: Person, tmp_path: Path) -> None:
    work = workshop(tmp_path)
    session, since = await client.open_session(work), len(client.frames)
    person.chooses(CANCELLED)
    under_way = await client.ask(
        "session/prompt",
        {"sessionId": session, "prompt": [{"type": "text", "text": REQUESTS["delete"]}]},
        number=f"{session}-stopped",
    )
    assert await outcome(under_way) == {"stopReason": "cancelled"}
    person.chooses("allow_once")
    await is_quiet(client, session, client.place(f"{session}-stopped"), folder(tmp_path, "other"))
    assert only_call(client, session)["status"] == "failed"
    assert client.updates("agent_message_chunk", session_id=session, since=since) == []
    assert (work / "old.txt").exists()


async def test_two_calls_at_once_are_asked_about_one_after_the_other(
    client: Client, person: Person, tmp_path: Path
) -> None:
    work = workshop(tmp_path)
    session = await client.open_session(work)
    person.chooses(AWAY)
    writes = [{"name": "write_file", "args": {"path": f"{name}.txt", "content": name}} for name in "ab"]
    under_way = await client.begin(session, script({"tools": writes}, {"text": "both"}))
    await until(lambda: len(person.asked) == 1)
    await client.heard()
    assert len(person.asked) == 1
    await client.notify("session/cancel", {"sessionId": session})
    assert await outcome(under_way) == {"stopReason": "cancelled"}
    assert {call["status"] for call in calls(client, session).values()} == {"failed"}
    person.chooses("allow_always")
    await client.prompt(session, script({"tools": writes}, {"text": "both"}))
    # What was said for good of the first holds for the second.
    assert len(person.asked) == 1
    assert (work / "a.txt").read_text() + (work / "b.txt").read_text() == "ab"


async def test_a_mode_that_changes_during_a_turn_counts_from_then_on(
    client: Client, person: Person, tmp_path: Path
) -> None:
    work = workshop(tmp_path)
    session, since = await client.open_session(work), len(client.frames)
    steps = ({"text": "Soon", "tool": "list_files"}, {"delay": 1, "tool": "delete_file", "args": {"path": "old.txt"}})
    under_way = await client.begin(session, script(*steps, {"text": "gone"}))
    await client.update("agent_message_chunk", since=since)
    await client.request("session/set_mode", {"sessionId": session, "modeId": "auto"})
    assert await outcome(under_way) == {"stopReason": "end_turn"}
    assert person.asked == []
    assert not (work / "old.txt").exists()


async def test_a_mode_that_is_set_as_a_turn_begins_stays_set(client: Client, person: Person, tmp_path: Path) -> None:
    for number in range(10):
        work = workshop(tmp_path, f"work-{number}")
        session = await client.open_session(work)
        # The session gets its title at the same time.
        under_way = await client.begin(session, script({"text": "hello"}))
        await client.request("session/set_mode", {"sessionId": session, "modeId": "plan"})
        await outcome(under_way)
        await client.prompt(session, REQUESTS["delete"])
        assert (work / "old.txt").exists()
    assert person.asked == []


async def test_a_word_for_good_is_kept_for_its_folder_and_for_no_other(
    client: Client, person: Person, data: Path, tmp_path: Path
) -> None:
    work, other = workshop(tmp_path), workshop(tmp_path, "other")
    running = calling("run_command", command="touch made")
    session = await client.open_session(work)
    person.chooses("allow_always")
    await client.prompt(session, running)
    person.chooses("reject_always")
    await client.prompt(session, REQUESTS["delete"])
    assert len(person.asked) == 1
    (work / "made").unlink()
    async with introduced(data) as next_desk:
        client, person = next_desk.client, next_desk.person
        person.chooses("reject_once")
        session = await client.open_session(work)
        await client.prompt(session, running)
        await client.prompt(session, REQUESTS["delete"])
        assert person.asked == []
        assert (work / "made").exists()
        assert (work / "old.txt").exists()
        # Neither another command, nor more than one, was meant.
        await client.prompt(session, calling("run_command", command="rm old.txt"))
        await client.prompt(session, calling("run_command", command="touch made && rm old.txt"))
        assert len(person.asked) == 2
        elsewhere = await client.open_session(other)
        await client.prompt(elsewhere, running)
        assert len(person.asked) == 3
        assert not (other / "made").exists()
