"""Tests editors' sessions on both databases: their agent, their owner, and what remains of them."""

import os
from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from frontdesk.agents.host import AgentHost, NewAgent, Prompt
from frontdesk.app import App, open_app
from frontdesk.coding import service
from frontdesk.coding.model import SESSION_ID, CodingSession, CodingSessionPage, PermissionMode, new_session_id
from frontdesk.coding.service import CodingSessions, suggest_title
from frontdesk.coding.store import CodingSessionStore, cursor_after, parse_cursor
from frontdesk.db.engine import Database
from frontdesk.errors import Denied, Invalid, MissingScope, NotFound
from frontdesk.identity.model import Caller
from frontdesk.identity.rights import AGENTS_CHAT, AGENTS_READ
from frontdesk.llm.events import Event, TextChunk, UserText
from frontdesk.settings import Settings

# Editors' sessions and the agents of folders


NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)
HOME = Path("/home/ann/garden")


def a_session(at: int = 0, user: str | None = "ann", cwd: Path = HOME) -> CodingSession:
    now = NOON + timedelta(seconds=at)
    return CodingSession(new_session_id(), "agent-1", "conv-1", cwd, now, now, user)


@pytest.fixture
def store(database: Database) -> CodingSessionStore:
    return CodingSessionStore(database)


async def add(store: CodingSessionStore, *sessions: CodingSession) -> list[CodingSession]:
    for session in sessions:
        await store.add(session)
    return list(sessions)


async def walk(store: CodingSessionStore, limit: int) -> list[CodingSession]:
    """All of Ann's, page by page."""
    page = await store.list("ann", None, None, limit)
    found = list(page.sessions)
    while page.next_cursor is not None:
        page = await store.list("ann", None, page.next_cursor, limit)
        assert page.sessions, "a page that was promised is not empty"
        found += page.sessions
    return found


async def test_a_session_comes_back_as_it_was_put_in(store: CodingSessionStore) -> None:
    plain = a_session()
    full = replace(
        a_session(),
        directories=(Path("/a b"), Path('/"é"')),
        title="Fix the café",
        mode=PermissionMode.ACCEPT_EDITS,
        model="openai:gpt",
        effort="high",
        asks_memory=True,
        cost_usd=0.25,
    )
    await add(store, plain, full)
    assert [await store.get(one.id, "ann") for one in (plain, full)] == [plain, full]


async def test_a_session_of_another_person_is_not_there(store: CodingSessionStore) -> None:
    theirs, nobodys = await add(store, a_session(user="bob"), a_session(user=None))
    for one in (theirs, nobodys):
        assert await store.get(one.id, "ann") is None
        assert not await store.delete(one.id, "ann")
        with pytest.raises(NotFound):
            await store.change(replace(one, user_id="ann"), title="mine")
    assert await store.get(theirs.id, None) is None
    assert (await store.list("ann", None, None, 10)) == CodingSessionPage([])
    assert await store.get(theirs.id, "bob") == theirs
    assert await store.get(nobodys.id, None) == nobodys


async def test_sessions_are_listed_page_by_page_those_used_last_first(store: CodingSessionStore) -> None:
    sessions = await add(store, *(a_session(at) for at in (3, 1, 2, 2, 2, 5)))
    await add(store, a_session(9, user="bob"))
    expected = sorted(sessions, key=lambda one: (one.updated_at, one.id), reverse=True)
    for limit in (1, 2, 3, 6, 10):
        assert await walk(store, limit) == expected


async def test_only_the_sessions_of_one_folder_are_listed_where_one_is_named(store: CodingSessionStore) -> None:
    here, there = await add(store, a_session(1), a_session(2, cwd=HOME / "shed"))
    assert (await store.list("ann", HOME, None, 10)).sessions == [here]
    assert (await store.list("ann", None, None, 10)).sessions == [there, here]
    assert (await store.list("ann", Path("/elsewhere"), None, 10)) == CodingSessionPage([])


async def test_a_list_goes_on_where_it_was_though_sessions_come_go_and_are_used(store: CodingSessionStore) -> None:
    oldest, third, second, newest = await add(store, *(a_session(at) for at in (1, 2, 3, 4)))
    first = await store.list("ann", None, None, 2)
    assert first.sessions == [newest, second]
    assert first.next_cursor is not None
    await store.touch(newest, NOON + timedelta(hours=1))
    await store.delete(second.id, "ann")
    await add(store, a_session(3600))
    rest = await store.list("ann", None, first.next_cursor, 10)
    assert rest == CodingSessionPage([third, oldest])


@pytest.mark.parametrize("cursor", ["", "x", "e30=", "WzEsMl0=", "bnVsbA==", "é", "A" * 10_000, "W1tdLFtdXQ=="])
async def test_a_cursor_that_is_none_of_ours_is_refused(store: CodingSessionStore, cursor: str) -> None:
    with pytest.raises(Invalid, match="from the start"):
        await store.list("ann", None, cursor, 10)


@given(st.text())
@example("WyIwMDAxLTAxLTAxVDAwOjAwOjAwKzIzOjU5IiwgInNlc3NfMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAiXQ==")
def test_any_text_is_a_cursor_or_refused_in_one_way(text: str) -> None:
    try:
        parse_cursor(text)
    except Invalid:
        return


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_cursor_says_where_its_session_was(used: datetime) -> None:
    session = replace(a_session(), updated_at=used)
    assert parse_cursor(cursor_after(session)) == (used, session.id)


async def test_two_who_change_a_session_do_not_undo_each_other(store: CodingSessionStore) -> None:
    (session,) = await add(store, a_session())
    titled = await store.change(session, title="Weeds", directories=(Path("/shed"),))
    assert titled == replace(session, title="Weeds", directories=(Path("/shed"),))
    await store.change(session, mode=PermissionMode.AUTO, cost_usd=0.5, cwd=Path("/b"))
    assert await store.get(session.id, "ann") == replace(titled, mode=PermissionMode.AUTO, cost_usd=0.5, cwd=Path("/b"))
    cleared = await store.change(session, model=None)
    assert cleared == session


async def test_a_session_that_is_gone_cannot_be_changed_and_its_use_brings_nothing_back(
    store: CodingSessionStore,
) -> None:
    (session,) = await add(store, a_session())
    assert await store.delete(session.id, "ann")
    assert not await store.delete(session.id, "ann")
    with pytest.raises(NotFound):
        await store.change(session, title="Weeds")
    await store.touch(session, NOON + timedelta(hours=1))
    assert await store.get(session.id, "ann") is None


async def test_a_use_never_makes_a_session_older(store: CodingSessionStore) -> None:
    (session,) = await add(store, a_session())
    used = await store.touch(session, NOON + timedelta(hours=1))
    assert used == await store.get(session.id, "ann") == replace(session, updated_at=NOON + timedelta(hours=1))
    assert await store.touch(used, NOON) == used == await store.get(session.id, "ann")


async def test_a_folder_has_one_agent_for_each_person(store: CodingSessionStore) -> None:
    assert await store.folder_agent("ann", HOME) is None
    assert await store.set_folder_agent("ann", HOME, "agent-1", NOON) == "agent-1"
    assert await store.set_folder_agent("ann", HOME, "agent-2", NOON) == "agent-1"
    assert await store.set_folder_agent("bob", HOME, "agent-3", NOON) == "agent-3"
    assert await store.set_folder_agent(None, HOME, "agent-4", NOON) == "agent-4"
    assert await store.set_folder_agent("ann", HOME / "shed", "agent-5", NOON) == "agent-5"
    assert [await store.folder_agent(user, HOME) for user in ("ann", "bob", None)] == ["agent-1", "agent-3", "agent-4"]


async def test_an_agent_that_is_gone_makes_room_for_one_other(store: CodingSessionStore) -> None:
    await store.set_folder_agent("ann", HOME, "gone", NOON)
    assert await store.set_folder_agent("ann", HOME, "agent-1", NOON, instead_of="gone") == "agent-1"
    assert await store.set_folder_agent("ann", HOME, "agent-2", NOON, instead_of="gone") == "agent-1"
    assert await store.folder_agent("ann", HOME) == "agent-1"


@pytest.mark.parametrize("gone", [None, "gone"])
async def test_of_many_that_move_in_at_once_one_stays_and_all_know_which(
    store: CodingSessionStore, gone: str | None
) -> None:
    if gone is not None:
        await store.set_folder_agent("ann", HOME, gone, NOON)
    held: list[str] = []

    async def move_in(number: int) -> None:
        held.append(await store.set_folder_agent("ann", HOME, f"agent-{number}", NOON, instead_of=gone))

    async with anyio.create_task_group() as tasks:
        for number in range(8):
            tasks.start_soon(move_in, number)
    assert held == [held[0]] * 8
    assert held[0] != gone
    assert await store.folder_agent("ann", HOME) == held[0]


# Sessions of editors on the built-in host: their agent, their owner, and what remains of them


HERE = Caller("req-1", local=True)
ANN = Caller("req-2", user_id="ann", local=True)
BOB = Caller("req-3", user_id="bob", local=True)


@pytest.fixture
async def app(settings: Settings) -> AsyncGenerator[App]:
    async with open_app(settings) as opened:
        yield opened


@pytest.fixture
def host(app: App) -> AgentHost:
    return app.host


@pytest.fixture
def sessions(app: App) -> CodingSessions:
    return app.workspace.sessions


@pytest.fixture
def garden(tmp_path: Path) -> Path:
    folder = tmp_path / "garden"
    folder.mkdir()
    return folder


async def say(app: App, session: CodingSession, text: str) -> None:
    prompt = Prompt(session.agent_id, ANN, text, conversation_id=session.conversation_id)
    async for _ in app.host.send(prompt):
        pass


async def said(app: App, session: CodingSession) -> list[str]:
    events: list[Event] = [one.event for one in await app.host.history(session.agent_id, session.conversation_id)]
    return [event.text for event in events if isinstance(event, UserText | TextChunk)]


async def test_a_folder_gets_an_agent_that_knows_where_it_works(
    sessions: CodingSessions, host: AgentHost, garden: Path
) -> None:
    session = await sessions.open(ANN, garden, (), None)
    assert SESSION_ID.fullmatch(session.id)
    assert (session.user_id, session.cwd, session.mode, session.title) == ("ann", garden, PermissionMode.ASK, "")
    agent = await host.find(session.agent_id)
    assert agent is not None
    assert (agent.name, agent.description) == ("garden", f"Works in {garden}")
    blocks = {block.label: block.value for block in await host.blocks(agent.id)}
    assert blocks == {
        "human": "",
        "persona": "I am a helpful coding assistant with access to the workspace.",
        "workspace": f"Working directory: {garden}\nI should constrain file operations to this directory.",
    }
    assert await sessions.find(ANN, session.id) == session


async def test_sessions_of_one_folder_share_its_agent_and_not_a_conversation(
    sessions: CodingSessions, host: AgentHost, garden: Path, tmp_path: Path
) -> None:
    first, second = [await sessions.open(ANN, garden) for _ in range(2)]
    elsewhere, bobs = await sessions.open(ANN, tmp_path), await sessions.open(BOB, garden)
    assert first.agent_id == second.agent_id
    assert first.conversation_id != second.conversation_id
    assert len({first.agent_id, elsewhere.agent_id, bobs.agent_id}) == 3
    assert len(await host.list(10)) == 3


async def test_a_folder_whose_agent_is_gone_gets_another(
    sessions: CodingSessions, host: AgentHost, garden: Path
) -> None:
    first = await sessions.open(ANN, garden)
    await host.delete(first.agent_id)
    second, third = [await sessions.open(ANN, garden) for _ in range(2)]
    assert second.agent_id == third.agent_id != first.agent_id
    assert [agent.id for agent in await host.list(10)] == [second.agent_id]


async def test_editors_that_open_a_new_folder_at_once_end_up_with_one_agent(
    sessions: CodingSessions, host: AgentHost, garden: Path
) -> None:
    opened: list[CodingSession] = []

    async def open_one() -> None:
        opened.append(await sessions.open(ANN, garden))

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(open_one)
    (agent,) = await host.list(10)
    assert {session.agent_id for session in opened} == {agent.id}
    assert len({session.conversation_id for session in opened}) == 5


async def test_an_agent_is_chosen_by_its_id_or_by_a_name_that_no_other_has(
    sessions: CodingSessions, host: AgentHost, garden: Path
) -> None:
    fern = await host.create(NewAgent("Fern the gardener"))
    for _ in range(2):
        await host.create(NewAgent("Moss"))
    assert (await sessions.open(ANN, garden, agent=fern.id)).agent_id == fern.id
    assert (await sessions.open(ANN, garden, agent="Fern the gardener")).agent_id == fern.id
    for wrong, words in (("Moss", "2 agents"), ("fern", "no agent"), ("", "no agent"), ("\0", "no agent")):
        with pytest.raises(NotFound, match=words):
            await sessions.open(ANN, garden, agent=wrong)
    assert len(await host.list(10)) == 3, "a choice makes no agent"
    assert (await sessions.open(ANN, garden)).agent_id != fern.id, "nor does it give the folder away"


async def test_a_session_needs_a_folder_that_is_there(sessions: CodingSessions, host: AgentHost, garden: Path) -> None:
    file = garden / "weeds.txt"
    file.touch()
    for wrong in ("", "garden", "./garden", str(file), str(garden / "gone"), "/a\0b", "/" + "a" * 5000, "C:\\garden"):
        with pytest.raises(Invalid):
            await sessions.open(ANN, wrong)
        with pytest.raises(Invalid):
            await sessions.open(ANN, garden, [wrong])
    with pytest.raises(Invalid, match="at most"):
        await sessions.open(ANN, garden, [garden] * 51)
    assert await host.list(10) == []


@pytest.mark.parametrize("cwd", ["/home/ann/garden", "C:\\Users\\ann\\garden"])
async def test_a_folder_on_another_machine_need_only_be_named_in_full(
    sessions: CodingSessions, host: AgentHost, cwd: str
) -> None:
    session = await sessions.open(ANN, cwd, [f"{cwd}2"], local=False)
    assert (str(session.cwd), [str(one) for one in session.directories]) == (cwd, [f"{cwd}2"])
    (agent,) = await host.list(10)
    assert agent.name == "garden"
    with pytest.raises(Invalid):
        await sessions.open(ANN, "garden", local=False)


async def test_a_folder_is_kept_as_the_editor_names_it_but_for_steps_up(
    sessions: CodingSessions, garden: Path, tmp_path: Path
) -> None:
    link = tmp_path / "link"
    link.symlink_to(garden)
    assert (await sessions.open(ANN, f"{link}{os.sep}", [link, link])).directories == (link,)
    assert (await sessions.open(ANN, f"{link}/../garden/.")).cwd == garden


async def test_the_root_of_a_machine_can_be_worked_in(sessions: CodingSessions, host: AgentHost) -> None:
    await sessions.open(ANN, "/")
    assert [agent.name for agent in await host.list(10)] == ["workspace"]


async def test_a_session_is_its_owners_alone(sessions: CodingSessions, garden: Path) -> None:
    anns, nobodys = await sessions.open(ANN, garden), await sessions.open(HERE, garden)
    for caller in (BOB, HERE):
        with pytest.raises(NotFound):
            await sessions.find(caller, anns.id)
        with pytest.raises(NotFound):
            await sessions.fork(caller, anns.id, garden)
        await sessions.delete(caller, anns.id)
    assert await sessions.find(ANN, anns.id) == anns
    assert (await sessions.list(HERE)).sessions == [nobodys]
    assert (await sessions.list(BOB)).sessions == []
    for wrong in (new_session_id(), "", "sess_\0", "x" * 10_000):
        with pytest.raises(NotFound):
            await sessions.find(ANN, wrong)


async def test_who_is_elsewhere_and_nobody_in_particular_has_no_sessions(
    sessions: CodingSessions, garden: Path
) -> None:
    with pytest.raises(Denied, match="names a user"):
        await sessions.open(Caller("req-4", agent_id="agent-1", verified=True), garden)


async def test_scopes_say_who_may_read_and_who_may_open(sessions: CodingSessions, garden: Path) -> None:
    reader = Caller("req-5", user_id="ann", scopes=frozenset({AGENTS_READ}))
    talker = Caller("req-6", user_id="ann", scopes=frozenset({AGENTS_CHAT}))
    session = await sessions.open(talker, garden)
    assert (await sessions.list(reader)).sessions == [session]
    for refused in (sessions.open(reader, garden), sessions.delete(reader, session.id), sessions.list(talker)):
        with pytest.raises(MissingScope):
            await refused
    await sessions.delete(talker, session.id)
    assert (await sessions.list(reader)).sessions == []


async def test_sessions_are_listed_by_folder_and_page(
    sessions: CodingSessions, garden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "PAGE_SIZE", 2)
    elsewhere = await sessions.open(ANN, tmp_path)
    first, second, third = [await sessions.open(ANN, garden) for _ in range(3)]
    first = await sessions.touch(first)
    page = await sessions.list(ANN, str(garden))
    assert page.sessions == [first, third]
    rest = await sessions.list(ANN, str(garden), page.next_cursor)
    assert (rest.sessions, rest.next_cursor) == ([second], None)
    assert (await sessions.list(ANN, tmp_path)).sessions == [elsewhere]
    assert (await sessions.list(ANN, "/no/more")).sessions == []
    with pytest.raises(Invalid):
        await sessions.list(ANN, None, "nonsense")


async def test_a_deleted_session_takes_what_was_said_with_it_and_leaves_the_agent(
    app: App, sessions: CodingSessions, garden: Path
) -> None:
    session, other = await sessions.open(ANN, garden), await sessions.open(ANN, garden)
    await say(app, session, "the hedge is high")
    for _ in range(2):
        await sessions.delete(ANN, session.id)
    with pytest.raises(NotFound):
        await sessions.find(ANN, session.id)
    kept = [one.id for one in await app.host.conversations(session.agent_id, 10)]
    assert other.conversation_id in kept
    assert session.conversation_id not in kept
    assert await sessions.find(ANN, other.id) == other


async def test_a_session_whose_agent_is_gone_can_be_deleted(
    sessions: CodingSessions, host: AgentHost, garden: Path
) -> None:
    session = await sessions.open(ANN, garden)
    await host.delete(session.agent_id)
    await sessions.delete(ANN, session.id)
    assert (await sessions.list(ANN)).sessions == []


async def test_a_fork_begins_with_what_was_said_and_goes_its_own_way(
    app: App, sessions: CodingSessions, garden: Path, tmp_path: Path
) -> None:
    first = await sessions.open(ANN, garden)
    await say(app, first, "the hedge is high")
    first = await sessions.change(
        first, title="Hedge", mode=PermissionMode.AUTO, model="offline", effort="low", cost_usd=1.5
    )
    second = await sessions.fork(ANN, first.id, tmp_path, [garden])
    assert await said(app, second) == await said(app, first) != []
    assert second.id != first.id
    assert (second.cwd, second.directories, second.agent_id) == (tmp_path, (garden,), first.agent_id)
    assert (second.title, second.mode, second.model, second.effort) == ("Hedge", PermissionMode.AUTO, "offline", "low")
    assert second.cost_usd is None
    await say(app, second, "the lawn too")
    assert "the lawn too" not in await said(app, first)
    assert await sessions.find(ANN, second.id) == second


async def test_a_session_is_loaded_in_another_folder_with_all_that_was_said(
    app: App, sessions: CodingSessions, garden: Path, tmp_path: Path
) -> None:
    session = await sessions.open(ANN, garden)
    await say(app, session, "the hedge is high")
    moved = await sessions.move(session, tmp_path, [garden])
    assert (moved.cwd, moved.directories) == (tmp_path, (garden,))
    assert await sessions.find(ANN, session.id) == moved
    assert (await said(app, moved))[0] == "the hedge is high"
    assert await sessions.move(moved, tmp_path, [garden]) == moved
    with pytest.raises(Invalid):
        await sessions.move(moved, tmp_path / "gone")


async def test_another_agent_goes_on_in_the_same_session_with_a_conversation_of_its_own(
    sessions: CodingSessions, host: AgentHost, garden: Path
) -> None:
    session = await sessions.open(ANN, garden)
    fern = await host.create(NewAgent("Fern"))
    chosen = await sessions.choose_agent(session, fern.id)
    assert (chosen.id, chosen.agent_id) == (session.id, fern.id)
    assert chosen.conversation_id != session.conversation_id
    assert await sessions.find(ANN, session.id) == chosen
    assert await sessions.choose_agent(chosen, "Fern") == chosen
    with pytest.raises(NotFound):
        await sessions.choose_agent(chosen, "agent-of-nobody")


async def test_a_title_that_a_person_gives_is_made_to_fit(sessions: CodingSessions, garden: Path) -> None:
    session = await sessions.change(await sessions.open(ANN, garden), title=" a\0\nb " + "é" * 500)
    assert session.title.startswith("a b é")
    assert len(session.title) == 200
    assert await sessions.find(ANN, session.id) == session


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Fix the  gate\nand then the fence", "Fix the gate"),
        ("\n \t\n  Mow\tthe lawn  ", "Mow the lawn"),
        ("", ""),
        (" \n ", ""),
        ("a" * 60, "a" * 60),
        ("a" * 61, "a" * 59 + "…"),
        ("word " * 12 + "end", ("word " * 11).rstrip() + " word…"),
        ("please " + "b" * 80, "please…"),
    ],
)
def test_a_session_is_called_after_what_was_first_said(text: str, title: str) -> None:
    assert suggest_title(text) == title


@given(st.text())
@example("a b" * 40)
def test_a_title_is_one_short_line_of_what_was_said(text: str) -> None:
    title = suggest_title(text)
    assert len(title) <= 60
    assert title == " ".join(title.split())
    assert " ".join(text.split()).startswith(title.removesuffix("…"))
    assert bool(title) == bool(text.strip())
