"""Changes the tools of an agent on its host: reads them, plans, applies the plan under a lock, records it."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import UTC, datetime

import anyio

from frontdesk.agents.host import AgentHost, HeldTool, ToolChange
from frontdesk.errors import Unavailable
from frontdesk.mcp_client.model import api_name
from frontdesk.tools.agent_tools_store import AgentToolsLock, ToolAttachment, ToolAttachmentStore
from frontdesk.tools.finder import ToolMatch
from frontdesk.tools.model import HOST_SERVER, CatalogueTool, ToolKind, tool_id
from frontdesk.tools.selection import (
    CurrentTool,
    SelectionPlan,
    SelectionResult,
    ToolCandidate,
    ToolChoice,
    ToolLimits,
    ToolRole,
    plan_pruning,
    plan_selection,
    role_of,
)

# Shorter than the lease of the lock, so that the holder finishes or gives up before the next one may start.
CHANGE_SECONDS = 15
LOCKED_SECONDS = 25
LATE_REASON = "the agent host did not answer in {:.0f} s, and may have done it all the same"
UNCONFIRMED_REASON = "the agent host does not say that it did"
NOT_IN_CATALOGUE_REASON = "it has left the catalogue meanwhile"

DecidePlan = Callable[[Sequence[HeldTool]], Awaitable[SelectionPlan]]
LockTools = Callable[[str], AbstractAsyncContextManager[object]]
RecordSelection = Callable[[SelectionResult], Awaitable[None]]


async def change_agent_tools(
    host: AgentHost,
    agent_id: str,
    decide: DecidePlan,
    tools: Mapping[str, HeldTool],
    turn_of: LockTools,
    *,
    record: RecordSelection | None = None,
    dry_run: bool = False,
) -> SelectionResult:
    """Read an agent's tools, decide, and apply the plan, while nobody else changes them.

    Usually there is nothing to change, and the lock is not taken. `tools` has the tools that may be attached, by id.
    `record` is called under the lock with the result.
    """
    plan = await decide(await _read_host_tools(host, agent_id))
    if dry_run or not plan.changes:
        return result_of_plan(plan, dry_run=dry_run)
    async with turn_of(agent_id):
        try:
            # Finish even if the caller leaves: a tool that is attached but not recorded would never be detached.
            with anyio.fail_after(LOCKED_SECONDS, shield=True):
                plan = await decide(await host.tools(agent_id))
                done = await apply_plan(host, agent_id, plan, tools)
                if record is not None and plan.changes:
                    await record(done)
        except TimeoutError as error:
            raise _host_timeout() from error
        return done


async def apply_plan(
    host: AgentHost,
    agent_id: str,
    plan: SelectionPlan,
    tools: Mapping[str, HeldTool],
    seconds: float = CHANGE_SECONDS,
) -> SelectionResult:
    """Apply a plan. Only tools in `tools` can be attached."""
    if not plan.changes:
        return result_of_plan(plan)
    attach = {tool.name: tool for choice in plan.attach if (tool := tools.get(choice.id or "")) is not None}
    detach = [choice.name for choice in plan.detach]
    try:
        with anyio.fail_after(seconds):
            change = await host.change_tools(agent_id, list(attach.values()), detach)
    except TimeoutError:
        change = _failed_change([*attach, *detach], LATE_REASON.format(seconds))
    except Unavailable as error:
        # The found tools are useful even if they are not attached: the agent can call them.
        change = _failed_change([*attach, *detach], error.public_message)
    why = {
        **dict.fromkeys((choice.name for choice in plan.attach if choice.name not in attach), NOT_IN_CATALOGUE_REASON),
        **change.failed,
    }
    return SelectionResult(
        attached=_confirmed_choices(plan.attach, change.attached),
        kept=plan.keep,
        detached=_confirmed_choices(plan.detach, change.detached),
        skipped=plan.skipped,
        failed=[
            *_failed_choices(plan.attach, change.attached, "attached", why),
            *_failed_choices(plan.detach, change.detached, "detached", why),
        ],
        unknown=plan.unknown,
    )


def result_of_plan(plan: SelectionPlan, *, dry_run: bool = False) -> SelectionResult:
    """The result of a plan as if it were applied, for a dry run and for a plan without changes."""
    return SelectionResult(plan.attach, plan.keep, plan.detach, plan.skipped, dry_run=dry_run, unknown=plan.unknown)


async def _read_host_tools(host: AgentHost, agent_id: str) -> Sequence[HeldTool]:
    try:
        with anyio.fail_after(LOCKED_SECONDS):
            return await host.tools(agent_id)
    except TimeoutError as error:
        raise _host_timeout() from error


def _failed_change(names: Iterable[str], why: str) -> ToolChange:
    return ToolChange(failed=dict.fromkeys(names, why))


def _confirmed_choices(choices: Iterable[ToolChoice], names: Sequence[str]) -> list[ToolChoice]:
    return [choice for choice in choices if choice.name in names]


def _failed_choices(
    choices: Iterable[ToolChoice], names: Sequence[str], what: str, why: Mapping[str, str]
) -> list[ToolChoice]:
    return [
        ToolChoice(
            choice.name, choice.id, f"could not be {what}: {why.get(choice.name, UNCONFIRMED_REASON)}", choice.score
        )
        for choice in choices
        if choice.name not in names
    ]


def _host_timeout() -> Unavailable:
    return Unavailable(f"The agent host did not answer in {LOCKED_SECONDS} s; try again in a while")


TAKEN_REASON = "taken by a person"
# Without these, an agent could not get other tools.
OWN_TOOLS = frozenset({"find_tools", "call_tool"})


@dataclass(frozen=True, slots=True)
class AgentTool:
    """A tool that an agent holds. `given` is None if a person attached it, or the host always has it.

    `id` is the catalogue's; None for a tool of a server that the host reaches by itself. A `lasting` tool is not
    detached to make room for others.
    """

    tool: HeldTool
    id: str | None
    role: ToolRole
    given: ToolAttachment | None
    lasting: bool


class AgentToolSelector:
    """Changes the tools of agents; across all replicas, an agent has one change at a time."""

    def __init__(
        self, host: AgentHost, holdings: ToolAttachmentStore, lock: AgentToolsLock, limits: ToolLimits
    ) -> None:
        self._host = host
        self._holdings = holdings
        self._lock = lock
        self._limits = limits

    @property
    def default_drop_rate(self) -> float:
        """The share of an agent's tools that pruning detaches unless it is told another."""
        return self._limits.drop_rate

    async def select(
        self, agent_id: str, findings: Sequence[ToolMatch], keep: Sequence[str], min_score: float, *, dry_run: bool
    ) -> SelectionResult:
        """Attach the found tools, and detach tools to make room for them."""
        tools = {finding.tool.id: to_host_tool(finding.tool) for finding in findings}
        matches = [_make_candidate(finding, tools[finding.tool.id].name) for finding in findings]

        async def decide(held: Sequence[HeldTool]) -> SelectionPlan:
            return plan_selection(
                await self._current_tools(agent_id, held), matches, self._limits, keep=keep, min_score=min_score
            )

        return await self._apply(agent_id, decide, tools, dry_run=dry_run)

    async def prune(
        self,
        agent_id: str,
        scores: Mapping[str, float],
        keep: Sequence[str],
        drop_rate: float | None,
        *,
        dry_run: bool = False,
    ) -> SelectionResult:
        """Detach the share of an agent's tools with the lowest scores."""

        async def decide(held: Sequence[HeldTool]) -> SelectionPlan:
            standing = await self._current_tools(agent_id, held)
            return plan_pruning(standing, scores, self._limits, keep=keep, drop_rate=drop_rate)

        return await self._apply(agent_id, decide, {}, dry_run=dry_run)

    async def held(self, agent_id: str) -> Sequence[AgentTool]:
        """The tools of an agent, and how it got each of them."""
        held, known = await self._host.tools(agent_id), await self._holdings.attachments(agent_id)
        return [_make_agent_tool(tool, known) for tool in held]

    async def detach(self, agent_id: str, name: str) -> SelectionResult:
        """Detach one tool from an agent, even if a person attached it."""

        async def decide(held: Sequence[HeldTool]) -> SelectionPlan:
            return SelectionPlan(
                detach=[ToolChoice(tool.name, _catalogue_id(tool), TAKEN_REASON) for tool in held if tool.name == name]
            )

        return await self._apply(agent_id, decide, {}, dry_run=False)

    async def forget(self, agent_id: str) -> None:
        """Delete the stored data on the tools of a deleted agent."""
        await self._holdings.forget(agent_id)

    async def _apply(
        self, agent_id: str, decide: DecidePlan, tools: Mapping[str, HeldTool], *, dry_run: bool
    ) -> SelectionResult:
        async def record(done: SelectionResult) -> None:
            attached = [choice.id for choice in done.attached if choice.id]
            detached = [choice.id for choice in done.detached if choice.id]
            await self._holdings.record(agent_id, attached, detached, datetime.now(UTC))

        return await change_agent_tools(self._host, agent_id, decide, tools, self._lock, record=record, dry_run=dry_run)

    async def _current_tools(self, agent_id: str, held: Sequence[HeldTool]) -> list[CurrentTool]:
        known, now = await self._holdings.attachments(agent_id), datetime.now(UTC)
        return [_make_current_tool(tool, known, now) for tool in held]


def to_host_tool(tool: CatalogueTool) -> HeldTool:
    """A tool of the catalogue in the form that a host takes."""
    if tool.kind is ToolKind.HOST:
        return HeldTool(tool.name, tool.description)
    return HeldTool(
        tool.api_name, tool.description, server=tool.server, remote_name=tool.name, parameters=tool.parameters
    )


def _make_candidate(finding: ToolMatch, name: str) -> ToolCandidate:
    tool = finding.tool
    role = role_of(tool.name, None if tool.kind is ToolKind.HOST else tool.server)
    return ToolCandidate(tool.id, name, finding.score, role, finding.exact)


def _make_current_tool(tool: HeldTool, known: Mapping[str, ToolAttachment], now: datetime) -> CurrentTool:
    found = _catalogue_id(tool)
    holding = known.get(found or "")
    # A tool that a person attached is the last to be detached.
    attached_at, used_at = (holding.attached_at, holding.used_at) if holding else (now, None)
    return CurrentTool(
        tool.name,
        found,
        role_of(tool.name, tool.server),
        attached_at,
        used_at,
        protected=_is_protected(tool),
        tags=frozenset(tool.tags),
    )


def _make_agent_tool(tool: HeldTool, known: Mapping[str, ToolAttachment]) -> AgentTool:
    found = _catalogue_id(tool)
    return AgentTool(tool, found, role_of(tool.name, tool.server), known.get(found or ""), _is_protected(tool))


def _is_protected(tool: HeldTool) -> bool:
    # A tool that asks for approval was set up by a person. If it were attached again, it would no longer ask.
    return tool.name in OWN_TOOLS or tool.needs_approval


def _catalogue_id(tool: HeldTool) -> str | None:
    """The catalogue's id of a tool; None if the host reaches its MCP server by itself, with any name."""
    if tool.server is None:
        return tool_id(HOST_SERVER, tool.name)
    remote = tool.remote_name or ""
    return tool_id(tool.server, remote) if tool.name == api_name(tool.server, remote, {}) else None
