"""What an editor can do for its agent: files with what is not saved yet, terminals that really run, forms."""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.acp.schema import Json
from tests.support.acp.words import Answer, Refused
from tests.support.waiting import until

RESOURCE_NOT_FOUND = -32002
FILES: Json = {"fs": {"readTextFile": True, "writeTextFile": True}}
TERMINALS: Json = {"terminal": True}
FORMS: Json = {"elicitation": {"form": {}}}


@dataclass(slots=True)
class Files:
    """`unsaved` is what the person has typed and not saved, by path."""

    unsaved: dict[str, str] = field(default_factory=dict[str, str])
    written: list[str] = field(default_factory=list[str])

    @property
    def answers(self) -> Mapping[str, Answer]:
        return {"fs/read_text_file": self.read, "fs/write_text_file": self.write}

    async def read(self, params: Json) -> Json:
        return {"content": self._content(params["path"])}

    async def write(self, params: Json) -> Json:
        self.written.append(params["path"])
        self.unsaved.pop(params["path"], None)
        _save(Path(params["path"]), params["content"])
        return {}

    def _content(self, path: str) -> str:
        if path in self.unsaved:
            return self.unsaved[path]
        try:
            return Path(path).read_text()
        except OSError as error:
            raise Refused(RESOURCE_NOT_FOUND, "No such file") from error


@dataclass(slots=True)
class Terminal:
    """A command at work, and what it has printed so far."""

    process: asyncio.subprocess.Process
    reading: asyncio.Task[None]
    output: bytearray

    @property
    def exit_status(self) -> Json:
        code = self.process.returncode or 0
        return {"exitCode": code, "signal": None} if code >= 0 else {"signal": signal.Signals(-code).name}


@dataclass(slots=True)
class Terminals:
    """`open` are those that the agent has not released."""

    open: dict[str, Terminal] = field(default_factory=dict[str, Terminal])
    created: list[Json] = field(default_factory=list[Json])

    @property
    def answers(self) -> Mapping[str, Answer]:
        return {
            "terminal/create": self.create,
            "terminal/output": self.show,
            "terminal/wait_for_exit": self.wait,
            "terminal/kill": self.kill,
            "terminal/release": self.release,
        }

    async def create(self, params: Json) -> Json:
        self.created.append(params)
        process = await asyncio.create_subprocess_exec(
            *(params["command"], *params.get("args", [])),
            cwd=params.get("cwd"),
            env=os.environ | {one["name"]: one["value"] for one in params.get("env", [])},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        output, name = bytearray(), f"terminal-{len(self.created)}"
        self.open[name] = Terminal(process, asyncio.create_task(_read(process, output)), output)
        return {"terminalId": name}

    async def show(self, params: Json) -> Json:
        terminal = self._of(params)
        ended = {"exitStatus": terminal.exit_status} if terminal.process.returncode is not None else {}
        return {"output": terminal.output.decode(errors="replace"), "truncated": False, **ended}

    async def wait(self, params: Json) -> Json:
        terminal = self._of(params)
        await terminal.reading
        await terminal.process.wait()
        return terminal.exit_status

    async def kill(self, params: Json) -> Json:
        _kill(self._of(params))
        return {}

    async def release(self, params: Json) -> Json:
        terminal = self._of(params)
        del self.open[params["terminalId"]]
        await _end(terminal)
        return {}

    def _of(self, params: Json) -> Terminal:
        if params["terminalId"] not in self.open:
            raise Refused(RESOURCE_NOT_FOUND, "No such terminal")
        return self.open[params["terminalId"]]


@asynccontextmanager
async def open_terminals() -> AsyncGenerator[Terminals]:
    """Terminals that are over at the end, whatever happens; and that the agent has released."""
    terminals = Terminals()
    try:
        yield terminals
        await until(lambda: terminals.open == {})
    finally:
        for terminal in terminals.open.values():
            await _end(terminal)


def filling(**values: Any) -> Mapping[str, Answer]:
    """A person who fills in every form with this."""

    async def fill(_params: Json) -> Json:
        return {"action": "accept", "content": values}

    return {"elicitation/create": fill}


def _save(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


async def _read(process: asyncio.subprocess.Process, into: bytearray) -> None:
    assert process.stdout is not None
    while more := await process.stdout.read(65536):
        into += more


async def _end(terminal: Terminal) -> None:
    _kill(terminal)
    await terminal.reading
    await terminal.process.wait()


def _kill(terminal: Terminal) -> None:
    with suppress(ProcessLookupError):
        os.killpg(terminal.process.pid, signal.SIGKILL)
