"""Selection with the agent host: what an agent holds is read, a plan made, and carried out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from frontdesk.agents.host import AgentHost, HeldTool
from frontdesk.loop.mcp.names import api_name
from frontdesk.tools.finding import Finding
from frontdesk.tools.model import HOST_SERVER, CatalogueTool, Kind, tool_id
from frontdesk.tools.selection.carry_out import Decide, select
from frontdesk.tools.selection.model import Choice, Held, Limits, Match, Plan, Role, Selection
from frontdesk.tools.selection.plan import plan, prune_plan
from frontdesk.tools.selection.roles import role_of
from frontdesk.tools.selection.store import Holding, HoldingStore
from frontdesk.tools.selection.turnstile.service import Turnstile

TAKEN = "taken by a person"
# An agent that lost these could get no others.
OWN = frozenset({"find_tools", "call_tool"})


@dataclass(frozen=True, slots=True)
class Possession:
    """A tool that an agent holds, and how it came by it: None where a person attached it, or the host has it anyway.

    `id` is the tool's in the catalogue, None for one of a server that the host reaches by itself. A `lasting` one does
    not make room for others.
    """

    tool: HeldTool
    id: str | None
    role: Role
    given: Holding | None
    lasting: bool


class Selecting:
    """One change of an agent's tools at a time, whichever replica it comes through."""

    def __init__(self, host: AgentHost, holdings: HoldingStore, turnstile: Turnstile, limits: Limits) -> None:
        self._host = host
        self._holdings = holdings
        self._turnstile = turnstile
        self._limits = limits

    async def select(
        self, agent_id: str, findings: Sequence[Finding], keep: Sequence[str], min_score: float, *, dry_run: bool
    ) -> Selection:
        """Give an agent what was found, and take from it what must make room."""
        tools = {finding.tool.id: attachable(finding.tool) for finding in findings}
        matches = [_match(finding, tools[finding.tool.id].name) for finding in findings]

        async def decide(held: Sequence[HeldTool]) -> Plan:
            return plan(await self._standing(agent_id, held), matches, self._limits, keep=keep, min_score=min_score)

        return await self._carried_out(agent_id, decide, tools, dry_run=dry_run)

    async def prune(
        self,
        agent_id: str,
        scores: Mapping[str, float],
        keep: Sequence[str],
        drop_rate: float | None,
        *,
        dry_run: bool = False,
    ) -> Selection:
        """Take from an agent the share of its tools that fits least."""

        async def decide(held: Sequence[HeldTool]) -> Plan:
            standing = await self._standing(agent_id, held)
            return prune_plan(standing, scores, self._limits, keep=keep, drop_rate=drop_rate)

        return await self._carried_out(agent_id, decide, {}, dry_run=dry_run)

    async def held(self, agent_id: str) -> Sequence[Possession]:
        """What an agent holds, and how it came by each."""
        held, known = await self._host.tools(agent_id), await self._holdings.of(agent_id)
        return [_possession(tool, known) for tool in held]

    async def take(self, agent_id: str, name: str) -> Selection:
        """Take one tool from an agent, whoever gave it."""

        async def decide(held: Sequence[HeldTool]) -> Plan:
            return Plan(detach=[Choice(tool.name, _catalogue_id(tool), TAKEN) for tool in held if tool.name == name])

        return await self._carried_out(agent_id, decide, {}, dry_run=False)

    async def forget(self, agent_id: str) -> None:
        """An agent that is no more holds nothing."""
        await self._holdings.forget(agent_id)

    async def _carried_out(
        self, agent_id: str, decide: Decide, tools: Mapping[str, HeldTool], *, dry_run: bool
    ) -> Selection:
        async def record(done: Selection) -> None:
            attached = [choice.id for choice in done.attached if choice.id]
            detached = [choice.id for choice in done.detached if choice.id]
            await self._holdings.record(agent_id, attached, detached, datetime.now(UTC))

        return await select(self._host, agent_id, decide, tools, self._turnstile, record=record, dry_run=dry_run)

    async def _standing(self, agent_id: str, held: Sequence[HeldTool]) -> list[Held]:
        known, now = await self._holdings.of(agent_id), datetime.now(UTC)
        return [_held(tool, known, now) for tool in held]


def attachable(tool: CatalogueTool) -> HeldTool:
    """A tool of the catalogue as a host is given it."""
    if tool.kind is Kind.HOST:
        return HeldTool(tool.name, tool.description)
    return HeldTool(
        tool.api_name, tool.description, server=tool.server, remote_name=tool.name, parameters=tool.parameters
    )


def _match(finding: Finding, name: str) -> Match:
    tool = finding.tool
    role = role_of(tool.name, None if tool.kind is Kind.HOST else tool.server)
    return Match(tool.id, name, finding.score, role, finding.exact)


def _held(tool: HeldTool, known: Mapping[str, Holding], now: datetime) -> Held:
    found = _catalogue_id(tool)
    holding = known.get(found or "")
    # What somebody attached by hand is the last to make room.
    attached_at, used_at = (holding.attached_at, holding.used_at) if holding else (now, None)
    return Held(
        tool.name,
        found,
        role_of(tool.name, tool.server),
        attached_at,
        used_at,
        protected=_lasts(tool),
        tags=frozenset(tool.tags),
    )


def _possession(tool: HeldTool, known: Mapping[str, Holding]) -> Possession:
    found = _catalogue_id(tool)
    return Possession(tool, found, role_of(tool.name, tool.server), known.get(found or ""), _lasts(tool))


def _lasts(tool: HeldTool) -> bool:
    # One that asks for approval was set up by a person; found again, it would come back without.
    return tool.name in OWN or tool.needs_approval


def _catalogue_id(tool: HeldTool) -> str | None:
    """None for a tool of an MCP server that the host reaches by itself, whatever that server is called there."""
    if tool.server is None:
        return tool_id(HOST_SERVER, tool.name)
    remote = tool.remote_name or ""
    return tool_id(tool.server, remote) if tool.name == api_name(tool.server, remote, {}) else None
