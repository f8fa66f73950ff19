"""The tools room as it is run: its servers, the rules about its tools, and what is remembered of their use."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from frontdesk.errors import NotFound
from frontdesk.identity import rights
from frontdesk.identity.model import Caller
from frontdesk.journal.service import Journal
from frontdesk.journal.store import ToolCall, ToolUse, UseQuery
from frontdesk.tools.catalogue.crawl import Step, Told, silent
from frontdesk.tools.catalogue.servers import ServerSpec
from frontdesk.tools.catalogue.service import Catalogue
from frontdesk.tools.enrolling import enrol
from frontdesk.tools.learning.model import tenant_of
from frontdesk.tools.learning.service import Learning
from frontdesk.tools.model import CatalogueTool
from frontdesk.tools.rights.model import Effect, Rule
from frontdesk.tools.rights.service import Rights

# What a look at the latest use reads at most: calls, and rows of the journal among which they are looked for.
CALLS = 500
ROWS = 20_000


@dataclass(frozen=True, slots=True)
class House:
    """Every method asks for the caller; what concerns everybody is for who runs the house."""

    catalogue: Catalogue
    allowed: Rights
    learning: Learning
    journal: Journal

    async def add_server(self, caller: Caller, spec: ServerSpec, told: Told = silent, *, force: bool = False) -> Step:
        """Add a server and ask it for its tools; one that does not answer stays only with `force`."""
        rights.require_house(caller, rights.TOOLS_ADMIN)
        return await enrol(self.catalogue, spec, told, force=force)

    async def remove_server(self, caller: Caller, name: str) -> None:
        rights.require_house(caller, rights.TOOLS_ADMIN)
        await self.catalogue.remove(name)

    async def refresh(self, caller: Caller, names: Sequence[str] | None = None, told: Told = silent) -> Sequence[Step]:
        """Ask these servers for their tools now, or all of them."""
        rights.require_house(caller, rights.TOOLS_ADMIN)
        return await self.catalogue.refresh(names, told)

    async def review(self, caller: Caller, tool_id: str, *, accept: bool) -> CatalogueTool:
        """Accept how a tool changed, or stay with the version that was approved."""
        rights.require_house(caller, rights.TOOLS_ADMIN)
        tool = await self.catalogue.review(tool_id, accept=accept)
        if tool is None:
            raise NotFound(f"There is no tool '{tool_id[:200]}'")
        return tool

    async def rules(self, caller: Caller) -> Sequence[Rule]:
        rights.require_house(caller, rights.TOOLS_ADMIN)
        return await self.allowed.rules()

    async def add_rule(self, caller: Caller, subject: str, effect: Effect, pattern: str) -> Rule:
        rights.require_house(caller, rights.TOOLS_ADMIN)
        return await self.allowed.add(subject, effect, pattern)

    async def remove_rule(self, caller: Caller, rule_id: str) -> None:
        rights.require_house(caller, rights.TOOLS_ADMIN)
        await self.allowed.remove(rule_id)

    async def usage(self, caller: Caller, query: UseQuery) -> Sequence[ToolUse]:
        """Who used what: everybody sees what they did themselves; who is nobody in particular did nothing."""
        rights.require(caller, rights.TOOLS_READ)
        if not rights.runs_house(caller, rights.TOOLS_ADMIN):
            named = caller.agent_id or caller.user_id
            agent, user = (caller.agent_id, caller.user_id) if named else ("", "")
            query = replace(query, agent_id=agent, user_id=user)
        return await self.journal.tool_use(query)

    async def calls(self, caller: Caller, tool: str | None = None) -> Sequence[ToolCall]:
        """The latest calls of one tool or of all, the newest first; far back it does not look."""
        rights.require_house(caller, rights.TOOLS_ADMIN)
        return await self.journal.tool_calls(tool, CALLS, ROWS)

    async def forget(self, caller: Caller) -> None:
        """Forget which tools were of use to the caller."""
        rights.require(caller, rights.TOOLS_ATTACH)
        await self.learning.forget(tenant_of(caller))
