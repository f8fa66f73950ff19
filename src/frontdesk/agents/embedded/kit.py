"""The tools of one turn, of which those that the agent holds may change while it runs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from frontdesk.agents.embedded.model import AttachedTool
from frontdesk.agents.embedded.store import AgentStore
from frontdesk.loop.tools import Tool


@dataclass(slots=True)
class Kit:
    """`fixed` stay for the whole turn; `seen` is the store's count of changes at which `held` was right.

    `asks` are tools that wait for approval this time, whatever they do else.
    """

    agents: AgentStore
    agent_id: str
    fixed: Mapping[str, Tool]
    bind: Callable[[Sequence[AttachedTool]], Sequence[Tool]]
    seen: int
    held: Mapping[str, Tool] = field(default_factory=dict[str, Tool])
    asks: frozenset[str] = frozenset()

    async def tools(self) -> Mapping[str, Tool]:
        """All of them as they stand now. The new come last, so that the provider's cache holds up to there."""
        changes = self.agents.changes
        if changes != self.seen:
            found = named(self.bind(await self.agents.tools(self.agent_id)))
            self.held = {name: found[name] for name in self.held if name in found} | found
            self.seen = changes
        every = {**self.fixed, **{name: tool for name, tool in self.held.items() if name not in self.fixed}}
        return {name: self._asking(tool) for name, tool in every.items()}

    def _asking(self, tool: Tool) -> Tool:
        return replace(tool, needs_approval=True) if tool.name in self.asks else tool


def named(tools: Sequence[Tool]) -> dict[str, Tool]:
    return {tool.name: tool for tool in tools}
