"""Editors' sessions and the agents of folders, in both databases."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from frontdesk.coding.model import CodingSession, CodingSessionPage, PermissionMode, new_session_id
from frontdesk.coding.store import CodingSessionStore, cursor_after, parse_cursor
from frontdesk.db.engine import Database
from frontdesk.errors import Invalid, NotFound

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
