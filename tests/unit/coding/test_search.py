"""Tests searching the files of a workspace, without files that git ignores."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import anyio
import psutil
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from frontdesk.coding import files as searching
from frontdesk.coding.disk import walk_folder
from frontdesk.coding.files import FileSearchResults, search_files
from frontdesk.coding.gitignore import IgnoreRules, matches_globs, parse_rules
from frontdesk.coding.paths import WorkspaceRoots
from frontdesk.coding.scan import LONGEST_LINE, FileLine, FileQuery
from frontdesk.errors import Invalid, NotFound

# Searching the files of a workspace


# Python needs longer than a lifetime for this one.
ENDLESS = r"(x+x+)+y"


@pytest.fixture
def roots(tmp_path: Path) -> WorkspaceRoots:
    work, more = tmp_path / "work", tmp_path / "more"
    for folder in (work / "src" / "deep", work / "out", more):
        folder.mkdir(parents=True)
    (work / ".gitignore").write_text("out/\n*.log\n")
    (work / "a.py").write_text("import os\nneedle = 1\nprint(needle)\n")
    (work / "src" / "b.ts").write_bytes(b"const a = 1;\r\nconst Needle = 2;\r\n")
    (work / "src" / "deep" / "c.tsx").write_text("needle")
    (work / "out" / "made.py").write_text("needle\n")
    (work / "x.log").write_text("needle\n")
    (work / "picture").write_bytes(b"needle\0\n")
    (more / "d.md").write_text("# needle\n")
    return WorkspaceRoots.from_folders(work, [more])


@pytest.fixture(params=[True, False], ids=["plain text", "expression"])
def plain(request: pytest.FixtureRequest) -> bool:
    return request.param


def places(hits: FileSearchResults) -> list[str]:
    return [f"{Path(line.path).name}:{line.number}" for line in hits.lines]


async def test_what_matches_is_found_but_not_what_is_ignored_or_no_text(roots: WorkspaceRoots, plain: bool) -> None:
    hits = await search_files(roots, FileQuery("needle", plain=plain))
    assert places(hits) == ["a.py:2", "a.py:3", "c.tsx:1", "d.md:1"]
    assert hits.lines[0] == FileLine("a.py", 2, "needle = 1", matched=True)
    assert hits.lines[2].path == "src/deep/c.tsx"
    assert hits.lines[3].path == str(roots.others[0] / "d.md")
    assert not hits.cut
    assert not hits.timed_out


async def test_case_counts_unless_it_is_said_not_to(roots: WorkspaceRoots, plain: bool) -> None:
    hits = await search_files(roots, FileQuery("NEEDLE", plain=plain, any_case=True))
    assert places(hits) == ["a.py:2", "a.py:3", "b.ts:2", "c.tsx:1", "d.md:1"]
    assert hits.lines[2].text == "const Needle = 2;"
    assert not (await search_files(roots, FileQuery("NEEDLE", plain=plain))).lines


async def test_plain_text_is_taken_by_the_letter(roots: WorkspaceRoots) -> None:
    assert places(await search_files(roots, FileQuery("print(needle)", plain=True))) == ["a.py:3"]
    assert places(await search_files(roots, FileQuery(r"print.needle\)$"))) == ["a.py:3"]
    assert not (await search_files(roots, FileQuery("n..dle", plain=True))).lines


@pytest.mark.parametrize(
    ("glob", "found"),
    [
        ("*.py", ["a.py:2", "a.py:3"]),
        ("src/**", ["c.tsx:1"]),
        ("./src/**", ["c.tsx:1"]),
        ("*.{ts,tsx}", ["c.tsx:1"]),
        ("{src,docs}/**/*.{ts,tsx}", ["c.tsx:1"]),
        ("!*.py", ["c.tsx:1", "d.md:1"]),
        ("*.rs", []),
    ],
)
async def test_a_glob_picks_the_files(roots: WorkspaceRoots, plain: bool, glob: str, found: list[str]) -> None:
    assert places(await search_files(roots, FileQuery("needle", plain=plain, glob=glob))) == found


async def test_a_file_or_a_folder_can_be_searched_alone(roots: WorkspaceRoots, plain: bool) -> None:
    asked = FileQuery("needle", plain=plain)
    assert places(await search_files(roots, asked, roots.cwd / "src")) == ["c.tsx:1"]
    assert places(await search_files(roots, asked, roots.cwd / "a.py")) == ["a.py:2", "a.py:3"]
    assert places(await search_files(roots, asked, roots.cwd / "out")) == ["made.py:1"]


async def test_a_path_that_is_missing_or_outside_is_refused(roots: WorkspaceRoots, plain: bool) -> None:
    with pytest.raises(NotFound, match="There is no 'gone'"):
        await search_files(roots, FileQuery("needle", plain=plain), roots.cwd / "gone")
    with pytest.raises(Invalid, match="outside the workspace"):
        await search_files(roots, FileQuery("needle", plain=plain), Path("/etc"))


async def test_lines_around_a_match_come_along_once_each(roots: WorkspaceRoots, plain: bool) -> None:
    (roots.cwd / "a.py").write_text("1\n2\nneedle\n4\nneedle\n6\n7\n8\n9\nneedle\n")
    hits = await search_files(roots, FileQuery("needle", plain=plain, context=1), roots.cwd / "a.py")
    assert [line.number for line in hits.lines] == [2, 3, 4, 5, 6, 9, 10]
    assert [line.number for line in hits.lines if line.matched] == [3, 5, 10]


async def test_no_more_than_the_limit_is_found_and_more_is_said_to_be_there(roots: WorkspaceRoots, plain: bool) -> None:
    cut = await search_files(roots, FileQuery("needle", plain=plain, limit=2))
    assert (places(cut), cut.cut) == (["a.py:2", "a.py:3"], True)
    whole = await search_files(roots, FileQuery("needle", plain=plain, limit=4))
    assert (len(whole.lines), whole.cut) == (4, False)


async def test_a_folder_in_another_is_searched_once(roots: WorkspaceRoots, plain: bool) -> None:
    nested = WorkspaceRoots.from_folders(roots.cwd, [roots.cwd / "src"])
    assert places(await search_files(nested, FileQuery("needle", plain=plain))) == ["a.py:2", "a.py:3", "c.tsx:1"]


async def test_long_lines_are_cut_and_other_encodings_are_read(roots: WorkspaceRoots, plain: bool) -> None:
    (roots.cwd / "a.py").write_bytes(b"needle caf\xe9 " + b"x" * 5000 + b"late\n")
    hits = await search_files(roots, FileQuery("needle", plain=plain), roots.cwd / "a.py")
    assert hits.lines[0].text.startswith("needle caf\ufffd xxx")
    assert len(hits.lines[0].text) == LONGEST_LINE
    assert not (await search_files(roots, FileQuery("late", plain=plain), roots.cwd / "a.py")).lines


async def test_no_line_is_made_up_at_the_end_of_a_file(roots: WorkspaceRoots) -> None:
    (roots.cwd / "a.py").write_text("a\n\nb\n")
    (roots.cwd / "empty").touch()
    assert places(await search_files(roots, FileQuery("^$"))) == ["a.py:2"]


async def test_names_that_are_no_text_do_no_harm(roots: WorkspaceRoots, plain: bool) -> None:
    (roots.cwd / "z\udcff\n").write_text("needle\n")
    hits = await search_files(roots, FileQuery("needle", plain=plain), roots.cwd)
    assert [line.path for line in hits.lines if line.path.startswith("z")] == ["z??"]


@pytest.mark.parametrize("pattern", ["(", "*", "(?P<a", "[", "a{2,1}"])
async def test_what_is_no_expression_is_refused_with_the_reason(roots: WorkspaceRoots, pattern: str) -> None:
    with pytest.raises(Invalid, match=r"no regular expression of Python's: .*; search for plain text instead"):
        await search_files(roots, FileQuery(pattern))
    assert (await search_files(roots, FileQuery(pattern, plain=True))).timed_out is False


@pytest.mark.parametrize("query", [FileQuery(""), FileQuery("x" * 1001), FileQuery("x", glob="x" * 1001)])
async def test_nothing_and_too_much_to_look_for_are_refused(roots: WorkspaceRoots, query: FileQuery) -> None:
    with pytest.raises(Invalid, match="1000 characters at most"):
        await search_files(roots, query)


async def test_an_expression_that_never_ends_is_stopped_and_what_was_found_counts(roots: WorkspaceRoots) -> None:
    (roots.cwd / "a.py").write_text("xxy\n" + "x" * 200 + "\n")
    with anyio.fail_after(60):
        hits = await search_files(roots, FileQuery(ENDLESS), seconds=5)
    assert places(hits) == ["a.py:1"]
    assert hits.timed_out
    assert not scanners()


async def test_whoever_gives_up_leaves_no_process_behind(roots: WorkspaceRoots) -> None:
    (roots.cwd / "a.py").write_text("x" * 200 + "\n")
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(search_files, roots, FileQuery(ENDLESS))
            while not scanners():
                await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
    assert not scanners()


def scanners() -> list[psutil.Process]:
    children = psutil.Process().children()
    return [
        one for one in children if one.status() != psutil.STATUS_ZOMBIE and "frontdesk.coding" in str(one.cmdline())
    ]


async def test_time_that_is_up_ends_a_search_of_plain_text(roots: WorkspaceRoots) -> None:
    assert await search_files(roots, FileQuery("needle", plain=True), seconds=-1) == FileSearchResults(
        (), timed_out=True
    )


def test_a_scan_that_is_late_says_so_itself(roots: WorkspaceRoots) -> None:
    asked = {"cwd": str(roots.cwd), "others": [], "paths": [str(roots.cwd)], "query": {"pattern": "x"}, "seconds": -1}
    command = [sys.executable, "-P", "-m", "frontdesk.coding.scan"]
    said = subprocess.run(command, input=json.dumps(asked).encode(), capture_output=True, check=True)
    assert said.stdout == b"[false]\n"


async def test_no_module_of_the_workspace_is_run(roots: WorkspaceRoots, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python looks for modules in its start folder, and an editor starts us in the workspace."""
    for name in ("json.py", "frontdesk.py", "sitecustomize.py"):
        (roots.cwd / name).write_text(f"open({str(roots.cwd / 'ran')!r}, 'w')\n")
    monkeypatch.chdir(roots.cwd)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", str(Path(searching.__file__).parents[3])]))
    assert places(await search_files(roots, FileQuery("needl[e]"))) == ["a.py:2", "a.py:3", "c.tsx:1", "d.md:1"]
    assert not (roots.cwd / "ran").exists()


# Ignored files, compared with git itself


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
    """A tree with these files, unless a name is a folder already, and these ignore files in it."""
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
    """Without the guard this would practically never end."""
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
