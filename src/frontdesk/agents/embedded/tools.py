"""Binds the tools of MCP servers to the caller of one turn, and keeps the turn's tools current."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pydantic import SecretStr

from frontdesk.agents.embedded.store import AgentStore, AttachedTool
from frontdesk.agents.host import HeldTool
from frontdesk.errors import Invalid, NotFound
from frontdesk.identity.model import Caller
from frontdesk.identity.rights import TOOLS_CALL
from frontdesk.llm.tools import Tool, ToolOutcome
from frontdesk.mcp_client.model import api_name
from frontdesk.mcp_client.pool import KnownServers, McpClientPool
from frontdesk.text import closest_name, list_first, not_found_message

NAMES_SHOWN = 20

IsReadOnly = Callable[[str, str], Awaitable[bool]]
CallServerTool = Callable[[Caller, str, str, Mapping[str, Any], SecretStr | None], Awaitable[ToolOutcome]]


class ToolBinder:
    """Makes tools for a turn that call MCP servers in the name of its caller.

    `call` calls a tool of a server for a caller. `reads_only` returns whether a tool is known to change nothing.
    """

    def __init__(
        self, call: CallServerTool, servers: KnownServers, clients: McpClientPool, reads_only: IsReadOnly | None = None
    ) -> None:
        self._call = call
        self._servers = servers
        self._clients = clients
        self._reads_only = reads_only

    def bind(self, tools: Sequence[AttachedTool], caller: Caller, token: SecretStr | None) -> Sequence[Tool]:
        """Make these tools for one turn of this caller."""
        return [
            Tool(
                tool.name,
                tool.description,
                tool.parameters,
                self._runner(tool, caller, token),
                tool.needs_approval,
                reads_only=partial(self._only_reads, tool),
                scope=TOOLS_CALL,
            )
            for tool in tools
        ]

    async def read_from_server(self, wanted: HeldTool) -> AttachedTool:
        """The tool as its server describes it at present."""
        server = self._servers.get(wanted.server or "")
        if server is None:
            said = not_found_message(
                f"There is no MCP server '{wanted.server}'", wanted.server or "", self._servers.names()
            )
            raise Invalid(f"{said} Add one with `frontdesk tools add`, or name it in FRONTDESK_MCP_SERVERS")
        listing = await self._clients.client(server, None, None).listing()
        found = next((tool for tool in listing.tools if tool.name == wanted.remote_name), None)
        if found is None:
            names = [tool.name for tool in listing.tools]
            said = [f"it has: {list_first(names, NAMES_SHOWN) or 'none'}", *listing.left_out]
            meant = closest_name(wanted.remote_name or "", names)
            near = f" Did you mean '{meant}'?" if meant else ""
            raise NotFound(f"{server} has no tool '{wanted.remote_name}'; {'; '.join(said)}.{near}")
        name = api_name(server.name, found.name, {})
        return AttachedTool(name, found.description, found.parameters, server.name, found.name, wanted.needs_approval)

    async def _only_reads(self, tool: AttachedTool, _arguments: Mapping[str, Any]) -> bool:
        return self._reads_only is not None and await self._reads_only(tool.server, tool.remote_name)

    def _runner(
        self, tool: AttachedTool, caller: Caller, token: SecretStr | None
    ) -> Callable[[Mapping[str, Any]], Awaitable[ToolOutcome]]:
        async def run(arguments: Mapping[str, Any]) -> ToolOutcome:
            return await self._call(caller, tool.server, tool.remote_name, arguments, token)

        return run


@dataclass(slots=True)
class TurnTools:
    """The tools of one turn.

    `fixed` stay the same for the whole turn. `held` are the tools attached to the agent; they were read when the
    store's count of changes was `seen`. Tools in `approval_names` need approval in this turn.
    """

    agents: AgentStore
    agent_id: str
    fixed: Mapping[str, Tool]
    bind: Callable[[Sequence[AttachedTool]], Sequence[Tool]]
    seen: int
    held: Mapping[str, Tool] = field(default_factory=dict[str, Tool])
    approval_names: frozenset[str] = frozenset()

    async def tools(self) -> Mapping[str, Tool]:
        """All present tools. New ones come last, so that the provider's cache stays valid up to them."""
        changes = self.agents.changes
        if changes != self.seen:
            found = tools_by_name(self.bind(await self.agents.tools(self.agent_id)))
            self.held = {name: found[name] for name in self.held if name in found} | found
            self.seen = changes
        every = {**self.fixed, **{name: tool for name, tool in self.held.items() if name not in self.fixed}}
        return {name: self._asking(tool) for name, tool in every.items()}

    def _asking(self, tool: Tool) -> Tool:
        return replace(tool, needs_approval=True) if tool.name in self.approval_names else tool


def tools_by_name(tools: Sequence[Tool]) -> dict[str, Tool]:
    return {tool.name: tool for tool in tools}
