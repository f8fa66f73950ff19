"""The tools with which a built-in agent keeps the tasks, memories and time of the person it works for."""

from collections.abc import Sequence

from pydantic import SecretStr

from frontdesk.identity.model import Caller
from frontdesk.loop.tools import Tool, ToolOutcome, typed_tool
from frontdesk.memory.asked.common import Asked
from frontdesk.memory.scope import Scope
from frontdesk.memory.service import MemoryRoom
from frontdesk.memory.tooling.status import House
from frontdesk.memory.tooling.tool import MemoryTool


class OwnMemory:
    """Handed to the agent host before the memory room stands, and opened once it does."""

    def __init__(self) -> None:
        self._room: MemoryRoom | None = None
        self._house: House | None = None
        self._tools: Sequence[MemoryTool] | None = None

    def open(self, room: MemoryRoom, house: House) -> None:
        self._room, self._house = room, house

    def of(self, caller: Caller, _user_token: SecretStr | None) -> Sequence[Tool]:
        """The tools on the records of the person whom this turn is for; none where nobody is known to be."""
        room, house = self._room, self._house
        if room is None or house is None or caller.user_id is None or _is_only_said(caller):
            return ()
        self._tools = self._tools or _table(house)
        scope = Scope(caller.user_id, caller.agent_id, caller.scopes, caller.credential_id)
        return [_bound(tool, room, scope) for tool in self._tools]


def _table(house: House) -> Sequence[MemoryTool]:
    # What can be asked of these tools takes a while to load, and most commands talk with no agent.
    from frontdesk.memory.tooling.table import for_agents  # noqa: PLC0415

    return for_agents(house)


def _is_only_said(caller: Caller) -> bool:
    """Whether something was shown that proves nobody: all keyless visitors of the chat are one, who is no person."""
    return caller.credential_id is not None and not caller.verified


def _bound(tool: MemoryTool, room: MemoryRoom, scope: Scope) -> Tool:
    async def run(given: Asked) -> ToolOutcome:
        return ToolOutcome((await tool.run(room, scope, given)).text)

    from frontdesk.memory.tooling.table import REQUIRED  # noqa: PLC0415 - as above

    scope_needed, reads_only = REQUIRED.get(tool.name), tool.read_only
    return typed_tool(tool.name, tool.description, tool.arguments, run, scope_needed, reads_only=reads_only)
