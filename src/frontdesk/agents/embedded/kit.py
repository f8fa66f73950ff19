"""The tools of one turn, of which those that the agent holds may change while it runs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from frontdesk.agents.embedded.model import AttachedTool
from frontdesk.agents.embedded.store import AgentStore
from frontdesk.loop.tools import Tool


@dataclass(slots=True)
class Kit:
    """`fixed` stay for the whole turn; `seen` is the store's count of changes at which `held` was right."""

    agents: AgentStore
    agent_id: str
    fixed: Mapping[str, Tool]
    bind: Callable[[Sequence[AttachedTool]], Sequence[Tool]]
    seen: int
    held: Mapping[str, Tool] = field(default_factory=dict[str, Tool])

    async def tools(self) -> Mapping[str, Tool]:
        """All of them as they stand now. The new come last, so that the provider's cache holds up to there."""
        changes = self.agents.changes
        if changes != self.seen:
            found = named(self.bind(await self.agents.tools(self.agent_id)))
            self.held = {name: found[name] for name in self.held if name in found} | found
            self.seen = changes
        return {**self.fixed, **{name: tool for name, tool in self.held.items() if name not in self.fixed}}


def named(tools: Sequence[Tool]) -> dict[str, Tool]:
    return {tool.name: tool for tool in tools}
