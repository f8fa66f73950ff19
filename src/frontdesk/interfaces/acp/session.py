"""Runs one session of an editor: a prompt becomes turns of its agent, their events are shown, and a stop reason is
returned.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Unpack

import anyio
from anyio.abc import TaskGroup

from frontdesk.agents.host import AgentHost, Approval, HistoryItem, MemoryBlock, Prompt
from frontdesk.agents.turns.operations import run_journaled_turn
from frontdesk.app import App
from frontdesk.coding.commands import CommandRunner, LocalCommands
from frontdesk.coding.context import CodingContext, ShownItem
from frontdesk.coding.files import LocalFiles
from frontdesk.coding.guard import PathGuard
from frontdesk.coding.model import (
    AskPermission,
    CodingSession,
    CodingSessionChanges,
    OperationKind,
    PermissionMode,
    PermissionRequest,
)
from frontdesk.coding.paths import WorkspaceRoots
from frontdesk.coding.service import suggest_title
from frontdesk.coding.tools import coding_tools
from frontdesk.errors import Denied, PendingApproval
from frontdesk.identity.authority import Authority
from frontdesk.identity.model import Caller
from frontdesk.interfaces.acp import options, updates
from frontdesk.interfaces.acp.commands import COMMANDS, CommandContext, SlashCommand
from frontdesk.interfaces.acp.content import PromptContent, parse_command
from frontdesk.interfaces.acp.editor import AskPersonTool, Editor, EditorCommandRunner, EditorFiles, PermissionPrompt
from frontdesk.interfaces.acp.errors import stop_reason, turn_error
from frontdesk.interfaces.acp.event_view import EventView, replay_history
from frontdesk.interfaces.acp.jsonrpc import Json, RpcRequest
from frontdesk.interfaces.acp.mcp_servers import EditorServers
from frontdesk.interfaces.acp.options import SessionChoices
from frontdesk.interfaces.acp.tool_calls import call_title, tool_kind
from frontdesk.interfaces.acp.watchers import memory_edits, run_in_background
from frontdesk.llm.events import (
    ApprovalRequest,
    Done,
    Event,
    Failed,
    MemoryEdit,
    StopReason,
    TextChunk,
    Usage,
    UserText,
)
from frontdesk.llm.tools import Tool
from frontdesk.settings.model import config_path

PLAN_MODE_NOTE = (
    "The session is in plan mode: look around, ask and plan, but change nothing and run nothing. "
    "Say what you would do; the person leaves plan mode when they want it done."
)
REJECTION_NOTE = (
    "Where a tool was rejected by the person, do not look for a way around it; ask what they would like instead."
)


def session_context(session: CodingSession) -> str:
    """The folders, the ways of working there, and the mode."""
    others = "".join(f"\nFurther folders: {folder}" for folder in session.directories)
    plan = f"\n{PLAN_MODE_NOTE}" if session.mode is PermissionMode.PLAN else ""
    return (
        f"You are in a person's code editor, working in the folder {session.cwd}.{others}\n"
        "Read a file before you edit it, keep to the style of what is there, and make the smallest change that does "
        "what was asked. Paths may be relative to that folder. For work of several steps show your plan with "
        f"update_plan. {REJECTION_NOTE}{plan}"
    )


@dataclass(slots=True)
class SessionResources:
    """Made once for a session; the tools that the editor's servers have come as they are found."""

    roots: WorkspaceRoots
    permission_prompt: PermissionPrompt
    ask_permission: AskPermission
    servers: EditorServers
    own_tools: Sequence[Tool]

    @classmethod
    def of(
        cls, app: App, editor: Editor, session: Callable[[], CodingSession], asking: PermissionPrompt
    ) -> "SessionResources":
        kept = session()
        roots = WorkspaceRoots.from_folders(kept.cwd, kept.directories)
        leave = app.workspace.permissions.for_session(kept.user_id, kept.cwd, lambda: session().mode, asking.ask)
        guard = PathGuard(roots, (app.settings.data, config_path()), local=editor.local)
        own = [
            *coding_tools(_coding_context(editor, kept.id, guard, leave, asking)),
            *_question_tools(editor, kept.id, asking),
        ]
        return cls(roots, asking, leave, EditorServers(kept.cwd, leave, guard), own)

    async def close(self) -> None:
        await self.servers.aclose()


def _coding_context(
    editor: Editor, session_id: str, guard: PathGuard, leave: AskPermission, asking: PermissionPrompt
) -> CodingContext:
    """As far as possible through the editor; this machine's files and commands only where the editor is on it."""
    roots = guard.roots
    disk = LocalFiles(roots) if editor.local else None

    async def show(call_id: str, part: ShownItem) -> None:
        await asking.view().show_part(call_id, part)

    return CodingContext(
        roots, EditorFiles(editor, session_id, disk), _command_runner(editor, session_id), leave, show, disk, guard
    )


def _command_runner(editor: Editor, session_id: str) -> CommandRunner | None:
    if editor.capabilities.terminals:
        return EditorCommandRunner(editor, session_id)
    return LocalCommands() if editor.local else None


def _question_tools(editor: Editor, session_id: str, asking: PermissionPrompt) -> Sequence[Tool]:
    """A form can be shown only where the editor has them."""
    if not editor.capabilities.asks_forms:
        return ()
    return [AskPersonTool(editor, session_id, lambda call_id: asking.view().sent_id(call_id)).tool()]


@dataclass(slots=True)
class ActivePrompt:
    """`said` is what the person has said since, and the agent has not heard yet; `authority` on whose word it began."""

    authority: Authority
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    running: bool = False
    steers: bool = False
    steering: list[str] = field(default_factory=list[str])

    def cancel(self) -> None:
        self.scope.cancel()

    def take_steering(self) -> Sequence[str]:
        said, self.steering = self.steering, []
        return said


INTERFACE_NAME = "acp"
# Work on code takes more steps than talk does.
MAX_STEPS = 200
# How long a prompt waits for the editor's servers; those that take longer are there for the next.
SERVERS_SECONDS = 3.0
MEMORY_TOOLS = frozenset({"memory_insert", "memory_replace", "memory_rethink"})
READ_ONLY_KINDS = frozenset({OperationKind.READ, OperationKind.SEARCH, OperationKind.THINK})


@dataclass(slots=True)
class PromptRun:
    """`stop` is how the last turn ended, and `cost_usd` what all of them took, where a price was known."""

    session: "EditorSession"
    turn: ActivePrompt
    caller: Caller
    stop: StopReason = StopReason.CANCELLED
    cost_usd: float | None = None
    _usage: Usage | None = field(default=None, init=False)

    @property
    def _host(self) -> AgentHost:
        return self.session.app.host

    async def run(self, heard: PromptContent) -> None:
        """From what was said until nothing is left to be said to it."""
        await self.session.resources.servers.wait_until_listed(SERVERS_SECONDS)
        prompt = await self._prompt(heard)
        try:
            waiting = await self._take_turn(prompt)
        except PendingApproval:
            # Left over from a turn that nobody was there to answer for. One that was asked for with a key that works no
            # more is given up.
            with suppress(Denied):
                await self._decide(prompt, await self._pending())
            waiting = await self._take_turn(prompt)
        await self._decide(prompt, waiting)
        await self._take_late_steering(prompt)

    async def _decide(self, prompt: Prompt, waiting: Sequence[ApprovalRequest]) -> None:
        """Have the person decide on what waits, and go on, until nothing does."""
        while waiting:
            words = [await self._approve(one) for one in waiting]
            waiting = await self._take_turn(replace(prompt, text=None, media=(), approvals=words))

    async def _take_late_steering(self, prompt: Prompt) -> None:
        """Go on with what the person said too late for the turn to hear; from the last look on nothing is taken in."""
        while said := "\n\n".join(self.turn.take_steering()):
            await self.session.view.show(UserText(said))
            await self._decide(prompt, await self._take_turn(replace(prompt, text=said, media=())))
        self.turn.running = False

    async def _take_turn(self, prompt: Prompt) -> Sequence[ApprovalRequest]:
        """One turn, shown as it goes; what waits for approval at its end."""
        waiting: list[ApprovalRequest] = []
        failure: Failed | None = None
        async with aclosing(run_journaled_turn(self._host, self.session.app.journal, INTERFACE_NAME, prompt)) as events:
            async for event in events:
                match event:
                    case ApprovalRequest():
                        waiting.append(event)
                    case Failed():
                        failure = event
                    case Done(stop):
                        self.stop = stop
                    case Usage():
                        self._usage = event
                    case _:
                        pass
                await self.session.show_event(event)
        self._count()
        if failure is not None:
            raise turn_error(failure)
        return waiting if self.stop is StopReason.REQUIRES_APPROVAL else ()

    def _count(self) -> None:
        """Add up the turn that has ended."""
        usage, self._usage = self._usage, None
        if usage is not None and usage.cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + usage.cost_usd

    async def _approve(self, waiting: ApprovalRequest) -> Approval:
        """What the person says to a call; those of the agent's memory are asked about by an option of their own."""
        name, kit = waiting.name, self.session.resources
        kind, title = tool_kind(name), call_title(name, waiting.arguments, kit.roots)
        if name in MEMORY_TOOLS and self.session.stored.asks_memory:
            permission_request = PermissionRequest(
                waiting.call_id, name, kind, title, scope="memory", scope_text="edits of its memory"
            )
            return await self._approve_memory_edit(permission_request)
        kind = OperationKind.OTHER if kind in READ_ONLY_KINDS else kind
        permission_request = PermissionRequest(
            waiting.call_id, name, kind, title, scope=f"tool {name}", scope_text=f"the tool {name}"
        )
        word = await kit.ask_permission(permission_request)
        return Approval(waiting.call_id, word.allowed, word.reason)

    async def _approve_memory_edit(self, permission_request: PermissionRequest) -> Approval:
        choice = await self.session.resources.permission_prompt.ask(permission_request)
        if choice.lasts and choice.allows:
            await self.session.set(asks_memory=False)
        return Approval(permission_request.call_id, choice.allows, "" if choice.allows else "the person said no")

    async def _pending(self) -> Sequence[ApprovalRequest]:
        kept = self.session.stored
        waiting = await self._host.pending(kept.agent_id, kept.conversation_id, kept.user_id)
        for request in waiting:
            await self.session.view.show(request)
        return waiting

    async def _tools(self) -> Sequence[Tool]:
        """The session's; of the editor's servers' tools those that the agent does not hold under the same name."""
        kit = self.session.resources
        found = kit.servers.tools()
        held = {tool.name for tool in await self._host.tools(self.session.stored.agent_id)} if found else set[str]()
        return [*kit.own_tools, *(tool for tool in found if tool.name not in held)]

    async def _prompt(self, heard: PromptContent) -> Prompt:
        kept, traits = self.session.stored, self._host.features
        return Prompt(
            kept.agent_id,
            self.caller,
            heard.text,
            conversation_id=kept.conversation_id,
            tools=await self._tools(),
            max_steps=MAX_STEPS,
            media=heard.media,
            context=self.session.context(),
            model=kept.model,
            effort=kept.effort,
            asks=MEMORY_TOOLS if kept.asks_memory and traits.can_require_approval else frozenset(),
            heard=self.turn.take_steering,
        )


CLOSE_SECONDS = 5.0
CANCELLED_RESPONSE: Json = {"stopReason": "cancelled"}


@dataclass(slots=True)
class EditorSession:
    """`kept` is what the database has of it."""

    app: App
    editor: Editor
    stored: CodingSession
    choices: SessionChoices
    resources: SessionResources = field(init=False)
    view: EventView = field(init=False)
    _lock: anyio.Lock = field(default_factory=anyio.Lock)
    _prompts: list[ActivePrompt] = field(default_factory=list[ActivePrompt])
    _waiting: Mapping[str, str] = field(default_factory=dict[str, str])
    _known: dict[str, str] = field(default_factory=dict[str, str])
    _last_context: str = ""

    def __post_init__(self) -> None:
        asking = PermissionPrompt(self.editor, self.stored.id, lambda: self.view, self.cancel)
        self.resources = SessionResources.of(self.app, self.editor, lambda: self.stored, asking)
        self.view = self.new_view()

    def connect(self, tasks: TaskGroup, servers: Sequence[object]) -> None:
        """Look for the tools of the editor's servers, behind the scenes."""
        tasks.start_soon(run_in_background, partial(self.resources.servers.run, servers, self._complain))

    async def _complain(self, text: str) -> None:
        if self.editor.capabilities.notices:
            await self.show(updates.notice_update("warning", text))
        else:
            await self.show_text(text)

    async def mirror_memory(self) -> None:
        """Make the files that show the agent's memory say what it is now."""
        blocks = await self.app.host.blocks(self.stored.agent_id, self.stored.user_id)
        self._known = {block.label: block.value for block in blocks}
        await self.app.workspace.mirror.write_blocks(self.stored.agent_id, blocks, self.stored.user_id)

    async def show_memory_changes(self, blocks: Sequence[MemoryBlock]) -> None:
        """Show what the agent's memory has become elsewhere; not while it is at work here, and may change it itself."""
        if self._lock.locked() or not memory_edits(self._known, blocks):
            return
        async with self._lock:
            changed, screen = memory_edits(self._known, blocks), self.new_view()
            self._known = {block.label: block.value for block in blocks}
            await self.app.workspace.mirror.write_blocks(self.stored.agent_id, blocks, self.stored.user_id)
            for edit in changed:
                await screen.show(edit)

    async def prompt(self, request: RpcRequest, heard: PromptContent, caller: Caller) -> Json:
        """Answer a prompt, after those before it."""
        if request.withdrawn:
            return CANCELLED_RESPONSE
        turn = ActivePrompt(Authority.of(caller), steers=self.app.host.features.can_steer)
        request.on_cancel = turn.cancel
        self._prompts.append(turn)
        try:
            with turn.scope:
                async with self._lock:
                    return await self._respond(turn, request, heard, caller)
        finally:
            self._prompts.remove(turn)
        return CANCELLED_RESPONSE

    def cancel(self) -> None:
        """Stop the prompt under way, and forget those that wait."""
        for turn in list(self._prompts):
            turn.cancel()

    def steer(self, text: str, caller: Caller) -> bool:
        """Have the agent hear this while it works; whether it is working, and can.

        Whoever may do less by now than when the turn began says it in a turn of its own.
        """
        turn = next((one for one in self._prompts if one.running and one.steers), None)
        if turn is None or turn.scope.cancel_called or turn.authority != Authority.of(caller):
            return False
        turn.steering.append(text)
        return True

    async def close(self) -> None:
        """Stop everything, and leave no process behind."""
        self.cancel()
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            async with self._lock:
                pass
        await self.resources.close()

    async def replay(self, said: Sequence[HistoryItem]) -> None:
        """Show everything that was said."""
        self._waiting = await replay_history(said, self.new_view)

    async def show(self, update: Json) -> None:
        await self.editor.show(self.stored.id, update)

    async def show_text(self, text: str, events: Sequence[Event] = ()) -> None:
        """Show something that is no answer to a prompt, once none is being answered."""
        async with self._lock:
            screen = self.new_view()
            for event in (*events, TextChunk(text)):
                await self._show(screen, event)

    async def set(self, **fields: Unpack[CodingSessionChanges]) -> None:
        """Store a change, and tell the editor how everything is set now."""
        before = self.stored
        await self._keep(**fields)
        if before.mode is not self.stored.mode:
            await self.show(updates.mode_update(self.stored.mode.value))
        await self.show(updates.options_update(options.option_list(self.stored, self.choices)))

    async def choose_agent(self, agent_id: str) -> None:
        """Go on with another agent, once the one at work is done."""
        async with self._lock:
            chosen = await self.app.workspace.sessions.choose_agent(self.stored, agent_id)
            self.stored = replace(self.stored, agent_id=chosen.agent_id, conversation_id=chosen.conversation_id)
            await self.mirror_memory()
            await self.set(model=None, effort=None)

    async def rename(self, title: str) -> str:
        """What it is called then."""
        await self._keep(title=title)
        await self._touch()
        await self.show(updates.session_info_update(self.stored.title, self.stored.updated_at))
        return self.stored.title

    async def _respond(self, turn: ActivePrompt, request: RpcRequest, heard: PromptContent, caller: Caller) -> Json:
        self.view = screen = self.new_view()
        self._waiting = {}
        turn.running = True
        try:
            given = parse_command(heard.typed_text)
            if given is not None and given[0] in COMMANDS:
                await self._command(COMMANDS[given[0]], given[1], caller)
                return {"stopReason": "end_turn"}
            return await self._converse(turn, request, heard, caller)
        finally:
            turn.running = False
            with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                await screen.close("cancelled" if turn.scope.cancel_called else "The turn ended before this did")

    async def _command(self, command: SlashCommand, words: str, caller: Caller) -> None:
        reply = await command.run(CommandContext(self.app, self.stored, caller), words)
        for event in (*reply.events, TextChunk(reply.text)):
            await self._show(self.view, event)
        if reply.change is not None:
            await self.set(model=reply.change.model, effort=reply.change.effort)

    async def _converse(self, turn: ActivePrompt, request: RpcRequest, heard: PromptContent, caller: Caller) -> Json:
        answering = PromptRun(self, turn, caller)
        await answering.run(heard)
        if not self.stored.title and (title := suggest_title(heard.typed_text)):
            # A session is called after what was said in it first.
            await self.rename(title)
        if answering.cost_usd:
            # Before the answer is out, as the editor may load the session again after that.
            await self._keep(cost_usd=(self.stored.cost_usd or 0.0) + answering.cost_usd)
        request.after_answer.append(self._touch)
        return {"stopReason": stop_reason(answering.stop)}

    async def show_event(self, event: Event) -> None:
        """Show something of the prompt under way."""
        await self._show(self.view, event)

    def context(self) -> str:
        """Where the agent is; nothing where it has been told so, and has it before its eyes still."""
        before, self._last_context = self._last_context, session_context(self.stored)
        return "" if self.app.host.features.keeps_context and before == self._last_context else self._last_context

    async def _show(self, screen: EventView, event: Event) -> None:
        if isinstance(event, MemoryEdit):
            # The diff is of this file.
            await self.app.workspace.mirror.write_block(
                self.stored.agent_id, event.label, event.after, self.stored.user_id
            )
            self._known[event.label] = event.after
        await screen.show(event)

    async def _keep(self, **fields: Unpack[CodingSessionChanges]) -> None:
        """Store these fields; what has been set of the others meanwhile stands."""
        stored = await self.app.workspace.sessions.change(self.stored, **fields)
        self.stored = replace(self.stored, **{name: getattr(stored, name) for name in fields})

    async def _touch(self) -> None:
        """It was used now."""
        touched = await self.app.workspace.sessions.touch(self.stored)
        self.stored = replace(self.stored, updated_at=touched.updated_at)

    def new_view(self) -> EventView:
        kept, mirror = self.stored, self.app.workspace.mirror
        return EventView(
            self.show,
            self.resources.roots,
            lambda label: mirror.path_of(kept.agent_id, label, kept.user_id),
            cost_usd=kept.cost_usd,
            compaction=self.editor.capabilities.compaction,
            waiting=self._waiting,
        )
