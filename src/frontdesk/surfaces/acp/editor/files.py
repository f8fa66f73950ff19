"""Files through the editor: with what it has not saved yet, and so that a person can keep or reject a change."""

from dataclasses import dataclass
from pathlib import Path

from frontdesk.errors import Invalid, NotFound
from frontdesk.surfaces.acp.editor.model import Editor
from frontdesk.surfaces.acp.wire.model import Gone, RpcError
from frontdesk.surfaces.acp.wire.words import ReadTextFileResponse, parsed
from frontdesk.workspace.files.port import Files

SECONDS = 30.0
NO_FILES = "This editor neither reads nor writes files for its agent, and is on another machine; use another one"


@dataclass(frozen=True, slots=True)
class EditorFiles:
    """`Files` through the editor as far as it offers that; the rest is `disk`, which is None for one elsewhere."""

    editor: Editor
    session_id: str
    disk: Files | None

    async def read(self, path: Path) -> str:
        if not self.editor.can.reads:
            return await self._disk().read(path)
        try:
            answer = await self.editor.ask("fs/read_text_file", self.session_id, {"path": str(path)}, SECONDS)
            return parsed(ReadTextFileResponse, answer).content
        except (RpcError, TimeoutError, Gone) as error:
            if self.disk is None:
                raise NotFound(f"The editor does not read {path}: {error}") from error
        # It opens only what it can show; what else is there, the disk knows.
        return await self.disk.read(path)

    async def write(self, path: Path, text: str) -> None:
        if not self.editor.can.writes:
            await self._disk().write(path, text)
            return
        try:
            asked = {"path": str(path), "content": text}
            await self.editor.ask("fs/write_text_file", self.session_id, asked, SECONDS)
        except (RpcError, TimeoutError, Gone) as error:
            # Never by the disk then: it may have been written after all.
            raise Invalid(f"The editor did not write {path} ({error}); read it before you try again") from error

    def _disk(self) -> Files:
        if self.disk is None:
            raise Invalid(NO_FILES)
        return self.disk
