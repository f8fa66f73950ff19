"""Answers one prompt of an editor: a turn of the agent, or several, with the person's word in between."""

from collections.abc import Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from frontdesk.agents.asking import recorded
from frontdesk.agents.host import AgentHost, Approval, Prompt
from frontdesk.errors import Denied, PendingApproval
from frontdesk.identity.model import Caller
from frontdesk.loop.events import ApprovalRequest, Done, Failed, StopReason, Usage, UserText
from frontdesk.loop.tools import Tool
from frontdesk.surfaces.acp.convert import stops, tools
from frontdesk.surfaces.acp.convert.content import Heard
from frontdesk.surfaces.acp.live.underway import Underway
from frontdesk.workspace.permissions.model import Deed, Kind

if TYPE_CHECKING:
    from frontdesk.surfaces.acp.live.session import LiveSession

SURFACE = "acp"
# Work on code takes more steps than talk does.
STEPS = 200
# How long a prompt waits for the editor's servers; those that take longer are there for the next.
SERVERS_SECONDS = 3.0
MEMORY_TOOLS = frozenset({"memory_insert", "memory_replace", "memory_rethink"})
FREE = frozenset({Kind.READ, Kind.SEARCH, Kind.THINK})


@dataclass(slots=True)
class Answering:
    """`stop` is how the last turn ended, and `cost_usd` what all of them took, where a price was known."""

    session: "LiveSession"
    turn: Underway
    caller: Caller
    stop: StopReason = StopReason.CANCELLED
    cost_usd: float | None = None
    _usage: Usage | None = field(default=None, init=False)

    @property
    def _host(self) -> AgentHost:
        return self.session.app.host

    async def answer(self, heard: Heard) -> None:
        """From what was said until nothing is left to be said to it."""
        await self.session.kit.servers.settled(SERVERS_SECONDS)
        prompt = await self._prompt(heard)
        try:
            waiting = await self._take(prompt)
        except PendingApproval:
            # Left over from a turn that nobody was there to answer for. One that was asked for with a key that works no
            # more is given up.
            with suppress(Denied):
                await self._decide(prompt, await self._pending())
            waiting = await self._take(prompt)
        await self._decide(prompt, waiting)
        await self._hear_out(prompt)

    async def _decide(self, prompt: Prompt, waiting: Sequence[ApprovalRequest]) -> None:
        """Have the person decide on what waits, and go on, until nothing does."""
        while waiting:
            words = [await self._word(one) for one in waiting]
            waiting = await self._take(replace(prompt, text=None, media=(), approvals=words))

    async def _hear_out(self, prompt: Prompt) -> None:
        """Go on with what the person said too late for the turn to hear; from the last look on nothing is taken in."""
        while said := "\n\n".join(self.turn.heard()):
            await self.session.screen.show(UserText(said))
            await self._decide(prompt, await self._take(replace(prompt, text=said, media=())))
        self.turn.begun = False

    async def _take(self, prompt: Prompt) -> Sequence[ApprovalRequest]:
        """One turn, shown as it goes; what waits for approval at its end."""
        waiting: list[ApprovalRequest] = []
        failure: Failed | None = None
        async with aclosing(recorded(self._host, self.session.app.journal, SURFACE, prompt)) as events:
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
            raise stops.failure(failure)
        return waiting if self.stop is StopReason.REQUIRES_APPROVAL else ()

    def _count(self) -> None:
        """Add up the turn that has ended."""
        usage, self._usage = self._usage, None
        if usage is not None and usage.cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + usage.cost_usd

    async def _word(self, waiting: ApprovalRequest) -> Approval:
        """What the person says to a call; those of the agent's memory are asked about by an option of their own."""
        name, kit = waiting.name, self.session.kit
        kind, title = tools.kind(name), tools.title(name, waiting.arguments, kit.roots)
        if name in MEMORY_TOOLS and self.session.kept.asks_memory:
            deed = Deed(waiting.call_id, name, kind, title, scope="memory", covers="edits of its memory")
            return await self._memory_word(deed)
        kind = Kind.OTHER if kind in FREE else kind
        deed = Deed(waiting.call_id, name, kind, title, scope=f"tool {name}", covers=f"the tool {name}")
        word = await kit.leave(deed)
        return Approval(waiting.call_id, word.allowed, word.reason)

    async def _memory_word(self, deed: Deed) -> Approval:
        choice = await self.session.kit.asking.ask(deed)
        if choice.lasts and choice.allows:
            await self.session.set(asks_memory=False)
        return Approval(deed.call_id, choice.allows, "" if choice.allows else "the person said no")

    async def _pending(self) -> Sequence[ApprovalRequest]:
        kept = self.session.kept
        waiting = await self._host.pending(kept.agent_id, kept.conversation_id, kept.user_id)
        for request in waiting:
            await self.session.screen.show(request)
        return waiting

    async def _tools(self) -> Sequence[Tool]:
        """The session's; of the editor's servers' tools those that the agent does not hold under the same name."""
        kit = self.session.kit
        found = kit.servers.tools()
        held = {tool.name for tool in await self._host.tools(self.session.kept.agent_id)} if found else set[str]()
        return [*kit.own, *(tool for tool in found if tool.name not in held)]

    async def _prompt(self, heard: Heard) -> Prompt:
        kept, traits = self.session.kept, self._host.traits
        return Prompt(
            kept.agent_id,
            self.caller,
            heard.text,
            conversation_id=kept.conversation_id,
            tools=await self._tools(),
            max_steps=STEPS,
            media=heard.media,
            context=self.session.context(),
            model=kept.model,
            effort=kept.effort,
            asks=MEMORY_TOOLS if kept.asks_memory and traits.asks else frozenset(),
            heard=self.turn.heard,
        )
