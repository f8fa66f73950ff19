"""Carries a plan out with the agent host: bounded in time, and what fails is told and stops nothing else."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager

import anyio

from frontdesk.agents.host import AgentHost, HeldTool, ToolChange
from frontdesk.errors import Unavailable
from frontdesk.tools.selection.model import Choice, Plan, Selection

# Within the lease of the turnstile: whoever is in there is done, or gives up, before the next may come in.
CHANGE_SECONDS = 15
HELD_SECONDS = 25
LATE = "the agent host did not answer in {:.0f} s, and may have done it all the same"
SILENT = "the agent host does not say that it did"
LEFT = "it has left the catalogue meanwhile"

Decide = Callable[[Sequence[HeldTool]], Awaitable[Plan]]
TurnOf = Callable[[str], AbstractAsyncContextManager[object]]
Record = Callable[[Selection], Awaitable[None]]


async def select(
    host: AgentHost,
    agent_id: str,
    decide: Decide,
    tools: Mapping[str, HeldTool],
    turn_of: TurnOf,
    *,
    record: Record | None = None,
    dry_run: bool = False,
) -> Selection:
    """Read what an agent holds, decide, and carry it out, with nobody else changing the agent's tools in between.

    Most often there is nothing to change, and then nobody waits for anybody. `tools` has what may be attached, by id;
    `record` is told of what was done while the next still waits.
    """
    plan = await decide(await _held(host, agent_id))
    if dry_run or not plan.changes:
        return planned(plan, dry_run=dry_run)
    async with turn_of(agent_id):
        try:
            # Carried to its end though the caller may leave: what was given and not recorded would never give way.
            with anyio.fail_after(HELD_SECONDS, shield=True):
                plan = await decide(await host.tools(agent_id))
                done = await carry_out(host, agent_id, plan, tools)
                if record is not None and plan.changes:
                    await record(done)
        except TimeoutError as error:
            raise _silent() from error
        return done


async def carry_out(
    host: AgentHost,
    agent_id: str,
    plan: Plan,
    tools: Mapping[str, HeldTool],
    seconds: float = CHANGE_SECONDS,
) -> Selection:
    """Do what a plan says. What is not in `tools` cannot be attached."""
    if not plan.changes:
        return planned(plan)
    attach = {tool.name: tool for choice in plan.attach if (tool := tools.get(choice.id or "")) is not None}
    detach = [choice.name for choice in plan.detach]
    try:
        with anyio.fail_after(seconds):
            change = await host.change_tools(agent_id, list(attach.values()), detach)
    except TimeoutError:
        change = _undone([*attach, *detach], LATE.format(seconds))
    except Unavailable as error:
        # What was found is of use all the same: it can be called without being attached.
        change = _undone([*attach, *detach], error.public)
    why = {**dict.fromkeys((choice.name for choice in plan.attach if choice.name not in attach), LEFT), **change.failed}
    return Selection(
        attached=_done(plan.attach, change.attached),
        kept=plan.keep,
        detached=_done(plan.detach, change.detached),
        skipped=plan.skipped,
        failed=[
            *_failed(plan.attach, change.attached, "attached", why),
            *_failed(plan.detach, change.detached, "detached", why),
        ],
        unknown=plan.unknown,
    )


def planned(plan: Plan, *, dry_run: bool = False) -> Selection:
    """A plan as if it were done: for a dry run, and where there is nothing to do."""
    return Selection(plan.attach, plan.keep, plan.detach, plan.skipped, dry_run=dry_run, unknown=plan.unknown)


async def _held(host: AgentHost, agent_id: str) -> Sequence[HeldTool]:
    try:
        with anyio.fail_after(HELD_SECONDS):
            return await host.tools(agent_id)
    except TimeoutError as error:
        raise _silent() from error


def _undone(names: Iterable[str], why: str) -> ToolChange:
    return ToolChange(failed=dict.fromkeys(names, why))


def _done(choices: Iterable[Choice], names: Sequence[str]) -> list[Choice]:
    return [choice for choice in choices if choice.name in names]


def _failed(choices: Iterable[Choice], names: Sequence[str], what: str, why: Mapping[str, str]) -> list[Choice]:
    return [
        Choice(choice.name, choice.id, f"could not be {what}: {why.get(choice.name, SILENT)}", choice.score)
        for choice in choices
        if choice.name not in names
    ]


def _silent() -> Unavailable:
    return Unavailable(f"The agent host did not answer in {HELD_SECONDS} s; try again in a while")
