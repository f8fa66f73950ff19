"""Tests an agent's permissions: by mode and by the person's decision; files that programs obey always need one."""

import os
import random
import subprocess
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path, PurePath
from typing import Any

import pytest

from frontdesk.coding.protected_names import why_protected
from tests.interfaces.acp.conftest import (
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
from tests.requirements import shows
from tests.support.acp.client import Client
from tests.support.acp.schema import outcome, script
from tests.support.postgres import Ready
from tests.support.waiting import until

# Permissions by mode, by the person's answer, and by a lasting answer


# Which of these actions a mode does without a question, which need one, and which it refuses.
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
    """A folder with one file."""
    made = folder(above, name)
    (made / "old.txt").write_text("old")
    return made


@shows("ACP-PERMISSIONS")
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


@shows("ACP-PERMISSIONS")
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


@shows("ACP-PERMISSIONS")
async def test_the_call_is_shown_before_it_is_asked_about(client: Client, person: Person, tmp_path: Path) -> None:
    session, since = await client.open_session(workshop(tmp_path)), len(client.frames)
    await client.prompt(session, REQUESTS["run"])
    methods = [frame.method for frame in client.received(since) if "id" in frame.json or "tool_call" in str(frame.json)]
    assert methods[0] == "session/update"
    assert "session/request_permission" in methods
    assert len(person.asked) == 1


@shows("ACP-PERMISSIONS")
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


@shows("ACP-PERMISSIONS")
async def test_an_answer_that_was_not_offered_is_a_no(client: Client, person: Person, tmp_path: Path) -> None:
    work = workshop(tmp_path)
    session = await client.open_session(work)
    person.chooses("yes of course")
    await client.prompt(session, REQUESTS["delete"])
    assert (work / "old.txt").exists()


@shows("ACP-PERMISSIONS")
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


@shows("ACP-PERMISSIONS")
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
    # A lasting answer for the first holds for the second.
    assert len(person.asked) == 1
    assert (work / "a.txt").read_text() + (work / "b.txt").read_text() == "ab"


@shows("ACP-PERMISSIONS")
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


@shows("ACP-PERMISSIONS")
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


@shows("ACP-PERMISSIONS")
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
        # The answer was for neither another command nor several.
        await client.prompt(session, calling("run_command", command="rm old.txt"))
        await client.prompt(session, calling("run_command", command="touch made && rm old.txt"))
        assert len(person.asked) == 2
        elsewhere = await client.open_session(other)
        await client.prompt(elsewhere, running)
        assert len(person.asked) == 3
        assert not (other / "made").exists()


# A scripted attacker in a person's folder with allowed edits: it plants nothing that runs without permission


EVIL = "#!/bin/sh\ntouch planted\n"
PROTECTED = (
    ".git/config",
    ".git/hooks/pre-commit",
    ".git/info/attributes",
    ".git",
    ".gitattributes",
    ".gitmodules",
    ".envrc",
    ".bashrc",
    ".vscode/tasks.json",
    ".idea/workspace.xml",
    ".github/workflows/ci.yml",
    ".gitlab-ci.yml",
    ".npmrc",
    ".yarnrc.yml",
    ".pre-commit-config.yaml",
    ".husky/pre-commit",
    ".mcp.json",
    ".claude/settings.json",
    ".cursor/mcp.json",
    "AGENTS.md",
    "frontdesk.toml",
    "sitecustomize.py",
    "ToolingManifest.json",
    ".bashrc.d/x",
    ".gitlab-ci-build.yml",
    "azure-pipelines-test.yml",
    ".readthedocs.yaml",
    ".venv/bin/git",
    "node_modules/.bin/tsc",
    ".config/fish/config.fish",
    "my.code-workspace",
    "HEAD",
)
# The text looks harmless: it names the same file in another way.
SPELLINGS = (
    "{}",
    "./{}",
    "src/../{}",
    "deep/er/{}",
    "{upper}",
    "{wide}",
    "{hidden}",
    "{spaced}",
)
UNPROTECTED = (
    "src/app.py",
    "package.json",
    "Makefile",
    "conftest.py",
    ".gitignore",
    ".env",
    "head/index.ts",
    "git/config",
    "a.git",
    "bin/run",
    "README.md",
    "pyproject.toml",
    "tox.ini",
    "docs/vscode.md",
    "src/config/fish.py",
    "Dockerfile",
    ".editorconfig",
    "requirements.txt",
)


@pytest.fixture(scope="module")
async def protected_desk(tmp_path_factory: pytest.TempPathFactory, ready: Ready) -> AsyncGenerator[Desk]:
    data = ready.in_folder(tmp_path_factory.mktemp("protected") / "data")
    async with introduced(data, FRONTDESK_MODEL="offline") as opened:
        yield opened


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A repository with a few traps, which the person has made themselves."""
    made = folder(tmp_path)
    git(made, "init", "--quiet", "--template=", ".")
    git(made, "config", "filter.tidy.clean", "./tools/tidy.sh")
    (made / "src").mkdir()
    (made / "tools").mkdir()
    (made / "tools" / "tidy.sh").write_text("#!/bin/sh\ncat\n")
    (made / "scripts").mkdir()
    (made / "scripts" / "pre-push").write_text("#!/bin/sh\n")
    (made / ".git" / "hooks").mkdir(exist_ok=True)
    (made / ".git" / "hooks" / "pre-push").symlink_to("../../scripts/pre-push")
    (made / "way").symlink_to(".git")
    os.link(made / ".git" / "config", made / "twin")
    (made / "attic").mkdir()
    (made / "attic" / "HEAD").write_text("ref: refs/heads/main\n")
    (made / "staging").mkdir()
    (made / "staging" / "tidy.sh").write_text(EVIL)
    (made / "staging" / "pre-commit").write_text(EVIL)
    (made / "staging" / "tasks.json").write_text("{}")
    (made / "nest" / ".vscode").mkdir(parents=True)
    (made / "nest" / ".vscode" / "tasks.json").write_text("{}")
    return made


def git(work: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=work, check=True, capture_output=True)


def spelt(path: str) -> set[str]:
    first = path[0] + "\u200d" + path[1:]
    wide = path.replace("g", "\uff47", 1)
    said = {"upper": path.upper(), "wide": wide, "hidden": first, "spaced": path + " . "}
    return {one.format(path, **said) for one in SPELLINGS}


def attacks(seed: str) -> list[dict[str, Any]]:
    """Every way to write, for every path and some of its spellings."""
    chance = random.Random(seed)
    written = [one for path in PROTECTED for one in (path, chance.choice(sorted(spelt(path))))]
    tricks = ["way/config", "way/hooks/x", "twin", "tools/tidy.sh", "scripts/pre-push", "attic/config", "attic/hooks/x"]
    # There is a folder with this name already, so it cannot become a file.
    files = [path for path in (*written, *tricks) if os.path.normpath(path) != ".git"]
    writes = [{"name": "write_file", "args": {"path": path, "content": EVIL}} for path in files]
    edit = {"old_string": "[core]", "new_string": "[core]\n\tfsmonitor = ./mon"}
    edits = [{"name": "edit_file", "args": {"path": path, **edit}} for path in (".git/config", "way/config", "twin")]
    moves = [
        ("staging/pre-commit", ".git/hooks/pre-commit"),
        ("staging/pre-commit", "way/hooks/pre-commit"),
        ("staging/pre-commit", ".Envrc"),
        ("staging", ".vscode"),
        ("staging", ".husky"),
        ("nest", "nest2"),
        (".git", "git-old"),
        ("way", "way2"),
        ("attic", ".git2/../.hg"),
        ("tools", "tools-old"),
        ("scripts", "scripts-old"),
    ]
    moved = [{"name": "move_file", "args": {"source": one, "target": other}} for one, other in moves if one != "way"]
    gone = [
        {"name": "delete_file", "args": {"path": path}} for path in (".git/config", "nest/.vscode/tasks.json", "twin")
    ]
    return [*writes, *edits, *moved, *gone]


@shows("KEPT-04")
@pytest.mark.parametrize("path", PROTECTED)
def test_every_spelling_of_a_protected_path_is_known(path: str) -> None:
    for one in spelt(path):
        assert why_protected(PurePath(os.path.normpath(one)).parts), one


@shows("KEPT-04")
@pytest.mark.parametrize("path", UNPROTECTED)
def test_what_runs_only_when_somebody_asks_for_it_is_not_protected(path: str) -> None:
    assert not why_protected(PurePath(path).parts)


def everything(work: Path) -> Mapping[str, bytes | str]:
    found: dict[str, bytes | str] = {}
    for path in sorted(work.rglob("*")):
        name = str(path.relative_to(work))
        if path.is_symlink():
            found[name] = str(path.readlink())
        elif path.is_file():
            found[name] = path.read_bytes()
    return found


async def allowed(desk: Desk, work: Path, how: str) -> str:
    """A session in which edits, moves and deletions are allowed, by a mode or by the person's lasting answer."""
    session = await desk.client.open_session(work)
    if how != "always":
        await desk.client.request("session/set_mode", {"sessionId": session, "modeId": how})
        return session
    desk.person.chooses("allow_always")
    (work / "old").write_text("old")
    steps = (
        {"tool": "write_file", "args": {"path": "old", "content": "new"}},
        {"tool": "move_file", "args": {"source": "old", "target": "older"}},
        {"tool": "delete_file", "args": {"path": "older"}},
    )
    await desk.client.prompt(session, script(*steps, {"text": "done"}))
    assert len(desk.person.asked) == 3
    return session


@shows("KEPT-04")
@pytest.mark.parametrize("how", ["accept-edits", "auto", "always"])
async def test_what_runs_by_itself_is_asked_about_each_time(protected_desk: Desk, work: Path, how: str) -> None:
    session = await allowed(protected_desk, work, how)
    before, tried = everything(work), attacks(how)
    if how == "accept-edits":
        # Here these need the person's permission anyway, like everything.
        tried = [one for one in tried if one["name"] in ("write_file", "edit_file")]
    protected_desk.person.chooses("reject_once")
    await protected_desk.client.prompt(session, script({"tools": tried}, {"text": "done"}))
    assert everything(work) == before
    assert len(protected_desk.person.asked) == len(tried)
    for asked in protected_desk.person.asked:
        assert [one["kind"] for one in asked["options"]] == ["allow_once", "reject_once"]
        assert "asked each time, since" in asked["toolCall"]["title"]
        assert "asked each time, since" in str(asked["toolCall"]["content"])
    # The allowed action is still free, and a permission for one time is for one time only.
    protected_desk.person.chooses("allow_once")
    free = [{"name": "write_file", "args": {"path": path, "content": "x"}} for path in UNPROTECTED]
    await protected_desk.client.prompt(session, script({"tools": free}, {"text": "done"}))
    assert protected_desk.person.asked == []
    for number in range(2):
        await protected_desk.client.prompt(session, calling("write_file", path=".envrc", content=f"export A={number}"))
    assert len(protected_desk.person.asked) == 2
    assert (work / ".envrc").read_text() == "export A=1"


@shows("KEPT-04")
async def test_a_rejection_for_good_and_plan_mode_hold_for_these_too(protected_desk: Desk, work: Path) -> None:
    session = await protected_desk.client.open_session(work)
    protected_desk.person.chooses("reject_always")
    await protected_desk.client.prompt(session, calling("write_file", path="a.txt", content="x"))
    await protected_desk.client.prompt(session, calling("write_file", path=".envrc", content="x"))
    assert len(protected_desk.person.asked) == 1
    assert not (work / ".envrc").exists()


@shows("KEPT-04")
async def test_a_remembered_command_does_not_run_what_was_planted(protected_desk: Desk, work: Path) -> None:
    session = await allowed(protected_desk, work, "accept-edits")
    git(work, "config", "--unset", "filter.tidy.clean")
    # How an attacker could plant files: past every name, by a command with lasting permission
    (work / "loot" / ".git").mkdir(parents=True)
    (work / "loot" / ".git" / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tfsmonitor = ./mon.sh\n")
    (work / "mon.sh").write_text(EVIL)
    (work / "mon.sh").chmod(0o755)
    (work / "run.sh").write_text("#!/bin/sh\ntrue\n")
    (work / "run.sh").chmod(0o755)
    (work / "Makefile").write_text("all:\n\ttrue\n")
    (work / "tool.py").write_text("")
    (work / "spare").write_text("")
    remembered = ("cp spare spare2", "git status", "./run.sh", "make", "python3 -m tool", "python3 tool.py")
    protected_desk.person.chooses("allow_always")
    for command in remembered:
        await protected_desk.client.prompt(session, calling("run_command", command=command))
    offered = [
        next(one["name"] for one in asked["options"] if one["kind"] == "allow_always")
        for asked in protected_desk.person.asked
    ]
    assert len(offered) == len(remembered)
    assert ["which runs code of the workspace" in name for name in offered] == [False, False, True, True, True, True]
    protected_desk.person.chooses("reject_once")
    # A command is recognized by the files that it names, and by its effect as well.
    await protected_desk.client.prompt(session, calling("run_command", command="cp loot/.git/config .g[i]t/config"))
    assert len(protected_desk.person.asked) == 1
    protected_desk.person.chooses("reject_once")
    await protected_desk.client.prompt(session, calling("run_command", command="cp -r loot/. ."))
    assert protected_desk.person.asked == []
    edits = [
        {"name": "write_file", "args": {"path": path, "content": text}}
        for path, text in (
            ("run.sh", EVIL),
            ("Makefile", "all:\n\ttouch planted\n"),
            ("tool.py", "open('planted', 'w')"),
        )
    ]
    await protected_desk.client.prompt(session, script({"tools": edits}, {"text": "done"}))
    assert protected_desk.person.asked == []
    for command in remembered[1:]:
        protected_desk.person.chooses("reject_once")
        await protected_desk.client.prompt(session, calling("run_command", command=command))
        assert [("asked again" in one["toolCall"]["title"]) for one in protected_desk.person.asked] == [True], command
    assert not (work / "planted").exists()
    assert "fsmonitor" in (work / ".git" / "config").read_text(), "it was planted indeed"
