"""The tools that change files: each shows what it is about to do, and does it when it may."""

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
from anyio import to_thread
from pydantic import Field

from frontdesk.errors import Conflict, Invalid, NotFound
from frontdesk.loop.tools import Given, Tool, ToolOutcome
from frontdesk.workspace.coding.called import PERSON_SECONDS, called_tool
from frontdesk.workspace.coding.deeds import get_leave
from frontdesk.workspace.coding.edits import edited
from frontdesk.workspace.coding.model import Bench
from frontdesk.workspace.coding.sight import Sight
from frontdesk.workspace.files.local import LocalFiles
from frontdesk.workspace.permissions.model import Deed, Diff, Kind, Place
from frontdesk.workspace.permissions.scopes import of_kind

PATH = "The file: absolute, or from the working folder"


class WriteFile(Given):
    path: str = Field(description=PATH)
    content: str = Field(description="All that shall be in the file")


class EditFile(Given):
    path: str = Field(description=PATH)
    old_string: str = Field(min_length=1, description="What is in the file now, to the letter, with its spaces")
    new_string: str = Field(description="What shall be there instead")
    replace_all: bool = Field(False, description="Replace it wherever it is; otherwise it must be there once")


class DeleteFile(Given):
    path: str = Field(description=PATH)


class MoveFile(Given):
    source: str = Field(description="The file or folder: absolute, or from the working folder")
    target: str = Field(description="Its new path, where nothing is yet")


class Changing:
    """One change at a time: a model may ask for two of the same file at once, and neither is to be lost."""

    def __init__(self, bench: Bench, sight: Sight) -> None:
        self._bench = bench
        self._roots = bench.roots
        self._sight = sight
        self._one = anyio.Lock()

    def tools(self) -> Sequence[Tool]:
        """Files can be deleted and moved only where there is a disk."""
        writing = "Make a file, or replace all that is in it. To change a part of a file, use edit_file."
        editing = "Replace a piece of a file by another. Read the file first, and copy what is there exactly."
        written = [
            called_tool("write_file", writing, WriteFile, self.write, PERSON_SECONDS),
            called_tool("edit_file", editing, EditFile, self.edit, PERSON_SECONDS),
        ]
        if (disk := self._bench.disk) is None:
            return written
        delete, move = partial(self.delete, disk), partial(self.move, disk)
        return [
            *written,
            called_tool("delete_file", "Delete a file.", DeleteFile, delete, PERSON_SECONDS),
            called_tool("move_file", "Move or rename a file or a folder.", MoveFile, move, PERSON_SECONDS),
        ]

    async def write(self, call_id: str, given: WriteFile) -> ToolOutcome:
        path = self._roots.inside(given.path)
        shown = self._roots.shown(path)
        async with self._one:
            before = await self._sight.found(path)
            if before == given.content:
                return ToolOutcome(f"{shown} has exactly this in it already.")
            done = f"{'Made' if before is None else 'Wrote'} {shown}."
            deed = _edit(call_id, "write_file", f"Write {shown}", Diff(path, before, given.content))
            return await self._put(_asked(deed, await self._bench.guard.of_file(given.path, path)), done)

    async def edit(self, call_id: str, given: EditFile) -> ToolOutcome:
        path = self._roots.inside(given.path)
        shown = self._roots.shown(path)
        async with self._one:
            before = await self._sight.read(path)
            after = edited(before, given.old_string, given.new_string, every=given.replace_all)
            deed = _edit(call_id, "edit_file", f"Edit {shown}", Diff(path, before, after.text), after.line)
            places = "in 1 place" if after.count == 1 else f"in {after.count} places"
            deed = _asked(deed, await self._bench.guard.of_file(given.path, path))
            return await self._put(deed, f"Edited {shown} {places}, from line {after.line}.")

    async def delete(self, disk: LocalFiles, call_id: str, given: DeleteFile) -> ToolOutcome:
        path = self._roots.entry(given.path)
        shown = self._roots.shown(path)
        async with self._one:
            await self._must_be_there(path)
            deed = _deed(call_id, "delete_file", Kind.DELETE, f"Delete {shown}", Place(path))
            await get_leave(self._bench, _asked(deed, await self._bench.guard.of_file(given.path, path)))
            await disk.delete(path)
            self._sight.gone(path)
        return ToolOutcome(f"Deleted {shown}.")

    async def move(self, disk: LocalFiles, call_id: str, given: MoveFile) -> ToolOutcome:
        source, target = self._roots.entry(given.source), self._roots.entry(given.target)
        title = f"{self._roots.shown(source)} to {self._roots.shown(target)}"
        async with self._one:
            await self._must_be_there(source)
            if await _is_there(target):
                raise Invalid(f"{self._roots.shown(target)} is there already; choose another name, or delete it first")
            deed = _deed(call_id, "move_file", Kind.MOVE, f"Move {title}", Place(source), Place(target))
            why = await self._bench.guard.of_move((given.source, source), (given.target, target))
            await get_leave(self._bench, _asked(deed, why))
            await disk.move(source, target)
            self._sight.gone(source)
        return ToolOutcome(f"Moved {title}.")

    async def _put(self, deed: Deed, done: str) -> ToolOutcome:
        """Write what was shown, where it still changes what was shown."""
        [diff] = deed.diffs
        await get_leave(self._bench, deed)
        if await self._sight.found(diff.path) != diff.before:
            raise Conflict(f"{self._roots.shown(diff.path)} was changed meanwhile; read it again before you change it")
        await self._sight.write(diff.path, diff.after)
        return ToolOutcome(done)

    async def _must_be_there(self, path: Path) -> None:
        if not await _is_there(path):
            raise NotFound(f"There is no {self._roots.shown(path)}; list the files to see what there is")


def _asked(deed: Deed, why: str) -> Deed:
    """The deed, to be asked about each time where there is a reason for that."""
    return replace(deed, why=why, each_time=True) if why else deed


async def _is_there(path: Path) -> bool:
    """A link is there, wherever it leads."""
    return await to_thread.run_sync(os.path.lexists, path, abandon_on_cancel=True)


def _edit(call_id: str, tool: str, title: str, diff: Diff, line: int | None = None) -> Deed:
    scope = of_kind(Kind.EDIT)
    places = (Place(diff.path, line),)
    return Deed(call_id, tool, Kind.EDIT, title, places, (diff,), scope=scope.name, covers=scope.covers)


def _deed(call_id: str, tool: str, kind: Kind, title: str, *places: Place) -> Deed:
    scope = of_kind(kind)
    return Deed(call_id, tool, kind, title, places, scope=scope.name, covers=scope.covers)
