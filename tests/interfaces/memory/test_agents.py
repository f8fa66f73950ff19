"""Tests a person's tasks and memories from a built-in agent and commands, and agents that due tasks wake."""

import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from frontdesk.agents.embedded.operation_tools import OperationTools
from frontdesk.agents.host import NewAgent, Prompt
from frontdesk.app import App, open_app
from frontdesk.identity.model import Caller
from frontdesk.identity.rights import TASKS_WRITE
from frontdesk.llm.events import ToolReturn, ToolStatus
from frontdesk.memory.model import PersonScope, TaskStatus
from frontdesk.memory.tasks_rules import TaskFilter
from frontdesk.operation_table import MEMORY_OPERATIONS
from frontdesk.schedules.model import ScheduleState
from frontdesk.schedules.requests import ListSchedules
from frontdesk.settings import Settings
from tests.requirements import shows
from tests.support.desk import frontdesk_here
from tests.support.postgres import Ready

# A built-in agent that keeps the tasks and memories of the person it works for


SECONDS = 60
ANN = Caller("test", user_id="ann")


@pytest.fixture
async def installation(settings: Settings) -> AsyncGenerator[App]:
    async with open_app(settings) as app:
        yield app


async def told(installation: App, agent: str, caller: Caller, tool: str, **arguments: Any) -> ToolReturn:
    """The result of a tool for the agent, when a person makes it call the tool."""
    script = f"@@{json.dumps([{'tool': tool, 'args': arguments}, {'text': 'done'}])}@@"
    with anyio.fail_after(SECONDS):
        prompt = Prompt(agent, caller, script)
        [said] = [event async for event in installation.host.send(prompt) if isinstance(event, ToolReturn)]
    return said


@shows("MEMORY-AGENT")
async def test_it_keeps_the_records_of_the_person_it_works_for_and_of_nobody_else(installation: App) -> None:
    agent = (await installation.host.create(NewAgent("Ada"))).id
    made = await told(installation, agent, ANN, "create_task", title="Book the train", due_date="2040-11-20")
    assert made.text.startswith("Created.\nBook the train (id ")
    assert "due Tue 2040-11-20 23:59 UTC" in made.text
    [task] = (await installation.memory.tasks.list(PersonScope("ann"), TaskFilter())).items
    assert task.title == "Book the train"
    await told(installation, agent, ANN, "add_memory", note="Ann sits by the window")
    [memory] = (await told(installation, agent, ANN, "search_memories")).text.splitlines()[1:2]
    assert "Ann sits by the window" in memory
    others = await told(installation, agent, Caller("test", user_id="bob"), "search_tasks")
    assert others.text.startswith("No task is like that.")
    stolen = await told(installation, agent, Caller("test", user_id="bob"), "get_task", id=task.id)
    assert (stolen.status, stolen.text) == (ToolStatus.ERROR, "Task not found")
    wrong = await told(installation, agent, ANN, "create_task", name="no such thing")
    assert (wrong.status, "title: Field required" in wrong.text) == (ToolStatus.ERROR, True)


@shows("MEMORY-AGENT")
async def test_it_has_the_tools_only_for_a_person_who_is_known(installation: App) -> None:
    own = OperationTools()
    assert own.for_caller(ANN, None) == (), "before the room stands"
    own.open(lambda: [installation.bind(operation, installation.memory) for operation in MEMORY_OPERATIONS])
    names = [tool.name for tool in own.for_caller(Caller("r", "agent-1", "ann"), None)]
    assert (len(set(names)), len(names)) == (36, 36)
    assert not {"set_access_token", "authenticate", "get_categories"} & set(names)
    assert own.for_caller(Caller("r", "agent-1"), None) == []
    keyless = Caller("r", "agent-1", "local", credential_id="local")
    assert own.for_caller(keyless, None) == [], "whoever visits the chat without a key is nobody in particular"
    agent = (await installation.host.create(NewAgent("Ada"))).id
    said = await told(installation, agent, Caller("test"), "create_task", title="Whose?")
    assert said.status is ToolStatus.UNKNOWN


# A due task wakes its agent: memory and scheduler, as the app connects them


ANN_SCOPE = PersonScope("ann")
DUE = (datetime.now(UTC) + timedelta(days=2)).replace(microsecond=0)
INSTALLATION = Caller("test", local=True, any_agent=True)


async def _planned(app: App) -> list[tuple[str, str | None, str, ScheduleState]]:
    """The agent, person and state of each scheduled prompt."""
    listed = await app.schedules.queries.list(INSTALLATION, ListSchedules(include_cancelled=True))
    return [(one.what.agent_id, one.what.user_id, one.what.prompt, one.state) for one in listed.schedules]


@shows("MEMORY-WAKE")
async def test_an_agent_is_woken_for_its_task_which_moves_with_it_and_is_taken_back_when_it_is_done(app: App) -> None:
    clerk = await app.host.create(NewAgent("Clerk"))
    task = await app.memory.tasks.create(
        ANN_SCOPE, {"title": "File it", "assignee": "clerk", "due_date": DUE.isoformat()}
    )
    assert task.wake_schedule_id is not None
    [(agent, person, prompt, state)] = await _planned(app)
    assert (agent, person, state) == (clerk.id, "ann", ScheduleState.ACTIVE)
    assert "File it" in prompt
    assert task.id in prompt
    later = (DUE + timedelta(days=1)).isoformat()
    moved = await app.memory.tasks.update(ANN_SCOPE, task.id, {"due_date": later})
    assert [state for *_, state in await _planned(app)] == [ScheduleState.CANCELLED, ScheduleState.ACTIVE]
    assert moved.wake_schedule_id not in (None, task.wake_schedule_id)
    done = await app.memory.tasks.set_status(ANN_SCOPE, task.id, TaskStatus.COMPLETED)
    assert done.wake_schedule_id is None
    assert {state for *_, state in await _planned(app)} == {ScheduleState.CANCELLED}


async def test_a_person_as_assignee_wakes_nobody_and_a_key_that_may_not_is_told_so(app: App) -> None:
    await app.host.create(NewAgent("Clerk"))
    due = {"due_date": DUE.isoformat()}
    plain = await app.memory.tasks.create(ANN_SCOPE, {"title": "Call Bo", "assignee": "Bo", **due})
    assert (plain.wake_schedule_id, plain.wake_note) == (None, "")
    limited = PersonScope("ann", scopes=frozenset({TASKS_WRITE}))
    kept = await app.memory.tasks.create(limited, {"title": "File it", "assignee": "Clerk", **due})
    assert kept.wake_schedule_id is None
    assert "schedules:write" in kept.wake_note
    assert await _planned(app) == []


async def test_what_is_deleted_or_closed_by_its_subtasks_wakes_nobody_any_more(app: App) -> None:
    await app.host.create(NewAgent("Clerk"))
    asked = {"assignee": "Clerk", "due_date": DUE.isoformat()}
    parent = await app.memory.tasks.create(
        ANN_SCOPE, {"title": "Move", "completion_behavior": "auto_when_subtasks_complete", **asked}
    )
    child = await app.memory.tasks.create(ANN_SCOPE, {"title": "Pack", "parent_task_id": parent.id, **asked})
    assert [state for *_, state in await _planned(app)] == [ScheduleState.ACTIVE, ScheduleState.ACTIVE]
    await app.memory.tasks.set_status(ANN_SCOPE, child.id, TaskStatus.COMPLETED)
    assert (await app.memory.tasks.get(ANN_SCOPE, parent.id)).status is TaskStatus.COMPLETED
    assert {state for *_, state in await _planned(app)} == {ScheduleState.CANCELLED}
    alone = await app.memory.tasks.create(ANN_SCOPE, {"title": "Sweep", **asked})
    await app.memory.tasks.delete(ANN_SCOPE, alone.id)
    assert {state for *_, state in await _planned(app)} == {ScheduleState.CANCELLED}


# `frontdesk tasks` and `frontdesk memory` for a person, run in process


@dataclass(frozen=True, slots=True)
class Shell:
    """The command on one data folder."""

    data: Path

    def __call__(self, *arguments: str) -> str:
        """Its output when it succeeds."""
        done = frontdesk_here(*arguments, data=self.data)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def objects(self, *arguments: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self(*arguments, "--json").splitlines()]

    def refused(self, *arguments: str) -> tuple[int, str]:
        """Its exit code, and why."""
        done = frontdesk_here(*arguments, data=self.data)
        return done.returncode, done.stderr.strip()


@pytest.fixture
def shell(tmp_path: Path, ready: Ready) -> Shell:
    ready.in_folder(tmp_path / "data")
    return Shell(tmp_path / "data")


@shows("CLI-MEMORY")
def test_a_task_is_made_of_others_and_completed_with_the_last_of_them(shell: Shell) -> None:
    assert shell("memory", "zone", "europe/berlin") == shell("memory", "zone") == "Europe/Berlin"
    shell("memory", "categories", "add", "Travel", "--color", "#1E88E5")
    whole = ("--due", "2030-05-17", "--completion", "with-subtasks", "--progress-by", "average")
    trip = shell("tasks", "add", "Go to Lisbon", *whole)
    train = shell("tasks", "add", "Book the train", "--parent", trip, "--category", "TRAVEL", "--tag", "Rail")
    hotel = shell("tasks", "add", "Book the hotel", "--parent", trip, "--after", train, "--priority", "high")
    assert {one["id"] for one in shell.objects("tasks", "list")} == {trip, train, hotel}
    assert [one["id"] for one in shell.objects("tasks", "list", "--category", "travel", "--tag", "rail")] == [train]
    assert "due Fri 2030-05-17 23:59 CEST" in shell("tasks", "show", trip)
    code, why = shell.refused("tasks", "done", hotel)
    assert (code, "cannot be completed yet" in why) == (1, True), why
    assert "completed" in shell("tasks", "done", train)
    assert shell.objects("tasks", "show", trip)[0]["progress"] == 50
    rows = shell("tasks", "tree", trip).splitlines()[1:]
    assert [row.split("  ")[1] for row in rows] == ["Go to Lisbon", "· Book the train", "· Book the hotel"]
    assert [one["id"] for one in shell.objects("tasks", "tree", trip, "--open-only")] == [trip, hotel]
    shell("tasks", "update", hotel, "--title", "Book a room", "--progress", "60", "--clear", "after")
    assert shell.objects("tasks", "show", hotel)[0]["dependencies"] == []
    shell("tasks", "done", hotel)
    done = shell.objects("tasks", "show", trip)[0]
    assert (done["status"], done["progress"]) == ("completed", 100)
    assert "by status                 completed 3" in shell("tasks", "stats")
    assert shell("tasks", "delete", trip).startswith("Deleted: Go to Lisbon")
    assert shell("tasks", "list") == "No tasks. Make one: frontdesk tasks add TITLE"


@shows("CLI-MEMORY")
def test_a_person_has_one_timer_at_a_time(shell: Shell) -> None:
    first, second = shell("tasks", "add", "Write"), shell("tasks", "add", "Read")
    assert shell("tasks", "running").startswith("No timer runs")
    assert shell.refused("tasks", "stop")[0] == 1
    assert "first draft" in shell("tasks", "start", first, "--note", "first draft")
    code, why = shell.refused("tasks", "start", second)
    assert (code, f"The timer of 'Write' ({first}) is running" in why) == (1, True), why
    assert shell.objects("tasks", "start", second, "--switch")[0]["timeline_item_id"] == second
    assert shell.objects("tasks", "running")[0]["end_at"] is None
    assert shell.refused("tasks", "stop", first)[0] == 1
    assert shell.objects("tasks", "stop")[0]["duration_minutes"] == 1
    spent = shell.objects("tasks", "day")[0]
    assert {one["name"] for one in spent["by_item"]} == {"Write", "Read"}
    assert "Write" in shell("tasks", "day", spent["day"])
    assert shell.objects("tasks", "running") == []


@shows("CLI-MEMORY")
def test_work_is_given_to_agents_and_approved(shell: Shell) -> None:
    clerk = shell("agents", "create", "Clerk")
    task = shell("tasks", "add", "Find a hotel")
    work = shell("tasks", "assign", task, "Clerk", "Compare hotels", "--type", "research", "--mode", "execute")
    shell("tasks", "assign", task, "Elsewhere", "Write it up", "--type", "writing", "--due", "2030-05-17")
    assert len(shell.objects("tasks", "queue")) == 2
    told = shell.objects("tasks", "queue", "--agent", "clerk")
    assert [(one["id"], one["agent_id"], one["mode"]) for one in told] == [(work, clerk, "execute")]
    assert "only once the person approves" in shell("tasks", "work", work)
    assert shell("tasks", "approve", work).startswith("Approved: Compare hotels")
    assert [event["note"] for event in shell.objects("tasks", "work", work)[0]["history"]][-1] == "Approved"


@shows("CLI-MEMORY")
def test_memories_are_found_by_meaning_superseded_and_no_longer_found(shell: Shell) -> None:
    old = shell("memory", "add", "Bo works at the harbour", "--tag", "bo", "--salience", "0.5")
    new = shell("memory", "add", "Bo works at the airport", "--supersedes", old, "--highlight", "--type", "insight")
    walnuts = shell("memory", "add", "Ann is allergic to walnuts", "--place", "Lisbon")
    shell("tasks", "add", "Buy nuts for Ann")
    found = shell.objects("memory", "search", "which food is bad for Ann?")
    assert [found[0]["id"], found[0]["type"]] == [walnuts, "memory"]
    assert found[0]["score"] > 0
    assert "meaning" in found[0]["why"]
    assert {one["type"] for one in shell.objects("memory", "search", "Ann", "--everything")} == {"memory", "task"}
    assert "allergic to walnuts" in shell("memory", "search", "walnuts", "--limit", "1")
    assert [one["id"] for one in shell.objects("memory", "search", "Bo", "--type", "insight")] == [new]
    assert {one["id"] for one in shell.objects("memory", "list")} == {new, walnuts}
    assert {one["id"] for one in shell.objects("memory", "list", "--all")} == {old, new, walnuts}
    assert f"It was replaced by {new}" in shell("memory", "show", old)
    shell("memory", "delete", new)
    assert {one["id"] for one in shell.objects("memory", "list")} == {old, walnuts}
    assert "total                     2" in shell("memory", "stats")
    said = shell.objects("memory", "insights", "--range", "today")[0]
    assert (said["counts"], said["first_day"]) == ({"memory": 2, "task": 1}, said["last_day"])
    assert said["sentences"][0] in shell("memory", "insights", "--range", "today")


@shows("CLI-MEMORY")
def test_everything_of_a_person_is_handed_out_erased_and_taken_in(shell: Shell) -> None:
    for user in ("ann", "bob"):
        shell("tasks", "add", f"A task of {user}", "--user", user)
        shell("memory", "add", f"A memory of {user}", "--user", user)
    document = json.loads(shell("memory", "export", "--user", "ann"))
    assert "bob" not in json.dumps(document)
    assert shell("memory", "export", "ann.json", "--user", "ann") == "Written: ann.json"
    assert shell.refused("memory", "export", "ann.json", "--user", "ann")[0] == 2
    assert shell.data.parent.joinpath("ann.json").stat().st_mode & 0o077 == 0
    assert "--yes" in shell.refused("memory", "erase", "--user", "ann")[1]
    assert "1 tasks" in shell("memory", "erase", "--user", "ann", "--yes")
    assert shell.objects("tasks", "list", "--user", "ann") == []
    assert "ann" not in json.dumps(shell.objects("journal")), "nor does the journal say that there was anybody"
    assert [one["user_id"] for one in shell.objects("memory", "people")] == ["bob"]
    shell("memory", "import", "ann.json", "--user", "ann")
    assert shell.objects("memory", "search", "memory", "--user", "ann")[0]["title"] == "A memory of ann"
    told = [(one["user_id"], one["items"]) for one in shell.objects("memory", "people")]
    assert told == [("ann", 2), ("bob", 2)]
    assert "bob" in shell("memory", "people")


def test_every_change_is_in_the_journal_without_what_was_said(shell: Shell) -> None:
    task = shell("tasks", "add", "A secret plan", "--user", "ann")
    note = shell("memory", "add", "A secret thought", "--user", "ann")
    shell("tasks", "done", task, "--user", "ann")
    shell("tasks", "list", "--user", "ann")
    shell("memory", "search", "secret", "--user", "ann")
    shell("memory", "delete", note, "--user", "ann")
    assert shell.refused("tasks", "done", "A secret plan", "--user", "ann")[0] == 2
    rows = shell.objects("journal")
    assert [(row["action"], row["outcome"], row["user_id"]) for row in rows] == [
        (f"tasks add {task}", "ok", "ann"),
        (f"memory add {note}", "ok", "ann"),
        (f"tasks done {task}", "ok", "ann"),
        (f"memory delete {note}", "ok", "ann"),
        ("tasks done", "refused", "ann"),
    ]
    assert {row["surface"] for row in rows} == {"cli"}
    assert "secret" not in json.dumps(rows)


@shows("CLI-SAFE")
def test_nothing_that_is_kept_can_drive_the_terminal(shell: Shell) -> None:
    bad = "nice\x1b[2J\x9b31m\u202ename"
    task = shell("tasks", "add", bad, "--description", bad, "--assignee", bad, "--tag", bad)
    memory = shell("memory", "add", bad, "--place", bad, "--tag", bad)
    shell("memory", "categories", "add", bad)
    shell("tasks", "start", task, "--note", bad)
    work = shell("tasks", "assign", task, "Clerk", bad, "--type", "coding")
    looks = (
        *(("tasks", name) for name in ("list", "running", "day", "queue", "stats")),
        *(("memory", name) for name in ("list", "categories", "stats", "insights")),
        *(("tasks", "show", task), ("tasks", "tree", task), ("tasks", "work", work)),
        *(("memory", "show", memory), ("memory", "search", "nice")),
    )
    printed = "".join(shell(*look) for look in looks)
    assert "nice" in printed
    assert [char for char in ("\x1b", "\x9b", "\u202e") if char in printed] == []
    assert "\x1b" not in shell.refused("tasks", "add", "x", "--category", bad)[1]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("tasks", "add", "x", "--due", "soon"), 2, "due_date must be a day (2026-11-20)"),
        (("tasks", "add", "x", "--category", "none"), 2, "There is no category 'none'"),
        (("tasks", "add", "x" * 201), 2, "title: String should have at most 200 characters"),
        (("tasks", "add", "x", "--zone", "Berlin"), 2, "Unknown time zone: Berlin. Use Europe/Berlin"),
        (("tasks", "show", "12345678"), 1, "Task not found: no id begins with 12345678"),
        (("tasks", "show", "1234"), 2, "is no id; give one as it is listed, or its first 8 characters"),
        (("tasks", "update", "12345678", "--clear", "title"), 2, "--clear takes description, due"),
        (("memory", "add", "x", "--salience", "2"), 2, "salience_score: Input should be less than or equal to 1"),
        (("memory", "list", "--user", "a\nb"), 2, "--user names a person by 1 to 200 printable characters"),
        (("memory", "import", "nowhere.json"), 2, "nowhere.json cannot be read: No such file or directory"),
        (("memory", "show", "00000000-0000-7000-8000-000000000000"), 1, "Memory not found"),
    ],
)
def test_a_mistake_says_what_to_do(shell: Shell, arguments: tuple[str, ...], code: int, said: str) -> None:
    found, why = shell.refused(*arguments)
    assert (found, said in why) == (code, True), why
