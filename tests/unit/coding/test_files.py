"""Tests files on this machine, and memory blocks that are mirrored to files."""

import os
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import structlog
from hypothesis import example, given
from hypothesis import strategies as st

from frontdesk.agents.host import MemoryBlock
from frontdesk.coding import disk, paths
from frontdesk.coding.files import Files, LocalFiles, list_files
from frontdesk.coding.memory_mirror import MemoryMirror
from frontdesk.coding.paths import WorkspaceRoots
from frontdesk.errors import Invalid, NotFound
from tests.support.waiting import comes_true

# Files on this machine: read, written, deleted and moved


@pytest.fixture(params=["by open folders", "by path"])
def files(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> LocalFiles:
    """Also as on a system that cannot open a file relative to a folder."""
    monkeypatch.setattr(paths, "CAN_OPEN_BENEATH", request.param == "by open folders")
    (tmp_path / "work").mkdir()
    return LocalFiles(WorkspaceRoots.from_folders(tmp_path / "work"))


@pytest.fixture
def work(files: LocalFiles) -> Path:
    return files.roots.cwd


def names(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir())


def test_they_are_the_files_that_the_tools_ask_for(files: LocalFiles) -> None:
    asked: Files = files
    assert asked is files


@pytest.mark.parametrize("text", ["", "one\ntwo\n", "one\r\ntwo\r\n", "\ufeffmark", "a\rb", "ünïcode 🎈\u2028"])
async def test_a_text_comes_back_as_it_was_written(files: LocalFiles, work: Path, text: str) -> None:
    await files.write(work / "a.txt", text)
    assert (work / "a.txt").read_bytes() == text.encode()
    assert await files.read(work / "a.txt") == text
    assert names(work) == ["a.txt"]


async def test_folders_that_are_missing_are_made(files: LocalFiles, work: Path) -> None:
    await files.write(work / "a" / "b" / "c.txt", "deep")
    assert (work / "a" / "b" / "c.txt").read_text() == "deep"


async def test_a_file_keeps_its_mode_and_a_new_one_has_the_usual(files: LocalFiles, work: Path) -> None:
    (work / "run").write_text("#!")
    (work / "run").chmod(0o750)
    (work / "usual").touch()
    await files.write(work / "run", "#!/bin/sh")
    await files.write(work / "new", "x")
    assert stat.S_IMODE((work / "run").stat().st_mode) == 0o750
    assert (work / "new").stat().st_mode == (work / "usual").stat().st_mode


async def test_a_file_stays_whose_it_was(files: LocalFiles, work: Path) -> None:
    (work / "a").touch()
    # Only root may give a file to another user; other users only to another group of their own, if they are in one.
    owner = (1234, 2345) if os.geteuid() == 0 else (os.getuid(), max(os.getgroups() or [os.getgid()]))
    os.chown(work / "a", *owner)
    await files.write(work / "a", "new")
    assert ((work / "a").stat().st_uid, (work / "a").stat().st_gid) == owner


async def test_a_read_only_file_is_left_alone(files: LocalFiles, work: Path) -> None:
    (work / "law").write_text("never")
    (work / "law").chmod(0o444)
    with pytest.raises(Invalid, match="'law' is read-only"):
        await files.write(work / "law", "always")
    assert (work / "law").read_text() == "never"


async def test_a_write_that_fails_leaves_all_as_it_was(
    files: LocalFiles, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    (work / "a").write_text("before")
    monkeypatch.setattr(disk.os, "fsync", full)
    with pytest.raises(Invalid, match="'a' cannot be used: No space left on device"):
        await files.write(work / "a", "after")
    assert (work / "a").read_text() == "before"
    assert names(work) == ["a"]


async def test_a_link_inside_is_written_through_and_stays_a_link(files: LocalFiles, work: Path) -> None:
    (work / "real").write_text("before")
    (work / "link").symlink_to("real")
    (work / "new").symlink_to("made")
    await files.write(work / "link", "after")
    await files.write(work / "new", "here")
    assert (work / "link").is_symlink()
    assert (work / "real").read_text() == "after"
    assert (work / "made").read_text() == "here"
    assert await files.read(work / "link") == "after"


async def test_a_hard_link_to_elsewhere_is_parted_from_it_by_a_write(files: LocalFiles, work: Path) -> None:
    outside = work.parent / "outside"
    outside.write_text("theirs")
    (work / "a").hardlink_to(outside)
    await files.write(work / "a", "ours")
    assert outside.read_text() == "theirs"


async def test_what_is_missing_is_not_found(files: LocalFiles, work: Path) -> None:
    (work / "file").touch()
    for path in (work / "a", work / "a" / "b", work / "file" / "b"):
        with pytest.raises(NotFound, match="There is no"):
            await files.read(path)
    with pytest.raises(NotFound):
        await files.delete(work / "a")
    with pytest.raises(NotFound):
        await files.move(work / "a", work / "b")
    assert names(work) == ["file"]


@pytest.mark.parametrize(
    ("data", "why"),
    [(b"a\0b", "no text"), (b"\xff\xfe", "no UTF-8 text"), (b"x" * (disk.LARGEST_FILE + 1), "larger than 10 MB")],
)
async def test_what_is_no_text_or_too_large_is_refused(files: LocalFiles, work: Path, data: bytes, why: str) -> None:
    (work / "a").write_bytes(data)
    with pytest.raises(Invalid, match=f"'a' is {why}"):
        await files.read(work / "a")


async def test_the_largest_file_is_read_and_a_larger_one_is_not_written(files: LocalFiles, work: Path) -> None:
    await files.write(work / "a", "x" * disk.LARGEST_FILE)
    assert len(await files.read(work / "a")) == disk.LARGEST_FILE
    with pytest.raises(Invalid, match="would be larger"):
        await files.write(work / "a", "x" * (disk.LARGEST_FILE + 1))


async def test_a_text_that_utf_8_has_not_is_refused(files: LocalFiles, work: Path) -> None:
    with pytest.raises(Invalid, match="surrogates"):
        await files.write(work / "a", "\ud800")
    assert names(work) == []


async def test_a_file_is_deleted_and_of_a_link_only_the_link(files: LocalFiles, work: Path) -> None:
    (work / "real").touch()
    (work / "link").symlink_to("real")
    await files.delete(work / "link")
    assert names(work) == ["real"]
    await files.delete(work / "real")
    assert names(work) == []


async def test_a_folder_is_not_deleted(files: LocalFiles, work: Path) -> None:
    (work / "folder").mkdir()
    for path in (work / "folder", work):
        with pytest.raises(Invalid, match="only files can be deleted"):
            await files.delete(path)
    assert names(work) == ["folder"]


async def test_files_folders_and_links_are_moved(files: LocalFiles, work: Path) -> None:
    (work / "file").write_text("text")
    (work / "folder").mkdir()
    (work / "folder" / "inner").write_text("inner")
    (work / "link").symlink_to("file")
    await files.move(work / "file", work / "new" / "file")
    await files.move(work / "folder", work / "new" / "folder")
    await files.move(work / "link", work / "new" / "link")
    assert names(work) == ["new"]
    assert (work / "new" / "link").readlink() == Path("file")
    assert (work / "new" / "file").read_text() == "text"
    assert (work / "new" / "folder" / "inner").read_text() == "inner"


@pytest.mark.parametrize("taken", ["file", "folder", "link", "nowhere"])
async def test_nothing_is_overwritten_by_a_move(files: LocalFiles, work: Path, taken: str) -> None:
    for name in ("file", "source"):
        (work / name).write_text(name)
    (work / "folder").mkdir()
    (work / "link").symlink_to("file")
    (work / "nowhere").symlink_to("gone")
    with pytest.raises(Invalid, match=f"'{taken}' is there already"):
        await files.move(work / "source", work / taken)
    with pytest.raises(Invalid, match="there already" if taken != "folder" else "cannot be moved"):
        await files.move(work / "folder", work / taken)
    assert (work / "source").read_text() == "source"
    assert (work / "file").read_text() == "file"
    assert (work / "folder").is_dir()


async def test_a_folder_is_not_moved_into_itself_nor_the_root_at_all(files: LocalFiles, work: Path) -> None:
    (work / "folder").mkdir()
    for source, target in (
        (work / "folder", work / "folder" / "a" / "b"),
        (work, work.parent / "elsewhere"),
        (work / "folder" / "..", work / "b"),
    ):
        with pytest.raises(Invalid, match="cannot be moved there"):
            await files.move(source, target)
    assert names(work / "folder") == []


async def test_the_time_of_a_change_is_told_and_none_where_there_is_nothing(files: LocalFiles, work: Path) -> None:
    (work / "a").touch()
    (work / "link").symlink_to("a")
    os.utime(work / "a", (1000, 2000))
    assert await files.modified(work / "a") == 2000
    assert await files.modified(work / "link") == 2000
    assert await files.modified(work / "b") is None
    assert await files.modified(work / "b" / "c") is None


async def test_no_folder_stays_open(files: LocalFiles, work: Path) -> None:
    (work / "loop").symlink_to("loop")
    before = len(names(Path("/dev/fd")))
    for name in ("a/b/c", "loop", "loop/x", "x" * 300, "gone/x", "a/b/" + "y" * 300):
        for path in (work / name, work / name / ".." / "z"):
            with pytest.raises((Invalid, NotFound)):
                await files.read(path)
    await files.write(work / "a" / "b" / "c", "x")
    assert await files.read(work / "a" / "b" / "c") == "x"
    assert len(names(Path("/dev/fd"))) == before


async def test_a_folder_is_listed_in_order_without_what_git_ignores(files: LocalFiles, work: Path) -> None:
    for name in ("b/c/d/e", "b/out/x", "a", ".hidden", ".git/config", "z.log"):
        await files.write(work / name, "")
    await files.write(work / ".gitignore", "out/\n*.log\n")
    (work / "link").symlink_to("b")
    (work / "away").symlink_to("/etc")
    shown = [".gitignore", ".hidden", "a", "away -> /etc", "b/", "b/c/", "b/c/d/", "link -> b"]
    listing = await list_files(files.roots, work)
    assert (list(listing.names), listing.cut) == (shown, False)
    assert (await list_files(files.roots, work / "b", depth=1)).names == ("b/c/",)
    assert (await list_files(files.roots, work / "b" / "out")).names == ("b/out/x",)


async def test_a_listing_is_cut_at_its_limit_and_at_its_time(files: LocalFiles, work: Path) -> None:
    for name in "abc":
        await files.write(work / name, "")
    assert (await list_files(files.roots, work, limit=2)).names == ("a", "b")
    assert (await list_files(files.roots, work, limit=2)).cut
    assert not (await list_files(files.roots, work, limit=3)).cut
    late = await list_files(files.roots, work, seconds=-1)
    assert (late.names, late.cut) == ((), True)


async def test_what_is_no_folder_is_not_listed(files: LocalFiles, work: Path) -> None:
    await files.write(work / "file", "")
    (work / "away").symlink_to("/etc")
    for path in (work / "file", work / "gone"):
        with pytest.raises(NotFound):
            await list_files(files.roots, path)
    with pytest.raises(Invalid, match="outside"):
        await list_files(files.roots, work / "away")


# Memory blocks as files: their paths, their text, and that none of it can do harm


AGENT = "agent-1"
NAMES = st.text(max_size=300)
SECONDS = 60
# Every text repeats one letter, so that a mixture of two is visible.
WRITER = """
import asyncio, sys
from pathlib import Path
from frontdesk.coding.memory_mirror import MemoryMirror

async def write(letter):
    mirror = MemoryMirror(Path(sys.argv[1]))
    for number in range(100):
        await mirror.write_block("agent-1", "human", letter * (1 + number % 7 * 5000))

asyncio.run(write(sys.argv[2]))
"""


@pytest.fixture
def mirror(tmp_path: Path) -> MemoryMirror:
    return MemoryMirror(tmp_path / "memory")


def shown(folder: Path) -> Mapping[str, str]:
    """Every file in a folder and its subfolders, including hidden ones."""
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@given(NAMES, NAMES)
@example("..", "..")
@example("", "")
@example("/etc", "../../passwd")
@example("a\0b", "C:\\x")
@example("a" * 5000, "é" * 5000)
@example("\ud800", "~.md")
def test_a_block_is_two_plain_steps_beneath_the_folder(agent_id: str, label: str) -> None:
    path = MemoryMirror(Path("/data/memory")).path_of(agent_id, label)
    assert path.parent.parent == Path("/data/memory")
    for step in (path.parent.name, path.name.removesuffix(".md")):
        assert 0 < len(step) <= 200
        assert set(step.replace("%", "")) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")
    assert path.suffix == ".md"


@given(st.lists(NAMES, unique=True, max_size=20))
@example(["a b", "a%20b", "a/b", "a%2Fb"])
@example(["x" * 121, "x" * 122, "x" * 120])
def test_no_two_labels_share_a_file(labels: list[str]) -> None:
    mirror = MemoryMirror(Path("/data"))
    assert len({mirror.path_of(AGENT, label) for label in labels}) == len(labels)


def test_an_ordinary_label_can_be_read_off_its_file(mirror: MemoryMirror, tmp_path: Path) -> None:
    assert mirror.path_of(AGENT, "human") == tmp_path / "memory" / "agent-1" / "human.md"


async def test_the_files_say_what_the_blocks_say_and_no_more(mirror: MemoryMirror, tmp_path: Path) -> None:
    await mirror.write_blocks(AGENT, [MemoryBlock("human", "likes tea\r\n"), MemoryBlock("a/b", "é")])
    await mirror.write_blocks("agent-2", [MemoryBlock("human", "likes coffee")])
    await mirror.write_blocks(AGENT, [MemoryBlock("human", "likes rooibos"), MemoryBlock("persona", "")])
    assert shown(tmp_path / "memory") == {
        "agent-1/human.md": "likes rooibos",
        "agent-1/persona.md": "",
        "agent-2/human.md": "likes coffee",
    }
    await mirror.write_blocks(AGENT, [])
    assert shown(tmp_path / "memory") == {"agent-2/human.md": "likes coffee"}


async def test_one_block_is_shown_without_the_others_being_touched(mirror: MemoryMirror, tmp_path: Path) -> None:
    await mirror.write_blocks(AGENT, [MemoryBlock("human", "a"), MemoryBlock("persona", "b")])
    await mirror.write_block(AGENT, "human", "c")
    assert shown(tmp_path / "memory") == {"agent-1/human.md": "c", "agent-1/persona.md": "b"}


async def test_the_files_are_private_and_only_to_be_read(mirror: MemoryMirror, tmp_path: Path) -> None:
    await mirror.write_block(AGENT, "human", "a")
    await mirror.write_block(AGENT, "human", "b")
    path = mirror.path_of(AGENT, "human")
    assert (mode_of(path), path.read_text()) == (0o444, "b")
    assert mode_of(path.parent) == mode_of(tmp_path / "memory") == 0o700


async def test_a_block_that_did_not_change_is_left_alone(mirror: MemoryMirror) -> None:
    await mirror.write_block(AGENT, "human", "a")
    before = mirror.path_of(AGENT, "human").stat()
    await mirror.write_blocks(AGENT, [MemoryBlock("human", "a")])
    assert mirror.path_of(AGENT, "human").stat().st_ino == before.st_ino
    await mirror.write_blocks(AGENT, [MemoryBlock("human", "b")])
    assert mirror.path_of(AGENT, "human").stat().st_ino != before.st_ino


async def test_a_folder_that_cannot_be_written_is_warned_of_once(tmp_path: Path) -> None:
    (tmp_path / "memory").write_text("a file, where a folder should be")
    mirror = MemoryMirror(tmp_path / "memory")
    with structlog.testing.capture_logs() as logs:
        await mirror.write_block(AGENT, "human", "secret words")
        await mirror.write_blocks(AGENT, [MemoryBlock("human", "secret words")])
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [("memory_not_mirrored", "warning")]
    assert "secret" not in str(logs)


def test_processes_that_write_at_once_leave_whole_files_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "memory"
    path = MemoryMirror(folder).path_of(AGENT, "human")
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, folder, letter]) for letter in "abc"]
    seen: set[str] = set()

    def have_ended() -> bool:
        ended = all(writer.poll() is not None for writer in writers)
        seen.update({"".join(sorted(set(path.read_text())))} if path.exists() else ())
        return ended

    try:
        assert comes_true(have_ended, SECONDS)
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
    assert [writer.returncode for writer in writers] == [0, 0, 0]
    assert seen
    assert seen <= {"a", "b", "c"}
    assert list(shown(folder)) == ["agent-1/human.md"]
