"""Calls the editor for an agent: permission requests, files, terminals, and questions to the person."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from pydantic import Field, ValidationError

from frontdesk.coding.commands import PLAIN_TERMINAL, CommandResult, OnTerminalOpened
from frontdesk.coding.files import Files
from frontdesk.coding.model import PermissionAnswer, PermissionRequest
from frontdesk.errors import Invalid, NotFound
from frontdesk.interfaces.acp import convert
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
    """The editor at the other end of a connection.

    `local` is true where its folders are on this machine. `root` is the folder in which they have to be, if any.
    """

    peer: RpcPeer
    capabilities: EditorCapabilities
    local: bool = True
    root: Path | None = None

    def check_folders(self, *folders: str) -> None:
        """Raises `Invalid` if one of these folders is outside `root`."""
        root = None if self.root is None else self.root.resolve()
        for folder in folders:
            if root is not None and not Path(folder).resolve().is_relative_to(root):
                raise Invalid(f"'{folder[:200]}' is outside {root}, where editors may work here")

    async def request(self, method: str, session_id: str, params: Json, seconds: float) -> Json:
        """Send a request about one session, and return the editor's result."""
        return await self.peer.request(method, {"sessionId": session_id, **params}, seconds)

    async def show(self, session_id: str, update: Json) -> None:
        await self.peer.notify("session/update", {"sessionId": session_id, "update": update})


# A person who does not answer within this time has rejected the request.
PERSON_SECONDS = 3600.0
ONCE_CHOICES = ((PermissionAnswer.ALLOW_ONCE, "Allow"), (PermissionAnswer.REJECT_ONCE, "Reject"))


@dataclass(frozen=True, slots=True)
class PermissionPrompt:
    """Asks the person about tool calls; `stop` ends the turn, for a person who chooses that instead of an answer."""

    editor: Editor
    session_id: str
    view: EventView
    stop: Callable[[], None]

    async def ask(self, request: PermissionRequest) -> PermissionAnswer:
        """The person's answer; one that cannot be read counts as a rejection."""
        await self.view.wait_until_shown(request.call_id)
        call = describe_request(request, self.view.sent_id(request.call_id))
        question = {"toolCall": call, "options": permission_options(request)}
        try:
            method = "session/request_permission"
            answer = await self.editor.request(method, self.session_id, question, PERSON_SECONDS)
            outcome = parse(RequestPermissionResponse, answer).outcome
        except (RpcError, TimeoutError, ConnectionClosed):
            return PermissionAnswer.REJECT_ONCE
        if outcome.outcome == "cancelled":
            self.stop()
            return PermissionAnswer.CANCELLED
        return read_choice(getattr(outcome, "option_id", ""), request)


def describe_request(request: PermissionRequest, call_id: str) -> Json:
    """The call as the editor shows it with the question."""
    content = [convert.call_diff(one) for one in request.diffs]
    if request.reason:
        # Some editors show the title, others the content.
        content.append(convert.call_content(convert.text_block(f"{request.reason[0].upper()}{request.reason[1:]}.")))
    return {
        "toolCallId": call_id,
        "title": f"{request.title} ({request.reason})" if request.reason else request.title,
        "kind": request.kind.value,
        "status": "pending",
        **({"content": content} if content else {}),
        **({"locations": [convert.call_location(place) for place in request.locations]} if request.locations else {}),
    }


def permission_options(request: PermissionRequest) -> Sequence[Json]:
    """Allow or reject once; where the request has a scope, also always."""
    allow, reject = ONCE_CHOICES
    lasting = [
        (PermissionAnswer.ALLOW_ALWAYS, f"Always allow {request.scope_text}{request.warning}"),
        (PermissionAnswer.REJECT_ALWAYS, f"Always reject {request.scope_text}"),
    ]
    named = [allow, lasting[0], reject, lasting[1]] if request.scope and not request.only_once else [allow, reject]
    return [{"optionId": choice.value, "name": name, "kind": choice.value} for choice, name in named]


def read_choice(option_id: str, request: PermissionRequest) -> PermissionAnswer:
    """The answer with this option id; an id that was not offered counts as a rejection."""
    offered = {str(option["optionId"]) for option in permission_options(request)}
    return PermissionAnswer(option_id) if option_id in offered else PermissionAnswer.REJECT_ONCE


FILE_SECONDS = 30.0
NO_FILES = "This editor is on another machine and does not read or write files for its agent; use another editor"


@dataclass(frozen=True, slots=True)
class EditorFiles:
    """`Files` through the editor where it offers that, else on `disk`; None where the editor is on another machine."""

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
        # The editor reads only files that it can show; the disk has the others.
        return await self.disk.read(path)

    async def write(self, path: Path, text: str) -> None:
        if not self.editor.capabilities.writes:
            await self._disk().write(path, text)
            return
        try:
            asked = {"path": str(path), "content": text}
            await self.editor.request("fs/write_text_file", self.session_id, asked, FILE_SECONDS)
        except (RpcError, TimeoutError, ConnectionClosed) as error:
            # The file is not written to the disk then: the editor may have written it after all.
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
    """A `CommandRunner` in the editor's terminals; each terminal is killed if it still runs, and released."""

    editor: Editor
    session_id: str

    async def run(self, command: str, cwd: Path, seconds: float, opened: OnTerminalOpened) -> CommandResult:
        terminal: Json = {}
        # This must not be cancelled: the id of a terminal that opens afterwards would be lost.
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
    """Await this and ignore an error: the editor may have closed the terminal already, which has the same effect."""
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


def ask_person_tool(editor: Editor, session_id: str, view: EventView) -> Tool:
    """A tool with which the agent asks the person a question; only for editors that show forms."""

    async def ask(call_id: str, arguments: Mapping[str, Any]) -> ToolOutcome:
        try:
            question = AskPersonInput.model_validate(arguments)
        except ValidationError as error:
            return ToolOutcome(f"Invalid arguments: {describe_validation_errors(error)}", ok=False)
        answer: Mapping[str, Any] = {"type": "string", "title": "Answer"}
        if question.options:
            answer = {**answer, "enum": question.options}
        form = {
            "mode": "form",
            "toolCallId": view.sent_id(call_id),
            "message": question.question,
            "requestedSchema": {"type": "object", "properties": {"answer": answer}, "required": ["answer"]},
        }
        try:
            response = await editor.request("elicitation/create", session_id, form, PERSON_SECONDS)
        except (RpcError, TimeoutError, ConnectionClosed):
            return NO_ANSWER
        match parse_elicitation(response):
            case AcceptElicitationResponse(content={"answer": str(text)}) if text:
                return ToolOutcome(text)
            case _:
                return NO_ANSWER

    schema = inline_definitions(AskPersonInput.model_json_schema())
    parameters = {key: schema[key] for key in schema if key != "description"}
    return Tool(ASK_PERSON, ASK_PERSON_DESCRIPTION, parameters, partial(ask, ""), run_call=ask, seconds=PERSON_SECONDS)
