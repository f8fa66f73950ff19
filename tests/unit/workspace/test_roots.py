"""Which paths are in the folders of a session, by what a model wrote."""

from pathlib import Path

import pytest

from frontdesk.errors import Invalid
from frontdesk.workspace.roots import LONGEST, Roots


@pytest.fixture
def roots(tmp_path: Path) -> Roots:
    for name in ("work", "more", "work2"):
        (tmp_path / name).mkdir()
    return Roots.of(tmp_path / "work", [tmp_path / "more"])


def test_a_relative_path_begins_at_the_working_folder(roots: Roots) -> None:
    assert roots.inside("src/a.py") == roots.cwd / "src" / "a.py"
    assert roots.inside("src/../a.py") == roots.cwd / "a.py"
    assert roots.inside(".") == roots.cwd


def test_an_absolute_path_in_any_of_the_folders_is_inside(roots: Roots) -> None:
    assert roots.inside(str(roots.others[0] / "b")) == roots.others[0] / "b"
    assert roots.inside("../more/b") == roots.others[0] / "b"


@pytest.mark.parametrize(
    "given", ["..", "../work2/a", "/etc/passwd", "../more/../a", "//etc/passwd", "/", "/proc/self/root/etc"]
)
def test_a_path_elsewhere_is_refused_with_where_to_stay(roots: Roots, given: str) -> None:
    with pytest.raises(Invalid, match=r"is outside the workspace; stay in .*work, .*more$"):
        roots.inside(given)


@pytest.mark.parametrize("given", ["", "  ", "a\0b", "a" * (LONGEST + 1), "a\ud800"])
def test_what_is_no_path_is_refused(roots: Roots, given: str) -> None:
    with pytest.raises(Invalid):
        roots.inside(given)


def test_a_tilde_is_a_name_like_any_other(roots: Roots) -> None:
    assert roots.inside("~/a") == roots.cwd / "~" / "a"
    assert roots.inside("~root") == roots.cwd / "~root"


def test_links_are_followed_before_anything_is_decided(roots: Roots, tmp_path: Path) -> None:
    (roots.cwd / "in").symlink_to("src/a.py")
    (roots.cwd / "out").symlink_to(tmp_path / "work2")
    assert roots.inside("in") == roots.cwd / "src" / "a.py"
    with pytest.raises(Invalid, match="outside"):
        roots.inside("out/a")


def test_a_folder_that_is_reached_through_a_link_is_known_by_its_real_name(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "alias").symlink_to("real")
    roots = Roots.of(tmp_path / "alias")
    assert roots.cwd == tmp_path.resolve() / "real"
    assert roots.inside(str(tmp_path / "alias" / "a")) == roots.cwd / "a"


def test_an_entry_is_the_link_itself_in_a_real_folder(roots: Roots, tmp_path: Path) -> None:
    (roots.cwd / "folder").mkdir()
    (roots.cwd / "way").symlink_to("folder")
    (roots.cwd / "folder" / "out").symlink_to(tmp_path / "work2")
    assert roots.entry("way/out") == roots.cwd / "folder" / "out"
    assert roots.entry("way") == roots.cwd / "way"
    assert roots.entry("folder/..") == roots.cwd
    with pytest.raises(Invalid, match="outside"):
        roots.entry("way/out/a")


def test_a_path_is_shown_on_one_line_from_the_working_folder(roots: Roots) -> None:
    assert roots.shown(roots.cwd / "a" / "b") == "a/b"
    assert roots.shown(roots.others[0] / "b") == str(roots.others[0] / "b")
    assert roots.shown(roots.cwd / "a\nb\udcff") == "a?b?"


def test_of_folders_in_each_other_the_outermost_is_where_a_walk_begins(tmp_path: Path) -> None:
    roots = Roots.of(tmp_path / "a" / "b", [tmp_path / "a"])
    assert roots.split(tmp_path / "a" / "b" / "c") == (tmp_path.resolve() / "a", ("b", "c"))
    with pytest.raises(Invalid, match="outside"):
        roots.split(tmp_path / "a" / ".." / "c")
