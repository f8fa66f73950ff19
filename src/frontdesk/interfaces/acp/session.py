"""Runs one session of an editor: converts a prompt, takes turns of the agent, shows events, returns a stop reason."""

from collections.abc import Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Unpack

import anyio
from anyio.abc import TaskGroup

from frontdesk.agents.host import Approval, HistoryItem, MemoryBlock, Prompt
from frontdesk.agents.turns.operations import run_journaled_turn
from frontdesk.app import App
from frontdesk.coding.commands import CommandRunner, LocalCommands
from frontdesk.coding.files import FileView, LocalFiles
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
from frontdesk.coding.tools import CodingContext, coding_tools
from frontdesk.errors import Denied, PendingApproval
from frontdesk.identity.authority import Authority
from frontdesk.identity.model import Caller
from frontdesk.interfaces.acp import convert
from frontdesk.interfaces.acp.commands import COMMANDS, CommandContext
from frontdesk.interfaces.acp.convert import PromptContent, SessionChoices, convert_prompt, parse_command
from frontdesk.interfaces.acp.editor import Editor, EditorCommandRunner, EditorFiles, PermissionPrompt, ask_person_tool
from frontdesk.interfaces.acp.errors import stop_reason, turn_error
from frontdesk.interfaces.acp.event_view import TURN_ENDED_FIRST, EventView, replay_history
from frontdesk.interfaces.acp.jsonrpc import Json, RpcRequest
from frontdesk.interfaces.acp.mcp_servers import EditorServers
from frontdesk.interfaces.acp.schema import ContentBlock
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

INTERFACE_NAME = "acp"
# Work on code takes more steps than a conversation.
MAX_STEPS = 200
# How long a prompt waits for the editor's servers; the tools of slower ones come with the next prompt.
SERVERS_SECONDS = 3.0
CLOSE_SECONDS = 5.0
MEMORY_TOOLS = frozenset({"memory_insert", "memory_replace", "memory_rethink"})
READ_ONLY_KINDS = frozenset({OperationKind.READ, OperationKind.SEARCH, OperationKind.THINK})
CANCELLED_RESPONSE: Json = {"stopReason": "cancelled"}
PLAN_MODE_NOTE = (
    "The session is in plan mode: look around, ask and plan, but change nothing and run nothing. "
    "Say what you would do; the person leaves plan mode when they want it done."
)
REJECTION_NOTE = (
    "Where a tool was rejected by the person, do not look for a way around it; ask what they would like instead."
)


def session_context(session: CodingSession) -> str:
    """Tells the agent its folders, how to work in them, and the mode of the session."""
    others = "".join(f"\nFurther folders: {folder}" for folder in session.directories)
    plan = f"\n{PLAN_MODE_NOTE}" if session.mode is PermissionMode.PLAN else ""
    return (
        f"You are in a person's code editor, working in the folder {session.cwd}.{others}\n"
        "Read a file before you edit it, keep to the style of what is there, and make the smallest change that does "
        "what was asked. Paths may be relative to that folder. For work of several steps show your plan with "
        f"update_plan. {REJECTION_NOTE}{plan}"
    )


@dataclass(slots=True)
class ActivePrompt:
    """A prompt, from its arrival until its answer.

    `authority` is what its caller may do. `steering` are texts that the person sent since, and that the agent has not
    read yet. `running` is true while the agent still takes such texts. `stop` is how the newest turn ended, and
    `cost_usd` the cost of all turns whose price is known.
    """

    authority: Authority
    can_steer: bool
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    running: bool = False
    steering: list[str] = field(default_factory=list[str])
    stop: StopReason = StopReason.CANCELLED
    cost_usd: float | None = None

    def take_steering(self) -> Sequence[str]:
        texts, self.steering = self.steering, []
        return texts


@dataclass(frozen=True, slots=True)
class PromptDialog:
    """How one prompt reaches the person: the view of its turns, and the questions about its tool calls."""

    view: EventView
    person: PermissionPrompt
    ask_permission: AskPermission


@dataclass(slots=True)
class EditorSession:
    """A session that an editor has open; `stored` is its row in the database.

    Prompts follow each other under `_lock`. Each gets a view and tools of its own when it begins.
    """

    app: App
    editor: Editor
    stored: CodingSession
    choices: SessionChoices
    _roots: WorkspaceRoots = field(init=False)
    _guard: PathGuard = field(init=False)
    _disk: LocalFiles | None = field(init=False)
    _files: FileView = field(init=False)
    _servers: EditorServers = field(init=False)
    _lock: anyio.Lock = field(default_factory=anyio.Lock)
    _prompts: list[ActivePrompt] = field(default_factory=list[ActivePrompt])
    # Calls that wait for approval, and the ids under which the editor shows them.
    _waiting: Mapping[str, str] = field(default_factory=dict[str, str])
    # The memory blocks as the editor last saw them.
    _known_memory: dict[str, str] = field(default_factory=dict[str, str])
    _last_context: str = ""

    def __post_init__(self) -> None:
        self._roots = WorkspaceRoots.from_folders(self.stored.cwd, self.stored.directories)
        self._guard = PathGuard(self._roots, (self.app.settings.data, config_path()), local=self.editor.local)
        # The files of this machine are the session's only where the editor is on it.
        self._disk = LocalFiles(self._roots) if self.editor.local else None
        self._files = FileView(EditorFiles(self.editor, self.stored.id, self._disk), self._disk)
        self._servers = EditorServers(self.stored.cwd, self._guard)

    async def prompt(self, request: RpcRequest, blocks: Sequence[ContentBlock], caller: Caller) -> Json:
        """Answer a prompt after the earlier prompts are answered; a cancelled prompt ends immediately."""
        model = self.choices.model_of(self.stored)
        content = convert_prompt(blocks, images=model.images, sounds=model.sounds)
        if request.withdrawn:
            return CANCELLED_RESPONSE
        active = ActivePrompt(Authority.of(caller), self.app.host.features.can_steer)
        request.on_cancel = active.scope.cancel
        self._prompts.append(active)
        try:
            with active.scope:
                async with self._lock:
                    return await self._answer(active, request, content, caller)
        finally:
            self._prompts.remove(active)
        return CANCELLED_RESPONSE

    async def _answer(self, active: ActivePrompt, request: RpcRequest, content: PromptContent, caller: Caller) -> Json:
        view, self._waiting = self._new_view(), {}
        active.running = True
        try:
            command = parse_command(content.typed_text)
            if command is not None and command[0] in COMMANDS:
                await self._run_command(view, *command, caller)
                return {"stopReason": "end_turn"}
            await self._converse(active, view, content, caller)
            if not self.stored.title and (title := suggest_title(content.typed_text)):
                # The first text in a session becomes its title.
                await self.rename(title)
            if active.cost_usd:
                # Store this before the answer is sent, as the editor may load the session again after that.
                await self._store(cost_usd=(self.stored.cost_usd or 0.0) + active.cost_usd)
            request.after_answer.append(self._touch)
            return {"stopReason": stop_reason(active.stop)}
        finally:
            active.running = False
            with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                await view.close("cancelled" if active.scope.cancel_called else TURN_ENDED_FIRST)

    async def _run_command(self, view: EventView, name: str, words: str, caller: Caller) -> None:
        reply = await COMMANDS[name].run(CommandContext(self.app, self.stored, caller), words)
        for event in (*reply.events, TextChunk(reply.text)):
            await self._show_event(view, event)
        if reply.change is not None:
            await self.set(model=reply.change.model, effort=reply.change.effort)

    async def _converse(self, active: ActivePrompt, view: EventView, content: PromptContent, caller: Caller) -> None:
        """Take turns until the agent is done, no tool call waits for approval, and the person has sent no more text."""
        await self._servers.wait_until_listed(SERVERS_SECONDS)
        stored, features = self.stored, self.app.host.features
        person = PermissionPrompt(self.editor, stored.id, view, self.cancel)
        ask_permission = self.app.workspace.permissions.for_session(
            *(stored.user_id, stored.cwd),
            # The person may change the mode during a turn.
            lambda: self.stored.mode,
            person.ask,
        )
        dialog = PromptDialog(view, person, ask_permission)
        prompt = Prompt(
            stored.agent_id,
            caller,
            content.text,
            conversation_id=stored.conversation_id,
            tools=await self._tools(dialog),
            max_steps=MAX_STEPS,
            media=content.media,
            context=self._new_context(),
            model=stored.model,
            effort=stored.effort,
            asks=MEMORY_TOOLS if stored.asks_memory and features.can_require_approval else frozenset(),
            heard=active.take_steering,
        )
        try:
            waiting = await self._take_turn(active, view, prompt)
        except PendingApproval:
            # Calls of an earlier turn wait, and nobody was there to decide on them. If the key that requested that turn
            # is no longer valid, they are dropped.
            with suppress(Denied):
                await self._decide(active, dialog, prompt, await self._pending_calls(view))
            waiting = await self._take_turn(active, view, prompt)
        await self._decide(active, dialog, prompt, waiting)
        while text := "\n\n".join(active.take_steering()):
            # This came too late for the turn to read it.
            await view.show(UserText(text))
            waiting = await self._take_turn(active, view, replace(prompt, text=text, media=()))
            await self._decide(active, dialog, prompt, waiting)
        # There is no await since the last check, so no text is accepted that the agent does not read.
        active.running = False

    async def _decide(
        self, active: ActivePrompt, dialog: PromptDialog, prompt: Prompt, waiting: Sequence[ApprovalRequest]
    ) -> None:
        """Ask the person about the waiting calls, and continue, until none waits."""
        while waiting:
            approvals = [await self._approve(dialog, request) for request in waiting]
            waiting = await self._take_turn(
                active, dialog.view, replace(prompt, text=None, media=(), approvals=approvals)
            )

    async def _take_turn(self, active: ActivePrompt, view: EventView, prompt: Prompt) -> Sequence[ApprovalRequest]:
        """Take one turn and show its events; returns the calls that wait for approval at its end."""
        waiting: list[ApprovalRequest] = []
        failure, usage = None, None
        async with aclosing(run_journaled_turn(self.app.host, self.app.journal, INTERFACE_NAME, prompt)) as events:
            async for event in events:
                match event:
                    case ApprovalRequest():
                        waiting.append(event)
                    case Usage():
                        usage = event
                    case Failed():
                        failure = event
                    case Done(stop):
                        active.stop = stop
                    case _:
                        pass
                await self._show_event(view, event)
        if usage is not None and usage.cost_usd is not None:
            active.cost_usd = (active.cost_usd or 0.0) + usage.cost_usd
        if failure is not None:
            raise turn_error(failure)
        return waiting if active.stop is StopReason.REQUIRES_APPROVAL else ()

    async def _approve(self, dialog: PromptDialog, call: ApprovalRequest) -> Approval:
        """Ask the person about a call of one of the agent's own tools; memory edits have an option of their own."""
        kind, title = tool_kind(call.name), call_title(call.name, call.arguments, self._roots)
        request = PermissionRequest(call.call_id, call.name, kind, title)
        if call.name in MEMORY_TOOLS and self.stored.asks_memory:
            answer = await dialog.person.ask(replace(request, scope="memory", scope_text="edits of its memory"))
            if answer.lasts and answer.allows:
                await self.set(asks_memory=False)
            return Approval(call.call_id, answer.allows, "" if answer.allows else "the person said no")
        # The host wants an approval, so the kind alone does not allow it.
        kind = OperationKind.OTHER if kind in READ_ONLY_KINDS else kind
        decision = await dialog.ask_permission(
            replace(request, kind=kind, scope=f"tool {call.name}", scope_text=f"the tool {call.name}")
        )
        return Approval(call.call_id, decision.allowed, decision.reason)

    async def _pending_calls(self, view: EventView) -> Sequence[ApprovalRequest]:
        stored = self.stored
        waiting = await self.app.host.pending(stored.agent_id, stored.conversation_id, stored.user_id)
        for request in waiting:
            await view.show(request)
        return waiting

    async def _tools(self, dialog: PromptDialog) -> Sequence[Tool]:
        """The session's tools for one prompt, and those of the editor's servers that the agent does not hold."""
        view, ask_permission = dialog.view, dialog.ask_permission
        context = CodingContext(
            self._roots, self._files, self._command_runner(), ask_permission, view.show_part, self._disk, self._guard
        )
        forms = self.editor.capabilities.asks_forms
        ask_person = [ask_person_tool(self.editor, self.stored.id, view)] if forms else []
        found = self._servers.tools(ask_permission)
        held = {tool.name for tool in await self.app.host.tools(self.stored.agent_id)} if found else set[str]()
        return [*coding_tools(context), *ask_person, *(tool for tool in found if tool.name not in held)]

    def _command_runner(self) -> CommandRunner | None:
        """Runs commands in the editor where it has terminals, else here where the editor is on this machine."""
        if self.editor.capabilities.terminals:
            return EditorCommandRunner(self.editor, self.stored.id)
        return LocalCommands() if self.editor.local else None

    def _new_context(self) -> str:
        """The context of the next turn; empty where the agent still has the same one from before."""
        before, self._last_context = self._last_context, session_context(self.stored)
        return "" if self.app.host.features.keeps_context and before == self._last_context else self._last_context

    def steer(self, text: str, caller: Caller) -> bool:
        """Let the agent read this while it works; returns False where no turn can take it.

        A caller whose rights have changed since the turn began needs a turn of its own.
        """
        active = next((one for one in self._prompts if one.running and one.can_steer), None)
        if active is None or active.scope.cancel_called or active.authority != Authority.of(caller):
            return False
        active.steering.append(text)
        return True

    def cancel(self) -> None:
        """Stop the prompt under way, and drop those that wait for it."""
        for active in list(self._prompts):
            active.scope.cancel()

    async def close(self) -> None:
        """Stop everything, and leave no process behind."""
        self.cancel()
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            async with self._lock:
                pass
        await self._servers.aclose()

    def connect(self, tasks: TaskGroup, servers: Sequence[object]) -> None:
        """List the tools of the editor's servers in the background."""
        tasks.start_soon(run_in_background, partial(self._servers.run, servers, self._warn))

    async def _warn(self, text: str) -> None:
        if self.editor.capabilities.notices:
            await self.show(convert.notice_update("warning", text))
        else:
            await self.show_text(text)

    async def replay(self, history: Sequence[HistoryItem]) -> None:
        """Show the whole history."""
        self._waiting = await replay_history(history, self._new_view())

    async def show(self, update: Json) -> None:
        await self.editor.show(self.stored.id, update)

    async def show_text(self, text: str) -> None:
        """Show a text that answers no prompt, once no prompt is being answered."""
        async with self._lock:
            await self._new_view().show(TextChunk(text))

    async def mirror_memory(self) -> None:
        """Write the agent's memory to the files that show it."""
        await self._mirror_blocks(await self.app.host.blocks(self.stored.agent_id, self.stored.user_id))

    async def show_memory_changes(self, blocks: Sequence[MemoryBlock]) -> None:
        """Show edits of the agent's memory that were made elsewhere; not while a prompt may make its own."""
        if self._lock.locked() or not memory_edits(self._known_memory, blocks):
            return
        async with self._lock:
            edits, view = memory_edits(self._known_memory, blocks), self._new_view()
            await self._mirror_blocks(blocks)
            for edit in edits:
                await view.show(edit)

    async def _mirror_blocks(self, blocks: Sequence[MemoryBlock]) -> None:
        self._known_memory = {block.label: block.value for block in blocks}
        await self.app.workspace.mirror.write_blocks(self.stored.agent_id, blocks, self.stored.user_id)

    async def _show_event(self, view: EventView, event: Event) -> None:
        if isinstance(event, MemoryEdit):
            # The editor shows a diff of this file.
            stored, mirror = self.stored, self.app.workspace.mirror
            await mirror.write_block(stored.agent_id, event.label, event.after, stored.user_id)
            self._known_memory[event.label] = event.after
        await view.show(event)

    def _new_view(self) -> EventView:
        stored, mirror = self.stored, self.app.workspace.mirror
        return EventView(
            self.show,
            self._roots,
            lambda label: mirror.path_of(stored.agent_id, label, stored.user_id),
            cost_usd=stored.cost_usd,
            compaction=self.editor.capabilities.compaction,
            waiting=self._waiting,
        )

    async def set(self, **fields: Unpack[CodingSessionChanges]) -> None:
        """Store a change, and send the editor the current options."""
        before = self.stored
        await self._store(**fields)
        if before.mode is not self.stored.mode:
            await self.show(convert.mode_update(self.stored.mode.value))
        await self.show(convert.options_update(convert.option_list(self.stored, self.choices)))

    async def choose_agent(self, agent_id: str) -> None:
        """Continue with another agent, once the prompt under way is answered."""
        async with self._lock:
            chosen = await self.app.workspace.sessions.choose_agent(self.stored, agent_id)
            self.stored = replace(self.stored, agent_id=chosen.agent_id, conversation_id=chosen.conversation_id)
            await self.mirror_memory()
            await self.set(model=None, effort=None)

    async def rename(self, title: str) -> str:
        """Returns the title as it is stored."""
        await self._store(title=title)
        await self._touch()
        await self.show(convert.session_info_update(self.stored.title, self.stored.updated_at))
        return self.stored.title

    async def _store(self, **fields: Unpack[CodingSessionChanges]) -> None:
        """Store these fields; other fields may have been changed meanwhile, and stay."""
        stored = await self.app.workspace.sessions.change(self.stored, **fields)
        self.stored = replace(self.stored, **{name: getattr(stored, name) for name in fields})

    async def _touch(self) -> None:
        """Note that the session was used now."""
        touched = await self.app.workspace.sessions.touch(self.stored)
        self.stored = replace(self.stored, updated_at=touched.updated_at)
