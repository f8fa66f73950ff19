"""A bench on real files and real processes, with an editor that keeps what is not saved and a person who answers."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from frontdesk.coding.commands import CommandRunner, LocalCommands
from frontdesk.coding.files import FileView, LocalFiles
from frontdesk.coding.guard import PathGuard
from frontdesk.coding.model import PermissionDecision, PermissionRequest, ShownItem
from frontdesk.coding.paths import WorkspaceRoots
from frontdesk.coding.tools import CodingContext, coding_tools
from frontdesk.errors import NotFound
from frontdesk.llm.tools import Tool, ToolOutcome, run_tool


@dataclass
class Buffers:
    """An editor's files: what is open counts, and is saved when it is written to; the rest is on the disk."""

    disk: LocalFiles
    open: dict[Path, str] = field(default_factory=dict[Path, str])
    writes: list[Path] = field(default_factory=list[Path])
    keeps_unsaved: bool = False

    async def read(self, path: Path) -> str:
        return self.open[path] if path in self.open else await self.disk.read(path)

    async def write(self, path: Path, text: str) -> None:
        self.writes.append(path)
        self.open[path] = text
        if not self.keeps_unsaved:
            await self.disk.write(path, text)


async def _nothing(_permission_request: PermissionRequest) -> None:
    pass


class Lab:
    """The tools, what they showed, what they asked leave for, and what the person says to it."""

    def __init__(
        self, folder: Path, *, commands: CommandRunner | None = None, other: Path | None = None, away: bool = False
    ) -> None:
        self.roots = WorkspaceRoots.from_folders(folder, [other] if other else ())
        self.disk = LocalFiles(self.roots)
        self.editor = Buffers(self.disk)
        self.word = PermissionDecision(allowed=True)
        self.meanwhile: Callable[[PermissionRequest], Awaitable[None]] = _nothing
        self.requests: list[PermissionRequest] = []
        self.shown: list[tuple[str, ShownItem]] = []
        runs = None if away else commands or LocalCommands(0.1)
        guard = PathGuard(self.roots, local=not away)
        disk = None if away else self.disk
        files = FileView(self.editor, disk)
        bench = CodingContext(self.roots, files, runs, self.leave, self.show, disk, guard)
        self.tools: Mapping[str, Tool] = {tool.name: tool for tool in coding_tools(bench)}

    async def leave(self, permission_request: PermissionRequest) -> PermissionDecision:
        self.requests.append(permission_request)
        await self.meanwhile(permission_request)
        return self.word

    async def show(self, call_id: str, shown: ShownItem) -> None:
        self.shown.append((call_id, shown))

    async def use(self, name: str, **given: Any) -> ToolOutcome:
        return await run_tool(self.tools[name], given, "call-1")

    async def told(self, name: str, **given: Any) -> str:
        """What a tool says that works."""
        outcome = await self.use(name, **given)
        assert outcome.ok, outcome.text
        return outcome.text

    async def trouble(self, name: str, **given: Any) -> str:
        """What a tool says that does not."""
        outcome = await self.use(name, **given)
        assert not outcome.ok, outcome.text
        return outcome.text

    def path(self, name: str) -> Path:
        return self.roots.cwd / name

    def put(self, name: str, text: str) -> Path:
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        return path

    def text(self, name: str) -> str:
        """As it is on the disk, line ends and all."""
        try:
            return self.path(name).read_bytes().decode()
        except FileNotFoundError as error:
            raise NotFound(name) from error
