"""Memory blocks as files: where they lie, what they say, and that nothing of it can hurt."""

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
from frontdesk.coding.memory_mirror import MemoryMirror
from tests.support.waiting import comes_true

AGENT = "agent-1"
NAMES = st.text(max_size=300)
SECONDS = 60
# Every text is one letter over and over, so that a mixture of two would show.
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
    """Every file beneath a folder, hidden ones too."""
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
