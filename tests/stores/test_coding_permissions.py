"""Tests people's lasting permissions, and the check that asks people, on both databases."""

import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest

from frontdesk.coding.model import (
    AskPermission,
    OperationKind,
    PermissionAnswer,
    PermissionDecision,
    PermissionMode,
    PermissionRequest,
    StoredPermission,
)
from frontdesk.coding.permissions import NOBODY_ANSWERED, PERSON_REJECTED, TURN_STOPPED, PermissionService
from frontdesk.coding.store import PermissionStore
from frontdesk.db.engine import Database
from tests.requirements import shows
from tests.support.waiting import until

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HERE, THERE = Path("/home/ann/project"), Path("/home/ann/other")
EDIT = PermissionRequest(
    "call-1", "edit_file", OperationKind.EDIT, "Edit a.py", scope="edit", scope_text="edits in this workspace"
)
ONCE = PermissionRequest("call-2", "run_command", OperationKind.EXECUTE, "Run `a | b`", command="a | b")


class Person:
    """Gives the answers in order, and then none; remembers the questions."""

    def __init__(self, *choices: PermissionAnswer) -> None:
        self.choices = list(choices)
        self.asked: list[PermissionRequest] = []
        self.may_answer = anyio.Event()
        self.may_answer.set()

    async def ask(self, permission_request: PermissionRequest) -> PermissionAnswer:
        self.asked.append(permission_request)
        await self.may_answer.wait()
        if not self.choices:
            await anyio.sleep_forever()
        return self.choices.pop(0)


def a_permission_check(
    database: Database, person: Person, mode: PermissionMode = PermissionMode.ASK, user: str | None = "ann"
) -> AskPermission:
    return PermissionService(PermissionStore(database)).for_session(user, HERE, lambda: mode, person.ask)


def words(found: Sequence[StoredPermission]) -> dict[str, bool]:
    return {one.scope: one.allowed for one in found}


async def test_a_word_comes_back_as_it_was_kept_and_the_last_one_counts(database: Database) -> None:
    store = PermissionStore(database)
    kept = StoredPermission("run git status", allowed=True, created_at=NOW)
    await store.save("ann", HERE, kept)
    await store.save("ann", HERE, StoredPermission("edit", allowed=True, created_at=NOW))
    assert await store.list("ann", HERE) == [StoredPermission("edit", allowed=True, created_at=NOW), kept]
    later = replace(kept, allowed=False, created_at=NOW + timedelta(days=1))
    await store.save("ann", HERE, later)
    assert (await store.list("ann", HERE))[1] == later


async def test_words_of_another_person_or_folder_are_not_mixed_up(database: Database) -> None:
    store = PermissionStore(database)
    for user, cwd, scope in (("ann", HERE, "a"), ("bob", HERE, "b"), (None, HERE, "n"), ("ann", THERE, "t")):
        await store.save(user, cwd, StoredPermission(scope, allowed=True, created_at=NOW))
    assert await store.forget("ann", HERE) == 1
    assert await store.forget("ann", HERE) == 0
    assert words(await store.list("ann", HERE)) == {}
    assert words(await store.list("bob", HERE)) == {"b": True}
    assert words(await store.list(None, HERE)) == {"n": True}
    assert words(await store.list("ann", THERE)) == {"t": True}


async def test_a_folder_may_have_any_name_and_a_scope_any_length(database: Database) -> None:
    store = PermissionStore(database)
    odd = Path(os.fsdecode(b"/home/\xff\xfe")) / ("x" * 4000)
    scope = "use " + "y" * 5000
    await store.save("ann", odd, StoredPermission(scope, allowed=False, created_at=NOW))
    assert words(await store.list("ann", odd)) == {scope: False}


@shows("ACP-PERMISSIONS")
async def test_what_is_always_allowed_is_asked_once_and_holds_in_the_next_session(database: Database) -> None:
    person = Person(PermissionAnswer.ALLOW_ALWAYS)
    assert await a_permission_check(database, person)(EDIT) == PermissionDecision(allowed=True)
    assert await a_permission_check(database, person)(EDIT) == PermissionDecision(allowed=True)
    assert person.asked == [EDIT]
    assert words(await PermissionService(PermissionStore(database)).list("ann", HERE)) == {"edit": True}


@shows("ACP-PERMISSIONS")
async def test_what_is_always_rejected_is_refused_even_in_auto(database: Database) -> None:
    person = Person(PermissionAnswer.REJECT_ALWAYS)
    assert await a_permission_check(database, person)(EDIT) == PermissionDecision(allowed=False, reason=PERSON_REJECTED)
    refused = await a_permission_check(database, person, PermissionMode.AUTO)(EDIT)
    assert not refused.allowed
    assert "edits in this workspace" in refused.reason
    assert await PermissionService(PermissionStore(database)).forget("ann", HERE) == 1
    assert (await a_permission_check(database, person, PermissionMode.AUTO)(EDIT)).allowed


@pytest.mark.parametrize("choice", [PermissionAnswer.ALLOW_ONCE, PermissionAnswer.REJECT_ONCE])
async def test_what_is_said_once_is_asked_again(database: Database, choice: PermissionAnswer) -> None:
    person = Person(choice, choice)
    gate = a_permission_check(database, person)
    assert [(await gate(EDIT)).allowed, (await gate(EDIT)).allowed] == [choice.allows] * 2
    assert len(person.asked) == 2


async def test_a_lasting_word_on_what_has_no_scope_holds_once(database: Database) -> None:
    person = Person(PermissionAnswer.ALLOW_ALWAYS, PermissionAnswer.REJECT_ONCE)
    gate = a_permission_check(database, person)
    assert (await gate(ONCE)).allowed
    assert not (await gate(ONCE)).allowed
    assert await PermissionStore(database).list("ann", HERE) == []


@shows("ACP-PERMISSIONS")
async def test_a_person_who_stops_the_turn_allows_nothing(database: Database) -> None:
    person = Person(PermissionAnswer.CANCELLED)
    assert await a_permission_check(database, person)(EDIT) == PermissionDecision(allowed=False, reason=TURN_STOPPED)
    assert await PermissionStore(database).list("ann", HERE) == []


async def test_what_nobody_answers_counts_as_rejected(database: Database) -> None:
    person = Person()
    gate = PermissionService(PermissionStore(database), ask_seconds=0.05).for_session(
        "ann", HERE, lambda: PermissionMode.ASK, person.ask
    )
    assert await gate(ONCE) == PermissionDecision(allowed=False, reason=NOBODY_ANSWERED)


@shows("ACP-PERMISSIONS")
async def test_two_requests_of_one_scope_at_once_are_asked_about_once(database: Database) -> None:
    person, got = Person(PermissionAnswer.ALLOW_ALWAYS), list[PermissionDecision]()
    person.may_answer = anyio.Event()
    gate = a_permission_check(database, person)

    async def want(permission_request: PermissionRequest) -> None:
        got.append(await gate(permission_request))

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(want, EDIT)
            tasks.start_soon(want, replace(EDIT, call_id="call-9"))
            await until(lambda: bool(person.asked))
            person.may_answer.set()
    assert got == [PermissionDecision(allowed=True)] * 2
    assert len(person.asked) == 1


async def test_the_mode_is_looked_at_again_when_its_turn_comes(database: Database) -> None:
    person, got, modes = Person(PermissionAnswer.ALLOW_ONCE), list[PermissionDecision](), list[PermissionMode]()
    person.may_answer = anyio.Event()

    def mode() -> PermissionMode:
        modes.append(PermissionMode.PLAN if person.may_answer.is_set() else PermissionMode.ASK)
        return modes[-1]

    gate = PermissionService(PermissionStore(database)).for_session("ann", HERE, mode, person.ask)

    async def want(permission_request: PermissionRequest) -> None:
        got.append(await gate(permission_request))

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(want, EDIT)
            await until(lambda: bool(person.asked))
            tasks.start_soon(want, ONCE)
            await until(lambda: len(modes) == 3)
            person.may_answer.set()
    assert [word.allowed for word in got] == [True, False]
    assert modes == [PermissionMode.ASK] * 3 + [PermissionMode.PLAN]
    assert person.asked == [EDIT]


@shows("KEPT-11")
async def test_a_command_that_was_allowed_before_the_clock_was_set_back_is_asked_about_again(
    database: Database, tmp_path: Path
) -> None:
    script = tmp_path / "run.sh"
    script.write_text("")
    said = StoredPermission("run ./run.sh", allowed=True, created_at=datetime.now(UTC) + timedelta(hours=3))
    await PermissionStore(database).save("ann", HERE, said)
    person = Person(PermissionAnswer.ALLOW_ALWAYS)
    leave = a_permission_check(database, person)
    permission_request = PermissionRequest(
        "call-3", "run_command", OperationKind.EXECUTE, "Run `./run.sh`", scope=said.scope, defining_files=[script]
    )
    assert (await leave(permission_request)).allowed
    assert "the clock was set back" in person.asked[0].reason
    [again] = await PermissionStore(database).list("ann", HERE)
    assert again.created_at < said.created_at, "what is said now counts"
