"""One session that an editor has open: its prompts follow each other, and each is a turn of its agent, or several."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Unpack

import anyio
from anyio.abc import TaskGroup

from frontdesk.agents.host import Block, Said
from frontdesk.app import App
from frontdesk.identity.authority import Authority
from frontdesk.identity.model import Caller
from frontdesk.loop.events import Event, MemoryEdit, TextChunk
from frontdesk.surfaces.acp.commands.model import Command, Desk
from frontdesk.surfaces.acp.commands.table import COMMANDS
from frontdesk.surfaces.acp.convert import stops, updates
from frontdesk.surfaces.acp.convert.content import Heard, slash
from frontdesk.surfaces.acp.convert.replay import replay
from frontdesk.surfaces.acp.convert.screen import Screen
from frontdesk.surfaces.acp.editor.asking import Asking
from frontdesk.surfaces.acp.editor.model import Editor
from frontdesk.surfaces.acp.live import options
from frontdesk.surfaces.acp.live.answering import Answering
from frontdesk.surfaces.acp.live.aside import aside
from frontdesk.surfaces.acp.live.context import context_of
from frontdesk.surfaces.acp.live.kit import Kit
from frontdesk.surfaces.acp.live.memory import edits
from frontdesk.surfaces.acp.live.options import Choices
from frontdesk.surfaces.acp.live.underway import Underway
from frontdesk.surfaces.acp.wire.model import Json, Request
from frontdesk.workspace.sessions.model import Changes, Session
from frontdesk.workspace.sessions.titles import titled

CLOSE_SECONDS = 5.0
CANCELLED: Json = {"stopReason": "cancelled"}


@dataclass(slots=True)
class LiveSession:
    """`kept` is what the database has of it."""

    app: App
    editor: Editor
    kept: Session
    choices: Choices
    kit: Kit = field(init=False)
    screen: Screen = field(init=False)
    _line: anyio.Lock = field(default_factory=anyio.Lock)
    _underway: list[Underway] = field(default_factory=list[Underway])
    _waiting: Mapping[str, str] = field(default_factory=dict[str, str])
    _known: dict[str, str] = field(default_factory=dict[str, str])
    _told: str = ""

    def __post_init__(self) -> None:
        asking = Asking(self.editor, self.kept.id, lambda: self.screen, self.cancel)
        self.kit = Kit.of(self.app, self.editor, lambda: self.kept, asking)
        self.screen = self.new_screen()

    def connect(self, tasks: TaskGroup, servers: Sequence[object]) -> None:
        """Look for the tools of the editor's servers, behind the scenes."""
        tasks.start_soon(aside, partial(self.kit.servers.run, servers, self._complain))

    async def _complain(self, text: str) -> None:
        if self.editor.can.notices:
            await self.show(updates.notice("warning", text))
        else:
            await self.tell(text)

    async def mirror_memory(self) -> None:
        """Make the files that show the agent's memory say what it is now."""
        blocks = await self.app.host.blocks(self.kept.agent_id, self.kept.user_id)
        self._known = {block.label: block.value for block in blocks}
        await self.app.workspace.mirror.write(self.kept.agent_id, blocks, self.kept.user_id)

    async def recall(self, blocks: Sequence[Block]) -> None:
        """Show what the agent's memory has become elsewhere; not while it is at work here, and may change it itself."""
        if self._line.locked() or not edits(self._known, blocks):
            return
        async with self._line:
            changed, screen = edits(self._known, blocks), self.new_screen()
            self._known = {block.label: block.value for block in blocks}
            await self.app.workspace.mirror.write(self.kept.agent_id, blocks, self.kept.user_id)
            for edit in changed:
                await screen.show(edit)

    async def prompt(self, request: Request, heard: Heard, caller: Caller) -> Json:
        """Answer a prompt, after those before it."""
        if request.withdrawn:
            return CANCELLED
        turn = Underway(Authority.of(caller), steers=self.app.host.traits.steers)
        request.on_cancel = turn.cancel
        self._underway.append(turn)
        try:
            with turn.scope:
                async with self._line:
                    return await self._respond(turn, request, heard, caller)
        finally:
            self._underway.remove(turn)
        return CANCELLED

    def cancel(self) -> None:
        """Stop the prompt under way, and forget those that wait."""
        for turn in list(self._underway):
            turn.cancel()

    def steer(self, text: str, caller: Caller) -> bool:
        """Have the agent hear this while it works; whether it is working, and can.

        Whoever may do less by now than when the turn began says it in a turn of its own.
        """
        turn = next((one for one in self._underway if one.begun and one.steers), None)
        if turn is None or turn.scope.cancel_called or turn.authority != Authority.of(caller):
            return False
        turn.said.append(text)
        return True

    async def close(self) -> None:
        """Stop everything, and leave no process behind."""
        self.cancel()
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            async with self._line:
                pass
        await self.kit.close()

    async def replay(self, said: Sequence[Said]) -> None:
        """Show everything that was said."""
        self._waiting = await replay(said, self.new_screen)

    async def show(self, update: Json) -> None:
        await self.editor.show(self.kept.id, update)

    async def tell(self, text: str, events: Sequence[Event] = ()) -> None:
        """Show something that is no answer to a prompt, once none is being answered."""
        async with self._line:
            screen = self.new_screen()
            for event in (*events, TextChunk(text)):
                await self._show(screen, event)

    async def set(self, **fields: Unpack[Changes]) -> None:
        """Store a change, and tell the editor how everything is set now."""
        before = self.kept
        await self._keep(**fields)
        if before.mode is not self.kept.mode:
            await self.show(updates.current_mode(self.kept.mode.value))
        await self.show(updates.config_options(options.told(self.kept, self.choices)))

    async def choose_agent(self, agent_id: str) -> None:
        """Go on with another agent, once the one at work is done."""
        async with self._line:
            chosen = await self.app.workspace.sessions.choose_agent(self.kept, agent_id)
            self.kept = replace(self.kept, agent_id=chosen.agent_id, conversation_id=chosen.conversation_id)
            await self.mirror_memory()
            await self.set(model=None, effort=None)

    async def rename(self, title: str) -> str:
        """What it is called then."""
        await self._keep(title=title)
        await self._touch()
        await self.show(updates.session_info(self.kept.title, self.kept.updated_at))
        return self.kept.title

    async def _respond(self, turn: Underway, request: Request, heard: Heard, caller: Caller) -> Json:
        self.screen = screen = self.new_screen()
        self._waiting = {}
        turn.begun = True
        try:
            given = slash(heard.said)
            if given is not None and given[0] in COMMANDS:
                await self._command(COMMANDS[given[0]], given[1], caller)
                return {"stopReason": "end_turn"}
            return await self._converse(turn, request, heard, caller)
        finally:
            turn.begun = False
            with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                await screen.close("cancelled" if turn.scope.cancel_called else "The turn ended before this did")

    async def _command(self, command: Command, words: str, caller: Caller) -> None:
        reply = await command.run(Desk(self.app, self.kept, caller), words)
        for event in (*reply.events, TextChunk(reply.text)):
            await self._show(self.screen, event)
        if reply.change is not None:
            await self.set(model=reply.change.model, effort=reply.change.effort)

    async def _converse(self, turn: Underway, request: Request, heard: Heard, caller: Caller) -> Json:
        answering = Answering(self, turn, caller)
        await answering.answer(heard)
        if not self.kept.title and (title := titled(heard.said)):
            # A session is called after what was said in it first.
            await self.rename(title)
        if answering.cost_usd:
            # Before the answer is out, as the editor may load the session again after that.
            await self._keep(cost_usd=(self.kept.cost_usd or 0.0) + answering.cost_usd)
        request.afterwards.append(self._touch)
        return {"stopReason": stops.stop_reason(answering.stop)}

    async def show_event(self, event: Event) -> None:
        """Show something of the prompt under way."""
        await self._show(self.screen, event)

    def context(self) -> str:
        """Where the agent is; nothing where it has been told so, and has it before its eyes still."""
        before, self._told = self._told, context_of(self.kept)
        return "" if self.app.host.traits.context_stays and before == self._told else self._told

    async def _show(self, screen: Screen, event: Event) -> None:
        if isinstance(event, MemoryEdit):
            # The diff is of this file.
            await self.app.workspace.mirror.put(self.kept.agent_id, event.label, event.after, self.kept.user_id)
            self._known[event.label] = event.after
        await screen.show(event)

    async def _keep(self, **fields: Unpack[Changes]) -> None:
        """Store these fields; what has been set of the others meanwhile stands."""
        stored = await self.app.workspace.sessions.change(self.kept, **fields)
        self.kept = replace(self.kept, **{name: getattr(stored, name) for name in fields})

    async def _touch(self) -> None:
        """It was used now."""
        touched = await self.app.workspace.sessions.touch(self.kept)
        self.kept = replace(self.kept, updated_at=touched.updated_at)

    def new_screen(self) -> Screen:
        kept, mirror = self.kept, self.app.workspace.mirror
        return Screen(
            self.show,
            self.kit.roots,
            lambda label: mirror.path_of(kept.agent_id, label, kept.user_id),
            cost_usd=kept.cost_usd,
            compaction=self.editor.can.compaction,
            waiting=self._waiting,
        )
