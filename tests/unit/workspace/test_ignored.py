"""What git ignores, against git itself."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from frontdesk.coding.disk import walk_folder
from frontdesk.coding.gitignore import IgnoreRules, matches_globs, parse_rules
from frontdesk.coding.paths import WorkspaceRoots

ALONE = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "LC_ALL": "C", "PATH": os.environ["PATH"]}

NAMES = st.sampled_from(["a", "b", "ab", "aab", "b.a", "a b", "a ", "é", "[", "-", "!a", "#a", "A", "1", "a\\", "]"])
PLAIN = ["a", "b", "ab", ".", "é", "A", " ", "!", "#", "-", "]", "[", "/", "\\", "\\a", "\\ ", "\\*", "\\[", "\r", "\t"]
STARS = ["*", "**", "?", "**/", "/**", "/*", "*/", "!*"]
SETS = ["[ab]", "[!a]", "[^b]", "[a-b]", "[]a]", "[a-\\b]", "[--b]", "[[.]", "[b-a]", "[\\]a]", "[a", "[[:a]"]
CLASSES = ["[[:alpha:]]", "[[:digit:]-]", "[[:nope:]]"]
PIECES = st.sampled_from([*PLAIN, *STARS, *SETS, *CLASSES])
LINES = st.lists(PIECES, min_size=1, max_size=6).map("".join)
IGNORES = st.lists(LINES, min_size=1, max_size=5).map("\n".join)
PATHS = st.lists(st.lists(NAMES, min_size=1, max_size=4).map("/".join), min_size=1, max_size=12)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", "."], cwd=folder, env=ALONE, check=True)
    return folder


def emptied(repository: Path) -> None:
    for found in repository.iterdir():
        if found.name != ".git":
            shutil.rmtree(found) if found.is_dir() else found.unlink()


def built(repository: Path, paths: list[str], ignores: Mapping[str, str], exclude: str) -> None:
    """A tree with these files, as far as a name is not a folder already, and these ignore files in it."""
    emptied(repository)
    for path in paths:
        file = repository / path
        if not any(above.is_file() for above in file.parents) and not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
    for folder, text in ignores.items():
        if (repository / folder).is_dir():
            (repository / folder / ".gitignore").write_bytes(text.encode())
    (repository / ".git" / "info" / "exclude").write_bytes(exclude.encode())


def everything(repository: Path) -> Iterator[str]:
    for folder, folders, files in os.walk(repository):
        if ".git" in folders:
            folders.remove(".git")
        for name in folders + files:
            yield str(Path(folder, name).relative_to(repository))


def ignored_by_git(repository: Path, paths: set[str]) -> set[str]:
    asked = "\0".join(f"./{path}" for path in paths).encode()
    command = ["git", "check-ignore", "--no-index", "-z", "--stdin"]
    said = subprocess.run(command, cwd=repository, env=ALONE, input=asked, capture_output=True, check=False)
    assert said.returncode in {0, 1}, said.stderr
    return {path.removeprefix("./") for path in said.stdout.decode().split("\0") if path}


def ignored_by_us(repository: Path, paths: set[str]) -> set[str]:
    return paths - {
        entry.name for entry in walk_folder(WorkspaceRoots.from_folders(repository), repository, time.monotonic() + 60)
    }


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(paths=PATHS, ignores=st.dictionaries(st.just("") | NAMES, IGNORES, max_size=3), exclude=IGNORES | st.just(""))
@example(paths=["foobar", "foo/bar", "foo/x/bar"], ignores={"": "foo**/bar"}, exclude="")
@example(paths=["a/b", "a/ab"], ignores={"": "a/*\n!a/b"}, exclude="")
@example(paths=["a/b"], ignores={"": "a/\n!a/b"}, exclude="")
@example(paths=["a", "b/a"], ignores={"": "/a", "b": "!a"}, exclude="a")
@example(paths=["a ", "a"], ignores={"": "a\\ \n"}, exclude="")
@example(paths=["a", "b"], ignores={"": "\ufeffa\r\nb\r\n"}, exclude="")
def test_what_is_ignored_is_what_git_ignores(
    repository: Path, paths: list[str], ignores: dict[str, str], exclude: str
) -> None:
    built(repository, paths, ignores, exclude)
    there = set(everything(repository))
    assert ignored_by_us(repository, there) == ignored_by_git(repository, there)


def test_the_comparison_with_git_sees_both_kinds(repository: Path) -> None:
    built(repository, ["a", "b/a", "b/b"], {"": "a"}, "")
    assert ignored_by_git(repository, set(everything(repository))) == {"a", "b/a"}


def test_the_folder_of_git_is_always_ignored() -> None:
    ignored = IgnoreRules().with_file("", b"!.git\n")
    assert ignored.ignores(".git", folder=True)
    assert ignored.ignores("module/.git", folder=False)
    assert not ignored.ignores(".github", folder=True)


def test_a_link_to_a_folder_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / ".gitignore").write_text("link/\nreal/\n")
    assert [
        entry.name for entry in walk_folder(WorkspaceRoots.from_folders(tmp_path), tmp_path, time.monotonic() + 60)
    ] == [
        ".gitignore",
        "link",
    ]


def test_an_ignore_file_that_is_a_link_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "rules").write_text("a\n")
    (tmp_path / "a").touch()
    (tmp_path / ".gitignore").symlink_to("rules")
    assert "a" in [
        entry.name for entry in walk_folder(WorkspaceRoots.from_folders(tmp_path), tmp_path, time.monotonic() + 60)
    ]


@pytest.mark.parametrize("pattern", [b"*a" * 60 + b"b", b"**/a*" * 4 + b"b", b"x" + b"**/" * 200 + b"b"])
def test_a_pattern_made_to_take_long_does_not(pattern: bytes) -> None:
    """Without the guard this would not end while anybody waits."""
    ignored = IgnoreRules().with_file("", pattern)
    assert not ignored.ignores("/".join(["a" * 200] * 8), folder=False)


@pytest.mark.parametrize(
    ("globs", "path", "meant"),
    [
        (b"*.py", "src/a.py", True),
        (b"*.py", "src/a.pyc", False),
        (b"src/**", "src/a/b.txt", True),
        (b"src/**", "lib/src/a", False),
        (b"src", "src/a/b", True),
        (b"*.py\n!test_*", "src/test_a.py", False),
        (b"!*.md", "a.py", True),
        (b"!*.md", "a.md", False),
        (b"", "a", True),
    ],
)
def test_globs_pick_files_as_the_rules_would(globs: bytes, path: str, meant: bool) -> None:
    assert matches_globs(parse_rules(globs), path) is meant
