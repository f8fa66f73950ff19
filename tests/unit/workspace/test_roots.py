"""Which paths are in the folders of a session, by what a model wrote."""

from pathlib import Path

import pytest

from frontdesk.coding.paths import LONGEST_PATH, WorkspaceRoots
from frontdesk.errors import Invalid


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
