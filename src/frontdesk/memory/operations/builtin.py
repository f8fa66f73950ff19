"""Gives built-in agents the memory tools of the person that a turn is for."""

from collections.abc import Sequence

from pydantic import SecretStr

from frontdesk.identity.model import Caller
from frontdesk.llm.tools import Tool, ToolOutcome, typed_tool
from frontdesk.memory.model import PersonScope
from frontdesk.memory.operations.base import MemoryRequest, MemoryTool, StatusSources
from frontdesk.memory.service import RecordServices


class BuiltinMemoryTools:
    """Gives the tools to the agent host, which is opened before the memory services."""

    def __init__(self) -> None:
        self._services: RecordServices | None = None
        self._status_sources: StatusSources | None = None
        self._tools: Sequence[MemoryTool] | None = None

    def open(self, services: RecordServices, sources: StatusSources) -> None:
        self._services, self._status_sources = services, sources

    def for_caller(self, caller: Caller, _user_token: SecretStr | None) -> Sequence[Tool]:
        """The tools for the person of this turn; none if there is no known person."""
        services, sources = self._services, self._status_sources
        if services is None or sources is None or caller.user_id is None or _is_unproven(caller):
            return ()
        self._tools = self._tools or _agent_tools(sources)
        scope = PersonScope(caller.user_id, caller.agent_id, caller.scopes, caller.credential_id)
        return [_bind_tool(tool, services, scope) for tool in self._tools]


def _agent_tools(sources: StatusSources) -> Sequence[MemoryTool]:
    # These modules take a while to load, and most commands need no agent.
    from frontdesk.memory.operations.table import agent_tools  # noqa: PLC0415

    return agent_tools(sources)


def _is_unproven(caller: Caller) -> bool:
    """Whether the credential proves nobody: all visitors of the chat without a key have the same one."""
    return caller.credential_id is not None and not caller.verified


def _bind_tool(tool: MemoryTool, services: RecordServices, scope: PersonScope) -> Tool:
    async def run(given: MemoryRequest) -> ToolOutcome:
        return ToolOutcome((await tool.run(services, scope, given)).text)

    from frontdesk.memory.operations.table import REQUIRED_RIGHTS  # noqa: PLC0415 - as above

    scope_needed, reads_only = REQUIRED_RIGHTS.get(tool.name), tool.read_only
    return typed_tool(tool.name, tool.description, tool.arguments, run, scope_needed, reads_only=reads_only)
