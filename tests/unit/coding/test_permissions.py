"""Tests which actions need no permission, which need one, and what a lasting answer covers."""

import os
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.coding.command_scopes import NO_SCOPE, PermissionScope, scope_of_command, scope_of_kind, scope_of_tool
from frontdesk.coding.guard import PathGuard, changed_since
from frontdesk.coding.model import OperationKind, PermissionMode, PermissionRequest
from frontdesk.coding.paths import WorkspaceRoots
from frontdesk.coding.permissions import PolicyAction, PolicyDecision, decide_permission
from tests.requirements import shows

LOOKS = {OperationKind.READ, OperationKind.SEARCH, OperationKind.THINK}
ACTS = set(OperationKind) - LOOKS
NOTHING: Mapping[str, bool] = {}


def a_permission_request(kind: OperationKind, scope: str = "", **more: Any) -> PermissionRequest:
    return PermissionRequest("call-1", "tool", kind, "Do it", scope=scope, **more)


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)


def answers(
    mode: PermissionMode, kinds: set[OperationKind], remembered: Mapping[str, bool] = NOTHING, **more: Any
) -> set[PolicyAction]:
    return {decide_permission(mode, a_permission_request(kind, **more), remembered).action for kind in kinds}


@shows("ACP-PERMISSIONS")
@pytest.mark.parametrize("mode", PermissionMode)
def test_looking_is_free_in_every_mode(mode: PermissionMode) -> None:
    assert answers(mode, LOOKS) == {PolicyAction.ALLOW}
    assert answers(mode, set(OperationKind), harmless=True) == {PolicyAction.ALLOW}


@shows("ACP-PERMISSIONS")
def test_each_mode_frees_what_it_says() -> None:
    assert answers(PermissionMode.ASK, ACTS) == {PolicyAction.ASK}
    assert answers(PermissionMode.ACCEPT_EDITS, {OperationKind.EDIT}) == {PolicyAction.ALLOW}
    assert answers(PermissionMode.ACCEPT_EDITS, ACTS - {OperationKind.EDIT}) == {PolicyAction.ASK}
    assert answers(PermissionMode.AUTO, ACTS) == {PolicyAction.ALLOW}
    assert answers(PermissionMode.PLAN, ACTS) == {PolicyAction.REFUSE}


@shows("ACP-PERMISSIONS")
def test_plan_mode_says_what_to_do_instead_and_how_it_is_left() -> None:
    said = decide_permission(PermissionMode.PLAN, a_permission_request(OperationKind.EDIT, "edit"), {"edit": True})
    assert said.action is PolicyAction.REFUSE
    assert "Describe what you would do instead" in said.reason
    assert "choosing another mode" in said.reason


def test_a_lasting_word_is_not_asked_for_again() -> None:
    assert answers(PermissionMode.ASK, ACTS, {"scope": True}, scope="scope") == {PolicyAction.ALLOW}
    assert answers(PermissionMode.ASK, ACTS, {"other": True}, scope="scope") == {PolicyAction.ASK}


@pytest.mark.parametrize("mode", PermissionMode)
def test_a_lasting_rejection_holds_in_every_mode(mode: PermissionMode) -> None:
    said = decide_permission(
        mode,
        a_permission_request(OperationKind.EXECUTE, "run rm", scope_text="every `rm …`", harmless=True),
        {"run rm": False},
    )
    assert said == PolicyDecision(PolicyAction.REFUSE, "The person has rejected every `rm …` for good; do without it.")


@pytest.mark.parametrize("word", [True, False])
def test_what_has_no_scope_is_never_remembered(word: bool) -> None:
    assert (
        decide_permission(PermissionMode.ASK, a_permission_request(OperationKind.EXECUTE), {"": word}).action
        is PolicyAction.ASK
    )


def test_edits_deletions_and_moves_are_three_scopes() -> None:
    assert scope_of_kind(OperationKind.EDIT) == PermissionScope("edit", "edits in this workspace")
    assert (
        len({scope_of_kind(kind).name for kind in (OperationKind.EDIT, OperationKind.DELETE, OperationKind.MOVE)}) == 3
    )
    assert scope_of_kind(OperationKind.EXECUTE) == NO_SCOPE
    assert scope_of_tool("jira__search").name == "use jira__search"


@shows("ACP-PERMISSIONS")
@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("ls -la src", "ls"),
        ("git status --short", "git status"),
        ("git commit -m 'a message (long)'", "git commit"),
        ("'git'  log", "git log"),
        ("npm test", "npm test"),
        ("npm run build -- --watch", "npm run build"),
        ("cargo build --release", "cargo build"),
        ("make", "make"),
        ("make test", "make test"),
        ("uv run pytest -q tests", "uv run pytest"),
        ("uv run git status", "uv run git status"),
        ("npx tsc --noEmit", "npx tsc"),
        ("python -m pytest -x", "python -m pytest"),
        ("python3.11 setup.py build", "python3.11 setup.py"),
        ("node build.js", "node build.js"),
        ("./gradlew test", "./gradlew test"),
        ("/usr/bin/git diff", "/usr/bin/git diff"),
        ("find . -name '*.py'", "find"),
        ("pip3 install x", "pip3 install"),
        ("echo $HOME", "echo"),
    ],
)
def test_a_simple_command_is_remembered_by_what_it_runs(command: str, name: str) -> None:
    assert scope_of_command(command).name == f"run {name}"


@shows("ACP-PERMISSIONS")
@pytest.mark.parametrize(
    "command",
    [
        "",
        "   ",
        "git status; rm -rf .",
        "git status && rm x",
        "git status & rm x",
        "git status | sh",
        "git status\nrm x",
        "git diff > file",
        "git apply < file",
        "git status $(rm x)",
        "git status `rm x`",
        "git status ${x:=y}",
        "(git status)",
        "{ git status",
        "! git status",
        "$GIT status",
        "git $WHAT",
        "git -c alias.x=!sh x",
        "git 'unfinished",
        "make -j4 test",
        "make SHELL=/evil test",
        "PATH=. git status",
        "~/tool",
        "sh script.sh",
        "/bin/bash -c ls",
        "sudo ls",
        "env ls",
        "xargs rm",
        "ssh host ls",
        "timeout 5 rm x",
        "python -c 'print()'",
        "python",
        "python -mpytest",
        "python3 -I -m pytest",
        "python -m -c",
        "node -e 1",
        "perl -e 1",
        "uv run python -c 1",
        "uv run sh x",
        "uv run",
        "npx -y tsc",
        "npm exec x",
        "docker run x",
        "git config alias.x y",
        "find . -exec rm {} +",
        "find . -delete",
        "rg --pre=./x y",
        "eval ls",
        ". ./x",
        "ls \x1b[2K",
        "./" + "x" * 300,
    ],
)
def test_a_command_that_could_be_any_is_allowed_only_once(command: str) -> None:
    assert scope_of_command(command) == NO_SCOPE


@given(st.text(), st.sampled_from(sorted(";&|<>`\n\r\0")), st.text())
def test_no_word_covers_more_than_one_command(before: str, mark: str, after: str) -> None:
    assert scope_of_command(f"{before}{mark}{after}") == NO_SCOPE


@given(st.text("git lsrm-=$'\"\\/.~*#", max_size=30))
def test_a_scope_is_the_plain_beginning_of_its_command(command: str) -> None:
    scope = scope_of_command(command)
    if scope == NO_SCOPE:
        return
    said = scope.name.removeprefix("run ")
    bare = " ".join("".join(one for one in command if one not in "'\"\\").split())
    assert bare.startswith(said)
    assert not set(said) & set("$=~*#")


def test_the_person_is_told_what_a_lasting_word_covers() -> None:
    assert scope_of_command("git status").text == "every `git status …` in this workspace"
    assert scope_of_command("make").text == "`make` by itself in this workspace"


@shows("KEPT-04")
@pytest.mark.parametrize(
    "command",
    [
        "git grep -O./evil x",
        "git grep --open-files-in-pager=./evil x",
        "git rebase --exec ./evil main",
        "git clone -c core.fsmonitor=./evil a b",
        "git clone --template=evil a b",
        "git fetch --upload-pack=./evil .",
        "git diff --output=.envrc",
        "git archive --output=x HEAD",
        "git grep --open=./evil x",
        "git grep -nO./evil x",
        "git rebase --ex=./evil main",
        "git rebase -fx ./evil main",
        "git fetch --upload-p=./evil .",
        "git ls-remote --exec=./evil .",
        "git push --rec=./evil . main",
        "git clone -qu ./evil a b",
        "git difftool -y -x ./evil",
        "git diff-tree --output=.envrc HEAD",
        "git stash list --output=.envrc",
        "make test -f evil.mk",
        "make test -kf evil.mk",
        "make test SHELL=./evil",
        "npm test --prefix evil",
        "cargo test --manifest-path evil/Cargo.toml",
        "tree -fo .envrc evil",
        "tar -cf x y --checkpoint-action=exec=./evil",
        "less +!./evil x",
    ],
)
def test_arguments_with_which_a_program_runs_or_writes_what_they_name_can_be_allowed_only_once(command: str) -> None:
    assert scope_of_command(command) == NO_SCOPE


@shows("KEPT-04")
@pytest.mark.parametrize(
    "command",
    [
        "git log --oneline -20",
        "git log --graph --all",
        "git commit -m x",
        "git add --all",
        "git push --force-with-lease origin main",
        "git fetch --prune",
        "git grep -n x",
        "git branch --contains x",
        "git checkout -b topic",
        "npm test -- --watch",
        "npm run build -- --production",
        "npm install --save-dev x",
        "cargo build --release",
        "make test -j4 V=1",
        "find . -name x -type f",
        "rg -n x src",
        "tree -L 2",
    ],
)
def test_what_is_run_on_an_ordinary_day_can_be_allowed_for_good(command: str) -> None:
    assert scope_of_command(command) != NO_SCOPE


@shows("KEPT-04")
def test_whoever_allows_a_command_for_good_is_told_that_it_runs_the_workspace_s_code() -> None:
    runs = ("pytest -q", "npm test", "make", "./run.sh", "uv run pytest", "python tool.py", "node_modules/.bin/tsc")
    runs += ("pip install .", "docker build .")
    assert [command for command in runs if "what the agent writes" not in scope_of_command(command).warning] == []
    assert [command for command in ("git status", "ls", "cat x") if scope_of_command(command).warning] == []


@shows("KEPT-04")
async def test_what_a_command_obeys_is_the_script_and_what_says_what_its_words_mean(tmp_path: Path) -> None:
    guard = PathGuard(WorkspaceRoots.from_folders(tmp_path))
    for name in ("run.sh", "Makefile", "package.json", "tool.py", "status"):
        (tmp_path / name).write_text("")
    hooks, settings = tmp_path / ".git" / "hooks", tmp_path / ".git" / "config"
    hooks.mkdir(parents=True)
    settings.write_text('[core]\n\tbare = false\n[branch "main"]\n\tmerge = refs/heads/main\n')
    (hooks / "pre-commit").write_text("")

    async def obeyed(command: str) -> set[str]:
        return {str(one.relative_to(tmp_path)) for one in await guard.defining_files(command, tmp_path)}

    assert await obeyed("./run.sh -v") == {"run.sh"}
    assert await obeyed("make") == {"Makefile"}
    assert await obeyed("npm test") == {"package.json"}
    assert await obeyed("python3 -m tool") == {"tool.py"}
    assert await obeyed("ls -l") == set()
    (tmp_path / "json.py").write_text("")
    assert await obeyed("python3 -m json.tool x") == {"json.py"}
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "__main__.py").write_text("")
    assert await obeyed("python3 app") == {"app/__main__.py"}
    # Settings that run nothing change with every branch.
    assert await obeyed("git status") == {".git", ".git/hooks/pre-commit"}
    settings.write_text(f"{settings.read_text()}[alias]\n\tst = !./run.sh\n")
    assert await obeyed("git status") == {".git", ".git/config", ".git/hooks/pre-commit", "run.sh"}


@shows("KEPT-04")
async def test_a_command_that_names_a_protected_file_is_asked_about_unless_it_only_reads(tmp_path: Path) -> None:
    guard = PathGuard(WorkspaceRoots.from_folders(tmp_path))

    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("")

    async def asked(command: str) -> bool:
        return bool(await guard.check_command(command, tmp_path))

    writes = (
        "cp x .git/config",
        "echo x > .envrc",
        "tee .VSCODE/tasks.json",
        "mv a .git/hooks/",
        "sed -i s/a/b/ .npmrc",
    )
    writes += ('cp x .g"i"t/config', "cp x .g\\it/config", "cp x .gi?/config", "tree -o .envrc x", "find .git -delete")
    writes += ("cp x ../.bashrc", "cp x /home/somebody/.bashrc", "cp x /home/somebody/.config/fish/config.fish")
    writes += ("cat .envrc && cp x .envrc", "cat .envrc & cp x .envrc", "grep x .envrc | tee .envrc")
    writes += ("touch HEAD", "cp x /home/somebody/.ssh/authorized_keys")
    writes += ("cat x >.bashrc", "git diff --output=.envrc", "sh -c 'echo x > .git/config'", "rm src/../.git/config")
    assert [command for command in writes if not await asked(command)] == []
    reads = (
        "cat .git/config",
        "git diff .github",
        "git reset HEAD~1",
        "git checkout HEAD -- a",
        "grep -r x .vscode",
        "ls",
    )
    reads += (
        ".venv/bin/pytest -q",
        "node_modules/.bin/tsc",
        "/home/somebody/.cargo/bin/cargo test",
        "ruff check src/*",
    )
    reads += ("git clone https://example.com/x/.github", f"echo {'x' * 5000}/{'y' * 5000}", "make", "npm test")
    assert [command for command in reads if await asked(command)] == []


@shows("KEPT-04")
async def test_git_obeys_what_its_settings_include_what_hooks_run_and_repositories_within(
    tmp_path: Path,
) -> None:
    guard, inner = PathGuard(WorkspaceRoots.from_folders(tmp_path)), tmp_path / "parts" / "inner"
    inner.mkdir(parents=True)
    for folder in (inner, tmp_path):
        git(folder, "init", "--quiet", "--template=", ".")
    git(inner, "-c", "user.name=x", "-c", "user.email=x", "commit", "--quiet", "--allow-empty", "-m", "x")
    git(tmp_path, "add", ".")
    (tmp_path / "git").mkdir()
    (tmp_path / "git" / "settings").write_text("[core]\n\thooksPath = git/hooks\n[include]\n\tpath = more\n")
    (tmp_path / "git" / "more").write_text("[diff]\n\texternal = git/show.sh\n")
    (tmp_path / "git" / "hooks").mkdir()
    (tmp_path / "git" / "hooks" / "pre-commit").write_text("")
    (tmp_path / "git" / "show.sh").write_text("")
    (tmp_path / ".husky").mkdir()
    (tmp_path / ".husky" / "pre-commit").write_text("")
    git(tmp_path, "config", "include.path", "../git/settings")
    git(inner, "config", "core.fsmonitor", "./mon.sh")
    (inner / "mon.sh").write_text("")

    found = {str(one.relative_to(tmp_path)) for one in await guard.defining_files("git status", tmp_path)}
    assert {"git/settings", "git/more", "git/hooks/pre-commit", "git/show.sh", ".husky/pre-commit"} <= found
    assert {"parts/inner/.git/config", "parts/inner/mon.sh"} <= found
    for planted in ("git/settings", "git/hooks/pre-commit", "git/show.sh", "parts/inner/mon.sh"):
        assert await guard.check_file(planted, tmp_path / planted), planted
    assert not await guard.check_file("parts/inner/app.py", inner / "app.py")


@shows("KEPT-04")
async def test_no_folder_takes_the_place_of_one_in_which_something_is_protected(tmp_path: Path) -> None:
    data = tmp_path / "share" / "frontdesk"
    guard = PathGuard(WorkspaceRoots.from_folders(tmp_path), (data,))
    git(tmp_path, "init", "--quiet", "--template=", ".")
    git(tmp_path, "config", "filter.tidy.clean", "./tools/tidy.sh")
    (tmp_path / ".envrc").symlink_to("scripts/env.sh")
    for name in ("tools/tidy.sh", "scripts/env.sh", "staging/tidy.sh", "share/frontdesk/frontdesk.db", "src/app.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")

    async def asked(source: str, target: str) -> bool:
        return bool(await guard.check_move((source, tmp_path / source), (target, tmp_path / target)))

    moves = [("tools", "old"), ("scripts", "old"), ("share", "old")]
    assert [one for one in moves if not await asked(*one)] == []
    (tmp_path / "tools").rename(tmp_path / "gone")
    assert await asked("staging", "tools")
    assert not await asked("src", "lib")


@shows("KEPT-04")
async def test_what_changed_after_it_was_allowed_is_found(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text("")
    now = datetime.now(UTC)
    assert await changed_since([tmp_path, script], now) == script
    assert await changed_since([tmp_path, script], now + timedelta(minutes=1)) is None
    # Its own timestamp proves nothing, since anybody may set that.
    os.utime(script, (0, 0))
    assert await changed_since([script], now) == script
    assert await changed_since([tmp_path / "gone"], now) is None


def test_the_same_words_in_another_folder_are_another_scope() -> None:
    there = scope_of_command("./build.sh", "packages/a")
    assert there == PermissionScope("run ./build.sh in packages/a", "every `./build.sh …` in packages/a")
    assert there.name != scope_of_command("./build.sh").name
