"""Administers tools: servers, access rules, reviews, and reports on use."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from frontdesk.errors import Conflict, Invalid, NotFound
from frontdesk.identity import rights
from frontdesk.identity.model import Caller
from frontdesk.journal.service import Journal
from frontdesk.journal.store import ToolCallRecord, ToolUse, ToolUseQuery
from frontdesk.tools.access import AccessEffect, AccessRule
from frontdesk.tools.access_store import ToolAccess
from frontdesk.tools.catalogue import Catalogue
from frontdesk.tools.crawler import CrawlStage, CrawlStep, ReportStep, ignore_step
from frontdesk.tools.learning import ToolLearning, tenant_of
from frontdesk.tools.model import CatalogueTool
from frontdesk.tools.servers import ServerOrigin, ServerSpec


@dataclass(frozen=True, slots=True)
class UsagePeriod:
    """A number of steps of equal length, up to now."""

    name: str
    step: timedelta
    count: int

    def start(self, now: datetime) -> datetime:
        """The start of the first step. Steps start on the hour or at midnight UTC, so that bars stay the same."""
        last = now - timedelta(seconds=now.timestamp() % self.step.total_seconds())
        return last - (self.count - 1) * self.step


USAGE_PERIODS = {
    "day": UsagePeriod("24 hours", timedelta(hours=1), 24),
    "week": UsagePeriod("7 days", timedelta(hours=6), 28),
    "month": UsagePeriod("30 days", timedelta(days=1), 30),
}


@dataclass(frozen=True, slots=True)
class UsageBar:
    """The calls in one step."""

    start: datetime
    calls: int = 0
    failed: int = 0


def calls_per_step(calls: Sequence[ToolCallRecord], span: UsagePeriod, now: datetime) -> Sequence[UsageBar]:
    """The number of calls in each step, including steps without calls."""
    start = span.start(now)
    counted = [[0, 0] for _ in range(span.count)]
    for call in calls:
        step = int((call.at - start) / span.step) if call.at >= start else -1
        if 0 <= step < span.count:
            counted[step][0] += 1
            counted[step][1] += not call.ok
    return [UsageBar(start + number * span.step, *found) for number, found in enumerate(counted)]


def sum_up_calls(calls: Sequence[ToolCallRecord]) -> Sequence[ToolUse]:
    """The use of each tool by each agent, the most used first. `calls` must have the latest first."""
    grouped: dict[tuple[str | None, str], list[ToolCallRecord]] = {}
    for call in calls:
        grouped.setdefault((call.agent_id, call.tool), []).append(call)
    found = [_sum_up_tool(agent_id, tool, some) for (agent_id, tool), some in grouped.items()]
    return sorted(found, key=lambda use: (-use.calls, use.tool, use.agent_id or ""))


def _sum_up_tool(agent_id: str | None, tool: str, calls: Sequence[ToolCallRecord]) -> ToolUse:
    mean = sum(call.duration_us for call in calls) // len(calls)
    return ToolUse(agent_id, tool, len(calls), sum(not call.ok for call in calls), mean, calls[0].at)


async def add_answering_server(
    catalogue: Catalogue, spec: ServerSpec, step: ReportStep = ignore_step, *, force: bool = False
) -> CrawlStep:
    """Add the server and ask it for its tools.

    Only with `force` is a server kept that does not answer, and only then does it replace another server.
    """
    before = next((state.spec for state in catalogue.servers() if state.name == spec.name), None)
    if not force and before is not None and before.origin is ServerOrigin.ADDED and not _is_same_server(before, spec):
        raise Conflict(f"The tool server '{spec.name}' is already at {before.place}; add it with force to replace it")
    end = await catalogue.add(spec, step)
    if end.stage is not CrawlStage.FAILED or force:
        return end
    if before is not None and before.origin is ServerOrigin.ADDED:
        await catalogue.add(before)
    else:
        await catalogue.remove(spec.name)
    raise Invalid(f"The tool server '{spec.name}' was not added: {end.message}")


def _is_same_server(one: ServerSpec, other: ServerSpec) -> bool:
    """Whether both are the same server. Their headers may differ."""
    return (one.url, one.command, one.args) == (other.url, other.command, other.args)


# At most this many calls are shown, and this many rows of the journal are read for them.
CALLS_READ = 500
JOURNAL_ROWS_READ = 20_000


@dataclass(frozen=True, slots=True)
class ToolAdministration:
    """Every method takes the caller. Methods that affect everybody need an administrator."""

    catalogue: Catalogue
    allowed: ToolAccess
    learning: ToolLearning
    journal: Journal

    async def add_server(
        self, caller: Caller, spec: ServerSpec, step: ReportStep = ignore_step, *, force: bool = False
    ) -> CrawlStep:
        """Add a server and ask it for its tools. With `force`, it is kept even if it does not answer."""
        rights.require_local_or_granted(caller, rights.TOOLS_ADMIN)
        return await add_answering_server(self.catalogue, spec, step, force=force)

    async def remove_server(self, caller: Caller, name: str) -> None:
        rights.require_local_or_granted(caller, rights.TOOLS_ADMIN)
        await self.catalogue.remove(name)

    async def refresh(
        self, caller: Caller, names: Sequence[str] | None = None, step: ReportStep = ignore_step
    ) -> Sequence[CrawlStep]:
        """Ask these servers for their tools now, or all servers."""
        rights.require_local_or_granted(caller, rights.TOOLS_ADMIN)
        return await self.catalogue.refresh(names, step)

    async def review(self, caller: Caller, tool_id: str, *, accept: bool) -> CatalogueTool:
        """Accept the change of a tool, or keep the approved version."""
        rights.require_local_or_granted(caller, rights.TOOLS_ADMIN)
        tool = await self.catalogue.review(tool_id, accept=accept)
        if tool is None:
            raise NotFound(f"There is no tool '{tool_id[:200]}'")
        return tool

    async def rules(self, caller: Caller) -> Sequence[AccessRule]:
        rights.require_local_or_granted(caller, rights.TOOLS_ADMIN)
        return await self.allowed.rules()

    async def add_rule(self, caller: Caller, subject: str, effect: AccessEffect, pattern: str) -> AccessRule:
        rights.require_local_or_granted(caller, rights.TOOLS_ADMIN)
        return await self.allowed.add(subject, effect, pattern)

    async def remove_rule(self, caller: Caller, rule_id: str) -> None:
        rights.require_local_or_granted(caller, rights.TOOLS_ADMIN)
        await self.allowed.remove(rule_id)

    async def usage(self, caller: Caller, query: ToolUseQuery) -> Sequence[ToolUse]:
        """Who used which tools. Everybody sees their own use; an anonymous caller has none."""
        rights.require_scope(caller, rights.TOOLS_READ)
        if not rights.is_local_or_granted(caller, rights.TOOLS_ADMIN):
            named = caller.agent_id or caller.user_id
            agent, user = (caller.agent_id, caller.user_id) if named else ("", "")
            query = replace(query, agent_id=agent, user_id=user)
        return await self.journal.tool_use(query)

    async def calls(self, caller: Caller, tool: str | None = None) -> Sequence[ToolCallRecord]:
        """The latest calls of one tool or of all tools, the newest first, from a limited number of journal rows."""
        rights.require_local_or_granted(caller, rights.TOOLS_ADMIN)
        return await self.journal.tool_calls(tool, CALLS_READ, JOURNAL_ROWS_READ)

    async def forget(self, caller: Caller) -> None:
        """Delete what was learned from the caller's use of tools."""
        rights.require_scope(caller, rights.TOOLS_ATTACH)
        await self.learning.forget(tenant_of(caller))
