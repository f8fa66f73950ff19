"""Calls a tool by the name that a caller has for it, and remembers that it was used."""

from collections.abc import Mapping, Sequence
from typing import Any

import anyio
from pydantic import SecretStr

from frontdesk.errors import Denied, FrontdeskError
from frontdesk.identity import rights
from frontdesk.identity.model import Caller
from frontdesk.journal.model import Kind, Outcome
from frontdesk.journal.record import Record
from frontdesk.journal.service import Journal
from frontdesk.loop.mcp.session import Progress
from frontdesk.loop.tools import ToolOutcome
from frontdesk.tools.catalogue.service import Catalogue
from frontdesk.tools.gateway.result import CallResult
from frontdesk.tools.gateway.service import Gateway
from frontdesk.tools.model import CatalogueTool, Standing, tool_id
from frontdesk.tools.naming import near_id, the_one
from frontdesk.tools.rights.model import Permitted
from frontdesk.tools.rights.service import Rights
from frontdesk.tools.usage import CALLED, Usage

REMEMBERED = 5000
NAME_LENGTH = 300
ANYTHING: Mapping[str, Any] = {"type": "object"}


class Calling:
    """The one way to a tool, whichever door the call came through."""

    def __init__(self, catalogue: Catalogue, gateway: Gateway, allowed: Rights, usage: Usage, journal: Journal) -> None:
        self._catalogue = catalogue
        self.gateway = gateway
        self._allowed = allowed
        self._usage = usage
        self._journal = journal
        self._known: dict[str, Sequence[CatalogueTool]] = {}
        self._known_at = -1

    async def call(
        self,
        caller: Caller,
        name: str,
        arguments: Mapping[str, Any],
        *,
        token: SecretStr | None = None,
        progress: Progress | None = None,
    ) -> CallResult:
        """Run a tool where it lives, in the caller's name; a person's own `token` is for servers that act for them."""
        rights.require(caller, rights.TOOLS_CALL)
        tool = await self.resolve(caller, name)
        return await self._run(caller, tool, arguments, token, progress)

    async def _run(
        self,
        caller: Caller,
        tool: CatalogueTool,
        arguments: Mapping[str, Any],
        token: SecretStr | None,
        progress: Progress | None = None,
    ) -> CallResult:
        with Record(self._journal, "tools", tool.id, caller, Kind.TOOL) as record:
            result = await self.gateway.call(caller, tool, arguments, token=token, progress=progress)
            record.outcome = Outcome.OK if result.ok else Outcome.FAILED
        if result.ok:
            self._usage.note(caller, tool.id, CALLED)
        return result

    async def attached(
        self, caller: Caller, server: str, name: str, arguments: Mapping[str, Any], token: SecretStr | None
    ) -> ToolOutcome:
        """A call of a tool that an agent holds, answered in words for its model.

        It may hold a tool that no crawl has seen yet, or that its server lists no more.
        """
        found = tool_id(server, name)
        try:
            rights.require(caller, rights.TOOLS_CALL)
            tool = await self._held(caller, found) or CatalogueTool(found, server, name, "", ANYTHING)
            result = await self._run(caller, tool, arguments, token)
        except FrontdeskError as error:
            return ToolOutcome(error.public, ok=False)
        return ToolOutcome(result.text, ok=result.ok)

    async def _held(self, caller: Caller, found: str) -> CatalogueTool | None:
        tools = await self._named(found)
        if not (await self._allowed.of(caller)).allows(found):
            raise Denied(f"You may not use the tool '{found}'; ask whoever runs Frontdesk")
        # A server could otherwise change a tool, and then take it off its list to have it called all the same.
        held = tools[0].standing is Standing.HELD if tools else await self._catalogue.withheld(found)
        if held:
            raise _waits(found)
        return tools[0] if tools else None

    async def reads_only(self, name: str) -> bool:
        """Whether all tools that a name can mean change nothing, by their servers' word; good to order calls by."""
        found = await self._named(name)
        return bool(found) and all(tool.annotations.get("readOnlyHint") is True for tool in found)

    async def attached_reads_only(self, server: str, name: str) -> bool:
        """The same for a tool that an agent holds."""
        return await self.reads_only(tool_id(server, name))

    async def resolve(self, caller: Caller, name: str) -> CatalogueTool:
        """The tool that a name means to this caller: an id, the name that models see, or its own if no other has it."""
        known, permitted = await self._named(name), await self._allowed.of(caller)
        near = None if known else await self.near(permitted, name)
        tool = the_one(known, permitted, name, near)
        if tool.standing is Standing.HELD:
            raise _waits(tool.id)
        return tool

    async def near(self, permitted: Permitted, name: str) -> str | None:
        """The id of the tool that somebody may have meant by a name that none has."""
        # Among twenty thousand it takes a tenth of a second.
        return await anyio.to_thread.run_sync(near_id, self._catalogue.index.ids(), permitted, name)

    async def _named(self, name: str) -> Sequence[CatalogueTool]:
        if self._known_at != self._catalogue.revision or len(self._known) > REMEMBERED:
            self._known, self._known_at = {}, self._catalogue.revision
        known = self._known
        if name not in known:
            # Should the catalogue change meanwhile, what was read goes with the old one.
            known[name] = await self._catalogue.resolve(name) if len(name) <= NAME_LENGTH else ()
        return known[name]


def _waits(tool_id: str) -> Denied:
    return Denied(f"The tool '{tool_id}' changed and is held back until somebody has looked at the change")
