"""What people said for good, and the gate that asks them, on both databases."""

import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest

from frontdesk.db.engine import Database
from frontdesk.workspace.permissions.model import Choice, Deed, Kind, Leave, Mode, Remembered, Word
from frontdesk.workspace.permissions.service import REJECTED, STOPPED, UNANSWERED, Permissions
from frontdesk.workspace.permissions.store import PermissionStore
from tests.requirements import shows
from tests.support.waiting import until

pytestmark = pytest.mark.anyio
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HERE, THERE = Path("/home/ann/project"), Path("/home/ann/other")
EDIT = Deed("call-1", "edit_file", Kind.EDIT, "Edit a.py", scope="edit", covers="edits in this workspace")
ONCE = Deed("call-2", "run_command", Kind.EXECUTE, "Run `a | b`", command="a | b")


class Person:
    """Answers in the order given, and then not at all; remembers what was asked."""

    def __init__(self, *choices: Choice) -> None:
        self.choices = list(choices)
        self.asked: list[Deed] = []
        self.may_answer = anyio.Event()
        self.may_answer.set()

    async def ask(self, deed: Deed) -> Choice:
        self.asked.append(deed)
        await self.may_answer.wait()
        if not self.choices:
            await anyio.sleep_forever()
        return self.choices.pop(0)


def a_gate(database: Database, person: Person, mode: Mode = Mode.ASK, user: str | None = "ann") -> Leave:
    return Permissions(PermissionStore(database)).gate(user, HERE, lambda: mode, person.ask)


def words(found: Sequence[Remembered]) -> dict[str, bool]:
    return {one.scope: one.allowed for one in found}


async def test_a_word_comes_back_as_it_was_kept_and_the_last_one_counts(database: Database) -> None:
    store = PermissionStore(database)
    kept = Remembered("run git status", allowed=True, created_at=NOW)
    await store.keep("ann", HERE, kept)
    await store.keep("ann", HERE, Remembered("edit", allowed=True, created_at=NOW))
    assert await store.of("ann", HERE) == [Remembered("edit", allowed=True, created_at=NOW), kept]
    later = replace(kept, allowed=False, created_at=NOW + timedelta(days=1))
    await store.keep("ann", HERE, later)
    assert (await store.of("ann", HERE))[1] == later


async def test_words_of_another_person_or_folder_are_not_mixed_up(database: Database) -> None:
    store = PermissionStore(database)
    for user, cwd, scope in (("ann", HERE, "a"), ("bob", HERE, "b"), (None, HERE, "n"), ("ann", THERE, "t")):
        await store.keep(user, cwd, Remembered(scope, allowed=True, created_at=NOW))
    assert await store.forget("ann", HERE) == 1
    assert await store.forget("ann", HERE) == 0
    assert words(await store.of("ann", HERE)) == {}
    assert words(await store.of("bob", HERE)) == {"b": True}
    assert words(await store.of(None, HERE)) == {"n": True}
    assert words(await store.of("ann", THERE)) == {"t": True}


async def test_a_folder_may_have_any_name_and_a_scope_any_length(database: Database) -> None:
    store = PermissionStore(database)
    odd = Path(os.fsdecode(b"/home/\xff\xfe")) / ("x" * 4000)
    scope = "use " + "y" * 5000
    await store.keep("ann", odd, Remembered(scope, allowed=False, created_at=NOW))
    assert words(await store.of("ann", odd)) == {scope: False}


@shows("ACP-PERMISSIONS")
async def test_what_is_always_allowed_is_asked_once_and_holds_in_the_next_session(database: Database) -> None:
    person = Person(Choice.ALLOW_ALWAYS)
    assert await a_gate(database, person)(EDIT) == Word(allowed=True)
    assert await a_gate(database, person)(EDIT) == Word(allowed=True)
    assert person.asked == [EDIT]
    assert words(await Permissions(PermissionStore(database)).list("ann", HERE)) == {"edit": True}


@shows("ACP-PERMISSIONS")
async def test_what_is_always_rejected_is_refused_even_in_auto(database: Database) -> None:
    person = Person(Choice.REJECT_ALWAYS)
    assert await a_gate(database, person)(EDIT) == Word(allowed=False, reason=REJECTED)
    refused = await a_gate(database, person, Mode.AUTO)(EDIT)
    assert not refused.allowed
    assert "edits in this workspace" in refused.reason
    assert await Permissions(PermissionStore(database)).forget("ann", HERE) == 1
    assert (await a_gate(database, person, Mode.AUTO)(EDIT)).allowed


@pytest.mark.parametrize("choice", [Choice.ALLOW_ONCE, Choice.REJECT_ONCE])
async def test_what_is_said_once_is_asked_again(database: Database, choice: Choice) -> None:
    person = Person(choice, choice)
    gate = a_gate(database, person)
    assert [(await gate(EDIT)).allowed, (await gate(EDIT)).allowed] == [choice.allows] * 2
    assert len(person.asked) == 2


async def test_a_lasting_word_on_what_has_no_scope_holds_once(database: Database) -> None:
    person = Person(Choice.ALLOW_ALWAYS, Choice.REJECT_ONCE)
    gate = a_gate(database, person)
    assert (await gate(ONCE)).allowed
    assert not (await gate(ONCE)).allowed
    assert await PermissionStore(database).of("ann", HERE) == []


@shows("ACP-PERMISSIONS")
async def test_a_person_who_stops_the_turn_allows_nothing(database: Database) -> None:
    person = Person(Choice.CANCELLED)
    assert await a_gate(database, person)(EDIT) == Word(allowed=False, reason=STOPPED)
    assert await PermissionStore(database).of("ann", HERE) == []


async def test_what_nobody_answers_counts_as_rejected(database: Database) -> None:
    person = Person()
    gate = Permissions(PermissionStore(database), ask_seconds=0.05).gate("ann", HERE, lambda: Mode.ASK, person.ask)
    assert await gate(ONCE) == Word(allowed=False, reason=UNANSWERED)


@shows("ACP-PERMISSIONS")
async def test_two_deeds_of_one_scope_at_once_are_asked_about_once(database: Database) -> None:
    person, got = Person(Choice.ALLOW_ALWAYS), list[Word]()
    person.may_answer = anyio.Event()
    gate = a_gate(database, person)

    async def want(deed: Deed) -> None:
        got.append(await gate(deed))

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(want, EDIT)
            tasks.start_soon(want, replace(EDIT, call_id="call-9"))
            await until(lambda: bool(person.asked))
            person.may_answer.set()
    assert got == [Word(allowed=True)] * 2
    assert len(person.asked) == 1


async def test_the_mode_is_looked_at_again_when_its_turn_comes(database: Database) -> None:
    person, got, modes = Person(Choice.ALLOW_ONCE), list[Word](), list[Mode]()
    person.may_answer = anyio.Event()

    def mode() -> Mode:
        modes.append(Mode.PLAN if person.may_answer.is_set() else Mode.ASK)
        return modes[-1]

    gate = Permissions(PermissionStore(database)).gate("ann", HERE, mode, person.ask)

    async def want(deed: Deed) -> None:
        got.append(await gate(deed))

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(want, EDIT)
            await until(lambda: bool(person.asked))
            tasks.start_soon(want, ONCE)
            await until(lambda: len(modes) == 3)
            person.may_answer.set()
    assert [word.allowed for word in got] == [True, False]
    assert modes == [Mode.ASK] * 3 + [Mode.PLAN]
    assert person.asked == [EDIT]


@shows("KEPT-11")
async def test_a_command_that_was_allowed_before_the_clock_was_set_back_is_asked_about_again(
    database: Database, tmp_path: Path
) -> None:
    script = tmp_path / "run.sh"
    script.write_text("")
    said = Remembered("run ./run.sh", allowed=True, created_at=datetime.now(UTC) + timedelta(hours=3))
    await PermissionStore(database).keep("ann", HERE, said)
    person = Person(Choice.ALLOW_ALWAYS)
    leave = a_gate(database, person)
    deed = Deed("call-3", "run_command", Kind.EXECUTE, "Run `./run.sh`", scope=said.scope, obeys=[script])
    assert (await leave(deed)).allowed
    assert "the clock was set back" in person.asked[0].why
    [again] = await PermissionStore(database).of("ann", HERE)
    assert again.created_at < said.created_at, "what is said now counts"
