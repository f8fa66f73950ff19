"""Tests that an agent holds no more after many prompts and sessions than after the first few."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.interfaces.acp.conftest import folder, introduced
from tests.requirements import shows
from tests.support.acp.client import Client
from tests.support.acp.schema import Json, script
from tests.support.postgres import Ready
from tests.support.waiting import WAIT_SECONDS, comes_true

pytestmark = shows("ACP-LEAKS")
MEGABYTE = 1024 * 1024
GROWTH = 20 * MEGABYTE
# Every tool that holds something while it runs.
WORK = script(
    {"reasoning": "Hm", "text": "I see", "tool": "list_files"},
    {"tool": "write_file", "args": {"path": "note.txt", "content": "a note"}},
    {"tool": "run_command", "args": {"command": "true"}},
    {"tool": "memory_rethink", "args": {"label": "human", "new_memory": "Somebody"}},
    {"text": "Done."},
)
TALK = script({"text": "Hello."})


@dataclass(frozen=True, slots=True)
class Held:
    """The open resources of a process; its memory separately, since that varies by itself."""

    threads: int
    files: int
    children: int

    @classmethod
    def by(cls, process: psutil.Process) -> "Held":
        return cls(process.num_threads(), process.num_fds(), len(process.children(recursive=True)))

    def is_no_more_than(self, other: "Held") -> bool:
        return self.threads <= other.threads and self.files <= other.files and self.children <= other.children


@dataclass(frozen=True, slots=True)
class Subject:
    client: Client
    process: psutil.Process
    work: Path

    async def talk(self, sessions: int, prompts: int, text: str) -> None:
        """This many prompts in each of this many sessions: a conversation's history is part of its cost."""
        for _ in range(sessions):
            session = await self.opened()
            for _ in range(prompts):
                assert await self.client.prompt(session, text) == {"stopReason": "end_turn"}
                # Old frames are not needed again, and must not fill the memory of the test.
                self.client.frames.clear()
            await self.client.request("session/close", {"sessionId": session})

    async def open_and_close(self, count: int) -> None:
        """Load and close a session with a history, and sometimes open a new one."""
        session = await self.opened()
        await self.client.prompt(session, WORK)
        where: Json = {"sessionId": session, "cwd": str(self.work), "mcpServers": []}
        for number in range(count):
            await self.client.request("session/load", where)
            if number % 10 == 0:
                await self.client.request("session/close", {"sessionId": await self.opened()})
            await self.client.request("session/close", {"sessionId": session})
            self.client.frames.clear()

    async def opened(self) -> str:
        session = await self.client.open_session(self.work)
        await self.client.request("session/set_mode", {"sessionId": session, "modeId": "auto"})
        return session

    async def holds_no_more_than(self, before: Held) -> None:
        """Soon: things that end do not end immediately."""
        quick = await asyncio.to_thread(comes_true, lambda: Held.by(self.process).is_no_more_than(before), WAIT_SECONDS)
        assert quick, f"{Held.by(self.process)} after {before}"


@pytest.fixture
async def subject(tmp_path: Path, ready: Ready) -> AsyncGenerator[Subject]:
    data, work = ready.in_folder(tmp_path / "data"), folder(tmp_path)
    async with introduced(data) as desk:
        process = psutil.Process(desk.client.agent.process.pid)
        yield Subject(desk.client, process, work)


async def test_hundreds_of_prompts_and_sessions_leave_nothing_open(subject: Subject) -> None:
    await subject.talk(2, 10, WORK)
    await subject.open_and_close(5)
    before = Held.by(subject.process)
    await subject.talk(3, 10, WORK)
    await subject.talk(9, 30, TALK)
    await subject.open_and_close(50)
    await subject.holds_no_more_than(before)


@pytest.mark.slow
async def test_ten_thousand_prompts_and_a_thousand_sessions_take_no_more_memory(subject: Subject) -> None:
    await subject.talk(2, 10, WORK)
    await subject.talk(20, 50, TALK)
    await subject.open_and_close(100)
    before, memory = Held.by(subject.process), subject.process.memory_info().rss
    await subject.talk(200, 50, TALK)
    await subject.open_and_close(1000)
    await subject.holds_no_more_than(before)
    assert subject.process.memory_info().rss - memory < GROWTH
