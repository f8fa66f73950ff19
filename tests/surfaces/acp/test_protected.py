"""A scripted attacker in somebody's folder, where edits are allowed: it plants nothing that runs by itself unasked."""

import os
import random
import subprocess
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path, PurePath
from typing import Any

import pytest

from frontdesk.coding.protected_names import why_protected
from tests.requirements import shows
from tests.support.acp.words import script
from tests.support.ready import Ready
from tests.surfaces.acp.showing import Desk, calling, folder, introduced

pytestmark = shows("KEPT-04")
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
# What is written as if nothing were: the same file by another name.
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
FREE = (
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
async def desk(tmp_path_factory: pytest.TempPathFactory, ready: Ready) -> AsyncGenerator[Desk]:
    data = ready.in_folder(tmp_path_factory.mktemp("protected") / "data")
    async with introduced(data, FRONTDESK_MODEL="offline") as opened:
        yield opened


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A repository with a few traps in it, which the person has laid for themselves."""
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
    """Every way to write, over every path as it is and in some of its spellings."""
    chance = random.Random(seed)
    written = [one for path in PROTECTED for one in (path, chance.choice(sorted(spelt(path))))]
    tricks = ["way/config", "way/hooks/x", "twin", "tools/tidy.sh", "scripts/pre-push", "attic/config", "attic/hooks/x"]
    # There it is a folder already, of which no file can be made.
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


@pytest.mark.parametrize("path", PROTECTED)
def test_every_spelling_of_a_protected_path_is_known(path: str) -> None:
    for one in spelt(path):
        assert why_protected(PurePath(os.path.normpath(one)).parts), one


@pytest.mark.parametrize("path", FREE)
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
    """A session in which edits, moves and deletions are allowed, by a mode or by the person's word for good."""
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


@pytest.mark.parametrize("how", ["accept-edits", "auto", "always"])
async def test_what_runs_by_itself_is_asked_about_each_time(desk: Desk, work: Path, how: str) -> None:
    session = await allowed(desk, work, how)
    before, tried = everything(work), attacks(how)
    if how == "accept-edits":
        # Here the person is asked about these anyway, as about anything.
        tried = [one for one in tried if one["name"] in ("write_file", "edit_file")]
    desk.person.chooses("reject_once")
    await desk.client.prompt(session, script({"tools": tried}, {"text": "done"}))
    assert everything(work) == before
    assert len(desk.person.asked) == len(tried)
    for asked in desk.person.asked:
        assert [one["kind"] for one in asked["options"]] == ["allow_once", "reject_once"]
        assert "asked each time, since" in asked["toolCall"]["title"]
        assert "asked each time, since" in str(asked["toolCall"]["content"])
    # What was allowed is still free, and a word for one time is one for that time.
    desk.person.chooses("allow_once")
    free = [{"name": "write_file", "args": {"path": path, "content": "x"}} for path in FREE]
    await desk.client.prompt(session, script({"tools": free}, {"text": "done"}))
    assert desk.person.asked == []
    for number in range(2):
        await desk.client.prompt(session, calling("write_file", path=".envrc", content=f"export A={number}"))
    assert len(desk.person.asked) == 2
    assert (work / ".envrc").read_text() == "export A=1"


async def test_a_rejection_for_good_and_plan_mode_hold_for_these_too(desk: Desk, work: Path) -> None:
    session = await desk.client.open_session(work)
    desk.person.chooses("reject_always")
    await desk.client.prompt(session, calling("write_file", path="a.txt", content="x"))
    await desk.client.prompt(session, calling("write_file", path=".envrc", content="x"))
    assert len(desk.person.asked) == 1
    assert not (work / ".envrc").exists()


async def test_a_remembered_command_does_not_run_what_was_planted(desk: Desk, work: Path) -> None:
    session = await allowed(desk, work, "accept-edits")
    git(work, "config", "--unset", "filter.tidy.clean")
    # Where somebody could plant: past every name, by a command that was allowed for good.
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
    desk.person.chooses("allow_always")
    for command in remembered:
        await desk.client.prompt(session, calling("run_command", command=command))
    offered = [
        next(one["name"] for one in asked["options"] if one["kind"] == "allow_always") for asked in desk.person.asked
    ]
    assert len(offered) == len(remembered)
    assert ["which runs code of the workspace" in name for name in offered] == [False, False, True, True, True, True]
    desk.person.chooses("reject_once")
    # By what it names it is seen, and by what it did as well.
    await desk.client.prompt(session, calling("run_command", command="cp loot/.git/config .g[i]t/config"))
    assert len(desk.person.asked) == 1
    desk.person.chooses("reject_once")
    await desk.client.prompt(session, calling("run_command", command="cp -r loot/. ."))
    assert desk.person.asked == []
    edits = [
        {"name": "write_file", "args": {"path": path, "content": text}}
        for path, text in (
            ("run.sh", EVIL),
            ("Makefile", "all:\n\ttouch planted\n"),
            ("tool.py", "open('planted', 'w')"),
        )
    ]
    await desk.client.prompt(session, script({"tools": edits}, {"text": "done"}))
    assert desk.person.asked == []
    for command in remembered[1:]:
        desk.person.chooses("reject_once")
        await desk.client.prompt(session, calling("run_command", command=command))
        assert [("asked again" in one["toolCall"]["title"]) for one in desk.person.asked] == [True], command
    assert not (work / "planted").exists()
    assert "fsmonitor" in (work / ".git" / "config").read_text(), "it was planted indeed"
