"""Searching the files of a workspace."""

import json
import os
import subprocess
import sys
from pathlib import Path

import anyio
import psutil
import pytest

from frontdesk.coding import files as searching
from frontdesk.coding.files import FileSearchResults, search_files
from frontdesk.coding.paths import WorkspaceRoots
from frontdesk.coding.scan import LONGEST_LINE, FileLine, FileQuery
from frontdesk.errors import Invalid, NotFound

# Python takes longer than anybody lives over this one.
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
    """Python looks for modules where it was started, and an editor starts us in the workspace."""
    for name in ("json.py", "frontdesk.py", "sitecustomize.py"):
        (roots.cwd / name).write_text(f"open({str(roots.cwd / 'ran')!r}, 'w')\n")
    monkeypatch.chdir(roots.cwd)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", str(Path(searching.__file__).parents[3])]))
    assert places(await search_files(roots, FileQuery("needl[e]"))) == ["a.py:2", "a.py:3", "c.tsx:1", "d.md:1"]
    assert not (roots.cwd / "ran").exists()
