"""Sends the editor what an agent needs of it: permission requests, files, terminals, and questions to the person."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from pydantic import Field, ValidationError

from frontdesk.coding.commands import PLAIN_TERMINAL, CommandResult, OnTerminalOpened
from frontdesk.coding.files import Files
from frontdesk.coding.model import FileLocation, PermissionAnswer, PermissionRequest
from frontdesk.errors import Invalid, NotFound
from frontdesk.interfaces.acp import updates
from frontdesk.interfaces.acp.event_view import EventView
from frontdesk.interfaces.acp.handshake import EditorCapabilities
from frontdesk.interfaces.acp.jsonrpc import ConnectionClosed, Json, RpcError, RpcPeer
from frontdesk.interfaces.acp.schema import (
    AcceptElicitationResponse,
    CreateTerminalResponse,
    ReadTextFileResponse,
    RequestPermissionResponse,
    TerminalOutputResponse,
    WaitForTerminalExitResponse,
    parse,
    parse_elicitation,
)
from frontdesk.llm.tools import Tool, ToolInput, ToolOutcome, describe_validation_errors, inline_definitions


@dataclass(frozen=True, slots=True)
class Editor:
    """`local`: the folders of its sessions are on this machine. `root`: they have to be in this one."""

    peer: RpcPeer
    capabilities: EditorCapabilities
    local: bool = True
    root: Path | None = None

    def check_folders(self, *folders: str) -> None:
        """Raise `Invalid` where one of these folders is not for editors."""
        root = None if self.root is None else self.root.resolve()
        for folder in folders:
            if root is not None and not Path(folder).resolve().is_relative_to(root):
                raise Invalid(f"'{folder[:200]}' is outside {root}, where editors may work here")

    async def request(self, method: str, session_id: str, params: Json, seconds: float) -> Json:
        """What the editor answers about one of its sessions."""
        return await self.peer.request(method, {"sessionId": session_id, **params}, seconds)

    async def show(self, session_id: str, update: Json) -> None:
        await self.peer.notify("session/update", {"sessionId": session_id, "update": update})


# A person may be away for longer than that; then it counts as a no.
PERSON_SECONDS = 3600.0
ONCE_CHOICES = ((PermissionAnswer.ALLOW_ONCE, "Allow"), (PermissionAnswer.REJECT_ONCE, "Reject"))


@dataclass(frozen=True, slots=True)
class PermissionPrompt:
    """`stop` ends the turn under way, for a person who would rather have that than answer."""

    editor: Editor
    session_id: str
    view: Callable[[], EventView]
    stop: Callable[[], None]

    async def ask(self, permission_request: PermissionRequest) -> PermissionAnswer:
        """What the person chooses; no choice that can be read is a rejection."""
        screen = self.view()
        await screen.wait_until_shown(permission_request.call_id)
        asked = {
            "toolCall": describe_request(permission_request, screen.sent_id(permission_request.call_id)),
            "options": permission_options(permission_request),
        }
        try:
            method = "session/request_permission"
            answer = await self.editor.request(method, self.session_id, asked, PERSON_SECONDS)
            outcome = parse(RequestPermissionResponse, answer).outcome
        except (RpcError, TimeoutError, ConnectionClosed):
            return PermissionAnswer.REJECT_ONCE
        if outcome.outcome == "cancelled":
            self.stop()
            return PermissionAnswer.CANCELLED
        return read_choice(getattr(outcome, "option_id", ""), permission_request)


def describe_request(permission_request: PermissionRequest, call_id: str) -> Json:
    """The call as the person has it before them while they decide."""
    content: list[Json] = [
        {"type": "diff", "path": str(one.path), "oldText": one.before, "newText": one.after}
        for one in permission_request.diffs
    ]
    if permission_request.reason:
        # Editors differ in which of the two they show.
        content.append(
            updates.call_content(
                updates.text_block(f"{permission_request.reason[0].upper()}{permission_request.reason[1:]}.")
            )
        )
    return {
        "toolCallId": call_id,
        "title": f"{permission_request.title} ({permission_request.reason})"
        if permission_request.reason
        else permission_request.title,
        "kind": permission_request.kind.value,
        "status": "pending",
        **({"content": content} if content else {}),
        **(
            {"locations": [_file_location(place) for place in permission_request.locations]}
            if permission_request.locations
            else {}
        ),
    }


def _file_location(place: FileLocation) -> Json:
    return {"path": str(place.path), **({"line": place.line} if place.line is not None else {})}


def permission_options(permission_request: PermissionRequest) -> Sequence[Json]:
    """Once, and for good where a lasting word would have a bound."""
    allow, reject = ONCE_CHOICES
    lasting = [
        (PermissionAnswer.ALLOW_ALWAYS, f"Always allow {permission_request.scope_text}{permission_request.warning}"),
        (PermissionAnswer.REJECT_ALWAYS, f"Always reject {permission_request.scope_text}"),
    ]
    named = (
        [allow, lasting[0], reject, lasting[1]]
        if permission_request.scope and not permission_request.only_once
        else [allow, reject]
    )
    return [{"optionId": choice.value, "name": name, "kind": choice.value} for choice, name in named]


def read_choice(option_id: str, permission_request: PermissionRequest) -> PermissionAnswer:
    """The choice that was offered under this id; a stranger's id is a rejection."""
    offered = {str(option["optionId"]) for option in permission_options(permission_request)}
    return PermissionAnswer(option_id) if option_id in offered else PermissionAnswer.REJECT_ONCE


FILE_SECONDS = 30.0
NO_FILES = "This editor neither reads nor writes files for its agent, and is on another machine; use another one"


@dataclass(frozen=True, slots=True)
class EditorFiles:
    """`Files` through the editor as far as it offers that; the rest is `disk`, which is None for one elsewhere."""

    editor: Editor
    session_id: str
    disk: Files | None

    async def read(self, path: Path) -> str:
        if not self.editor.capabilities.reads:
            return await self._disk().read(path)
        try:
            answer = await self.editor.request("fs/read_text_file", self.session_id, {"path": str(path)}, FILE_SECONDS)
            return parse(ReadTextFileResponse, answer).content
        except (RpcError, TimeoutError, ConnectionClosed) as error:
            if self.disk is None:
                raise NotFound(f"The editor does not read {path}: {error}") from error
        # It opens only what it can show; what else is there, the disk knows.
        return await self.disk.read(path)

    async def write(self, path: Path, text: str) -> None:
        if not self.editor.capabilities.writes:
            await self._disk().write(path, text)
            return
        try:
            asked = {"path": str(path), "content": text}
            await self.editor.request("fs/write_text_file", self.session_id, asked, FILE_SECONDS)
        except (RpcError, TimeoutError, ConnectionClosed) as error:
            # Never by the disk then: it may have been written after all.
            raise Invalid(f"The editor did not write {path} ({error}); read it before you try again") from error

    def _disk(self) -> Files:
        if self.disk is None:
            raise Invalid(NO_FILES)
        return self.disk


TERMINAL_SECONDS = 30.0
RELEASE_SECONDS = 5.0
OUTPUT_BYTES = 200_000
SHELL = "/bin/sh"


@dataclass(frozen=True, slots=True)
class EditorCommandRunner:
    """`Commands` by `terminal/*`; each terminal is released, and killed before that where it still runs."""

    editor: Editor
    session_id: str

    async def run(self, command: str, cwd: Path, seconds: float, opened: OnTerminalOpened) -> CommandResult:
        terminal: Json = {}
        # Not to be cut off: nobody would know the id of a terminal that is opened after all.
        with anyio.CancelScope(shield=True):
            terminal = await self._create(command, cwd)
        try:
            await opened(terminal["terminalId"])
            return await self._follow(terminal, seconds)
        except (RpcError, ConnectionClosed) as error:
            raise Invalid(f"The editor's terminal failed: {error}") from error
        finally:
            with anyio.move_on_after(RELEASE_SECONDS, shield=True):
                await _ignore_failure(self._ask("terminal/release", terminal))

    async def _create(self, command: str, cwd: Path) -> Json:
        asked = {
            "command": SHELL,
            "args": ["-c", command],
            "cwd": str(cwd),
            "env": [{"name": name, "value": value} for name, value in PLAIN_TERMINAL.items()],
            "outputByteLimit": OUTPUT_BYTES,
        }
        try:
            made = parse(CreateTerminalResponse, await self._ask("terminal/create", asked))
        except (RpcError, TimeoutError, ConnectionClosed) as error:
            raise Invalid(f"The editor opened no terminal: {error}") from error
        return {"terminalId": made.terminal_id}

    async def _follow(self, terminal: Json, seconds: float) -> CommandResult:
        exited, timed_out = WaitForTerminalExitResponse(), False
        try:
            exited = parse(WaitForTerminalExitResponse, await self._ask("terminal/wait_for_exit", terminal, seconds))
        except TimeoutError:
            timed_out = True
            await self._kill(terminal)
        except BaseException:
            await self._kill(terminal)
            raise
        shown = parse(TerminalOutputResponse, await self._ask("terminal/output", terminal))
        return CommandResult(shown.output, exited.exit_code, exited.signal, shown.truncated, timed_out)

    async def _kill(self, terminal: Json) -> None:
        with anyio.move_on_after(RELEASE_SECONDS, shield=True):
            await _ignore_failure(self._ask("terminal/kill", terminal))

    async def _ask(self, method: str, params: Json, seconds: float = TERMINAL_SECONDS) -> Json:
        return await self.editor.request(method, self.session_id, params, seconds)


async def _ignore_failure(work: Awaitable[object]) -> None:
    """An editor that has closed the terminal already says so, which is as good."""
    with suppress(RpcError, TimeoutError, ConnectionClosed):
        await work


ASK_PERSON = "ask_person"
ASK_PERSON_DESCRIPTION = (
    "Ask the person one question and wait for the answer, where going on without it would be a guess. "
    "Give options where there are a few good answers."
)
NO_ANSWER = ToolOutcome("The person did not answer; go on with what you know, or say what you need.", ok=False)


class AskPersonInput(ToolInput):
    """What to ask."""

    question: str = Field(min_length=1, max_length=2000, description="The question, understandable by itself")
    options: list[str] = Field(default_factory=list, max_length=20, description="Answers to choose from, if any")


@dataclass(frozen=True, slots=True)
class AskPersonTool:
    """`sent_id` is under which id the editor knows a call."""

    editor: Editor
    session_id: str
    sent_id: Callable[[str], str]

    def tool(self) -> Tool:
        schema = inline_definitions(AskPersonInput.model_json_schema())
        parameters = {key: schema[key] for key in schema if key != "description"}
        return Tool(
            ASK_PERSON, ASK_PERSON_DESCRIPTION, parameters, self._unnamed, run_call=self._ask, seconds=PERSON_SECONDS
        )

    async def _unnamed(self, given: Mapping[str, Any]) -> ToolOutcome:
        return await self._ask("", given)

    async def _ask(self, call_id: str, given: Mapping[str, Any]) -> ToolOutcome:
        try:
            question = AskPersonInput.model_validate(given)
        except ValidationError as error:
            return ToolOutcome(f"Invalid arguments: {describe_validation_errors(error)}", ok=False)
        answer: Mapping[str, Any] = {"type": "string", "title": "Answer"}
        if question.options:
            answer = {**answer, "enum": question.options}
        asked = {
            "mode": "form",
            "toolCallId": self.sent_id(call_id),
            "message": question.question,
            "requestedSchema": {"type": "object", "properties": {"answer": answer}, "required": ["answer"]},
        }
        try:
            said = await self.editor.request("elicitation/create", self.session_id, asked, PERSON_SECONDS)
        except (RpcError, TimeoutError, ConnectionClosed):
            return NO_ANSWER
        match parse_elicitation(said):
            case AcceptElicitationResponse(content={"answer": str(text)}) if text:
                return ToolOutcome(text)
            case _:
                return NO_ANSWER
