"""Tests which paths are in a session's folders, and that tricks to leave them fail."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import anyio
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from frontdesk.coding import disk
from frontdesk.coding.files import LocalFiles, list_files, search_files
from frontdesk.coding.paths import LONGEST_PATH, WorkspaceRoots, open_path
from frontdesk.coding.scan import FileQuery
from frontdesk.errors import FrontdeskError, Invalid, NotFound
from tests.requirements import shows

# Which paths are in the folders of a session


@pytest.fixture
def roots(tmp_path: Path) -> WorkspaceRoots:
    for name in ("work", "more", "work2"):
        (tmp_path / name).mkdir()
    return WorkspaceRoots.from_folders(tmp_path / "work", [tmp_path / "more"])


def test_a_relative_path_begins_at_the_working_folder(roots: WorkspaceRoots) -> None:
    assert roots.resolve("src/a.py") == roots.cwd / "src" / "a.py"
    assert roots.resolve("src/../a.py") == roots.cwd / "a.py"
    assert roots.resolve(".") == roots.cwd


def test_an_absolute_path_in_any_of_the_folders_is_inside(roots: WorkspaceRoots) -> None:
    assert roots.resolve(str(roots.others[0] / "b")) == roots.others[0] / "b"
    assert roots.resolve("../more/b") == roots.others[0] / "b"


@pytest.mark.parametrize(
    "given", ["..", "../work2/a", "/etc/passwd", "../more/../a", "//etc/passwd", "/", "/proc/self/root/etc"]
)
def test_a_path_elsewhere_is_refused_with_where_to_stay(roots: WorkspaceRoots, given: str) -> None:
    with pytest.raises(Invalid, match=r"is outside the workspace; stay in .*work, .*more$"):
        roots.resolve(given)


@pytest.mark.parametrize("given", ["", "  ", "a\0b", "a" * (LONGEST_PATH + 1), "a\ud800"])
def test_what_is_no_path_is_refused(roots: WorkspaceRoots, given: str) -> None:
    with pytest.raises(Invalid):
        roots.resolve(given)


def test_a_tilde_is_a_name_like_any_other(roots: WorkspaceRoots) -> None:
    assert roots.resolve("~/a") == roots.cwd / "~" / "a"
    assert roots.resolve("~root") == roots.cwd / "~root"


def test_links_are_followed_before_anything_is_decided(roots: WorkspaceRoots, tmp_path: Path) -> None:
    (roots.cwd / "in").symlink_to("src/a.py")
    (roots.cwd / "out").symlink_to(tmp_path / "work2")
    assert roots.resolve("in") == roots.cwd / "src" / "a.py"
    with pytest.raises(Invalid, match="outside"):
        roots.resolve("out/a")


def test_a_folder_that_is_reached_through_a_link_is_known_by_its_real_name(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "alias").symlink_to("real")
    roots = WorkspaceRoots.from_folders(tmp_path / "alias")
    assert roots.cwd == tmp_path.resolve() / "real"
    assert roots.resolve(str(tmp_path / "alias" / "a")) == roots.cwd / "a"


def test_an_entry_is_the_link_itself_in_a_real_folder(roots: WorkspaceRoots, tmp_path: Path) -> None:
    (roots.cwd / "folder").mkdir()
    (roots.cwd / "way").symlink_to("folder")
    (roots.cwd / "folder" / "out").symlink_to(tmp_path / "work2")
    assert roots.resolve_entry("way/out") == roots.cwd / "folder" / "out"
    assert roots.resolve_entry("way") == roots.cwd / "way"
    assert roots.resolve_entry("folder/..") == roots.cwd
    with pytest.raises(Invalid, match="outside"):
        roots.resolve_entry("way/out/a")


def test_a_path_is_shown_on_one_line_from_the_working_folder(roots: WorkspaceRoots) -> None:
    assert roots.display(roots.cwd / "a" / "b") == "a/b"
    assert roots.display(roots.others[0] / "b") == str(roots.others[0] / "b")
    assert roots.display(roots.cwd / "a\nb\udcff") == "a?b?"


def test_of_folders_in_each_other_the_outermost_is_where_a_search_begins(tmp_path: Path) -> None:
    roots = WorkspaceRoots.from_folders(tmp_path / "a" / "b", [tmp_path / "a"])
    assert roots.split(tmp_path / "a" / "b" / "c") == (tmp_path.resolve() / "a", ("b", "c"))
    with pytest.raises(Invalid, match="outside"):
        roots.split(tmp_path / "a" / ".." / "c")


# Paths that try to leave the workspace: none succeeds, whatever their form and whatever others move meanwhile


SECRET = "the secret of the house"
ROUNDS = 1500
MOST_ROUNDS = 20_000

paths_kept = shows("ACP-PATHS")


@pytest.fixture
def installation(tmp_path: Path) -> Path:
    """A folder with two workspaces, `work` and `more`, and secret files beside them."""
    for name in ("work", "more", "workshop"):
        (tmp_path / name).mkdir()
    (tmp_path / "secret").write_text(SECRET)
    (tmp_path / "workshop" / "secret").write_text(SECRET)
    (tmp_path / "work" / "a").write_text("ours")
    return tmp_path.resolve()


@pytest.fixture
def files(installation: Path) -> LocalFiles:
    return LocalFiles(WorkspaceRoots.from_folders(installation / "work", [installation / "more"]))


def outside(installation: Path) -> dict[str, str]:
    """Everything beside the workspaces, to see whether it changed."""
    beside = [installation / "secret", *sorted((installation / "workshop").rglob("*")), *sorted(installation.iterdir())]
    return {str(one): one.read_text() if one.is_file() else "" for one in beside}


async def refused(files: LocalFiles, path: Path) -> None:
    """Neither way to open a file accepts it."""
    with pytest.raises(Invalid):
        await files.read(path)
    with pytest.raises(Invalid):
        await files.write(path, "changed")


@paths_kept
@pytest.mark.parametrize(
    "given",
    [
        *(
            "../secret",
            "x/../../secret",
            "./.././secret",
            "../workshop/secret",
            "../work/../secret",
            "..",
            "../..",
            "/",
        ),
        *("/etc/passwd", "//etc/passwd", "/proc/self/root/etc/passwd", "/proc/self/cwd", "/dev/fd/0", "/dev/null"),
    ],
)
async def test_a_path_that_leads_out_is_refused(files: LocalFiles, installation: Path, given: str) -> None:
    before = outside(installation)
    with pytest.raises(Invalid, match="outside the workspace"):
        files.roots.resolve(given)
    await refused(files, files.roots.cwd / given)
    assert outside(installation) == before


@paths_kept
async def test_a_neighbour_whose_name_begins_alike_is_outside(files: LocalFiles, installation: Path) -> None:
    await refused(files, installation / "workshop" / "secret")
    await refused(files, Path(f"{files.roots.cwd}/../workshop/secret"))


async def test_a_tilde_leads_to_nobodys_home(files: LocalFiles) -> None:
    await files.write(files.roots.resolve("~/.profile"), "ours")
    assert (files.roots.cwd / "~" / ".profile").read_text() == "ours"


@paths_kept
@pytest.mark.parametrize(
    "target", ["../secret", "{installation}/secret", "../work/../secret", "/proc/self/root{installation}/secret"]
)
async def test_a_link_that_leads_out_is_not_followed(files: LocalFiles, installation: Path, target: str) -> None:
    before = outside(installation)
    link = files.roots.cwd / "link"
    link.symlink_to(target.format(installation=installation))
    with pytest.raises(Invalid, match="outside"):
        files.roots.resolve("link")
    await refused(files, link)
    await files.delete(link)
    assert outside(installation) == before


@paths_kept
async def test_a_folder_that_is_a_link_out_is_not_entered(files: LocalFiles, installation: Path) -> None:
    before = outside(installation)
    way = files.roots.cwd / "way"
    way.symlink_to(installation / "workshop")
    for path in (way / "secret", way / "new", way / "deep" / "new", way / "..", way / ".." / ".." / "secret"):
        await refused(files, path)
    for permission_request in (files.delete(way / "secret"), files.move(files.roots.cwd / "a", way / "a")):
        with pytest.raises(Invalid, match="outside"):
            await permission_request
    with pytest.raises(Invalid, match="outside"):
        await files.move(way / "secret", files.roots.cwd / "b")
    assert outside(installation) == before


@paths_kept
async def test_links_that_stay_inside_are_followed(files: LocalFiles, installation: Path) -> None:
    work, more = files.roots.all
    (more / "b").write_text("more")
    (work / "absolute").symlink_to(more / "b")
    (work / "relative").symlink_to("../more/b")
    (work / "folder").symlink_to(more)
    (work / "one").symlink_to("two")
    (work / "two").symlink_to("folder/b")
    for name in ("absolute", "relative", "folder/b", "one"):
        assert await files.read(work / name) == "more"
        await files.write(work / name, name)
        assert (more / "b").read_text() == name
        await files.write(more / "b", "more")
    assert not (more / "b").is_symlink()


async def test_a_chain_of_links_ends_where_its_last_one_leads(files: LocalFiles, installation: Path) -> None:
    work = files.roots.cwd
    for number in range(30):
        (work / f"in{number}").symlink_to(f"in{number + 1}" if number < 29 else "a")
        (work / f"out{number}").symlink_to(f"out{number + 1}" if number < 29 else "../secret")
    assert await files.read(work / "in0") == "ours"
    await refused(files, work / "out0")


async def test_links_in_a_circle_and_too_many_of_them_are_refused(files: LocalFiles) -> None:
    work = files.roots.cwd
    (work / "self").symlink_to("self")
    (work / "ping").symlink_to("pong/x")
    (work / "pong").symlink_to("ping/x")
    for number in range(60):
        (work / f"l{number}").symlink_to(f"l{number + 1}" if number < 59 else "a")
    for name in ("self", "self/x", "ping", "pong/y", "l0"):
        await refused(files, work / name)


async def test_a_link_to_nowhere_is_not_found_and_can_be_written_to_inside_only(
    files: LocalFiles, installation: Path
) -> None:
    work = files.roots.cwd
    (work / "in").symlink_to("later/new")
    (work / "out").symlink_to("../new")
    with pytest.raises(NotFound):
        await files.read(work / "in")
    await files.write(work / "in", "made")
    assert (work / "later" / "new").read_text() == "made"
    await refused(files, work / "out")
    assert not (installation / "new").exists()


@pytest.mark.parametrize("name", ["x" * 300, "x/" * 2040, "x\0y", "x\ud800", "x" * 5000])
async def test_names_that_no_file_has_are_refused_in_our_own_words(files: LocalFiles, name: str) -> None:
    for permission_request in (files.write(files.roots.cwd / name, ""), files.read(files.roots.cwd / name)):
        with pytest.raises((Invalid, NotFound)) as caught:
            await permission_request
        assert "\n" not in str(caught.value)
        assert len(str(caught.value).encode()) < 1000


@pytest.mark.parametrize(
    "name", ["a\nb", "a.", "a ", " a", "...", "a\udcffb", "-rf", "a\\b", "C:\\a", "*", "é", "e\u0301"]
)
async def test_hard_names_are_names_of_their_own(files: LocalFiles, name: str) -> None:
    path = files.roots.resolve(name)
    assert path == files.roots.cwd / name
    await files.write(path, name.encode(errors="replace").decode())
    assert await files.read(files.roots.cwd / "a") == "ours"
    assert sorted(os.listdir(files.roots.cwd)) == sorted(["a", name])  # noqa: PTH208 - the names as the system has them
    await files.delete(path)


async def test_case_is_as_the_disk_has_it(files: LocalFiles, installation: Path) -> None:
    assert not (installation / "WORK").exists(), "this test is for a disk that knows one case from the other"
    with pytest.raises(NotFound):
        await files.read(files.roots.cwd / "A")
    await refused(files, installation / "WORK" / "a")


@paths_kept
async def test_what_is_no_regular_file_is_refused_at_once(files: LocalFiles) -> None:
    work = files.roots.cwd
    os.mkfifo(work / "fifo")
    (work / "folder").mkdir()
    with anyio.fail_after(10):
        for path in (work / "fifo", work / "folder", work):
            await refused(files, path)
        with pytest.raises(Invalid, match="only files"):
            await files.delete(work / "fifo")
        assert (await search_files(files.roots, FileQuery("ours", plain=True))).lines[0].path == "a"


async def test_links_that_only_the_system_can_follow_are_read_like_any_other(installation: Path) -> None:
    """If the system opened them, they could lead anywhere, whatever their text; missing ones are not found."""
    files = LocalFiles(WorkspaceRoots.from_folders(Path("/proc/self")))
    with (installation / "secret").open() as secret:
        for name in (f"fd/{secret.fileno()}", f"root{installation}/secret", f"cwd/{installation}/secret"):
            with pytest.raises((Invalid, NotFound)):
                await files.read(files.roots.cwd / name)


async def test_a_root_that_became_a_link_is_no_way_out(files: LocalFiles, installation: Path) -> None:
    shutil.rmtree(installation / "work")
    (installation / "work").symlink_to("workshop")
    with pytest.raises(FrontdeskError):
        await files.read(installation / "work" / "secret")
    with pytest.raises(FrontdeskError):
        await files.write(installation / "work" / "new", "changed")
    assert not (installation / "workshop" / "new").exists()


async def test_an_inner_root_that_became_a_link_is_no_way_out(installation: Path) -> None:
    (installation / "work" / "inner").mkdir()
    files = LocalFiles(WorkspaceRoots.from_folders(installation / "work", [installation / "work" / "inner"]))
    (installation / "work" / "inner").rmdir()
    (installation / "work" / "inner").symlink_to(installation / "workshop")
    await refused(files, installation / "work" / "inner" / "secret")


async def test_links_out_are_neither_listed_into_nor_searched(files: LocalFiles, installation: Path) -> None:
    (files.roots.cwd / "way").symlink_to(installation / "workshop")
    (files.roots.cwd / "link").symlink_to(installation / "secret")
    names = (await list_files(files.roots, files.roots.cwd)).names
    assert names == ("a", f"link -> {installation / 'secret'}", f"way -> {installation / 'workshop'}")
    for plain in (True, False):
        assert not (await search_files(files.roots, FileQuery("secret", plain=plain))).lines


@paths_kept
def test_a_link_put_in_the_place_of_what_was_found_is_not_opened(installation: Path) -> None:
    roots, path = WorkspaceRoots.from_folders(installation / "work"), installation / "work" / "a"
    with open_path(roots, path) as at:
        assert disk.read_contents(at, "a") == b"ours"
        path.unlink()
        path.symlink_to(installation / "secret")
        with pytest.raises(OSError, match="symbolic links"):
            disk.read_contents(at, "a")


@paths_kept
def test_a_folder_that_was_found_is_still_that_one_when_a_link_is_in_its_place(installation: Path) -> None:
    roots, folder = WorkspaceRoots.from_folders(installation / "work"), installation / "work" / "folder"
    disk.write_file(roots, folder / "secret", "ours")
    with open_path(roots, folder / "secret") as at:
        folder.rename(installation / "work" / "elsewhere")
        folder.symlink_to(installation / "workshop")
        assert disk.read_contents(at, "a") == b"ours"


SWAP = """
draft, ways = place + "-draft", sys.argv[2:]
def flip(number):
    os.symlink(ways[number % 2], draft)
    os.replace(draft, place)
"""
TRADE = """
hidden, away = place + "-hidden", sys.argv[2]
def insist(action, *given):
    # While nothing is in the place, a write may have made something there; away with it.
    while True:
        try:
            return action(*given)
        except OSError:
            shutil.rmtree(place, ignore_errors=True) if os.path.isdir(place) else os.unlink(place)
def flip(number):
    if number % 2:
        os.unlink(place)
        insist(os.rename, hidden, place)
    else:
        os.rename(place, hidden)
        insist(os.symlink, away, place)
"""
FLIPPING = """
import itertools, os, shutil, sys
place = sys.argv[1]
{how}
for number in itertools.count():
    flip(number)
    if number == 1:
        print("begun", flush=True)
"""


@contextmanager
def flipping(how: str, place: Path, *ways: Path) -> Generator[None]:
    """Another process that changes what is at a path as fast as it can.

    `SWAP` alternates links to the two places; `TRADE` alternates the original and a link to the other place.
    """
    command = [sys.executable, "-c", FLIPPING.format(how=how), str(place), *map(str, ways)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as flipper:
        try:
            assert flipper.stdout is not None
            assert flipper.stdout.readline() == b"begun\n"
            yield
            assert flipper.poll() is None, "there was nobody to race with"
        finally:
            flipper.kill()


@paths_kept
@pytest.mark.parametrize("last", [True, False], ids=["of a file", "of a folder"])
def test_a_link_that_is_swapped_all_the_time_never_leads_out(installation: Path, last: bool) -> None:
    roots = WorkspaceRoots.from_folders(installation / "work")
    (installation / "work" / "real").mkdir()
    (installation / "work" / "real" / "secret").write_text("ours")
    place = installation / "work" / "place"
    inner, outer = installation / "work" / "real", installation / "workshop"
    ways = (inner / "secret", outer / "secret") if last else (inner, outer)
    given = "place" if last else "place/secret"
    with flipping(SWAP, place, *ways):
        seen = races(roots, given, place if last else place / "secret")
    assert (outer / "secret").read_text() == SECRET
    assert sorted(one.name for one in outer.iterdir()) == ["secret"]
    assert seen == {"read", "written", "refused"}


@paths_kept
@pytest.mark.parametrize("last", [True, False], ids=["a file", "a folder"])
def test_what_is_traded_for_a_link_all_the_time_never_leads_out(installation: Path, last: bool) -> None:
    roots = WorkspaceRoots.from_folders(installation / "work")
    place, outer = installation / "work" / "place", installation / "workshop"
    path = place if last else place / "secret"
    disk.write_file(roots, path, "ours")
    with flipping(TRADE, place, outer / "secret" if last else outer):
        seen = races(roots, str(path.relative_to(roots.cwd)), path)
    assert (outer / "secret").read_text() == SECRET
    assert sorted(one.name for one in outer.iterdir()) == ["secret"]
    assert seen == {"read", "written", "refused"}


def races(roots: WorkspaceRoots, given: str, path: Path) -> set[str]:
    """Read and write many times, by the given text and by the path, until all possible results have occurred."""
    seen: Counter[str] = Counter()
    for number in range(MOST_ROUNDS):
        try:
            meant = roots.resolve(given) if number % 4 > 1 else path
            if number % 2:
                assert disk.read_file(roots, meant) == "ours"
                seen["read"] += 1
            else:
                disk.write_file(roots, meant, "ours")
                seen["written"] += 1
        except FrontdeskError:
            seen["refused"] += 1
        if number >= ROUNDS and len(seen) == 3:
            break
    return set(seen)


NAMES = st.sampled_from(["a", "b", "c", "secret"])
STEPS = st.sampled_from(["a", "b", "c", "secret", "..", ".", "", "work", "more", "out", "~"])
INSIDE = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
WRITTEN = st.lists(STEPS, min_size=1, max_size=6).map("/".join)
STARTS = ["", "{installation}/", "{installation}/work/", "{installation}/out/", "/"]
ANYWHERE = st.tuples(st.sampled_from(STARTS), WRITTEN).map("".join)
TREES = st.lists(st.tuples(st.sampled_from(["work", "more"]), INSIDE, st.none() | ANYWHERE), max_size=8)


def built(installation: Path, tree: list[tuple[str, str, str | None]]) -> None:
    """Files, and links if a target is given; entries that conflict with existing ones are left out."""
    for folder in ("work", "more", "out/a"):
        (installation / folder).mkdir(parents=True)
    for name in ("secret", "out/secret", "out/a/secret", "a"):
        if not (installation / name).exists():
            (installation / name).write_text(SECRET)
    for root, name, target in tree:
        place = installation / root / name
        # Through a link that leads out, this would create files outside.
        with suppress(OSError):
            if Path(os.path.realpath(place.parent)).is_relative_to(installation / root):
                place.parent.mkdir(parents=True, exist_ok=True)
                place.symlink_to(target.format(installation=installation)) if target is not None else place.write_text(
                    "ours"
                )


def contents(installation: Path) -> dict[str, str]:
    beside = [one for one in installation.rglob("*") if one.relative_to(installation).parts[0] not in {"work", "more"}]
    return {str(one): one.read_text() if one.is_file() else "" for one in beside}


@paths_kept
@settings(max_examples=400, deadline=None)
@given(tree=TREES, given=ANYWHERE, follow=st.booleans())
@example(tree=[("work", "a", "{installation}/out"), ("work", "b", "a/a")], given="b/secret", follow=False)
@example(tree=[("work", "a", "../more/b"), ("more", "b", "../out")], given="a/secret", follow=False)
@example(tree=[("work", "a/b", None), ("work", "c", "a/../../secret")], given="c", follow=True)
def test_no_path_in_any_tree_leads_out(tree: list[tuple[str, str, str | None]], given: str, follow: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        installation = Path(folder).resolve()
        built(installation, tree)
        before = contents(installation)
        roots = WorkspaceRoots.from_folders(installation / "work", [installation / "more"])
        with suppress(FrontdeskError):
            path = (
                roots.resolve(given.format(installation=installation))
                if follow
                else Path(given.format(installation=installation))
            )
            for permission_request in (tried_read, tried_write, tried_move, tried_delete):
                with suppress(FrontdeskError):
                    permission_request(roots, path)
        assert contents(installation) == before


def tried_read(roots: WorkspaceRoots, path: Path) -> None:
    assert disk.read_file(roots, path) != SECRET


def tried_write(roots: WorkspaceRoots, path: Path) -> None:
    disk.write_file(roots, path, "changed")
    assert disk.read_file(roots, path) == "changed"


def tried_move(roots: WorkspaceRoots, path: Path) -> None:
    disk.move_path(roots, path, path.parent / "moved")
    assert disk.modification_time(roots, path) is None
    disk.move_path(roots, path.parent / "moved", path)


def tried_delete(roots: WorkspaceRoots, path: Path) -> None:
    disk.delete_file(roots, path)
